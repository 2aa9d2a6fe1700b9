//! Decodes the stream of the Messages API.

use std::collections::BTreeMap;

use serde_json::Value;

use super::usage::TokenCounts;
use crate::{
    llm::{
        BlockStart, StopReason,
        transport::{AnswerEvents, DecodeError, DecodeStep, Decoder, FailureKind},
    },
    protocol::ToolCallId,
};

/// Signatures, and arguments sent at the start of a call, are kept until the end of their blocks.
const MAX_HELD_BYTES: usize = 4 << 20;
/// Bounds the memory; answers have far fewer.
const MAX_OPEN_BLOCKS: usize = 1024;

pub(super) struct MessageDecoder {
    model: String,
    /// By the provider's index; `None` for blocks of types that are ignored.
    open: BTreeMap<u64, Option<ContentBlock>>,
    held: usize,
    counts: TokenCounts,
    reason: Option<StopReason>,
    stopped: bool,
    finished: bool,
}

struct ContentBlock {
    block: usize,
    artefact: String,
    /// Unless they come in deltas.
    input: Option<String>,
}

impl MessageDecoder {
    pub(super) fn new(model: &str) -> Self {
        let (open, counts) = (BTreeMap::new(), TokenCounts::default());
        Self { model: model.to_owned(), open, held: 0, counts, reason: None, stopped: false, finished: false }
    }

    fn start(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeError> {
        let index = index(event)?;
        let block = event.get("content_block").unwrap_or(&Value::Null);
        let (start, beginning, artefact, input) = match text(block, "type") {
            "text" => (BlockStart::Text, text(block, "text"), "", None),
            "thinking" => {
                let start = BlockStart::Reasoning { redacted: false };
                (start, text(block, "thinking"), text(block, "signature"), None)
            }
            "redacted_thinking" => (BlockStart::Reasoning { redacted: true }, "", text(block, "data"), None),
            "tool_use" => {
                let id = match text(block, "id") {
                    "" => ToolCallId::random(),
                    id => id.into(),
                };
                let name = text(block, "name");
                if name.is_empty() {
                    return Err(DecodeError::Malformed("a tool call has no name".to_owned()));
                }
                // Some servers send the arguments here and not in deltas.
                let input = block.get("input").filter(|input| input.is_object());
                let input = input.map_or_else(|| "{}".to_owned(), Value::to_string);
                (BlockStart::Call { id, name: name.to_owned() }, "", "", Some(input))
            }
            // Blocks of the provider's own tools and of future types.
            _ if self.open.len() < MAX_OPEN_BLOCKS => {
                self.open.insert(index, None);
                return Ok(());
            }
            _ => return Err(DecodeError::Malformed(format!("the answer has more than {MAX_OPEN_BLOCKS} open blocks"))),
        };
        self.hold(artefact.len() + input.as_ref().map_or(0, String::len))?;
        let block = output.start(start)?;
        output.delta(block, beginning);
        let open = ContentBlock { block, artefact: artefact.to_owned(), input };
        if let Some(Some(unfinished)) = self.open.insert(index, Some(open)) {
            unfinished.end(output);
        }
        Ok(())
    }

    fn hold(&mut self, bytes: usize) -> Result<(), DecodeError> {
        self.held += bytes;
        if self.held > MAX_HELD_BYTES {
            return Err(DecodeError::Malformed("the answer has too many bytes in signatures and arguments".to_owned()));
        }
        Ok(())
    }

    fn delta(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeError> {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let open = self.open.get_mut(&index(event)?);
        let Some(open) = open.ok_or_else(|| DecodeError::Malformed("a delta belongs to no open block".to_owned()))?
        else {
            return Ok(());
        };
        match text(delta, "type") {
            "text_delta" => output.delta(open.block, text(delta, "text")),
            "thinking_delta" => output.delta(open.block, text(delta, "thinking")),
            "input_json_delta" => {
                let json = text(delta, "partial_json");
                if !json.is_empty() {
                    open.input = None;
                    output.delta(open.block, json);
                }
            }
            "signature_delta" => {
                let signature = text(delta, "signature");
                open.artefact.push_str(signature);
                self.hold(signature.len())?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl ContentBlock {
    fn end(self, output: &mut AnswerEvents) {
        output.delta(self.block, self.input.unwrap_or_default());
        output.end(self.block, Some(self.artefact).filter(|artefact| !artefact.is_empty()));
    }
}

impl Decoder for MessageDecoder {
    fn event(&mut self, name: Option<&str>, data: &str, output: &mut AnswerEvents) -> Result<DecodeStep, DecodeError> {
        if data.trim().is_empty() {
            return Ok(DecodeStep::More);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|error| DecodeError::Malformed(format!("an event: {error}")))?;
        if !event.is_object() {
            return Err(DecodeError::Malformed("an event is not an object".to_owned()));
        }
        let mut usage = None;
        match event.get("type").and_then(Value::as_str).or(name).unwrap_or_default() {
            "message_start" => usage = event.pointer("/message/usage"),
            "content_block_start" => self.start(&event, output)?,
            "content_block_delta" => self.delta(&event, output)?,
            "content_block_stop" => {
                if let Some(Some(open)) = self.open.remove(&index(&event)?) {
                    open.end(output);
                }
            }
            "message_delta" => {
                usage = event.get("usage");
                if let Some(reason) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.reason = Some(match reason {
                        "tool_use" => StopReason::Calls,
                        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
                        "refusal" => StopReason::Refused,
                        _ => StopReason::Done,
                    });
                }
            }
            "message_stop" => self.stopped = true,
            "error" => return Err(failed(event.get("error").unwrap_or(&event))),
            _ => {}
        }
        if usage.is_some_and(|usage| self.counts.read(usage)) {
            output.usage(self.counts.usage(&self.model));
        }
        Ok(if self.stopped { DecodeStep::Complete } else { DecodeStep::More })
    }

    fn finish(&mut self, output: &mut AnswerEvents) -> bool {
        if self.finished {
            return true;
        }
        self.finished = self.stopped || self.reason.is_some();
        if self.finished {
            std::mem::take(&mut self.open).into_values().flatten().for_each(|open| open.end(output));
            output.stop(self.reason.take().unwrap_or(StopReason::Done));
        }
        self.finished
    }
}

fn index(event: &Value) -> Result<u64, DecodeError> {
    event.get("index").and_then(Value::as_u64).ok_or_else(|| DecodeError::Malformed("a block has no index".to_owned()))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn failed(error: &Value) -> DecodeError {
    let kind = match text(error, "type") {
        "overloaded_error" | "api_error" | "timeout_error" => FailureKind::Unavailable,
        "rate_limit_error" => FailureKind::RateLimited,
        _ => FailureKind::Other,
    };
    DecodeError::Failed { kind, message: text(error, "message").to_owned() }
}

#[cfg(test)]
mod tests;
