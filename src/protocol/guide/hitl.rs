//! People in the loop: what the `interrupt` event asks, and what is answered.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{make_event, request::Fault};
use crate::protocol::{InterruptId, JsonObject};

/// What somebody can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HitlDecisionType {
    /// As it is.
    Approve,
    /// With other arguments.
    Edit,
    /// Not at all.
    Reject,
    /// The work is done.
    Accepted,
    /// The work goes on, with what somebody says about it.
    Feedback,
}

/// One of the answers that a page can offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitlOption {
    /// What a button says.
    pub label: String,
    /// What it stands for.
    pub value: HitlDecisionType,
}

/// Something that an agent wants to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionRequest {
    /// Identifies the action; the decision about it names it.
    pub action_id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: JsonObject,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What can be decided about the actions of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewConfig {
    /// The tool.
    pub action_name: String,
    /// What can be decided.
    #[serde(rename = "allowedDecisions")]
    pub allowed_decisions: Vec<HitlDecisionType>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is to be done.
    pub description: String,
    /// `enabled`, or another word of the agent's.
    pub status: String,
}

/// What an interrupt is about, beside its text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HitlContext {
    /// The steps of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<PlanStep>>,
    /// The JSON Schema of the answer, when it is none of the guide's: the text of the answer is then JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<JsonObject>,
}

/// The payload of `interrupt`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitlRequest {
    /// Identifies the question.
    pub id: String,
    /// The conversation, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// What is asked.
    pub content: String,
    /// Always `interrupt`.
    pub finish_reason: String,
    /// What can be answered.
    pub options: Vec<HitlOption>,
    /// The actions that are to be decided about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub action_requests: Vec<ActionRequest>,
    /// What can be decided about each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub review_configs: Vec<ReviewConfig>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<HitlContext>,
}

impl HitlOption {
    fn new(label: &str, value: HitlDecisionType) -> Self {
        Self { label: label.to_owned(), value }
    }

    /// The answers to a question: accept, or say more.
    pub fn feedback() -> Vec<Self> {
        vec![Self::new("Accept", HitlDecisionType::Accepted), Self::new("Provide Feedback", HitlDecisionType::Feedback)]
    }

    /// The answers to actions and plans: approve, edit, reject; those of them that are allowed.
    pub fn review(allowed: &[HitlDecisionType]) -> Vec<Self> {
        use HitlDecisionType::{Approve, Edit, Reject};
        let all = [("Approve", Approve), ("Edit", Edit), ("Reject", Reject)];
        let allowed = all.into_iter().filter(|(_, value)| allowed.contains(value));
        allowed.map(|(label, value)| Self::new(label, value)).collect()
    }
}

/// What can be decided about an action, unless somebody says less.
pub const REVIEW: [HitlDecisionType; 3] = [HitlDecisionType::Approve, HitlDecisionType::Edit, HitlDecisionType::Reject];

impl HitlRequest {
    /// A question for feedback.
    pub fn new(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            thread_id: None,
            content: content.into(),
            finish_reason: "interrupt".to_owned(),
            options: HitlOption::feedback(),
            action_requests: Vec::new(),
            review_configs: Vec::new(),
            context: None,
        }
    }

    /// Asks for decisions about actions.
    pub fn for_actions(mut self, actions: Vec<ActionRequest>, configs: Vec<ReviewConfig>) -> Self {
        let offered = REVIEW.into_iter().filter(|decision| {
            configs.is_empty() || configs.iter().any(|config| config.allowed_decisions.contains(decision))
        });
        self.options = HitlOption::review(&offered.collect::<Vec<_>>());
        self.action_requests = actions;
        self.review_configs = configs;
        self
    }

    /// Asks for a review of a plan.
    pub fn for_plan(mut self, steps: Vec<PlanStep>) -> Self {
        self.options = HitlOption::review(&REVIEW);
        self.context.get_or_insert_default().steps = Some(steps);
        self
    }

    /// Reads the value of a LangGraph interrupt: a text to ask, or an object with `action_requests`, with `steps`, or
    /// with a `content` alone.
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

    /// The event on the wire.
    pub fn to_event(&self, thread_id: &str) -> String {
        make_event("interrupt", &Self { thread_id: Some(thread_id.to_owned()), ..self.clone() })
    }
}

/// An `interrupt` event that asks for feedback.
pub fn create_interrupt_event(content: &str, thread_id: &str) -> String {
    HitlRequest::from_langgraph_interrupt(&json!(content), thread_id).to_event(thread_id)
}

/// A decision about one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HitlDecision {
    /// The action.
    pub action_id: String,
    /// What was decided.
    #[serde(rename = "type")]
    pub kind: HitlDecisionType,
    /// Other arguments, with `edit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<JsonObject>,
    /// Why, with `reject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl HitlDecision {
    pub(super) fn read(decision: &Value, path: &str) -> Result<Self, Fault> {
        let decision = Self::deserialize(decision)
            .map_err(|error| Fault::new(path, format!("a decision, {{actionId, type, args?, reason?}}: {error}")))?;
        if decision.kind == HitlDecisionType::Edit && decision.args.is_none() {
            return Err(Fault::new(format!("{path}.args"), "the arguments to use instead"));
        }
        Ok(decision)
    }
}

/// What somebody answered to one interrupt.
#[derive(Debug, Clone, PartialEq)]
pub struct HitlResponse {
    /// The interrupt.
    pub interrupt_id: InterruptId,
    /// What was said.
    pub feedback: Option<String>,
    /// What was decided about its actions.
    pub decisions: Vec<HitlDecision>,
}

impl HitlResponse {
    /// What was said about an interrupt.
    pub fn feedback(interrupt_id: impl Into<InterruptId>, feedback: impl Into<String>) -> Self {
        Self { interrupt_id: interrupt_id.into(), feedback: Some(feedback.into()), decisions: Vec::new() }
    }

    /// What was decided about an interrupt's actions.
    pub fn decisions(interrupt_id: impl Into<InterruptId>, decisions: Vec<HitlDecision>) -> Self {
        Self { interrupt_id: interrupt_id.into(), feedback: None, decisions }
    }

    /// The value that LangGraph's `interrupt()` returns: the text, or `{decisions}`.
    pub fn to_langgraph_resume(&self) -> Value {
        match &self.feedback {
            Some(feedback) if self.decisions.is_empty() => json!(feedback),
            _ => json!({ "decisions": self.decisions }),
        }
    }
}

/// Whether a conversation waits for somebody.
#[derive(Debug, Clone, Default)]
pub struct HitlState {
    pending: Option<HitlRequest>,
    answered: usize,
}

impl HitlState {
    /// The agent asks. What was open before is forgotten.
    pub fn interrupt(&mut self, request: HitlRequest) {
        self.pending = Some(request);
    }

    /// What is open.
    pub fn pending(&self) -> Option<&HitlRequest> {
        self.pending.as_ref()
    }

    /// How many questions were answered.
    pub fn answered(&self) -> usize {
        self.answered
    }

    /// Somebody answers. `None` for an answer to something else; it stays open then.
    pub fn respond(&mut self, response: &HitlResponse) -> Option<Value> {
        self.pending.take_if(|request| response.interrupt_id == *request.id)?;
        self.answered += 1;
        Some(response.to_langgraph_resume())
    }
}
