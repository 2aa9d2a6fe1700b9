//! Questions from LangGraph interrupts, and their replies.

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{
    http::dialects::named_events::{HitlDecision, HitlRequest, make_event},
    protocol::InterruptId,
};

impl HitlRequest {
    /// Reads the value of a LangGraph interrupt: the text of a question, or an object with `action_requests`, with
    /// `steps`, or with `content` alone.
    #[doc(alias = "from_langraph_interrupt")]
    pub fn from_langgraph_interrupt(value: &Value, thread_id: &str) -> Self {
        let id = format!("interrupt-{}", uuid::Uuid::new_v4().simple());
        let content = value.as_str().or_else(|| value.get("content")?.as_str());
        let content = content.unwrap_or("The agent waits for an answer.");
        let mut request = Self::new(id, content);
        request.thread_id = Some(thread_id.to_owned());
        let list = |name: &str| value.get(name).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
        if let Some(actions) = list("action_requests").and_then(|list| Vec::deserialize(list).ok()) {
            let configs = list("review_configs").and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default();
            request = request.for_actions(actions, configs);
        } else if let Some(steps) = list("steps").and_then(|list| Vec::deserialize(list).ok()) {
            request = request.for_plan(steps);
        }
        request
    }

    /// Returns the frame of the `interrupt` event.
    #[doc(alias = "to_ag_ui_event")]
    pub fn to_event(&self, thread_id: &str) -> String {
        make_event("interrupt", &Self { thread_id: Some(thread_id.to_owned()), ..self.clone() })
    }
}

/// Returns the frame of an `interrupt` event that asks for feedback.
#[doc(alias = "create_hitl_interrupt_event")]
pub fn create_interrupt_event(content: &str, thread_id: &str) -> String {
    HitlRequest::from_langgraph_interrupt(&json!(content), thread_id).to_event(thread_id)
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
        Self { interrupt_id: interrupt_id.into(), feedback: Some(feedback.into()), decisions: Vec::new() }
    }

    /// A reply that is decisions about actions.
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

    /// Returns how many questions were answered.
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
