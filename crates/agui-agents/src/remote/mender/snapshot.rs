//! Snapshots of the conversation: their messages get the ids that clients have, and messages of the thread that they lack
//! are put in.

use std::collections::{HashMap, HashSet};

use super::{super::withdrawn::withdraw, Mender, calls::digest, ids::RunMessage};
use agui_base::repairs::{Partner, Repair, repaired};
use agui_protocol::{
    Message, MessageContent, MessageId, Role, ToolCallId,
    event::{MessagesSnapshot, TextMessageRole},
};

impl Mender {
    pub(super) fn messages_snapshot(&mut self, mut event: MessagesSnapshot) -> MessagesSnapshot {
        let mut messages = event.messages.into_vec();
        let mut left: HashMap<MessageId, usize> = HashMap::new();
        for message in &messages {
            *left.entry(message.id().clone()).or_default() += 1;
        }
        let (mut used, mut calls) = (HashSet::new(), HashMap::new());
        for message in &mut messages {
            let after = left.get_mut(message.id()).map_or(0, |left| {
                *left -= 1;
                *left
            });
            let id = self.snapshot_id(message, after, &used);
            used.insert(id.clone());
            message.set_id(id);
            *message.subagent_run_id_mut() = self.ids.subagent_of(message);
            self.name_calls(message, &mut calls);
            self.know(message);
        }
        let missing = self.put_in_missing(&mut messages);
        if missing > 0 {
            tracing::debug!(
                messages = missing,
                "the remote agent's snapshot had not all messages of the thread"
            );
        }
        event.messages = messages.into();
        event
    }

    /// Returns the id that clients have for a message of a snapshot. `after` messages with the same id follow.
    fn snapshot_id(
        &mut self,
        message: &Message,
        after: usize,
        used: &HashSet<MessageId>,
    ) -> MessageId {
        let (theirs, role) = (message.id(), message.role());
        let of_run = match role {
            Role::Reasoning => self.reasoning.get(theirs).map(|known| &known.id),
            Role::Tool => self.result_ids.get(theirs),
            Role::Activity => self.activities.get(theirs),
            _ => self.texts.get(theirs).map(|known| &known.id),
        };
        let earlier = match role {
            Role::Activity => self.ids.earlier_activity(theirs),
            _ => self.ids.earlier_message(theirs),
        };
        let earlier = earlier.filter(|earlier| earlier.role() == role).map(Message::id);
        // The last message with an id is the newest that clients have under it.
        let known: Vec<_> = [of_run, earlier].into_iter().flatten().skip(after).cloned().collect();
        if let Some(id) = known.into_iter().find(|id| !used.contains(id)) {
            return id;
        }
        let is_free = !used.contains(theirs) && !self.ids.is_earlier(theirs);
        let keeps_role = self.ids.messages.get(theirs).is_none_or(|known| known.role == role);
        if is_free && keeps_role {
            return theirs.clone();
        }
        let owner = message.subagent_run_id().cloned();
        match role {
            Role::Reasoning => self.new_message(theirs, None, None, owner).id.clone(),
            Role::User | Role::Assistant | Role::System | Role::Developer => {
                let text_role = match role {
                    Role::User => TextMessageRole::User,
                    Role::System => TextMessageRole::System,
                    Role::Developer => TextMessageRole::Developer,
                    _ => TextMessageRole::Assistant,
                };
                self.new_message(theirs, Some(text_role), None, owner).id.clone()
            }
            Role::Tool | Role::Activity => {
                let id =
                    self.new_message_id(theirs, RunMessage { role, owner, is_implicit: false });
                let table =
                    if role == Role::Tool { &mut self.result_ids } else { &mut self.activities };
                table.insert(theirs.clone(), id.clone());
                id
            }
        }
    }

    /// Gives the calls of a message, and a result its call, the ids that clients have. `calls` has those of the messages
    /// before.
    fn name_calls(&mut self, message: &mut Message, calls: &mut HashMap<ToolCallId, ToolCallId>) {
        match message {
            Message::Assistant(message) => {
                for call in message.tool_calls.iter_mut().flatten() {
                    let known = self.call_id(&call.id).unwrap_or_else(|| call.id.clone());
                    let id = match calls.contains_key(&call.id) {
                        true => self.ids.new_call(&call.id),
                        false => known,
                    };
                    self.ids.know_call(id.clone());
                    self.snapshot_calls
                        .insert(call.id.clone(), (id.clone(), call.function.name.clone()));
                    calls.insert(call.id.clone(), id.clone());
                    call.id = id;
                }
            }
            Message::Tool(result) => {
                let known = calls.get(&result.tool_call_id).cloned();
                if let Some(id) = known.or_else(|| self.call_id(&result.tool_call_id)) {
                    result.tool_call_id = id;
                }
                self.results.insert((result.tool_call_id.clone(), digest(&result.content)));
            }
            _ => {}
        }
    }

    /// Keeps a message of a snapshot as clients have it from now on.
    fn know(&mut self, message: &Message) {
        let (id, role, owner) = (message.id(), message.role(), message.subagent_run_id().cloned());
        let streamed = self.texts.values_mut().chain(self.reasoning.values_mut());
        streamed.filter(|known| known.id == *id).for_each(|known| known.owner.clone_from(&owner));
        if role == Role::Reasoning {
            let spans = self.spans.values_mut().filter(|span| span.id == *id);
            spans.for_each(|span| span.owner.clone_from(&owner));
        }
        for call in message.tool_calls() {
            let calls = self.calls.values_mut().filter(|known| known.id == call.id);
            calls.for_each(|known| known.owner.clone_from(&owner));
        }
        if role == Role::Activity {
            self.activities.entry(id.clone()).or_insert_with(|| id.clone());
        }
        let is_implicit = !self.ids.is_earlier(id);
        self.ids.messages.insert(id.clone(), RunMessage { role, owner, is_implicit });
    }

    /// Puts the messages from before the run that a snapshot lacks after those before them. Returns their number.
    fn put_in_missing(&mut self, messages: &mut Vec<Message>) -> usize {
        let position: HashMap<MessageId, usize> =
            messages.iter().enumerate().map(|(at, message)| (message.id().clone(), at)).collect();
        let calls: HashSet<&ToolCallId> =
            messages.iter().flat_map(|message| message.tool_calls()).map(|call| &call.id).collect();
        let answered: HashSet<&ToolCallId> = messages.iter().filter_map(answered_call).collect();
        let has_reasoning = messages.iter().any(|message| message.role() == Role::Reasoning);
        // The messages under ids that the thread does not have.
        let mut unknown: Vec<&Message> = messages
            .iter()
            .filter(|message| self.ids.history.position(message.id()).is_none())
            .collect();
        let mut after = 0;
        let mut missing: Vec<(usize, Message)> = Vec::new();
        // A snapshot without the newest message of the request does not show the conversation, so it withdraws nothing.
        let mut shows_newest = false;
        for message in &self.ids.history {
            let is_sent = !matches!(message, Message::Activity(_) | Message::Reasoning(_));
            if let Some(at) = position.get(message.id()) {
                after = after.max(at + 1);
                shows_newest |= is_sent;
                continue;
            }
            let is_left_to_clients = match message {
                Message::Activity(_) => true,
                Message::Reasoning(_) => !has_reasoning,
                Message::Tool(result) => answered.contains(&result.tool_call_id),
                Message::Assistant(message) => {
                    !message.tool_calls().is_empty()
                        && message.tool_calls().iter().all(|call| calls.contains(&call.id))
                }
                _ => false,
            };
            let same = unknown.iter().position(|other| is_same(other, message));
            if let Some(same) = same {
                let at = position.get(unknown.remove(same).id());
                after = at.map_or(after, |at| after.max(at + 1));
                shows_newest |= is_sent;
            } else {
                shows_newest &= !is_sent;
                if !is_left_to_clients {
                    missing.push((after, message.clone()));
                }
            }
        }
        if let Some(mark) = self.conversation.as_ref().filter(|_| shows_newest) {
            let withdrawn = missing.iter_mut().map(|(_, message)| message);
            let withdrawn =
                withdrawn.filter(|message| can_be_withdrawn(message, &calls, &answered));
            withdrawn.for_each(|message| withdraw(message, mark));
        }
        let count = missing.len();
        for (at, message) in missing.into_iter().rev() {
            messages.insert(at, message);
        }
        if count > 0 {
            repaired(Partner::RemoteAgent, Repair::Order);
        }
        count
    }
}

/// Returns whether a snapshot can withdraw a message by leaving it out: instructions are often not shown, and a call and its
/// result only go together.
fn can_be_withdrawn(
    message: &Message,
    calls: &HashSet<&ToolCallId>,
    answered: &HashSet<&ToolCallId>,
) -> bool {
    match message {
        Message::User(_) => true,
        Message::Tool(result) => !calls.contains(&result.tool_call_id),
        Message::Assistant(message) => {
            !message.tool_calls().iter().any(|call| answered.contains(&call.id))
        }
        _ => false,
    }
}

fn answered_call(message: &Message) -> Option<&ToolCallId> {
    match message {
        Message::Tool(result) => Some(&result.tool_call_id),
        _ => None,
    }
}

/// Returns whether two messages are the same but for their ids: an endpoint may give its messages ids of its own.
fn is_same(one: &Message, other: &Message) -> bool {
    one.role() == other.role()
        && one.tool_calls().len() == other.tool_calls().len()
        && text_of(one) == text_of(other)
}

fn text_of(message: &Message) -> Option<String> {
    let of = |content: &MessageContent| content.text().into_owned();
    match message {
        Message::User(message) => Some(of(&message.content)),
        Message::Tool(message) => Some(of(&message.content)),
        Message::Assistant(message) => Some(message.content.clone().unwrap_or_default()),
        Message::System(message) => Some(message.content.clone()),
        Message::Developer(message) => Some(message.content.clone()),
        _ => None,
    }
}
