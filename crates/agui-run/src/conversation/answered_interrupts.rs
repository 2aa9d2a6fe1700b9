//! A person's decision about an interrupt is final: for each client, on each branch, and in a copy
//! of the thread.
//!
//! The run that brings a reply stores it in short form, with the message that made the call. A
//! later reply to the same interrupt begins no run. A branch can have the call without its result,
//! because a person returned to an earlier message or the run with the reply broke off. It gets the
//! result, so that no agent asks again or runs the call again.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    branch::{Branch, LoadedThread},
    match_branch::AppendedMessage,
    plan::{ClientInput, Plan, PlanReader, Planned},
};
use agui_protocol::{
    Interrupt, Message, MessageId, Metadata, ResumeEntry, ResumeStatus, ToolCallId, ToolMessage,
    own_names::FAILED,
};
use agui_store::{
    MessageNode, RunNumber, StoreError,
    host::{branch_of, json_len},
};

/// A longer payload is stored as its `approved` alone, so two of them with the same `approved` are
/// equal.
const MAX_STORED_BYTES: u64 = 1024;
const APPROVED: &str = "approved";
const CALL: &str = "toolCallId";
const MESSAGE: &str = "messageId";

const DECLINED: &str = "The user declined this call.";
const NOT_APPROVED: &str = "The call was not run: the user did not approve it.";
const UNKNOWN: &str = "The user answered the question about this call before. Its outcome is unknown, and it does not run again.";

/// A call without a result on the branch.
struct OpenCall {
    id: ToolCallId,
    message: MessageId,
    run: RunNumber,
}

impl Plan {
    /// Returns the replies that the run brings, as they are stored. A run that continues an earlier one brings none.
    pub(crate) fn stored_replies(&self, loaded: Option<&LoadedThread>) -> Vec<ResumeEntry> {
        let replies = self.resume.as_deref().unwrap_or_default();
        let is_open = |reply: &&ResumeEntry| {
            self.open_interrupts.iter().any(|open| open.id == reply.interrupt_id)
        };
        replies
            .iter()
            .filter(is_open)
            .map(|reply| in_short(reply, self.call_of(reply, loaded)))
            .collect()
    }

    /// Returns the call that a reply is about, and the message that made it.
    fn call_of<'a>(
        &'a self,
        reply: &ResumeEntry,
        loaded: Option<&'a LoadedThread>,
    ) -> Option<(&'a ToolCallId, &'a MessageId)> {
        let interrupt = self.open_interrupts.iter().find(|open| open.id == reply.interrupt_id)?;
        let call = interrupt.tool_call_id.as_ref()?;
        let has_call =
            |message: &&Message| message.tool_calls().iter().any(|made| made.id == *call);
        let rejoined = self.rejoined.iter().map(|node| &node.message).rev().find(has_call);
        let stored = || {
            let messages = self.stored(loaded)?.messages();
            messages.get(messages.call_position(call)?)
        };
        rejoined.or_else(stored).map(|message| (call, message.id()))
    }

    /// Adds the results of calls that a person decided on, and that have no results on the branch.
    /// Returns `None` if the thread has changed.
    pub(super) async fn with_known_results(
        mut self: Box<Self>,
        reader: &mut PlanReader<'_>,
    ) -> Result<Option<Planned>, StoreError> {
        let calls = self.open_calls(self.branch.as_ref().unwrap_or(&reader.loaded.branch));
        if calls.is_empty() {
            return Ok(Some(Planned::Begin(self)));
        }
        let replies = reader.answered().await?;
        let mut known = Vec::new();
        for call in calls {
            let Some(reply) = replies.iter().find(|reply| is_about(reply, &call)) else { continue };
            let Some(nodes) = reader.nodes().await? else { return Ok(None) };
            known.push(known_result(nodes, &call).unwrap_or_else(|| call.result(reply)));
        }
        let appended = &mut self.matched.appended;
        let is_copy = |new: &AppendedMessage| matches!(new, AppendedMessage::Stored(_));
        let at = appended.iter().rposition(is_copy).map_or(0, |last| last + 1);
        appended.splice(at..at, known);
        Ok(Some(Planned::Begin(self)))
    }

    /// Returns the calls without a result of the last run on the branch that made an assistant
    /// message, without the calls of open interrupts. Earlier runs left no call open.
    fn open_calls(&self, stored: &Branch) -> Vec<OpenCall> {
        let messages = self.messages(stored);
        let mut messages: Vec<_> =
            messages.map(|(message, origin)| (message, origin.run())).collect();
        let is_answer = |(message, run): &(&Message, Option<RunNumber>)| {
            matches!(message, Message::Assistant(_)).then_some(*run).flatten()
        };
        let Some(last) = messages.iter().rev().find_map(is_answer) else { return Vec::new() };
        let first = messages.iter().position(|(_, run)| *run == Some(last)).unwrap_or_default();
        let of_run = messages.split_off(first);
        let mut closed: HashSet<_> =
            self.open_interrupts.iter().filter_map(|open| open.tool_call_id.as_ref()).collect();
        closed.extend(of_run.iter().filter(|(_, run)| run.is_some()).filter_map(|(message, _)| {
            match message {
                Message::Tool(result) => Some(&result.tool_call_id),
                _ => None,
            }
        }));
        let made = of_run.iter().filter(|(_, run)| *run == Some(last));
        let calls = made.flat_map(|(message, _)| {
            message.tool_calls().iter().map(move |call| (&call.id, message.id()))
        });
        let open = calls.filter(|(call, _)| !closed.contains(call));
        open.map(|(call, message)| OpenCall {
            id: call.clone(),
            message: message.clone(),
            run: last,
        })
        .collect()
    }
}

impl OpenCall {
    /// Returns the result of a call for which no run stored one.
    fn result(self, reply: &ResumeEntry) -> AppendedMessage {
        let text = match decision(reply) {
            "declined" => DECLINED,
            "cancelled" => NOT_APPROVED,
            _ => UNKNOWN,
        };
        let mut result = ToolMessage::new(MessageId::random(), self.id, text);
        result.metadata = Some(Metadata::from_iter([(FAILED.to_owned(), true.into())]));
        AppendedMessage::Known(Box::new(Message::Tool(result)), self.run)
    }
}

impl PlanReader<'_> {
    /// Returns the replies that were given before to the interrupts that the request replies to, and
    /// that differ from its replies; none if it repeats them. Returns `None` if the request has no
    /// such replies, or one to an open interrupt. An agent may use the id of an answered interrupt
    /// again.
    pub(super) async fn already_answered(
        &mut self,
        client: ClientInput<'_>,
        open: &[Interrupt],
    ) -> Result<Option<Vec<ResumeEntry>>, StoreError> {
        let entries = &client.input.resume;
        let is_open = |entry: &ResumeEntry| {
            let mut open = open.iter().chain(&self.loaded.interrupts);
            open.any(|interrupt| interrupt.id == entry.interrupt_id)
        };
        if entries.is_empty() || entries.iter().any(is_open) {
            return Ok(None);
        }
        let answered = self.answered().await?;
        let replies = answered
            .iter()
            .filter(|reply| entries.iter().any(|entry| entry.interrupt_id == reply.interrupt_id));
        let replies: Vec<_> = replies.cloned().collect();
        if replies.is_empty() {
            return Ok(None);
        }
        let is_known = |message: &Message| {
            !matches!(message, Message::User(_))
                || self.loaded.branch.messages().position(message.id()).is_some()
        };
        let is_same = |reply: &ResumeEntry| {
            let mut sent = entries.iter().filter(|entry| entry.interrupt_id == reply.interrupt_id);
            sent.all(|entry| {
                (entry.status, short_payload(entry)) == (reply.status, reply.payload.clone())
            })
        };
        let is_repeated = replies.iter().all(is_same) && client.input.messages.iter().all(is_known);
        Ok(Some(if is_repeated { Vec::new() } else { replies }))
    }
}

/// Returns the description of earlier replies that a client gets.
pub(crate) fn describe(replies: &[ResumeEntry]) -> Value {
    let answers = replies.iter().map(|reply| {
        let mut answer = json!({ "interruptId": reply.interrupt_id, "decision": decision(reply) });
        if let Some(call) = reply.metadata.as_ref().and_then(|metadata| metadata.get(CALL)) {
            answer[CALL] = call.clone();
        }
        answer
    });
    json!({ "answers": answers.collect::<Vec<_>>() })
}

fn decision(reply: &ResumeEntry) -> &'static str {
    match (
        reply.status,
        reply.payload.as_ref().and_then(|payload| payload.get(APPROVED)?.as_bool()),
    ) {
        (ResumeStatus::Cancelled, _) => "cancelled",
        (ResumeStatus::Resolved, Some(true)) => "approved",
        (ResumeStatus::Resolved, Some(false)) => "declined",
        (ResumeStatus::Resolved, None) => "answered",
    }
}

fn in_short(reply: &ResumeEntry, call: Option<(&ToolCallId, &MessageId)>) -> ResumeEntry {
    let names = call.map(|(call, message)| {
        [(CALL.to_owned(), json!(call)), (MESSAGE.to_owned(), json!(message))]
    });
    ResumeEntry {
        interrupt_id: reply.interrupt_id.clone(),
        status: reply.status,
        payload: short_payload(reply),
        metadata: names.map(Metadata::from_iter),
    }
}

fn short_payload(reply: &ResumeEntry) -> Option<Value> {
    let payload = reply.payload.as_ref()?;
    if json_len(payload) <= MAX_STORED_BYTES {
        return Some(payload.clone());
    }
    payload.get(APPROVED).map(|approved| json!({ APPROVED: approved }))
}

/// Returns whether a reply is about a call. Calls with one id on several branches differ in their
/// messages.
fn is_about(reply: &ResumeEntry, call: &OpenCall) -> bool {
    let name = |key: &str| reply.metadata.as_ref().and_then(|metadata| metadata.get(key)?.as_str());
    name(CALL) == Some(&*call.id) && name(MESSAGE) == Some(call.message.as_str())
}

/// Returns the newest result that a run made of the call, on any branch.
fn known_result(nodes: &[MessageNode], call: &OpenCall) -> Option<AppendedMessage> {
    let follows_call = |node: &MessageNode| {
        branch_of(nodes, node.number).iter().any(|before| before.message.id() == &call.message)
    };
    nodes.iter().rev().find_map(|node| match (&node.message, node.origin.run()) {
        (Message::Tool(result), Some(run))
            if result.tool_call_id == call.id && follows_call(node) =>
        {
            Some(AppendedMessage::Known(Box::new(node.message.clone()), run))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: ResumeStatus, payload: Value) -> ResumeEntry {
        ResumeEntry { interrupt_id: "i".into(), status, payload: Some(payload), metadata: None }
    }

    #[test]
    fn a_stored_reply_is_short_and_still_says_what_was_decided() {
        let long = "x".repeat(2000);
        for (payload, stored, decided) in [
            (json!({ "approved": true }), Some(json!({ "approved": true })), "approved"),
            (
                json!({ "approved": false, "reason": long }),
                Some(json!({ "approved": false })),
                "declined",
            ),
            (json!({ "name": "Ada" }), Some(json!({ "name": "Ada" })), "answered"),
            (json!({ "name": long }), None, "answered"),
        ] {
            let reply =
                in_short(&reply(ResumeStatus::Resolved, payload), Some((&"c".into(), &"m".into())));
            assert_eq!((&reply.payload, decision(&reply)), (&stored, decided));
            let call = |id: &str, message: &str| OpenCall {
                id: id.into(),
                message: message.into(),
                run: RunNumber(1),
            };
            assert!(is_about(&reply, &call("c", "m")));
            assert!(
                !is_about(&reply, &call("c", "of another branch"))
                    && !is_about(&reply, &call("d", "m"))
            );
        }
        assert_eq!(
            decision(&reply(ResumeStatus::Cancelled, json!({ "approved": true }))),
            "cancelled"
        );
    }
}
