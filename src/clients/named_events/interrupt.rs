//! The payload of the `interrupt` event: a question to a person.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decision::{HitlDecisionType, REVIEW_DECISIONS};
use agui_protocol::JsonObject;

/// The payload of an `interrupt` event. HITL stands for *human in the loop*.
#[doc(alias = "HITLRequest")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = NamedEventInterrupt)]
pub struct HitlRequest {
    /// The id of the question.
    pub id: String,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The text of the question.
    pub content: String,
    /// Always `interrupt`.
    #[schema(pattern = "^interrupt$")]
    pub finish_reason: String,
    /// The replies that a page offers.
    #[schema(inline)]
    pub options: Vec<HitlOption>,
    /// The actions to decide about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline)]
    pub action_requests: Vec<ActionRequest>,
    /// The decisions that are allowed, by action name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline)]
    pub review_configs: Vec<ReviewConfig>,
    /// The steps of a plan, or the schema of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub context: Option<HitlContext>,
}

/// A reply that a page offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HitlOption {
    /// The text of a button.
    pub label: String,
    /// The decision it stands for.
    pub value: HitlDecisionType,
}

/// An action that an agent wants to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionRequest {
    /// The id of the action, which its decision names.
    pub action_id: String,
    /// The tool.
    pub name: String,
    /// The tool's arguments.
    #[schema(value_type = Object)]
    pub arguments: JsonObject,
    /// A description for the person who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The decisions that are allowed about the actions of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewConfig {
    /// The tool.
    pub action_name: String,
    /// The decisions.
    #[serde(rename = "allowedDecisions")]
    pub allowed_decisions: Vec<HitlDecisionType>,
}

/// Details of a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HitlContext {
    /// The steps of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub steps: Option<Vec<PlanStep>>,
    /// The JSON Schema of a form. The text of the reply is JSON of this schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<JsonObject>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// The work of the step.
    pub description: String,
    /// `enabled`, or a word of the agent's.
    pub status: String,
}

impl HitlOption {
    /// The replies to a question for feedback: accept, or give feedback.
    pub fn feedback() -> Vec<Self> {
        vec![
            Self::new("Accept", HitlDecisionType::Accepted),
            Self::new("Provide Feedback", HitlDecisionType::Feedback),
        ]
    }

    /// The replies to actions and plans: those of approve, edit and reject that are allowed.
    pub fn review(allowed: &[HitlDecisionType]) -> Vec<Self> {
        let labels = ["Approve", "Edit", "Reject"].into_iter().zip(REVIEW_DECISIONS);
        labels
            .filter(|(_, value)| allowed.contains(value))
            .map(|(label, value)| Self::new(label, value))
            .collect()
    }

    fn new(label: &str, value: HitlDecisionType) -> Self {
        Self { label: label.to_owned(), value }
    }
}

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
    #[must_use]
    pub fn for_actions(mut self, actions: Vec<ActionRequest>, configs: Vec<ReviewConfig>) -> Self {
        let offered = REVIEW_DECISIONS.into_iter().filter(|decision| {
            configs.is_empty()
                || configs.iter().any(|config| config.allowed_decisions.contains(decision))
        });
        self.options = HitlOption::review(&offered.collect::<Vec<_>>());
        self.action_requests = actions;
        self.review_configs = configs;
        self
    }

    /// Asks for a review of a plan.
    #[must_use]
    pub fn for_plan(mut self, steps: Vec<PlanStep>) -> Self {
        self.options = HitlOption::review(&REVIEW_DECISIONS);
        self.context.get_or_insert_default().steps = Some(steps);
        self
    }
}
