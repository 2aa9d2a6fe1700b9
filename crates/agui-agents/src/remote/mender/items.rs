//! The items of a run, by the ids of its endpoint: calls, messages, spans of reasoning.

use super::ids::ItemOwner;
use agui_protocol::{
    Event, MessageId, ToolCallId,
    event::{ReasoningMessageStart, TextMessageRole, TextMessageStart, ToolCallArgs},
};

/// The calls whose arguments are kept until their start comes, and the bytes of these arguments.
const MAX_EARLY_CALLS: usize = 64;
const MAX_EARLY_BYTES: usize = 1 << 20;

/// A call of this run, or one from before it that the endpoint announces again, by the endpoint's id.
pub(super) struct AnnouncedCall {
    /// The id that clients get.
    pub(super) id: ToolCallId,
    pub(super) name: String,
    pub(super) owner: ItemOwner,
    pub(super) state: CallState,
    pub(super) has_result: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallState {
    Open,
    Closed,
    /// Clients have the call, with its arguments: its further events but the result are left out.
    Known,
}

/// Arguments that came before the start of their call.
#[derive(Default)]
pub(super) struct EarlyArguments {
    pieces: Vec<(ToolCallId, ToolCallArgs)>,
    bytes: usize,
}

/// A text or a reasoning message of this run, by the endpoint's id.
pub(super) struct StreamedMessage {
    /// The id that clients get.
    pub(super) id: MessageId,
    pub(super) owner: ItemOwner,
    /// `None` for a reasoning message.
    pub(super) role: Option<TextMessageRole>,
    pub(super) name: Option<String>,
    /// True between a start event and an end event. Chunks do not open a message here.
    pub(super) is_open: bool,
}

/// A span of reasoning, by the endpoint's id.
pub(super) struct StreamedSpan {
    /// The id that clients get.
    pub(super) id: MessageId,
    pub(super) owner: ItemOwner,
    pub(super) is_open: bool,
}

impl StreamedMessage {
    pub(super) fn start(&self) -> Event {
        let id = self.id.clone();
        let start = match self.role {
            Some(role) => TextMessageStart {
                role: Some(role),
                name: self.name.clone(),
                ..TextMessageStart::new(id)
            }
            .into(),
            None => Event::from(ReasoningMessageStart::new(id)),
        };
        start.attributed_to(self.owner.clone())
    }
}

impl EarlyArguments {
    /// Returns false if there are too many.
    pub(super) fn add(&mut self, call: ToolCallId, piece: ToolCallArgs) -> bool {
        let is_known = self.pieces.iter().any(|(id, _)| *id == call);
        let bytes = self.bytes + piece.delta.len();
        let fits = (is_known || self.pieces.len() < MAX_EARLY_CALLS) && bytes <= MAX_EARLY_BYTES;
        if fits {
            self.bytes = bytes;
            self.pieces.push((call, piece));
        }
        fits
    }

    pub(super) fn take(&mut self, call: &ToolCallId) -> Vec<ToolCallArgs> {
        let taken: Vec<_> =
            self.pieces.extract_if(.., |(id, _)| id == call).map(|(_, piece)| piece).collect();
        self.bytes -= taken.iter().map(|piece| piece.delta.len()).sum::<usize>();
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

pub(super) fn set_message_id(event: &mut Event, id: MessageId) {
    match event {
        Event::TextMessageStart(event) => event.message_id = id,
        Event::TextMessageContent(event) => event.message_id = id,
        Event::TextMessageEnd(event) => event.message_id = id,
        Event::ReasoningStart(event) => event.message_id = id,
        Event::ReasoningEnd(event) => event.message_id = id,
        Event::ReasoningMessageStart(event) => event.message_id = id,
        Event::ReasoningMessageContent(event) => event.message_id = id,
        Event::ReasoningMessageEnd(event) => event.message_id = id,
        Event::ActivitySnapshot(event) => event.message_id = id,
        Event::ActivityDelta(event) => event.message_id = id,
        _ => {}
    }
}
