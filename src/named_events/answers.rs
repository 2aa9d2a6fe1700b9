//! A person's answers to interrupts as AG-UI resume entries. [`ApprovalDecision`] decides which texts approve.

use serde_json::{Value, json};

use super::{
    InvalidRequest,
    decision::{HitlDecision, HitlDecisionType},
    interrupt_kind::{InterruptKind, allowed_decisions},
    request::MessageBody,
};
use crate::protocol::{
    Interrupt, InterruptId, JsonObject, ResumeEntry, ResumeStatus,
    approval::{ApprovalDecision, allows_reason},
};

/// The text, and the payload for the agent, of an answer that accepts the agent's work.
const ACCEPTED: &str = "ACCEPTED";

#[derive(Clone, Copy)]
enum HumanAnswer<'a> {
    Text(&'a str),
    Decision(&'a HitlDecision),
}

/// A text answers all open interrupts. A decision answers the one that it names, by its id or that of its tool call.
///
/// # Errors
/// Returns an error at or below `path` if the answer has images or other files, or takes a decision that is not allowed.
pub(super) fn resume_entries(
    open: &[Interrupt],
    answer: &MessageBody,
    path: &str,
) -> Result<Vec<ResumeEntry>, InvalidRequest> {
    if let MessageBody::Decisions(decisions) = answer {
        let entry_of = |(index, decision): (usize, &HitlDecision)| {
            let is_named = |interrupt: &&Interrupt| {
                let call = interrupt.tool_call_id.as_ref();
                interrupt.id == *decision.action_id || call.is_some_and(|call| *call == *decision.action_id)
            };
            let answer = HumanAnswer::Decision(decision);
            let Some(interrupt) = open.iter().find(is_named) else {
                // An earlier request may have answered it, and its response may have been lost.
                let payload = Value::Object(action_payload(answer.approval(), None));
                return Ok(entry(InterruptId::from(decision.action_id.as_str()), Some(payload)));
            };
            if decision.kind == HitlDecisionType::Edit && !allowed_decisions(interrupt).contains(&decision.kind) {
                let path = format!("{path}.decisions[{index}].type");
                return Err(InvalidRequest::new(path, "a decision that this action allows"));
            }
            Ok(resume_entry(interrupt, answer))
        };
        return decisions.iter().enumerate().map(entry_of).collect();
    }
    let text = answer.as_text();
    let text = text.ok_or_else(|| InvalidRequest::new(path, "a text or decisions, to answer the open interrupts"))?;
    Ok(open.iter().map(|interrupt| resume_entry(interrupt, HumanAnswer::Text(&text))).collect())
}

fn resume_entry(interrupt: &Interrupt, answer: HumanAnswer<'_>) -> ResumeEntry {
    let schema = interrupt.response_schema.as_ref();
    let payload = match InterruptKind::of(interrupt) {
        InterruptKind::Action => Some(Value::Object(action_payload(answer.approval(), schema))),
        InterruptKind::Plan(_) | InterruptKind::Review => {
            Some(Value::Object(review_payload(answer.approval(), schema)))
        }
        InterruptKind::Form => answer.form(),
        InterruptKind::Feedback(None) => answer.feedback(),
        InterruptKind::Feedback(Some(member)) => answer.feedback().map(|value| match value {
            Value::String(_) => json!({ member: value }),
            _ => value,
        }),
    };
    entry(interrupt.id.clone(), payload)
}

fn entry(interrupt_id: InterruptId, payload: Option<Value>) -> ResumeEntry {
    let status = if payload.is_some() { ResumeStatus::Resolved } else { ResumeStatus::Cancelled };
    ResumeEntry { interrupt_id, status, payload, metadata: None }
}

/// The payload about a tool call: edited members are its arguments.
fn action_payload(decision: ApprovalDecision, schema: Option<&JsonObject>) -> JsonObject {
    match decision {
        ApprovalDecision::Declined { reason: Some(_) } if schema.is_some_and(|schema| !allows_reason(schema)) => {
            ApprovalDecision::Declined { reason: None }.to_payload()
        }
        decision => decision.to_payload(),
    }
}

/// The payload about a plan or another question for approval: edited members are members of the answer.
fn review_payload(decision: ApprovalDecision, schema: Option<&JsonObject>) -> JsonObject {
    let ApprovalDecision::Approved { edited_args: Some(edited) } = decision else {
        return action_payload(decision, schema);
    };
    let mut payload = ApprovalDecision::Approved { edited_args: None }.to_payload();
    for (name, value) in edited {
        payload.entry(name).or_insert(value);
    }
    payload
}

impl HumanAnswer<'_> {
    fn approval(self) -> ApprovalDecision {
        let decision = match self {
            Self::Text(text) => return ApprovalDecision::of_text(text),
            Self::Decision(decision) => decision,
        };
        match decision.kind {
            HitlDecisionType::Approve | HitlDecisionType::Accepted => ApprovalDecision::Approved { edited_args: None },
            HitlDecisionType::Edit => {
                ApprovalDecision::Approved { edited_args: Some(decision.args.clone().unwrap_or_default()) }
            }
            HitlDecisionType::Reject | HitlDecisionType::Feedback => {
                ApprovalDecision::Declined { reason: decision.reason.clone() }
            }
        }
    }

    /// `None` cancels the interrupt.
    fn feedback(self) -> Option<Value> {
        match self {
            Self::Text(text) if text.trim().eq_ignore_ascii_case(ACCEPTED) => Some(json!(ACCEPTED)),
            Self::Text(text) => Some(json!(text)),
            Self::Decision(decision) => match decision.kind {
                HitlDecisionType::Approve | HitlDecisionType::Accepted => Some(json!(ACCEPTED)),
                HitlDecisionType::Edit => Some(Value::Object(decision.args.clone().unwrap_or_default())),
                HitlDecisionType::Reject => None,
                HitlDecisionType::Feedback => Some(json!(decision.reason.as_deref().unwrap_or_default())),
            },
        }
    }

    /// A text that is not a JSON object is passed on, and the form's schema refuses it.
    fn form(self) -> Option<Value> {
        match self {
            Self::Text(text) => match serde_json::from_str(text) {
                Ok(answer @ Value::Object(_)) => Some(answer),
                _ => Some(json!(text)),
            },
            Self::Decision(_) => self.feedback(),
        }
    }
}
