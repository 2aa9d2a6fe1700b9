//! Decodes the stream of the Messages API (<https://platform.claude.com/docs/en/build-with-claude/streaming>).

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};

use super::{raw_block::RawBlock, server_blocks::is_server_block, usage::TokenCounts};
use crate::{
    Artefact, BlockStart, StopReason,
    transport::{
        AnswerEvents, DecodeFault, DecodeStep, Decoder, call_start, check_error, check_open_blocks,
        json::{list, parse_object, text},
    },
};
use agui_base::text::short_name;

/// The content of a paused answer, set at its end.
pub(crate) type PausedContent = Arc<OnceLock<Vec<Value>>>;

#[derive(Default)]
pub(crate) struct MessageDecoder {
    model: String,
    /// The open blocks by the provider's index.
    open: BTreeMap<u64, OpenClaudeBlock>,
    /// An ended block of text that the next one continues: the API begins a new block for each
    /// citation.
    ended_text: Option<usize>,
    /// The blocks that are sent back unchanged: blocks of the provider's own tools, and all blocks
    /// of an answer that may be paused.
    raw: BTreeMap<u64, RawBlock>,
    /// Set for an answer that may be paused.
    paused: Option<PausedContent>,
    counts: TokenCounts,
    end: Option<StopReason>,
    /// True if the answer continues after another request.
    is_paused: bool,
    stopped: bool,
}

const SIGNATURE: &str = "anthropic.signature";
const REDACTED_THINKING: &str = "anthropic.redacted_thinking";
/// The JSON of a block of the provider's own tools.
const SERVER_BLOCK: &str = "anthropic.server_block";

enum OpenClaudeBlock {
    Content(OpenContent),
    /// A block of the provider's own tools.
    Server,
    /// A block of an unknown type.
    Ignored,
}

struct OpenContent {
    block: usize,
    is_text: bool,
    artefact_kind: &'static str,
    artefact: String,
    /// The arguments, unless they come in deltas.
    input: Option<String>,
}

impl MessageDecoder {
    pub(crate) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    /// Sets `paused` to the answer's content at its end, if the provider pauses it.
    pub(crate) fn recording(mut self, paused: PausedContent) -> Self {
        self.paused = Some(paused);
        self
    }

    fn start(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let index = index(event)?;
        let block = event.get("content_block").unwrap_or(&Value::Null);
        // Some servers use an index again without an end of its block.
        self.end(index, output)?;
        check_open_blocks(self.open.len())?;
        let kind = text(block, "type");
        let is_server_block = is_server_block(kind);
        if is_server_block || self.paused.is_some() {
            output.hold(block.to_string().len() + size_of::<RawBlock>())?;
            self.raw.insert(index, RawBlock::new(block));
        }
        let start = match kind {
            "text" => Some(BlockStart::Text),
            "thinking" => Some(BlockStart::Reasoning { redacted: false }),
            "redacted_thinking" => Some(BlockStart::Reasoning { redacted: true }),
            "tool_use" => Some(call_start(text(block, "id"), text(block, "name"))?),
            _ => None,
        };
        let open = match start {
            Some(start) => OpenClaudeBlock::Content(self.start_content(start, block, output)?),
            None if is_server_block => {
                self.end_text(output);
                OpenClaudeBlock::Server
            }
            None => {
                tracing::debug!(kind, "ignored a block of an unknown type");
                OpenClaudeBlock::Ignored
            }
        };
        self.open.insert(index, open);
        Ok(())
    }

    fn start_content(
        &mut self,
        start: BlockStart,
        content: &Value,
        output: &mut AnswerEvents,
    ) -> Result<OpenContent, DecodeFault> {
        let is_text = start == BlockStart::Text;
        let (artefact_kind, artefact) = match start {
            BlockStart::Reasoning { redacted: true } => (REDACTED_THINKING, text(content, "data")),
            BlockStart::Reasoning { redacted: false } => (SIGNATURE, text(content, "signature")),
            _ => (SIGNATURE, ""),
        };
        // Some servers send the arguments here and not in deltas.
        let input = matches!(start, BlockStart::Call { .. }).then(|| {
            let input = content.get("input").filter(|input| input.is_object());
            input.map_or_else(|| "{}".to_owned(), Value::to_string)
        });
        output.hold(artefact.len() + input.as_ref().map_or(0, String::len))?;
        let continued = if is_text { self.ended_text.take() } else { None };
        let block = match continued {
            Some(block) => block,
            None => {
                self.end_text(output);
                output.start(start)?
            }
        };
        output.delta(block, text(content, if is_text { "text" } else { "thinking" }));
        list(content, "citations")
            .iter()
            .for_each(|citation| output.citation(block, citation.clone()));
        Ok(OpenContent { block, is_text, artefact_kind, artefact: artefact.to_owned(), input })
    }

    fn delta(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let index = index(event)?;
        let mut held = self.raw.get_mut(&index).map_or(0, |block| block.add(delta));
        let open = self.open.get_mut(&index);
        match open
            .ok_or_else(|| DecodeFault::Malformed("a delta belongs to no open block".to_owned()))?
        {
            OpenClaudeBlock::Server | OpenClaudeBlock::Ignored => {}
            OpenClaudeBlock::Content(open) => match text(delta, "type") {
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
                    held += signature.len();
                }
                "citations_delta" => {
                    if let Some(citation) = delta.get("citation").filter(|_| open.is_text) {
                        output.citation(open.block, citation.clone());
                    }
                }
                _ => {}
            },
        }
        output.hold(held)
    }

    /// Ends the block with the provider's index, if it is open.
    fn end(&mut self, index: u64, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        match self.open.remove(&index) {
            Some(OpenClaudeBlock::Content(block)) if block.is_text => {
                self.end_text(output);
                self.ended_text = Some(block.block);
            }
            Some(OpenClaudeBlock::Content(block)) => {
                output.delta(block.block, block.input.unwrap_or_default());
                let artefact = Some(block.artefact).filter(|artefact| !artefact.is_empty());
                output.end(
                    block.block,
                    artefact.map(|artefact| Artefact::new(block.artefact_kind, artefact)),
                );
            }
            Some(OpenClaudeBlock::Server) => {
                let number = output.start(BlockStart::Reasoning { redacted: true })?;
                let whole = self.raw.get_mut(&index).map(|block| block.whole().to_string());
                output.end(number, whole.map(|whole| Artefact::new(SERVER_BLOCK, whole)));
                if self.paused.is_none() {
                    self.raw.remove(&index);
                }
            }
            Some(OpenClaudeBlock::Ignored) | None => {}
        }
        Ok(())
    }

    /// Reads a whole message, in place of a stream.
    fn whole(&mut self, message: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        for (index, block) in (0..).zip(list(message, "content")) {
            let event = json!({"index": index, "content_block": block});
            self.start(&event, output)?;
            self.end(index, output)?;
        }
        self.usage(message.get("usage"), output);
        self.message_delta(message);
        self.stopped = true;
        Ok(())
    }

    fn end_text(&mut self, output: &mut AnswerEvents) {
        if let Some(block) = self.ended_text.take() {
            output.end(block, None);
        }
    }

    fn usage(&mut self, counts: Option<&Value>, output: &mut AnswerEvents) {
        counts.into_iter().for_each(|counts| self.counts.read(counts));
        output.usage(self.counts.usage(&self.model));
    }

    fn message_delta(&mut self, delta: &Value) {
        let Some(reason) = delta.get("stop_reason").and_then(Value::as_str) else { return };
        self.is_paused = reason == "pause_turn";
        self.end = Some(match reason {
            "tool_use" => StopReason::Calls,
            "max_tokens" => StopReason::Length,
            "model_context_window_exceeded" => StopReason::ContextFull,
            "refusal" => {
                let details = delta.get("stop_details").unwrap_or(&Value::Null);
                tracing::warn!(
                    model = self.model,
                    category = text(details, "category"),
                    "the model refused to answer"
                );
                StopReason::Refused
            }
            "" | "end_turn" | "stop_sequence" | "pause_turn" | "stop" => StopReason::Done,
            reason => {
                tracing::warn!(
                    reason = short_name(reason),
                    "the answer ended for an unknown reason"
                );
                StopReason::Aborted
            }
        });
    }
}

impl Decoder for MessageDecoder {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        output: &mut AnswerEvents,
    ) -> Result<DecodeStep, DecodeFault> {
        if data.trim().is_empty() {
            return Ok(DecodeStep::More);
        }
        // Gateways end the stream like chat completions do, even an empty one.
        if data.trim() == "[DONE]" {
            self.stopped |= !output.has_answer;
            return Ok(if self.stopped { DecodeStep::Complete } else { DecodeStep::More });
        }
        let event = parse_object(data, "an event")?;
        match event.get("type").and_then(Value::as_str).or(name).unwrap_or_default() {
            "message_start" => {
                self.usage(event.pointer("/message/usage"), output);
                log_dropped_thinking(event.pointer("/message/input_transformations"));
            }
            "content_block_start" => self.start(&event, output)?,
            "content_block_delta" => self.delta(&event, output)?,
            "content_block_stop" => self.end(index(&event)?, output)?,
            "message_delta" => {
                self.usage(event.get("usage"), output);
                self.message_delta(event.get("delta").unwrap_or(&Value::Null));
            }
            "message_stop" => self.stopped = true,
            "message" => self.whole(&event, output)?,
            "error" => return Err(DecodeFault::from_provider(&event)),
            _ => check_error(&event)?,
        }
        Ok(if self.stopped { DecodeStep::Complete } else { DecodeStep::More })
    }

    fn finish(&mut self, output: &mut AnswerEvents) -> bool {
        if !self.stopped && self.end.is_none() {
            return false;
        }
        while let Some(index) = self.open.keys().next().copied() {
            // Only a block of a server tool can fail here, and only in an answer of too many blocks.
            let _ = self.end(index, output);
        }
        self.end_text(output);
        if let Some(paused) = self.paused.take().filter(|_| self.is_paused) {
            // Setting cannot fail: each answer ends once.
            let _ = paused
                .set(std::mem::take(&mut self.raw).into_values().map(RawBlock::finish).collect());
        }
        output.stop(self.end.take().unwrap_or(StopReason::Done));
        true
    }
}

/// Logs that the model answers without thinking blocks that are no longer valid.
fn log_dropped_thinking(transformations: Option<&Value>) {
    let dropped = transformations.and_then(Value::as_array).map_or(0, Vec::len);
    if dropped > 0 {
        tracing::debug!(
            dropped,
            "the provider dropped thinking of earlier answers, because what came before it changed"
        );
    }
}

fn index(event: &Value) -> Result<u64, DecodeFault> {
    event
        .get("index")
        .and_then(Value::as_u64)
        .ok_or_else(|| DecodeFault::Malformed("a block has no index".to_owned()))
}

#[cfg(test)]
mod tests;
