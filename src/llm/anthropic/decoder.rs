//! The stream of the Messages API.

use std::collections::BTreeMap;

use serde_json::Value;

use super::usage::Counts;
use crate::{
    llm::{
        BlockStart, StopReason,
        transport::{Decoder, Fault, Kind, Output, Step},
    },
    protocol::ToolCallId,
};

/// The most that is held back of an answer until its blocks end: signatures, and arguments that came whole.
const MOST_HELD: usize = 4 << 20;
/// More blocks than are ever open at once.
const MOST_OPEN: usize = 1024;

/// Reads one answer.
pub(super) struct MessageDecoder {
    model: String,
    /// The open blocks by the provider's index; of those that say nothing to us, `None`.
    open: BTreeMap<u64, Option<Open>>,
    /// How many bytes are held back, or have been.
    held: usize,
    counts: Counts,
    reason: Option<StopReason>,
    /// Whether the answer is over.
    stopped: bool,
    finished: bool,
}

/// An open block.
struct Open {
    block: usize,
    artefact: String,
    /// What a call is ended with, if no arguments came.
    input: Option<String>,
}

impl MessageDecoder {
    pub(super) fn new(model: &str) -> Self {
        let (open, counts) = (BTreeMap::new(), Counts::default());
        Self { model: model.to_owned(), open, held: 0, counts, reason: None, stopped: false, finished: false }
    }

    fn start(&mut self, event: &Value, output: &mut Output) -> Result<(), Fault> {
        let index = index(event)?;
        let block = event.get("content_block").unwrap_or(&Value::Null);
        let (start, said, artefact, input) = match text(block, "type") {
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
                    return Err(Fault::Malformed("a call has no name".to_owned()));
                }
                // Whole already at servers that do not stream it.
                let input = block.get("input").filter(|input| input.is_object());
                let input = input.map_or_else(|| "{}".to_owned(), Value::to_string);
                (BlockStart::Call { id, name: name.to_owned() }, "", "", Some(input))
            }
            // What the provider's own tools do, and what will be invented.
            _ if self.open.len() < MOST_OPEN => {
                self.open.insert(index, None);
                return Ok(());
            }
            _ => return Err(Fault::Malformed(format!("the answer has more than {MOST_OPEN} open blocks"))),
        };
        self.hold(artefact.len() + input.as_ref().map_or(0, String::len))?;
        let block = output.start(start)?;
        output.delta(block, said);
        let open = Open { block, artefact: artefact.to_owned(), input };
        if let Some(Some(forgotten)) = self.open.insert(index, Some(open)) {
            forgotten.end(output);
        }
        Ok(())
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Fault> {
        self.held += bytes;
        if self.held > MOST_HELD {
            return Err(Fault::Malformed("the blocks hold back too much".to_owned()));
        }
        Ok(())
    }

    fn delta(&mut self, event: &Value, output: &mut Output) -> Result<(), Fault> {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let open = self.open.get_mut(&index(event)?);
        let Some(open) = open.ok_or_else(|| Fault::Malformed("a block goes on that was not begun".to_owned()))? else {
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

impl Open {
    fn end(self, output: &mut Output) {
        output.delta(self.block, self.input.unwrap_or_default());
        output.end(self.block, Some(self.artefact).filter(|artefact| !artefact.is_empty()));
    }
}

impl Decoder for MessageDecoder {
    fn event(&mut self, name: Option<&str>, data: &str, output: &mut Output) -> Result<Step, Fault> {
        if data.trim().is_empty() {
            return Ok(Step::More);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|error| Fault::Malformed(format!("an event: {error}")))?;
        if !event.is_object() {
            return Err(Fault::Malformed("an event is no object".to_owned()));
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
        Ok(if self.stopped { Step::Complete } else { Step::More })
    }

    fn finish(&mut self, output: &mut Output) -> bool {
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

fn index(event: &Value) -> Result<u64, Fault> {
    event.get("index").and_then(Value::as_u64).ok_or_else(|| Fault::Malformed("a block has no index".to_owned()))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn failed(error: &Value) -> Fault {
    let kind = match text(error, "type") {
        "overloaded_error" | "api_error" | "timeout_error" => Kind::Unavailable,
        "rate_limit_error" => Kind::RateLimited,
        _ => Kind::Other,
    };
    Fault::Failed { kind, message: text(error, "message").to_owned() }
}

#[cfg(test)]
mod tests;
