//! Tool calls: their payloads, and a tracker that puts the pieces of each call together.

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::protocol::{JsonObject, ToolCallId};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Identifies the call.
    pub tool_call_id: ToolCallId,
    /// Which tool is called.
    pub tool_name: String,
    /// With what.
    pub tool_input: JsonObject,
}

impl ToolCall {
    /// A call.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, input: JsonObject) -> Self {
        Self { tool_call_id: id.into(), tool_name: name.into(), tool_input: input }
    }

    /// Reads LangChain's form: `{id, name, args}`. A piece that has no id yet gets one; one without a name is none.
    pub fn from_langchain(call: &Value) -> Option<Self> {
        let name = call.get("name")?.as_str().filter(|name| !name.is_empty())?;
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let input = call.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
        Some(Self::new(id.map_or_else(ToolCallId::random, ToolCallId::from), name, input))
    }

    /// The payload of `tool_call_start`.
    pub fn to_start_event(&self) -> Value {
        json!({ "toolCallId": self.tool_call_id, "toolCallName": self.tool_name })
    }

    /// The payload of `tool_call_args`, for a piece of the arguments' JSON text.
    pub fn to_args_event(&self, delta: &str) -> Value {
        json!({ "toolCallId": self.tool_call_id, "delta": delta })
    }

    /// The payload of `tool_call_end`.
    pub fn to_end_event(&self) -> Value {
        json!({ "toolCallId": self.tool_call_id })
    }
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call that is answered.
    pub tool_call_id: ToolCallId,
    /// Which tool was called.
    pub tool_name: String,
    /// What it returned.
    pub output: String,
}

impl ToolResult {
    /// The payload of `tool_result`.
    pub fn to_event(&self) -> Value {
        json!({ "toolCallId": self.tool_call_id, "content": self.output, "role": "tool" })
    }
}

/// A call as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedCall {
    /// Identifies the call.
    pub id: ToolCallId,
    /// Which tool is called.
    pub name: String,
    /// The arguments' JSON text, as far as it has come.
    pub args: String,
    /// What the tool returned.
    pub result: Option<String>,
    /// Whether the arguments are all there.
    pub is_complete: bool,
}

impl TrackedCall {
    /// The arguments; empty while they are no whole object.
    pub fn arguments(&self) -> JsonObject {
        serde_json::from_str(&self.args).unwrap_or_default()
    }
}

/// The calls of a stream, in the order in which they began. Pieces of calls that never began are left out.
#[derive(Debug, Clone, Default)]
pub struct ToolCallState {
    calls: IndexMap<ToolCallId, TrackedCall>,
}

impl ToolCallState {
    /// A call begins; one with the same id is forgotten.
    pub fn start_tool_call(&mut self, id: impl Into<ToolCallId>, name: impl Into<String>) {
        let id = id.into();
        let call =
            TrackedCall { id: id.clone(), name: name.into(), args: String::new(), result: None, is_complete: false };
        self.calls.insert(id, call);
    }

    /// A piece of a call's arguments.
    pub fn append_args(&mut self, id: &str, delta: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.args.push_str(delta);
        }
    }

    /// A call's arguments are complete.
    pub fn complete_tool_call(&mut self, id: &str) -> Option<&TrackedCall> {
        let call = self.calls.get_mut(id)?;
        call.is_complete = true;
        Some(call)
    }

    /// A call was answered.
    pub fn set_result(&mut self, id: &str, result: impl Into<String>) {
        if let Some(call) = self.calls.get_mut(id) {
            call.result = Some(result.into());
        }
    }

    /// A call by its id.
    pub fn get(&self, id: &str) -> Option<&TrackedCall> {
        self.calls.get(id)
    }

    /// Calls whose arguments are not complete.
    pub fn active(&self) -> impl Iterator<Item = &TrackedCall> {
        self.calls.values().filter(|call| !call.is_complete)
    }

    /// All calls.
    pub fn calls(&self) -> impl Iterator<Item = &TrackedCall> {
        self.calls.values()
    }

    /// Forgets all calls.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}
