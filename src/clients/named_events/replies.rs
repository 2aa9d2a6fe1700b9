//! A person's replies to interrupts as AG-UI resume entries. [`ApprovalDecision`] decides which texts approve.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    InvalidRequest,
    decision::{HitlDecision, HitlDecisionType},
    interrupt_kind::{InterruptKind, allowed_decisions},
    request::MessageBody,
};
use agui_base::text::short_name;
use agui_protocol::{
    Interrupt, JsonObject, ResumeEntry, ResumeStatus, ToolCallId,
    approval::{ApprovalDecision, allows_reason},
    decode::decode_value,
};
use agui_run::host::has_expired;

/// The text, and the payload for the agent, of a reply that accepts the agent's work.
const ACCEPTED: &str = "ACCEPTED";
const MAX_LISTED_ACTIONS: usize = 10;

#[derive(Clone, Copy)]
enum HumanReply<'a> {
    Text(&'a str),
    Decision(&'a HitlDecision),
}

/// The replies that a message gives, and the reason why the open questions have to be asked again.
#[derive(Debug)]
pub(super) struct ReadReply {
    pub(super) entries: Vec<ResumeEntry>,
    pub(super) problem: Option<ReplyProblem>,
}

/// The reason for asking open questions again.
#[derive(Debug, PartialEq)]
pub(super) enum ReplyProblem {
    /// This text is neither a yes nor a no.
    Unclear(String),
    /// The decisions say nothing about these questions.
    Undecided(Vec<String>),
}

impl ReplyProblem {
    /// Returns the text of a question with the problem before it, in the language of the question.
    pub(super) fn before(&self, question: &str) -> String {
        let is_chinese = question.chars().any(|char| ('\u{4e00}'..='\u{9fff}').contains(&char));
        let problem = match (self, is_chinese) {
            (Self::Unclear(text), false) => {
                format!("{text:?} is neither a yes nor a no. Answer \"approve\" or \"reject\".")
            }
            (Self::Unclear(text), true) => {
                format!("“{text}”既不是同意，也不是拒绝。请回答“同意”或“拒绝”。")
            }
            (Self::Undecided(about), false) => {
                format!("No decision was sent about: {}.", about.join("; "))
            }
            (Self::Undecided(about), true) => format!("还没有决定：{}。", about.join("；")),
        };
        format!("{problem}\n\n{question}")
    }
}

/// Reads a reply. A text replies to all open interrupts. A decision replies to the one that it names, by its id or that of its
/// tool call. `calls` has the arguments of the calls that the interrupts are about, for edits.
///
/// # Errors
/// Returns an error at or below `path` if the reply has images or other files, names an action that is not open, or
/// takes a decision that is not allowed.
pub(super) fn read_reply(
    open: &[Interrupt],
    reply: &MessageBody,
    calls: &HashMap<ToolCallId, JsonObject>,
    path: &str,
) -> Result<ReadReply, InvalidRequest> {
    if let MessageBody::Decisions(decisions) = reply {
        return read_decisions(open, decisions, calls, path);
    }
    let text = reply.as_text();
    let text = text.ok_or_else(|| {
        InvalidRequest::new(path, "a text or decisions, to answer the open interrupts")
    })?;
    let is_approval = |interrupt: &Interrupt| {
        matches!(
            InterruptKind::from_interrupt(interrupt),
            InterruptKind::Action | InterruptKind::Plan(_) | InterruptKind::Review
        )
    };
    // An expired interrupt can only be cancelled, which any reply does.
    let needs_clear_reply =
        |interrupt: &Interrupt| is_approval(interrupt) && !has_expired(interrupt);
    if ApprovalDecision::from_text(&text) == ApprovalDecision::Unclear
        && open.iter().any(needs_clear_reply)
    {
        let shown = short_name(text.trim());
        return Ok(ReadReply { entries: Vec::new(), problem: Some(ReplyProblem::Unclear(shown)) });
    }
    let entries = open
        .iter()
        .map(|interrupt| resume_entry(interrupt, HumanReply::Text(&text), calls))
        .collect();
    Ok(ReadReply { entries, problem: None })
}

fn read_decisions(
    open: &[Interrupt],
    decisions: &[HitlDecision],
    calls: &HashMap<ToolCallId, JsonObject>,
    path: &str,
) -> Result<ReadReply, InvalidRequest> {
    let mut entries = Vec::with_capacity(decisions.len());
    for (index, decision) in decisions.iter().enumerate() {
        let is_named = |interrupt: &&Interrupt| {
            let call = interrupt.tool_call_id.as_ref();
            interrupt.id == *decision.action_id
                || call.is_some_and(|call| *call == *decision.action_id)
        };
        let Some(interrupt) = open.iter().find(is_named) else {
            let ids: Vec<_> = open
                .iter()
                .take(MAX_LISTED_ACTIONS)
                .map(|open| format!("{:?}", &*open.id))
                .collect();
            let unknown = short_name(&decision.action_id);
            let expected =
                format!("the id of an open action ({}), found {unknown:?}", ids.join(", "));
            return Err(InvalidRequest::new(
                format!("{path}.decisions[{index}].actionId"),
                expected,
            ));
        };
        if decision.kind == HitlDecisionType::Edit
            && !allowed_decisions(interrupt).contains(&decision.kind)
        {
            let path = format!("{path}.decisions[{index}].type");
            return Err(InvalidRequest::new(path, "a decision that this action allows"));
        }
        entries.push(resume_entry(interrupt, HumanReply::Decision(decision), calls));
    }
    let has_no_entry =
        |interrupt: &&Interrupt| entries.iter().all(|entry| entry.interrupt_id != interrupt.id);
    let about = |interrupt: &Interrupt| {
        interrupt.message.clone().unwrap_or_else(|| interrupt.id.to_string())
    };
    let undecided: Vec<_> = open.iter().filter(has_no_entry).map(about).collect();
    let problem = (!undecided.is_empty()).then_some(ReplyProblem::Undecided(undecided));
    Ok(ReadReply { entries, problem })
}

fn resume_entry(
    interrupt: &Interrupt,
    reply: HumanReply<'_>,
    calls: &HashMap<ToolCallId, JsonObject>,
) -> ResumeEntry {
    let schema = interrupt.response_schema.as_ref();
    let payload = match InterruptKind::from_interrupt(interrupt) {
        InterruptKind::Action => {
            let mut decision = reply.approval();
            if let ApprovalDecision::Approved { edited_args: Some(edited) } = &mut decision
                && let Some(arguments) =
                    interrupt.tool_call_id.as_ref().and_then(|id| calls.get(id))
            {
                *edited = merged(arguments.clone(), edited);
            }
            Some(Value::Object(action_payload(decision, schema)))
        }
        InterruptKind::Plan(_) | InterruptKind::Review => {
            Some(Value::Object(review_payload(reply.approval(), schema)))
        }
        InterruptKind::Form => reply.form(),
        InterruptKind::Feedback(None) => reply.feedback(),
        InterruptKind::Feedback(Some(member)) => reply.feedback().map(|value| match value {
            Value::String(_) => json!({ member: value }),
            _ => value,
        }),
    };
    let status = if payload.is_some() { ResumeStatus::Resolved } else { ResumeStatus::Cancelled };
    ResumeEntry { interrupt_id: interrupt.id.clone(), status, payload, metadata: None }
}

/// Applies a JSON merge patch (RFC 7386): `null` removes a member, an object changes the members that it has.
fn merged(mut target: JsonObject, patch: &JsonObject) -> JsonObject {
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.shift_remove(name)),
            Value::Object(patch) => {
                let before =
                    target.get_mut(name).and_then(Value::as_object_mut).map(std::mem::take);
                target
                    .insert(name.clone(), Value::Object(merged(before.unwrap_or_default(), patch)));
            }
            value => drop(target.insert(name.clone(), value.clone())),
        }
    }
    target
}

/// The payload about a tool call: edited members are its arguments.
fn action_payload(decision: ApprovalDecision, schema: Option<&JsonObject>) -> JsonObject {
    match decision {
        ApprovalDecision::Declined { reason: Some(_) }
            if schema.is_some_and(|schema| !allows_reason(schema)) =>
        {
            ApprovalDecision::Declined { reason: None }.to_payload()
        }
        decision => decision.to_payload(),
    }
}

/// The payload about a plan or another question for approval: edited members are members of the reply.
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

impl HumanReply<'_> {
    fn approval(self) -> ApprovalDecision {
        let decision = match self {
            Self::Text(text) => return ApprovalDecision::from_text(text),
            Self::Decision(decision) => decision,
        };
        match decision.kind {
            HitlDecisionType::Approve | HitlDecisionType::Accepted => {
                ApprovalDecision::Approved { edited_args: None }
            }
            HitlDecisionType::Edit => ApprovalDecision::Approved {
                edited_args: Some(decision.args.clone().unwrap_or_default()),
            },
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
                HitlDecisionType::Edit => {
                    Some(Value::Object(decision.args.clone().unwrap_or_default()))
                }
                HitlDecisionType::Reject => None,
                HitlDecisionType::Feedback => {
                    Some(json!(decision.reason.as_deref().unwrap_or_default()))
                }
            },
        }
    }

    /// A text that is not JSON is passed on, and the form's schema refuses it.
    fn form(self) -> Option<Value> {
        match self {
            Self::Text(text) => Some(decode_value(text.as_bytes()).unwrap_or_else(|_| json!(text))),
            Self::Decision(_) => self.feedback(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_changes_the_members_that_it_has() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        // The examples of RFC 7386, appendix A, whose documents and results are objects.
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (
                json!({"query": "x", "limit": 1000}),
                json!({"limit": 100}),
                json!({"query": "x", "limit": 100}),
            ),
        ] {
            assert_eq!(merged(object(target), &object(patch)), object(expected));
        }
    }
}
