//! The tool calls of a stream, and the payloads of their events.

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::protocol::{JsonObject, ToolCallId};

/// A tool call in LangChain's form.
#[doc(alias = "ToolCall")]
#[derive(Debug, Clone, PartialEq)]
pub struct LangChainToolCall {
    /// The id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// The arguments.
    pub tool_input: JsonObject,
}

impl LangChainToolCall {
    /// A call.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, input: JsonObject) -> Self {
        Self { tool_call_id: id.into(), tool_name: name.into(), tool_input: input }
    }

    /// Reads `{id, name, args}` and generates a missing id. `None` without a name, as in chunks after the first.
    pub fn from_langchain(call: &Value) -> Option<Self> {
        let name = call.get("name")?.as_str().filter(|name| !name.is_empty())?;
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let input = call.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
        Some(Self::new(id.map_or_else(ToolCallId::random, ToolCallId::from), name, input))
    }

    /// Returns the payload of `tool_call_start`.
    #[doc(alias = "to_ag_ui_start_event")]
    pub fn to_start_event(&self) -> Value {
        json!({ "toolCallId": self.tool_call_id, "toolCallName": self.tool_name })
    }

    /// Returns the payload of `tool_call_args` for a part of the arguments' JSON text.
    #[doc(alias = "to_ag_ui_args_event")]
    pub fn to_args_event(&self, delta: &str) -> Value {
        json!({ "toolCallId": self.tool_call_id, "delta": delta })
    }

    /// Returns the payload of `tool_call_end`.
    #[doc(alias = "to_ag_ui_end_event")]
    pub fn to_end_event(&self) -> Value {
        json!({ "toolCallId": self.tool_call_id })
    }
}

/// The result of a tool call.
#[doc(alias = "ToolResult")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LangChainToolResult {
    /// The id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// The output.
    pub output: String,
}

impl LangChainToolResult {
    /// Returns the payload of `tool_result`.
    #[doc(alias = "to_ag_ui_event")]
    pub fn to_event(&self) -> Value {
        json!({ "toolCallId": self.tool_call_id, "content": self.output, "role": "tool" })
    }
}

/// A tool call that is being received.
#[doc(alias = "ToolCallTracker")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedToolCall {
    /// The id of the call.
    pub id: ToolCallId,
    /// The tool.
    pub name: String,
    /// The arguments' JSON text so far.
    pub args: String,
    /// The tool's result.
    pub result: Option<String>,
    /// True when the arguments are complete.
    pub is_complete: bool,
}

impl TrackedToolCall {
    /// Returns the arguments; an empty object until their text is a whole object.
    pub fn arguments(&self) -> JsonObject {
        serde_json::from_str(&self.args).unwrap_or_default()
    }
}

/// The tool calls of a stream, in the order of their starts. Deltas and results of unknown calls are ignored.
#[derive(Debug, Clone, Default)]
pub struct ToolCallState {
    calls: IndexMap<ToolCallId, TrackedToolCall>,
}

impl ToolCallState {
    /// Adds a call. It replaces a call with the same id.
    pub fn start_tool_call(&mut self, id: impl Into<ToolCallId>, name: impl Into<String>) {
        let id = id.into();
        let (name, args) = (name.into(), String::new());
        let call = TrackedToolCall { id: id.clone(), name, args, result: None, is_complete: false };
        self.calls.insert(id, call);
    }

    /// Appends a delta to a call's arguments.
    pub fn append_args(&mut self, id: &str, delta: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.args.push_str(delta);
        }
    }

    /// Marks a call's arguments as complete and returns the call.
    pub fn complete_tool_call(&mut self, id: &str) -> Option<&TrackedToolCall> {
        let call = self.calls.get_mut(id)?;
        call.is_complete = true;
        Some(call)
    }

    /// Sets a call's result.
    pub fn set_result(&mut self, id: &str, result: impl Into<String>) {
        if let Some(call) = self.calls.get_mut(id) {
            call.result = Some(result.into());
        }
    }

    /// Returns a call by its id.
    pub fn get(&self, id: &str) -> Option<&TrackedToolCall> {
        self.calls.get(id)
    }

    /// Returns the calls whose arguments are not complete.
    pub fn active(&self) -> impl Iterator<Item = &TrackedToolCall> {
        self.calls.values().filter(|call| !call.is_complete)
    }

    /// Returns all calls.
    pub fn calls(&self) -> impl Iterator<Item = &TrackedToolCall> {
        self.calls.values()
    }

    /// Removes all calls.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}
