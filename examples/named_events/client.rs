//! Types for a client of the named-event endpoints in Rust, to be copied into your program: the models and trackers of the
//! "AG-UI Protocol Implementation Guide", found by its names too. Beside agui-server it needs the crates `indexmap`, `serde`,
//! `serde_json` and `uuid`.

use agui_server::{
    named_events::{HitlDecision, HitlRequest, make_event},
    protocol::{InterruptId, JsonObject, ToolCallId},
};
use indexmap::IndexMap;
use serde::Deserialize as _;
use serde_json::{Value, json};

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

/// The reasoning between `reasoning_start` and `reasoning_end`.
#[doc(alias = "ReasoningTracker")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningSession {
    /// The `messageId` of all its events.
    pub id: String,
    /// The text so far.
    pub content: String,
    /// True after `reasoning_end`.
    pub is_complete: bool,
}

/// The last session of a stream.
#[derive(Debug, Clone, Default)]
pub struct ReasoningState {
    session: Option<ReasoningSession>,
}

impl ReasoningState {
    /// Begins a session with a random id, `reasoning-…`, and returns the id. An open session continues instead.
    pub fn start_reasoning(&mut self) -> &str {
        self.start_with_id(format!("reasoning-{}", uuid::Uuid::new_v4().simple()))
    }

    /// Begins a session with this id, and returns the id. An open session continues instead.
    pub fn start_with_id(&mut self, id: impl Into<String>) -> &str {
        let session = match self.session.take() {
            Some(session) if !session.is_complete => session,
            _ => ReasoningSession { id: id.into(), content: String::new(), is_complete: false },
        };
        &self.session.insert(session).id
    }

    /// Appends a delta to the open session, if there is one.
    pub fn append(&mut self, delta: &str) {
        if let Some(session) = self.session.as_mut().filter(|session| !session.is_complete) {
            session.content.push_str(delta);
        }
    }

    /// Ends the open session, if there is one, and returns its id.
    pub fn end_reasoning(&mut self) -> Option<&str> {
        let session = self.session.as_mut().filter(|session| !session.is_complete)?;
        session.is_complete = true;
        Some(&session.id)
    }

    /// Returns whether a session is open.
    pub fn is_reasoning(&self) -> bool {
        self.session.as_ref().is_some_and(|session| !session.is_complete)
    }

    /// Returns the last session, open or ended.
    pub fn session(&self) -> Option<&ReasoningSession> {
        self.session.as_ref()
    }
}

/// Returns the reasoning of LangChain's content blocks in one text; `None` if there is no reasoning.
#[doc(alias = "extract_reasoning_from_content_blocks")]
pub fn extract_reasoning(blocks: &[Value]) -> Option<String> {
    let reasoning =
        blocks.iter().filter(|block| block.get("type").is_some_and(|kind| kind == "reasoning"));
    let text: String = reasoning.filter_map(|block| block.get("reasoning")?.as_str()).collect();
    (!text.is_empty()).then_some(text)
}

/// Reads the value of a LangGraph interrupt: the text of a question, or an object with `action_requests`, with `steps`, or
/// with `content` alone.
#[doc(alias = "from_langraph_interrupt")]
pub fn from_langgraph_interrupt(value: &Value, thread_id: &str) -> HitlRequest {
    let id = format!("interrupt-{}", uuid::Uuid::new_v4().simple());
    let content = value.as_str().or_else(|| value.get("content")?.as_str());
    let content = content.unwrap_or("The agent waits for an answer.");
    let mut request = HitlRequest::new(id, content);
    request.thread_id = Some(thread_id.to_owned());
    let list = |name: &str| {
        value.get(name).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
    };
    if let Some(actions) = list("action_requests").and_then(|list| Vec::deserialize(list).ok()) {
        let configs =
            list("review_configs").and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default();
        request = request.for_actions(actions, configs);
    } else if let Some(steps) = list("steps").and_then(|list| Vec::deserialize(list).ok()) {
        request = request.for_plan(steps);
    }
    request
}

/// Returns the frame of the `interrupt` event of a question.
#[doc(alias = "to_ag_ui_event")]
pub fn interrupt_event(request: &HitlRequest, thread_id: &str) -> String {
    make_event(
        "interrupt",
        &HitlRequest { thread_id: Some(thread_id.to_owned()), ..request.clone() },
    )
}

/// Returns the frame of an `interrupt` event that asks for feedback.
#[doc(alias = "create_hitl_interrupt_event")]
pub fn create_interrupt_event(content: &str, thread_id: &str) -> String {
    interrupt_event(&from_langgraph_interrupt(&json!(content), thread_id), thread_id)
}

/// A person's reply to one question.
#[doc(alias = "HITLResponse")]
#[derive(Debug, Clone, PartialEq)]
pub struct HitlResponse {
    /// The id of the question.
    pub interrupt_id: InterruptId,
    /// A text.
    pub feedback: Option<String>,
    /// Decisions about the question's actions.
    pub decisions: Vec<HitlDecision>,
}

impl HitlResponse {
    /// A reply that is a text.
    pub fn feedback(interrupt_id: impl Into<InterruptId>, feedback: impl Into<String>) -> Self {
        Self {
            interrupt_id: interrupt_id.into(),
            feedback: Some(feedback.into()),
            decisions: Vec::new(),
        }
    }

    /// A reply with decisions about actions.
    pub fn decisions(interrupt_id: impl Into<InterruptId>, decisions: Vec<HitlDecision>) -> Self {
        Self { interrupt_id: interrupt_id.into(), feedback: None, decisions }
    }

    /// Returns the value of LangGraph's `interrupt()` and `content` of the answering message: text or `{decisions}`.
    #[doc(alias = "to_langraph_resume")]
    pub fn to_langgraph_resume(&self) -> Value {
        match &self.feedback {
            Some(feedback) if self.decisions.is_empty() => json!(feedback),
            _ => json!({ "decisions": self.decisions }),
        }
    }
}

/// The open question of a conversation.
#[doc(alias = "HITLState")]
#[derive(Debug, Clone, Default)]
pub struct HitlState {
    pending: Option<HitlRequest>,
    answered: usize,
}

impl HitlState {
    /// Records a question. It replaces an open one.
    pub fn interrupt(&mut self, request: HitlRequest) {
        self.pending = Some(request);
    }

    /// Returns the open question.
    pub fn pending(&self) -> Option<&HitlRequest> {
        self.pending.as_ref()
    }

    /// Returns the number of answered questions.
    pub fn answered(&self) -> usize {
        self.answered
    }

    /// Records a reply and returns its [value](HitlResponse::to_langgraph_resume), if its question is open.
    pub fn respond(&mut self, response: &HitlResponse) -> Option<Value> {
        self.pending.take_if(|request| response.interrupt_id == *request.id)?;
        self.answered += 1;
        Some(response.to_langgraph_resume())
    }
}
