//! Messages and state, as a client holds them after the events of a run.
//!
//! The reference is `@ag-ui/client` 1.0.0: what it does with an event, this does, also where the
//! specification leaves the consumer a choice. A test plays the same streams to both. The events have
//! passed the [`Guard`](super::Guard), so there are no chunks among them.

mod messages;
mod snapshot;
mod tail;

use serde_json::Value;

use self::tail::Tail;
use super::EventSink;
use crate::protocol::{
    Event, JsonObject, Message, MessageId, Metadata, RunAgentInput,
    event::{EncryptedValueSubtype, ReasoningEncryptedValue},
    patch,
};

/// A conversation that follows the events of its runs.
///
/// ```
/// use agui_server::agent::build::TextMessage;
/// use agui_server::protocol::{Message, RunAgentInput};
/// use agui_server::run::Transcript;
///
/// let input = RunAgentInput::new("thread", "run", vec![Message::user("m1", "Hello")]);
/// let mut transcript = Transcript::from_input(&input);
/// for event in TextMessage::whole("Hi!") {
///     transcript.apply(&event);
/// }
/// assert_eq!(transcript.messages().len(), 2);
/// ```
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Transcript {
    tail: Tail,
    messages: Vec<Message>,
    /// Where the last message was found. A stream mostly continues what it has just continued.
    last: usize,
    state: Value,
}

impl Transcript {
    /// A conversation as it stands.
    pub fn new(messages: Vec<Message>, state: Value) -> Self {
        Self { messages, last: 0, state, tail: Tail::default() }
    }

    /// The conversation that a run starts from.
    pub fn from_input(input: &RunAgentInput) -> Self {
        Self::new(input.messages.clone(), input.state_or_empty())
    }

    /// The messages, in order.
    pub fn messages(&mut self) -> &[Message] {
        self.settle();
        &self.messages
    }

    /// The shared state.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// Takes the conversation apart.
    pub fn into_parts(mut self) -> (Vec<Message>, Value) {
        self.settle();
        (self.messages, self.state)
    }

    /// Applies an event. One that cannot be applied (a patch whose path does not exist, say) leaves
    /// everything as it was.
    pub fn apply(&mut self, event: &Event) {
        // Nearly all events are these.
        if let Event::TextMessageContent(e) = event {
            self.append(&e.message_id, &e.delta, e.base.metadata());
        } else {
            self.apply_other(event);
        }
    }

    #[inline(never)]
    fn apply_other(&mut self, event: &Event) {
        let metadata = event.base().metadata();
        if !matches!(event, Event::ReasoningMessageContent(_)) {
            self.settle();
        }
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
            Event::ToolCallEnd(e) => {
                if let Some(call) = self.call_mut(&e.tool_call_id) {
                    merge(&mut call.metadata, metadata);
                }
            }
            Event::ToolCallResult(e) => self.insert_result(e, metadata),
            Event::ReasoningEncryptedValue(e) => self.keep_encrypted_value(e),
            Event::StateSnapshot(e) => self.state = e.snapshot.clone(),
            Event::StateDelta(e) => {
                if let Err(error) = patch::apply(&mut self.state, &e.delta) {
                    tracing::warn!(%error, "a state delta does not apply and was skipped");
                }
            }
            Event::MessagesSnapshot(e) => self.reconcile(e),
            Event::ActivitySnapshot(e) => self.set_activity(e, metadata),
            Event::ActivityDelta(e) => self.amend_activity(e, metadata),
            Event::RunStarted(e) => {
                for message in e.input.iter().flat_map(|input| &input.messages) {
                    if self.position(message.id()).is_none() {
                        self.messages.push(message.clone());
                    }
                }
            }
            // The others build nothing that lasts, but for the text, which was taken above.
            _ => {}
        }
    }

    fn keep_encrypted_value(&mut self, event: &ReasoningEncryptedValue) {
        let place = match event.subtype {
            EncryptedValueSubtype::ToolCall => {
                self.call_mut(&event.entity_id.as_str().into()).map(|call| &mut call.encrypted_value)
            }
            EncryptedValueSubtype::Message => {
                self.message_mut(&event.entity_id.as_str().into()).and_then(Message::encrypted_value_mut)
            }
        };
        match place {
            Some(place) => *place = Some(event.encrypted_value.clone()),
            None => tracing::warn!(entity = ?event.entity_id, "an encrypted value belongs to nothing and was dropped"),
        }
    }

    fn position(&mut self, id: &MessageId) -> Option<usize> {
        if self.messages.get(self.last).is_none_or(|message| !message.id().is(id)) {
            self.last = self.messages.iter().position(|message| message.id() == id)?;
        }
        Some(self.last)
    }

    fn message_mut(&mut self, id: &MessageId) -> Option<&mut Message> {
        let index = self.position(id)?;
        self.messages.get_mut(index)
    }
}

impl EventSink for Transcript {
    fn emit(&mut self, event: &Event) {
        self.apply(event);
    }
}

/// Merges metadata key by key; the last value of a key stands, and no value is merged with another.
fn merge(target: &mut Option<Metadata>, metadata: Option<&JsonObject>) {
    if let Some(metadata) = metadata {
        target.get_or_insert_default().extend(metadata.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}
