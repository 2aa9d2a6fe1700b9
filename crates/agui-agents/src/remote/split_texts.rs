//! Joins the halves of surrogate pairs over the pieces of one message, thought or call's arguments.

use serde_json::Value;

use agui_base::lenient_json::JoinedText;
use agui_protocol::{EventType, JsonObject};

const DELTA: &str = "delta";

#[derive(Default)]
pub(super) struct SplitTexts(Vec<SplitText>);

/// A text whose last piece ends with the first half of a pair.
struct SplitText {
    kind: EventType,
    id: Option<String>,
    joined: JoinedText,
    /// The event of the last piece.
    last: JsonObject,
}

impl SplitTexts {
    /// Removes the texts that end with or before an event. Returns an event for the half at the end
    /// of each.
    pub(super) fn ended_by(&mut self, kind: EventType, object: &JsonObject) -> Vec<JsonObject> {
        let id = id_of(object);
        self.0
            .extract_if(.., |text| text.is_ended_by(kind, id))
            .filter_map(SplitText::into_rest)
            .collect()
    }

    /// Joins the piece of an event to the one before. Returns false if the event is empty then.
    pub(super) fn join(
        &mut self,
        kind: EventType,
        object: &mut JsonObject,
        has_halves: bool,
    ) -> bool {
        let at = self.0.iter().position(|text| text.continues_with(kind, id_of(object)));
        if !has_halves && at.is_none() {
            return true;
        }
        let id = id_of(object).map(str::to_owned);
        let Some(Value::String(delta)) = object.get_mut(DELTA) else { return true };
        let earlier = at.map(|at| self.0.swap_remove(at));
        let (earlier_id, joined) = earlier.map(|text| (text.id, text.joined)).unzip();
        let mut joined: JoinedText = joined.unwrap_or_default();
        joined.piece(delta);
        let is_empty = delta.is_empty();
        if joined.is_held() {
            self.0.push(SplitText {
                kind,
                id: id.or(earlier_id.flatten()),
                joined,
                last: object.clone(),
            });
        }
        if is_empty {
            object.remove(DELTA);
        }
        // The first chunk also begins its message.
        !is_empty || is_chunk(kind)
    }
}

impl SplitText {
    fn continues_with(&self, kind: EventType, id: Option<&str>) -> bool {
        self.kind == kind && (id == self.id.as_deref() || id.is_none() && is_chunk(kind))
    }

    fn is_ended_by(&self, kind: EventType, id: Option<&str>) -> bool {
        use EventType as E;
        let is_end = matches!(
            (self.kind, kind),
            (E::TextMessageContent, E::TextMessageEnd)
                | (E::ToolCallArgs, E::ToolCallEnd)
                | (E::ReasoningMessageContent, E::ReasoningMessageEnd)
        );
        match kind {
            E::RunStarted | E::RunFinished | E::RunError => true,
            _ if is_chunk(self.kind) => kind != E::Raw && !self.continues_with(kind, id),
            _ => is_end && id == self.id.as_deref(),
        }
    }

    fn into_rest(mut self) -> Option<JsonObject> {
        self.last.insert(DELTA.to_owned(), self.joined.end()?.into());
        self.last.remove("rawEvent");
        Some(self.last)
    }
}

fn is_chunk(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::TextMessageChunk | EventType::ToolCallChunk | EventType::ReasoningMessageChunk
    )
}

fn id_of(object: &JsonObject) -> Option<&str> {
    object.get("toolCallId").or_else(|| object.get("messageId"))?.as_str()
}
