//! The replies of a run: its `resume` entries, matched with the questions of the script.
//!
//! The entries reply to the open interrupts of the thread, one to each. Another agent may have raised some of them, so an entry
//! for an interrupt that the script does not raise is ignored.

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::Value;

use super::{
    questions::{ID_PREFIX, QuestionKind, Questions},
    template::{Values, add_members, plain},
};
use agui_protocol::{
    JsonObject, Message, ResumeEntry, ResumeStatus, RunAgentInput, ToolCallId,
    approval::ApprovalDecision,
};

#[derive(Debug, Clone)]
pub(super) struct Reply {
    /// The question's name; for a question about a call, the tool.
    pub(super) name: String,
    pub(super) approved: bool,
    pub(super) call: Option<RepliedCall>,
    pub(super) values: Values,
}

#[derive(Debug, Clone)]
pub(super) struct RepliedCall {
    pub(super) id: ToolCallId,
    /// True if the call has a result, because the same reply was sent before.
    pub(super) has_result: bool,
}

/// Returns the replies about calls in the order of the calls, then the others.
pub(super) fn replies(input: &RunAgentInput, questions: &Questions) -> Vec<Reply> {
    if input.resume.is_empty() {
        return Vec::new();
    }
    let (mut calls, mut results) = (IndexMap::new(), HashSet::new());
    for message in &input.messages {
        match message {
            Message::Assistant(assistant) => {
                calls.extend(assistant.tool_calls().iter().map(|call| (&*call.id, call)))
            }
            Message::Tool(result) => drop(results.insert(&result.tool_call_id)),
            _ => {}
        }
    }
    let mut replies: Vec<(usize, Reply)> = Vec::new();
    for entry in &input.resume {
        let subject = entry.interrupt_id.strip_prefix(ID_PREFIX);
        let call =
            subject.and_then(|id| calls.get_full(id)).map(|(position, _, call)| (position, *call));
        let name = match call {
            Some((_, call)) => Some(&*call.function.name),
            None => subject.and_then(|subject| subject.split_once('-')).map(|(_, name)| name),
        };
        let question = name.and_then(|name| Some((name, *questions.get(name)?)));
        let Some((name, kind)) = question.filter(|(_, kind)| kind.is_call() == call.is_some())
        else {
            tracing::warn!(
                interrupt = entry.interrupt_id.as_str(),
                "ignored the reply to an interrupt that the script never raises"
            );
            continue;
        };
        let mut reply = Reply::new(
            name,
            entry,
            decide(entry, kind),
            call.map(|(_, call)| &*call.function.arguments),
        );
        reply.call = call.map(|(_, call)| RepliedCall {
            id: call.id.clone(),
            has_result: results.contains(&call.id),
        });
        replies.push((call.map_or(usize::MAX, |(position, _)| position), reply));
    }
    replies.sort_by_key(|(position, _)| *position);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

impl Reply {
    fn new(
        name: &str,
        entry: &ResumeEntry,
        decision: ApprovalDecision,
        proposed: Option<&str>,
    ) -> Self {
        let mut values = Values::new();
        if let (ResumeStatus::Resolved, Some(payload)) = (entry.status, &entry.payload) {
            values.insert("reply".to_owned(), plain(payload));
            if let Value::Object(members) = payload {
                add_members("reply", members, &mut values);
            }
        }
        let approved = decision.is_approved();
        let args = match decision {
            ApprovalDecision::Approved { edited_args: Some(edited) } => Some(edited),
            _ => proposed.and_then(|json| serde_json::from_str(json).ok()),
        };
        if let Some(args) = args {
            add_args(&args, &mut values);
        }
        Self { name: name.to_owned(), approved, call: None, values }
    }
}

pub(super) fn add_args(args: &JsonObject, values: &mut Values) {
    values.insert("args".to_owned(), serde_json::to_string(args).unwrap_or_default());
    add_members("args", args, values);
}

fn decide(entry: &ResumeEntry, kind: QuestionKind) -> ApprovalDecision {
    match (kind, entry.status, &entry.payload) {
        (QuestionKind::Call { is_editable } | QuestionKind::Review { is_editable }, ..) => {
            ApprovalDecision::from_entry(entry, is_editable)
        }
        // The schema of a form has no member `approved`: the form is approved when it is sent.
        (QuestionKind::Form, ResumeStatus::Resolved, Some(payload)) if is_sent(payload) => {
            ApprovalDecision::Approved { edited_args: None }
        }
        (QuestionKind::Form, ..) => ApprovalDecision::Unclear,
    }
}

/// Returns whether a payload is a filled form. `null`, `false` and `{approved: …}` without a clear
/// yes are refusals.
fn is_sent(payload: &Value) -> bool {
    let is_refusal = matches!(payload, Value::Null | Value::Bool(false));
    !is_refusal && payload.get("approved").is_none_or(|approved| *approved == Value::Bool(true))
}

#[cfg(test)]
mod tests;
