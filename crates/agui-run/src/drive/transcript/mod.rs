//! Applies the events of a run to messages and state, as a client does.
//!
//! The reference is AG-UI's own client (`docs/protocol.md` names its version), also where the
//! specification leaves a choice; a test plays the same streams to both. The events have passed the
//! [`Guard`](crate::drive::guard::Guard), so there are no chunk events.
//!
//! The messages that the run starts from are shared, and its new messages are kept apart. So the
//! cost of a run does not grow with the conversation, and only changes are stored.

mod messages;
mod new_messages;
mod snapshot;

pub(crate) use snapshot::replaced_messages;

use std::collections::BTreeSet;

use serde_json::Value;

use self::new_messages::{NewMessages, NewPlace};
use agui_agent::files::has_media;
use agui_protocol::{
    Event, JsonObject, Message, MessageId, Messages, Metadata, RunAgentInput,
    event::{EncryptedValueSubtype, ReasoningEncryptedValue, StateDelta},
    patch,
};

/// The messages and the state of a conversation, to which events are applied.
///
/// ```
/// use agui_agent::emit::TextMessage;
/// use agui_protocol::{Message, RunAgentInput};
/// use agui_run::Transcript;
///
/// let input = RunAgentInput::new("thread", "run", vec![Message::user("m1", "Hello")]);
/// let mut transcript = Transcript::from_input(&input);
/// for event in TextMessage::whole("Hi!") {
///     transcript.apply(&event);
/// }
/// assert_eq!(transcript.messages().len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Transcript {
    base: Messages,
    /// The number of messages of `base` that are kept, from the first on.
    kept: usize,
    changed: BTreeSet<usize>,
    new: NewMessages,
    /// The place of the message that was looked up last. Most events continue the message of the event before them.
    last: Option<Place>,
    state: Value,
    state_changed: bool,
    /// The rest of [`MAX_PATCH_COST`].
    patch_budget: usize,
}

/// The cost of all patches of a run, about five seconds: deltas of 60 bytes can each copy a large state.
const MAX_PATCH_COST: usize = 512 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct TranscriptChanges {
    pub kept: usize,
    pub updated: Vec<(usize, Message)>,
    pub new: Vec<Message>,
    pub state: Option<Value>,
}

/// The place of a message.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A position in the messages that the run starts from.
    Kept(usize),
    New(NewPlace),
}

/// The effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The whole event was applied. Events that change no message and no state count as well.
    Whole,
    /// Only the metadata of an activity was applied: the patch cannot be applied.
    WithoutPatch,
    /// Nothing was applied: the patch cannot be applied.
    None,
}

impl Transcript {
    /// Creates a conversation with these messages and state.
    pub fn new(messages: impl Into<Messages>, state: Value) -> Self {
        let base = messages.into();
        let (kept, changed, new) = (base.len(), BTreeSet::new(), NewMessages::default());
        Self {
            base,
            kept,
            changed,
            new,
            last: None,
            state,
            state_changed: false,
            patch_budget: MAX_PATCH_COST,
        }
    }

    /// Creates the conversation that a run starts from.
    pub fn from_input(input: &RunAgentInput) -> Self {
        Self::new(input.messages.clone(), input.state_or_empty())
    }

    /// Returns the messages in order.
    pub fn messages(&self) -> Messages {
        if self.new.is_empty() && self.kept == self.base.len() {
            return self.base.clone();
        }
        self.base[..self.kept].iter().chain(self.new.iter()).cloned().collect()
    }

    /// Adds a message at the end.
    pub(crate) fn push(&mut self, message: Message) {
        self.new.push(message);
    }

    /// Returns the messages that the run has added.
    pub(crate) fn new_messages(&self) -> impl Iterator<Item = &Message> {
        self.new.iter()
    }

    /// Returns whether the run has changed messages that it started from.
    pub(crate) fn has_changed_base(&self) -> bool {
        self.kept < self.base.len() || !self.changed.is_empty()
    }

    /// Returns the state.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// Returns whether the run's patches have reached [`MAX_PATCH_COST`]. Further ones are not
    /// applied, so the run has to end.
    pub(crate) fn is_patch_budget_spent(&self) -> bool {
        self.patch_budget == 0
    }

    /// Returns the messages that the run has made or changed.
    pub(crate) fn changed_mut(&mut self) -> impl Iterator<Item = &mut Message> + Send {
        let Self { base, kept, changed, new, .. } = self;
        let has_changed = changed.range(..*kept).next().is_some();
        let base = if has_changed { &mut base.to_mut()[..*kept] } else { &mut [] };
        let is_changed = |position: &usize| changed.contains(position);
        let changed = base.iter_mut().enumerate().filter(move |(position, _)| is_changed(position));
        changed.map(|(_, message)| message).chain(new.iter_mut())
    }

    /// Returns whether the run has made or changed messages with parts that are not text.
    pub(crate) fn has_new_media(&self) -> bool {
        let changed =
            self.changed.range(..self.kept).filter_map(|position| self.base.get(*position));
        changed.chain(self.new.iter()).any(has_media)
    }

    pub(crate) fn into_changes(self) -> TranscriptChanges {
        let Self { base, kept, changed, new, state, state_changed, .. } = self;
        let updated = changed.into_iter().filter(|position| *position < kept);
        let updated = updated.map(|position| (position, base[position].clone())).collect();
        TranscriptChanges {
            kept,
            updated,
            new: new.into_iter().collect(),
            state: state_changed.then_some(state),
        }
    }

    /// Applies an event. One that cannot be applied, such as a patch whose path does not exist, changes nothing.
    pub fn apply(&mut self, event: &Event) {
        self.try_apply(event);
    }

    /// Applies an event. Returns its effect.
    pub(crate) fn try_apply(&mut self, event: &Event) -> Effect {
        match event {
            // Handled first, because most events are of this type.
            Event::TextMessageContent(e) => self.append(&e.message_id, &e.delta, e.base.metadata()),
            Event::StateDelta(e) => return self.amend_state(e),
            Event::ActivityDelta(e) => return self.amend_activity(e, e.base.metadata()),
            _ => self.apply_other(event),
        }
        Effect::Whole
    }

    fn amend_state(&mut self, event: &StateDelta) -> Effect {
        let applied = patch::apply_within(&mut self.state, &event.delta, &mut self.patch_budget);
        if let Err(error) = &applied {
            tracing::warn!(%error, "skipped a state delta that does not apply");
        }
        self.state_changed |= applied.is_ok();
        if applied.is_ok() { Effect::Whole } else { Effect::None }
    }

    fn apply_other(&mut self, event: &Event) {
        let metadata = event.base().metadata();
        match event {
            Event::TextMessageStart(e) => self.start_text(e, metadata),
            Event::TextMessageEnd(e) => self.annotate(&e.message_id, metadata),
            Event::ReasoningMessageStart(e) => self.start_reasoning(e, metadata),
            Event::ReasoningMessageContent(e) => self.append(&e.message_id, &e.delta, metadata),
            Event::ReasoningMessageEnd(e) => self.annotate(&e.message_id, metadata),
            Event::ToolCallStart(e) => self.start_call(e, metadata),
            Event::ToolCallArgs(e) => {
                if let Some(call) = self.call_mut(&e.tool_call_id) {
                    call.function.arguments.push_str(&e.delta);
                    merge(&mut call.metadata, metadata);
                }
            }
            Event::ToolCallEnd(e) => self.annotate_call(&e.tool_call_id, metadata),
            Event::ToolCallResult(e) => self.insert_result(e, metadata),
            Event::ReasoningEncryptedValue(e) => self.keep_encrypted_value(e),
            Event::StateSnapshot(e) => {
                self.state = e.snapshot.clone();
                self.state_changed = true;
            }
            Event::MessagesSnapshot(e) => self.reconcile(e),
            Event::ActivitySnapshot(e) => self.set_activity(e, metadata),
            Event::RunStarted(e) => {
                for message in e.input.iter().flat_map(|input| &input.messages) {
                    if self.position(message.id()).is_none() {
                        self.new.push(message.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn keep_encrypted_value(&mut self, event: &ReasoningEncryptedValue) {
        let place = match event.subtype {
            EncryptedValueSubtype::ToolCall => {
                let call = self.call_mut(&event.entity_id.as_str().into());
                call.map(|call| (&mut call.encrypted_value, &mut call.encrypted_value_type))
            }
            EncryptedValueSubtype::Message => self
                .message_mut(&event.entity_id.as_str().into())
                .and_then(Message::encrypted_value_mut),
        };
        match place {
            // A type describes one value, so a value without a type removes the earlier type.
            Some((value, value_type)) => {
                *value = Some(event.encrypted_value.clone());
                value_type.clone_from(&event.encrypted_value_type);
            }
            None => {
                tracing::warn!(
                    entity = event.entity_id.as_str(),
                    "skipped an encrypted value of an unknown message or call"
                )
            }
        }
    }

    fn get(&self, place: Place) -> Option<&Message> {
        match place {
            Place::Kept(position) => self.base.get(position),
            Place::New(place) => self.new.get(place),
        }
    }

    /// Returns a message to change, except for its id and the number of its calls. Copies a shared
    /// list if the message is a kept one.
    fn get_mut(&mut self, place: Place) -> Option<&mut Message> {
        match place {
            Place::Kept(position) => {
                self.changed.insert(position);
                self.base.get_mut(position)
            }
            Place::New(place) => self.new.get_mut(place),
        }
    }

    fn position(&mut self, id: &MessageId) -> Option<Place> {
        let is_last = |place: &Place| self.get(*place).is_some_and(|message| message.id().is(id));
        if let Some(last) = self.last.filter(is_last) {
            return Some(last);
        }
        let kept = self.base.position(id).filter(|position| *position < self.kept).map(Place::Kept);
        let place = kept.or_else(|| self.new.position(id).map(Place::New))?;
        self.last = Some(place);
        Some(place)
    }

    fn message_mut(&mut self, id: &MessageId) -> Option<&mut Message> {
        let place = self.position(id)?;
        self.get_mut(place)
    }
}

fn merge(target: &mut Option<Metadata>, metadata: Option<&JsonObject>) {
    if let Some(metadata) = metadata {
        target
            .get_or_insert_default()
            .extend(metadata.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

#[cfg(test)]
mod tests;
