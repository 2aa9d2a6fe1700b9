//! The interface of the decoders of providers' events.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::{Artefact, BlockStart, ModelEvent, StopReason, WrittenCall, refusal::FailureKind};
use agui_base::lenient_json::JoinedText;
use agui_protocol::{FunctionCall, TokenUsage, ToolCallId};

/// The largest number of blocks of an answer. It bounds the memory; answers have far fewer.
const MAX_BLOCKS: usize = 1024;
/// The largest number of bytes that a decoder keeps of an answer. A PDF that fills a context window
/// of 1 M tokens has about 5 MiB in base64.
const MAX_HELD_BYTES: usize = 8 << 20;

pub(crate) trait Decoder: Send + 'static {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        output: &mut AnswerEvents,
    ) -> Result<DecodeStep, DecodeFault>;

    /// Closes the open blocks and adds the reason of the stop, after the last event. If the answer
    /// is incomplete, does nothing and returns false.
    fn finish(&mut self, output: &mut AnswerEvents) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeStep {
    More,
    Complete,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeFault {
    /// An invalid event, with the reason for the log.
    Malformed(String),
    Failed {
        kind: FailureKind,
        message: String,
    },
}

impl DecodeFault {
    /// Returns the failure that a provider reports in a stream. `error` is an object with a message
    /// and codes, an object with that object as the member `error`, or a text. Without a message,
    /// all of `error` is the message.
    pub(crate) fn from_provider(error: &Value) -> Self {
        let error = error.get("error").filter(|inner| !inner.is_null()).unwrap_or(error);
        let text = error
            .as_str()
            .or_else(|| error.get("message")?.as_str())
            .filter(|text| !text.trim().is_empty());
        let message = match (text, error) {
            (Some(text), _) => text.to_owned(),
            (None, Value::Null) => "it gave no reason".to_owned(),
            (None, error) => error.to_string(),
        };
        Self::Failed { kind: FailureKind::from_error(error), message }
    }
}

/// Fails if a decoder has [`MAX_BLOCKS`] open blocks.
pub(crate) fn check_open_blocks(count: usize) -> Result<(), DecodeFault> {
    match count {
        0..MAX_BLOCKS => Ok(()),
        _ => Err(DecodeFault::Malformed(format!(
            "the answer has more than {MAX_BLOCKS} open blocks"
        ))),
    }
}

/// Fails if an event, or a body in place of a stream, has an error.
pub(crate) fn check_error(event: &Value) -> Result<(), DecodeFault> {
    let error = event.get("error").filter(|error| !error.is_null());
    error.map_or(Ok(()), |error| Err(DecodeFault::from_provider(error)))
}

/// Returns the start of a call with the provider's id, or with a new one if that is empty.
pub(crate) fn call_start(id: &str, name: &str) -> Result<BlockStart, DecodeFault> {
    if name.is_empty() {
        return Err(DecodeFault::Malformed("a call has no name".to_owned()));
    }
    let id = if id.is_empty() { ToolCallId::random() } else { id.into() };
    Ok(BlockStart::Call { id, name: name.to_owned() })
}

#[derive(Debug, Default)]
pub(crate) struct AnswerEvents {
    pub(crate) events: VecDeque<ModelEvent>,
    /// True if the answer has begun. Its request cannot be sent again then.
    pub(crate) has_answer: bool,
    pub(crate) has_calls: bool,
    blocks: usize,
    open: Vec<usize>,
    held: usize,
    usage: Option<TokenUsage>,
    /// The texts of the blocks with halves of surrogate pairs, which are joined over deltas.
    joined: HashMap<usize, JoinedText>,
}

impl AnswerEvents {
    pub(super) fn starting_with(block: usize) -> Self {
        Self { blocks: block, ..Self::default() }
    }

    pub(crate) fn start(&mut self, block: BlockStart) -> Result<usize, DecodeFault> {
        let index = self.blocks;
        if index == MAX_BLOCKS {
            return Err(DecodeFault::Malformed(format!(
                "the answer has more than {MAX_BLOCKS} blocks"
            )));
        }
        self.blocks += 1;
        self.has_answer = true;
        self.has_calls |= matches!(block, BlockStart::Call { .. });
        self.open.push(index);
        self.events.push_back(ModelEvent::Start { index, block });
        Ok(index)
    }

    /// Counts bytes that the decoder keeps, such as signatures, sources, and arguments before the name of their call.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), DecodeFault> {
        self.held += bytes;
        if self.held > MAX_HELD_BYTES {
            let message =
                format!("the answer has more than {MAX_HELD_BYTES} bytes beside its texts");
            return Err(DecodeFault::Malformed(message));
        }
        Ok(())
    }

    /// Releases bytes that are no longer held.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    pub(crate) fn delta(&mut self, index: usize, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.events.push_back(ModelEvent::Delta { index, text });
        }
    }

    pub(crate) fn end(&mut self, index: usize, artefact: Option<Artefact>) {
        self.open.retain(|open| *open != index);
        self.events.push_back(ModelEvent::End { index, artefact });
    }

    /// Adds a source of a block of text.
    pub(crate) fn citation(&mut self, index: usize, citation: Value) {
        self.events.push_back(ModelEvent::Citation { index, citation });
    }

    /// Adds a medium that the model made, if it has a type and data.
    pub(crate) fn media(&mut self, media_type: &str, base64: &str) {
        if !media_type.is_empty() && !base64.is_empty() {
            self.has_answer = true;
            let (media_type, base64) = (media_type.to_owned(), base64.to_owned());
            self.events.push_back(ModelEvent::Media { media_type, base64 });
        }
    }

    /// Adds calls that the model wrote as text.
    pub(crate) fn written_calls(&mut self, mut text: String, calls: Vec<FunctionCall>) {
        // The text is complete: no later delta has the other half of a surrogate pair.
        let whole = |text: &mut String| {
            let mut joined = JoinedText::default();
            joined.piece(text);
            text.extend(joined.end());
        };
        whole(&mut text);
        let calls = calls.into_iter().map(|mut call| {
            whole(&mut call.arguments);
            WrittenCall::new(call.name, call.arguments)
        });
        self.has_answer = true;
        self.events.push_back(ModelEvent::WrittenCalls { text, calls: calls.collect() });
    }

    /// Adds the usage so far, unless it is absent or the same as before.
    pub(crate) fn usage(&mut self, usage: Option<TokenUsage>) {
        if usage.is_some() && usage != self.usage {
            self.usage.clone_from(&usage);
            self.events.extend(usage.map(ModelEvent::Usage));
        }
    }

    pub(crate) fn stop(&mut self, reason: StopReason) {
        self.events.push_back(ModelEvent::Stop(reason));
    }

    /// Joins the halves of surrogate pairs in the texts of the events. `has_new_halves` is true if
    /// one of these events may have the first half.
    pub(super) fn join_halves(&mut self, has_new_halves: bool) {
        if self.joined.is_empty() && !has_new_halves {
            return;
        }
        for event in std::mem::take(&mut self.events) {
            match event {
                ModelEvent::Delta { index, mut text } => {
                    self.joined.entry(index).or_default().piece(&mut text);
                    self.delta(index, text);
                }
                ModelEvent::End { index, .. } => {
                    let rest = self.joined.remove(&index).and_then(|mut text| text.end());
                    self.delta(index, rest.unwrap_or_default());
                    self.events.push_back(event);
                }
                event => self.events.push_back(event),
            }
        }
    }

    /// Ends an answer that the provider stopped for this reason.
    pub(super) fn break_off(&mut self, reason: StopReason) {
        self.events
            .extend(self.open.drain(..).map(|index| ModelEvent::End { index, artefact: None }));
        self.stop(reason);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failure_in_a_stream_has_its_kind_alone_and_within_an_error_event() {
        let error = json!({"type": "overloaded_error", "message": "no"});
        let expected =
            DecodeFault::Failed { kind: FailureKind::Unavailable, message: "no".to_owned() };
        for event in [error.clone(), json!({"type": "error", "error": error})] {
            assert_eq!(DecodeFault::from_provider(&event), expected, "{event}");
        }
    }

    #[test]
    fn a_failure_in_a_stream_always_has_a_message() {
        for (error, message) in [
            (json!("no"), "no"),
            (json!({"error": "no"}), "no"),
            (json!({"error": null, "message": "no"}), "no"),
            (json!({"detail": "no"}), r#"{"detail":"no"}"#),
            (json!({"message": "", "code": "x"}), r#"{"message":"","code":"x"}"#),
            (json!({"message": 7}), r#"{"message":7}"#),
            (json!([7]), "[7]"),
            (Value::Null, "it gave no reason"),
        ] {
            let failed = DecodeFault::from_provider(&error);
            assert_eq!(
                failed,
                DecodeFault::Failed { kind: FailureKind::Other, message: message.to_owned() },
                "{error}"
            );
        }
    }
}
