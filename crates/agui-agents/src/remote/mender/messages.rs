//! Texts and reasoning messages: a message may begin without its start, and go on after its end.

use super::{
    Mender,
    ids::{ItemOwner, RunMessage},
    items::{StreamedMessage, StreamedSpan, set_message_id},
};
use agui_base::repairs::Repair;
use agui_protocol::{
    Event, MessageId, Role,
    event::{ReasoningMessageContent, TextMessageContent, TextMessageRole},
};

impl Mender {
    /// Takes a `TEXT_MESSAGE_START` or a `REASONING_MESSAGE_START`.
    pub(super) fn message_start(
        &mut self,
        mut event: Event,
        theirs: &MessageId,
        out: &mut Vec<Event>,
    ) {
        let (role, name) = role_and_name(&event);
        let owner = event.subagent_run_id().cloned();
        let known = self.streamed(role).get_mut(theirs).filter(|known| {
            known.role == role
                && (name.is_none() || known.name == name)
                && (owner.is_none() || owner == known.owner)
        });
        if let Some(known) = known {
            let is_open = std::mem::replace(&mut known.is_open, true);
            let (id, owner) = (known.id.clone(), known.owner.clone());
            if is_open {
                return self.note(Repair::Order, "the start of an open message was left out");
            }
            set_message_id(&mut event, id);
            return out.push(event.attributed_to(owner));
        }
        let message = self.new_message(theirs, role, name, owner);
        message.is_open = true;
        let (id, owner) = (message.id.clone(), message.owner.clone());
        set_message_id(&mut event, id);
        out.push(event.attributed_to(owner));
    }

    /// Takes a `TEXT_MESSAGE_CONTENT` or a `REASONING_MESSAGE_CONTENT`.
    pub(super) fn message_content(
        &mut self,
        mut event: Event,
        theirs: &MessageId,
        out: &mut Vec<Event>,
    ) {
        let (role, _) = role_and_name(&event);
        let owner = event.subagent_run_id().cloned();
        let table = self.streamed(role);
        let message = match table.contains_key(theirs) {
            true => table.get_mut(theirs),
            false => Some(self.new_message(theirs, role, None, owner.clone())),
        };
        let Some(message) = message else { return };
        let is_missing = !std::mem::replace(&mut message.is_open, true);
        let start = is_missing.then(|| message.start());
        let (id, owner) = (message.id.clone(), message.owner.clone());
        if let Some(start) = start {
            out.push(start);
            self.note(Repair::Order, "a message had content without a start, or after its end");
        }
        set_message_id(&mut event, id);
        out.push(self.within(event, &owner));
    }

    /// Takes a `TEXT_MESSAGE_END` or a `REASONING_MESSAGE_END`. The guard skips that of a message that is not open.
    pub(super) fn message_end(
        &mut self,
        mut event: Event,
        theirs: &MessageId,
        out: &mut Vec<Event>,
    ) {
        let (role, _) = role_and_name(&event);
        if let Some(known) = self.streamed(role).get_mut(theirs) {
            let is_open = std::mem::replace(&mut known.is_open, false);
            let (id, owner) = (known.id.clone(), known.owner.clone());
            set_message_id(&mut event, id);
            // Chunks may have opened it. They are closed by an event of their owner.
            event = if is_open { self.within(event, &owner) } else { event.attributed_to(owner) };
        }
        out.push(event);
    }

    /// Takes a `TEXT_MESSAGE_CHUNK` or a `REASONING_MESSAGE_CHUNK`.
    pub(super) fn message_chunk(&mut self, mut event: Event, out: &mut Vec<Event>) {
        let (id, role, name, delta) = match &event {
            Event::TextMessageChunk(chunk) => (
                chunk.message_id.clone(),
                Some(chunk.role.unwrap_or_default()),
                chunk.name.clone(),
                chunk.delta.clone(),
            ),
            Event::ReasoningMessageChunk(chunk) => {
                (chunk.message_id.clone(), None, None, chunk.delta.clone())
            }
            _ => return,
        };
        let (kind, owner) = (event.event_type(), event.subagent_run_id().cloned());
        let theirs: MessageId = match id {
            Some(id) => id,
            None => match self.last_chunk(kind, &owner) {
                Some(id) => id.into(),
                None => {
                    self.note(Repair::Order, "the first chunk of a message had no id");
                    MessageId::random()
                }
            },
        };
        self.set_last_chunk(kind, owner.clone(), theirs.shared().clone());
        let table = self.streamed(role);
        let message = match table.contains_key(&theirs) {
            true => table.get_mut(&theirs),
            false => Some(self.new_message(&theirs, role, name, owner)),
        };
        let Some(message) = message else { return };
        event = event.attributed_to(message.owner.clone());
        if message.is_open {
            let (id, delta) = (message.id.clone(), delta.unwrap_or_default());
            let owner = event.subagent_run_id().cloned();
            let mut content: Event = match role {
                Some(_) => TextMessageContent::new(id, delta).into(),
                None => ReasoningMessageContent::new(id, delta).into(),
            };
            *content.base_mut() = event.base().clone();
            return out.push(content.attributed_to(owner));
        }
        match &mut event {
            Event::TextMessageChunk(chunk) => {
                chunk.message_id = Some(message.id.clone());
                chunk.role =
                    chunk.role.or(message.role.filter(|role| *role != TextMessageRole::Assistant));
            }
            Event::ReasoningMessageChunk(chunk) => chunk.message_id = Some(message.id.clone()),
            _ => {}
        }
        out.push(event);
    }

    /// Takes a `REASONING_START` or a `REASONING_END`. A span has the new id of its reasoning message.
    pub(super) fn reasoning_span(
        &mut self,
        mut event: Event,
        theirs: &MessageId,
        out: &mut Vec<Event>,
    ) {
        let is_start = matches!(event, Event::ReasoningStart(_));
        if !self.spans.contains_key(theirs) {
            if !is_start {
                // The guard skips the end of a span that is not open.
                return out.push(event);
            }
            let owner = event.subagent_run_id().cloned();
            if !self.reasoning.contains_key(theirs) && self.ids.is_earlier(theirs) {
                self.new_message(theirs, None, None, owner.clone());
            }
            let id = self.reasoning.get(theirs).map_or(theirs, |known| &known.id).clone();
            let message = self.ids.messages.get(&id).filter(|known| known.role == Role::Reasoning);
            let owner = message.map_or(owner, |known| known.owner.clone());
            self.spans.insert(theirs.clone(), StreamedSpan { id, owner, is_open: false });
        }
        let Some(span) = self.spans.get_mut(theirs) else { return };
        if std::mem::replace(&mut span.is_open, is_start) && is_start {
            return self.note(Repair::Order, "the start of open reasoning was left out");
        }
        set_message_id(&mut event, span.id.clone());
        let owner = span.owner.clone();
        out.push(self.within(event, &owner));
    }

    /// Leaves out the subagent that an event names if its item belongs to another one.
    pub(super) fn within(&mut self, event: Event, owner: &ItemOwner) -> Event {
        let named = event.subagent_run_id();
        if named == owner.as_ref() {
            return event;
        }
        if named.is_some() {
            self.note(Repair::Order, "an event named another subagent than the start of its item");
        }
        event.attributed_to(None)
    }

    pub(super) fn new_message(
        &mut self,
        theirs: &MessageId,
        role: Option<TextMessageRole>,
        name: Option<String>,
        owner: ItemOwner,
    ) -> &mut StreamedMessage {
        let message_role = role.map_or(Role::Reasoning, Role::from);
        // A span and a message with the same id have the owner of the first one.
        let owner = match self.spans.get(theirs) {
            Some(span) if role.is_none() => span.owner.clone(),
            _ => owner,
        };
        let is_begun = self.streamed(role).contains_key(theirs);
        let implicit = self
            .ids
            .messages
            .get_mut(theirs)
            .filter(|known| known.is_implicit && known.role == message_role && !is_begun);
        let (id, owner) = match implicit {
            Some(known) => {
                known.is_implicit = false;
                (theirs.clone(), known.owner.clone())
            }
            None => {
                let message =
                    RunMessage { role: message_role, owner: owner.clone(), is_implicit: false };
                (self.new_message_id(theirs, message), owner)
            }
        };
        let message = StreamedMessage { id, owner, role, name, is_open: false };
        self.streamed(role).entry(theirs.clone()).insert_entry(message).into_mut()
    }

    /// Returns the table of the messages with a role; `None` is reasoning.
    fn streamed(
        &mut self,
        role: Option<TextMessageRole>,
    ) -> &mut std::collections::HashMap<MessageId, StreamedMessage> {
        if role.is_some() { &mut self.texts } else { &mut self.reasoning }
    }
}

/// Returns the role and the name of a message's start; of its other events, the role of a message without a start.
fn role_and_name(event: &Event) -> (Option<TextMessageRole>, Option<String>) {
    match event {
        Event::TextMessageStart(start) => {
            (Some(start.role.unwrap_or_default()), start.name.clone())
        }
        Event::TextMessageContent(_) | Event::TextMessageEnd(_) => {
            (Some(TextMessageRole::Assistant), None)
        }
        _ => (None, None),
    }
}
