//! A person's answers to interrupts as AG-UI resume entries.
//!
//! Only a clear yes approves: a decision to approve or edit, or one of the words that the question's options name. Any
//! other text is a refusal, and its reason.

use serde_json::{Value, json};

use super::{
    InvalidRequest,
    decision::{HitlDecision, HitlDecisionType},
    interrupt_kind::{InterruptKind, allowed_decisions, has_property},
    request::MessageBody,
};
use crate::protocol::{Interrupt, InterruptId, JsonObject, ResumeEntry, ResumeStatus};

/// The text, and the payload for the agent, of an answer that accepts the agent's work.
const ACCEPTED: &str = "ACCEPTED";

/// The content of an answer.
enum HumanAnswer {
    Approve,
    Edit(JsonObject),
    Reject(Option<String>),
    Text(String),
}

/// Returns the resume entries of an answer. A text answers all open interrupts. A decision answers the interrupt that it
/// names, by the interrupt's id or by the id of its tool call.
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
            let answer = HumanAnswer::of(decision);
            let Some(interrupt) = open.iter().find(is_named) else {
                // An earlier request may have answered it, and its response may have been lost.
                return Ok(entry(InterruptId::from(decision.action_id.as_str()), Some(approval(&answer, None, true))));
            };
            if !allowed_decisions(interrupt).contains(&decision.kind) && decision.kind == HitlDecisionType::Edit {
                let path = format!("{path}.decisions[{index}].type");
                return Err(InvalidRequest::new(path, "a decision that this action allows"));
            }
            Ok(resume_entry(interrupt, &answer))
        };
        return decisions.iter().enumerate().map(entry_of).collect();
    }
    let text = answer.as_text();
    let text = text.ok_or_else(|| InvalidRequest::new(path, "a text or decisions, to answer the open interrupts"))?;
    let entry_of = |interrupt| resume_entry(interrupt, &HumanAnswer::read(&text, &InterruptKind::of(interrupt)));
    Ok(open.iter().map(entry_of).collect())
}

impl HumanAnswer {
    fn of(decision: &HitlDecision) -> Self {
        match decision.kind {
            HitlDecisionType::Approve | HitlDecisionType::Accepted => Self::Approve,
            HitlDecisionType::Edit => Self::Edit(decision.args.clone().unwrap_or_default()),
            HitlDecisionType::Reject => Self::Reject(decision.reason.clone()),
            HitlDecisionType::Feedback => Self::Text(decision.reason.clone().unwrap_or_default()),
        }
    }

    fn read(text: &str, kind: &InterruptKind) -> Self {
        let word = text.trim();
        let is = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
        match kind {
            InterruptKind::Feedback(_) if is(&[ACCEPTED]) => Self::Approve,
            InterruptKind::Feedback(_) => Self::Text(text.to_owned()),
            InterruptKind::Form => match serde_json::from_str(word) {
                Ok(Value::Object(answer)) => Self::Edit(answer),
                _ => Self::Text(text.to_owned()),
            },
            _ if is(&[ACCEPTED, "approve", "approved"]) => Self::Approve,
            _ if is(&["reject", "rejected"]) => Self::Reject(None),
            _ => Self::Text(text.to_owned()),
        }
    }
}

fn resume_entry(interrupt: &Interrupt, answer: &HumanAnswer) -> ResumeEntry {
    use InterruptKind::{Action, Feedback, Form, Plan, Review};
    let schema = interrupt.response_schema.as_ref();
    let payload = match (InterruptKind::of(interrupt), answer) {
        (Feedback(_) | Form, HumanAnswer::Reject(_)) => None,
        (Feedback(_) | Form, HumanAnswer::Edit(answer)) => Some(Value::Object(answer.clone())),
        (Feedback(Some(member)), HumanAnswer::Approve) => Some(json!({ member: ACCEPTED })),
        (Feedback(Some(member)), HumanAnswer::Text(text)) => Some(json!({ member: text })),
        (Feedback(None) | Form, HumanAnswer::Approve) => Some(json!(ACCEPTED)),
        (Feedback(None) | Form, HumanAnswer::Text(text)) => Some(json!(text)),
        (Action, answer) => Some(approval(answer, schema, true)),
        (Plan(_) | Review, answer) => Some(approval(answer, schema, false)),
    };
    entry(interrupt.id.clone(), payload)
}

fn entry(interrupt_id: InterruptId, payload: Option<Value>) -> ResumeEntry {
    let status = if payload.is_some() { ResumeStatus::Resolved } else { ResumeStatus::Cancelled };
    ResumeEntry { interrupt_id, status, payload, metadata: None }
}

/// The payload of an answer that approves or refuses.
fn approval(answer: &HumanAnswer, schema: Option<&JsonObject>, is_action: bool) -> Value {
    let mut payload = JsonObject::new();
    payload.insert("approved".to_owned(), matches!(answer, HumanAnswer::Approve | HumanAnswer::Edit(_)).into());
    let reason = match answer {
        HumanAnswer::Edit(args) if is_action => {
            payload.insert("editedArgs".to_owned(), Value::Object(args.clone()));
            None
        }
        HumanAnswer::Edit(more) => {
            more.iter().filter(|(name, _)| *name != "approved").for_each(|(name, value)| {
                payload.insert(name.clone(), value.clone());
            });
            None
        }
        HumanAnswer::Reject(reason) => reason.clone(),
        HumanAnswer::Text(text) => Some(text.clone()),
        HumanAnswer::Approve => None,
    };
    if let Some(reason) = reason.filter(|_| schema.is_none_or(|schema| accepts(schema, "reason"))) {
        payload.insert("reason".to_owned(), reason.into());
    }
    Value::Object(payload)
}

/// Returns whether an answer of a schema can have a member.
fn accepts(schema: &JsonObject, member: &str) -> bool {
    has_property(schema, member) || schema.get("additionalProperties") != Some(&Value::Bool(false))
}
