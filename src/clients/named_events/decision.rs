//! A person's decisions about actions, as a client sends them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::InvalidRequest;
use agui_protocol::JsonObject;

/// The kinds of decisions. HITL stands for *human in the loop*.
#[doc(alias = "HITLDecisionType")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = NamedEventDecisionType)]
pub enum HitlDecisionType {
    /// Run the action as it is.
    Approve,
    /// Run the action with other arguments.
    Edit,
    /// Do not run the action.
    Reject,
    /// Accept the agent's work.
    Accepted,
    /// Continue the agent's work, with this feedback.
    Feedback,
}

/// A decision about one action.
#[doc(alias = "HITLDecision")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NamedEventDecision)]
pub struct HitlDecision {
    /// The action's id.
    pub action_id: String,
    /// The kind of decision.
    #[serde(rename = "type")]
    pub kind: HitlDecisionType,
    /// The arguments to change, as a JSON merge patch (RFC 7386); required with `edit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub args: Option<JsonObject>,
    /// The reason for `reject`, or the text of `feedback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The decisions that can be taken about an action by default.
pub(super) const REVIEW_DECISIONS: [HitlDecisionType; 3] =
    [HitlDecisionType::Approve, HitlDecisionType::Edit, HitlDecisionType::Reject];

impl HitlDecision {
    pub(super) fn read(decision: &Value, path: &str) -> Result<Self, InvalidRequest> {
        let has_action =
            decision.get("actionId").and_then(Value::as_str).is_some_and(|id| !id.is_empty());
        if decision.is_object() && !has_action {
            return Err(InvalidRequest::new(
                format!("{path}.actionId"),
                "the id of an action of the open question",
            ));
        }
        let decision = Self::deserialize(decision).map_err(|error| {
            InvalidRequest::new(
                path,
                format!("a decision, {{actionId, type, args?, reason?}}: {error}"),
            )
        })?;
        if decision.kind == HitlDecisionType::Edit && decision.args.is_none() {
            return Err(InvalidRequest::new(format!("{path}.args"), "the arguments to change"));
        }
        Ok(decision)
    }
}
