//! The ids of messages, calls and subagents: an id that the thread has already is replaced by a new one, which is mapped
//! back in what the endpoint gets.

use std::collections::{HashMap, HashSet};

use agui_protocol::{Message, MessageId, Messages, Role, SubagentRunId, ToolCallId};

/// The text between an endpoint's id and the number that makes it unique. Model providers accept its characters in the
/// ids of calls.
const SEPARATOR: &str = "_agui";

pub(super) type ItemOwner = Option<SubagentRunId>;

/// A message that clients have from this run.
pub(super) struct RunMessage {
    pub(super) role: Role,
    pub(super) owner: ItemOwner,
    /// True if a call or a snapshot made the message, so that its text may still begin.
    pub(super) is_implicit: bool,
}

/// The endpoint's ids of messages, calls and subagents that have new ones. Each id is free in the messages that the endpoint gets.
#[derive(Default)]
pub(super) struct ReplacedIds {
    messages: HashMap<MessageId, MessageId>,
    calls: HashMap<ToolCallId, ToolCallId>,
    subagents: HashMap<SubagentRunId, SubagentRunId>,
}

impl ReplacedIds {
    /// Finds the new ids in a conversation.
    pub(super) fn of(messages: &[Message]) -> Self {
        let sent = || messages.iter().filter(|message| message.role() != Role::Activity);
        let calls = || sent().flat_map(|message| message.tool_calls());
        Self {
            messages: originals(sent().map(Message::id)),
            calls: originals(calls().map(|call| &call.id)),
            subagents: originals(sent().filter_map(Message::subagent_run_id)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.calls.is_empty() && self.subagents.is_empty()
    }

    /// Puts the endpoint's ids into its messages.
    pub(super) fn restore_in(&self, messages: &mut [Message]) {
        for message in messages {
            if let Some(original) = self.messages.get(message.id()) {
                message.set_id(original.clone());
            }
            if let Some(id) = message.subagent_run_id_mut()
                && let Some(original) = self.subagents.get(id)
            {
                *id = original.clone();
            }
            let ids = match message {
                Message::Assistant(message) => {
                    message.tool_calls.as_mut().map_or_else(Vec::new, |calls| {
                        calls.iter_mut().map(|call| &mut call.id).collect()
                    })
                }
                Message::Tool(message) => vec![&mut message.tool_call_id],
                _ => Vec::new(),
            };
            for id in ids {
                if let Some(original) = self.calls.get(id) {
                    *id = original.clone();
                }
            }
        }
    }
}

/// Returns the endpoint's ids of those that have new ones, if no other item has this id.
fn originals<'a, I>(ids: impl Iterator<Item = &'a I> + Clone) -> HashMap<I, I>
where
    I: AsRef<str> + for<'t> From<&'t str> + Eq + std::hash::Hash + Clone + 'a,
{
    let renamed: Vec<_> = ids.clone().filter(|id| original_id(id.as_ref()).is_some()).collect();
    if renamed.is_empty() {
        return HashMap::new();
    }
    let mut used: HashSet<&str> = ids.map(AsRef::as_ref).collect();
    let free = renamed.into_iter().filter_map(|id| {
        let original = original_id(id.as_ref())?;
        used.insert(original).then(|| (id.clone(), original.into()))
    });
    free.collect()
}

/// Returns the endpoint's id of one that [`EndpointIds::unused`] has made.
fn original_id(id: &str) -> Option<&str> {
    let (original, number) = id.rsplit_once(SEPARATOR)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    (!original.is_empty() && !number.is_empty() && is_number).then_some(original)
}

/// All ids that clients know: those from before the run, and those of the run.
pub(super) struct EndpointIds {
    pub(super) history: Messages,
    /// The ids of messages and calls that were retracted from clients. The endpoint sends them again.
    retracted: HashSet<String>,
    /// By the endpoint's id.
    replaced: ReplacedIds,
    pub(super) messages: HashMap<MessageId, RunMessage>,
    calls: HashSet<ToolCallId>,
    /// The ids of this run's subagents, by the endpoint's ids.
    subagents: HashMap<SubagentRunId, SubagentRunId>,
}

impl EndpointIds {
    pub(super) fn new(history: Messages, retracted: HashSet<String>) -> Self {
        let ReplacedIds { messages, calls, .. } = ReplacedIds::of(&history);
        let replaced = ReplacedIds {
            messages: messages.into_iter().map(|(new, original)| (original, new)).collect(),
            calls: calls.into_iter().map(|(new, original)| (original, new)).collect(),
            subagents: HashMap::new(),
        };
        Self {
            history,
            retracted,
            replaced,
            messages: HashMap::new(),
            calls: HashSet::new(),
            subagents: HashMap::new(),
        }
    }

    /// Returns the message of the thread from before the run that the endpoint means.
    pub(super) fn earlier_message(&self, theirs: &str) -> Option<&Message> {
        let id = self.replaced.messages.get(theirs).map_or(theirs, MessageId::as_str);
        self.history.position(id).map(|position| &self.history[position])
    }

    /// Returns the id of the call from before the run that the endpoint means, and the name of its tool.
    pub(super) fn earlier_call(&self, theirs: &str) -> Option<(&ToolCallId, &str)> {
        let id = self.replaced.calls.get(theirs).map_or(theirs, ToolCallId::as_str);
        let (position, call) = self.history.call_place(id)?;
        let call = self.history[position].tool_calls().get(call)?;
        Some((&call.id, &call.function.name))
    }

    /// Returns the activity from before the run that the endpoint means.
    pub(super) fn earlier_activity(&self, theirs: &str) -> Option<&Message> {
        let mut activities =
            self.history.iter().rev().filter(|message| message.role() == Role::Activity);
        activities.find(|message| {
            let id = message.id().as_str();
            id == theirs || original_id(id) == Some(theirs)
        })
    }

    /// Returns whether a message from before the run has this id.
    pub(super) fn is_earlier(&self, theirs: &str) -> bool {
        self.retracted.contains(theirs) || self.earlier_message(theirs).is_some()
    }

    /// Takes the id of a new message. Returns the id that clients get.
    pub(super) fn new_message(&mut self, theirs: &MessageId, message: RunMessage) -> MessageId {
        let is_taken = self.is_earlier(theirs) || self.messages.contains_key(theirs);
        let id = if is_taken { self.unused(theirs).into() } else { theirs.clone() };
        self.messages.insert(id.clone(), message);
        id
    }

    /// Takes the id of a new call. Returns the id that clients get.
    pub(super) fn new_call(&mut self, theirs: &ToolCallId) -> ToolCallId {
        let is_taken = self.retracted.contains(theirs.as_str())
            || self.earlier_call(theirs).is_some()
            || self.calls.contains(theirs);
        let id = if is_taken { self.unused(theirs).into() } else { theirs.clone() };
        self.calls.insert(id.clone());
        id
    }

    /// Returns the id that clients get for a subagent. One of an earlier run with this id is another subagent, unless the
    /// run `continues` its work.
    pub(super) fn subagent(&mut self, theirs: &SubagentRunId, continues: bool) -> SubagentRunId {
        if let Some(known) = self.subagents.get(theirs) {
            return known.clone();
        }
        let is_it = |id: &&SubagentRunId| *id == theirs || original_id(id) == Some(theirs);
        let earlier = self.history.iter().rev().filter_map(Message::subagent_run_id).find(is_it);
        let id = match earlier {
            None => theirs.clone(),
            Some(earlier) if continues => earlier.clone(),
            Some(_) => self.unused(theirs).into(),
        };
        self.subagents.insert(theirs.clone(), id.clone());
        id
    }

    /// Returns the id that clients have for the subagent of a message in a snapshot.
    pub(super) fn subagent_of(&self, message: &Message) -> Option<SubagentRunId> {
        let theirs = message.subagent_run_id()?;
        let is_it = |id: &&SubagentRunId| *id == theirs || original_id(id) == Some(theirs);
        let earlier = self.history.position(message.id()).map(|at| &self.history[at]);
        let earlier = earlier.and_then(Message::subagent_run_id).filter(is_it);
        Some(earlier.or_else(|| self.subagents.get(theirs)).unwrap_or(theirs).clone())
    }

    /// Keeps the id of a call that clients get with a snapshot.
    pub(super) fn know_call(&mut self, id: ToolCallId) {
        self.calls.insert(id);
    }

    /// Returns a new id, made of the endpoint's id so that it can be mapped back.
    fn unused(&self, theirs: &str) -> String {
        let mut number = 2;
        loop {
            let id = format!("{theirs}{SEPARATOR}{number}");
            let is_used = self.retracted.contains(&id)
                || self.history.position(&id).is_some()
                || self.history.call_position(&id).is_some()
                || self.messages.contains_key(id.as_str())
                || self.calls.contains(id.as_str())
                || self.has_subagent(&id);
            if !is_used {
                return id;
            }
            number += 1;
        }
    }

    fn has_subagent(&self, id: &str) -> bool {
        let mut earlier = self.history.iter().filter_map(Message::subagent_run_id);
        let mut of_run = self.subagents.values();
        earlier.any(|known| known.as_str() == id) || of_run.any(|known| known.as_str() == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_ids_are_mapped_back_unless_another_message_has_the_endpoints_id() {
        let messages = |ids: &[&str]| -> Vec<Message> {
            ids.iter().map(|id| Message::assistant(*id, "")).collect()
        };
        let restored = |ids: &[&str]| {
            let mut messages = messages(ids);
            ReplacedIds::of(&messages).restore_in(&mut messages);
            messages.iter().map(|message| message.id().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(restored(&["u", "a_agui2", "b"]), ["u", "a", "b"]);
        assert_eq!(restored(&["a", "a_agui2", "a_agui3"]), ["a", "a_agui2", "a_agui3"]);
        assert_eq!(restored(&["a_agui2", "a_agui3"]), ["a", "a_agui3"]);
        assert_eq!(
            restored(&["a_agui", "_agui2", "a_agui02", "a_aguix"]),
            ["a_agui", "_agui2", "a_agui02", "a_aguix"]
        );
    }

    #[test]
    fn calls_and_their_results_are_mapped_back_together() {
        let call = |id: &str| serde_json::json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "" } });
        let messages = serde_json::json!([
            { "id": "m", "role": "assistant", "toolCalls": [call("c_agui2"), call("d")] },
            { "id": "t", "role": "tool", "toolCallId": "c_agui2", "content": "" },
        ]);
        let mut messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        ReplacedIds::of(&messages).restore_in(&mut messages);
        assert_eq!(messages[0].tool_calls()[0].id.as_str(), "c");
        let Message::Tool(result) = &messages[1] else { panic!() };
        assert_eq!(result.tool_call_id.as_str(), "c");
    }
}
