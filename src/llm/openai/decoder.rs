//! Decodes the stream of chat completions, in all variants that servers write.

use serde_json::Value;

use super::{calls::ChatCalls, usage::usage};
use crate::{
    llm::{
        BlockStart, StopReason,
        transport::{AnswerEvents, DecodeError, DecodeStep, Decoder, FailureKind},
    },
    protocol::TokenUsage,
};

pub(super) struct ChatDecoder {
    model: String,
    /// Opening one kind ends the other, so that they keep their order.
    open: Option<(usize, OpenBlock)>,
    calls: ChatCalls,
    usage: Option<TokenUsage>,
    /// Only usage comes after it.
    reason: Option<StopReason>,
    refused: bool,
    done: bool,
    finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Reasoning,
}

impl ChatDecoder {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            open: None,
            calls: ChatCalls::default(),
            usage: None,
            reason: None,
            refused: false,
            done: false,
            finished: false,
        }
    }

    fn add_text(&mut self, kind: OpenBlock, text: &str, output: &mut AnswerEvents) -> Result<(), DecodeError> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.open {
            Some((block, open)) if open == kind => block,
            _ => {
                self.close(output);
                let block = output.start(match kind {
                    OpenBlock::Text => BlockStart::Text,
                    OpenBlock::Reasoning => BlockStart::Reasoning { redacted: false },
                })?;
                self.open = Some((block, kind));
                block
            }
        };
        output.delta(block, text);
        Ok(())
    }

    fn close(&mut self, output: &mut AnswerEvents) {
        if let Some((block, _)) = self.open.take() {
            output.end(block, None);
        }
    }

    fn choice(&mut self, choice: &Value, output: &mut AnswerEvents) -> Result<(), DecodeError> {
        if let Some(delta) = choice.get("delta") {
            // Some servers write the same reasoning under both keys.
            let reasoning = ["reasoning_content", "reasoning"].iter().map(|key| text(delta.get(key)));
            let reasoning = reasoning.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
            self.add_text(OpenBlock::Reasoning, &reasoning, output)?;
            self.add_text(OpenBlock::Text, &text(delta.get("content")), output)?;
            let refusal = text(delta.get("refusal"));
            self.refused |= !refusal.is_empty();
            self.add_text(OpenBlock::Text, &refusal, output)?;
            if let Some(pieces) = delta.get("tool_calls").and_then(Value::as_array).filter(|pieces| !pieces.is_empty())
            {
                self.close(output);
                for piece in pieces {
                    self.calls.add_piece(piece, output)?;
                }
            }
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.reason = Some(match reason {
                "length" | "max_tokens" => StopReason::Length,
                "content_filter" => StopReason::Refused,
                _ => StopReason::Done,
            });
        }
        Ok(())
    }
}

impl Decoder for ChatDecoder {
    fn event(&mut self, name: Option<&str>, data: &str, output: &mut AnswerEvents) -> Result<DecodeStep, DecodeError> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(DecodeStep::Complete);
        }
        if data.is_empty() {
            return Ok(DecodeStep::More);
        }
        let chunk: Value =
            serde_json::from_str(data).map_err(|error| DecodeError::Malformed(format!("a chunk: {error}")))?;
        if !chunk.is_object() {
            return Err(DecodeError::Malformed("a chunk is not an object".to_owned()));
        }
        let error = chunk.get("error").filter(|error| !error.is_null());
        if let Some(error) = error.or((name == Some("error")).then_some(&chunk)) {
            return Err(failed(error));
        }
        // A request asks for one choice, so others are ignored.
        let choices = chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for choice in choices.iter().filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            self.choice(choice, output)?;
        }
        let usage = chunk.get("usage").and_then(|value| usage(&self.model, value));
        if usage.is_some() && usage != self.usage {
            self.usage.clone_from(&usage);
            usage.into_iter().for_each(|usage| output.usage(usage));
        }
        Ok(DecodeStep::More)
    }

    fn finish(&mut self, output: &mut AnswerEvents) -> bool {
        if self.finished {
            return true;
        }
        // A call without a name cannot be run, so such an answer is incomplete.
        self.finished = (self.done || self.reason.is_some()) && !self.calls.has_nameless();
        if !self.finished {
            return false;
        }
        self.close(output);
        self.calls.end(output);
        // Some servers send the reason `stop` after calls, or `tool_calls` without any. So the calls decide.
        output.stop(match self.reason.take() {
            None | Some(StopReason::Done) if self.refused => StopReason::Refused,
            None | Some(StopReason::Done) if !self.calls.is_empty() => StopReason::Calls,
            None => StopReason::Done,
            Some(reason) => reason,
        });
        true
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        _ => String::new(),
    }
}

fn failed(error: &Value) -> DecodeError {
    let texts = ["code", "type", "status"].iter().filter_map(|key| error.get(key));
    let mut kind = FailureKind::Other;
    for value in texts {
        let status = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let found = match value.as_str().unwrap_or_default() {
            "insufficient_quota" => return DecodeError::Failed { kind: FailureKind::Other, message: message(error) },
            "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => FailureKind::RateLimited,
            "server_error"
            | "overloaded"
            | "overloaded_error"
            | "service_unavailable"
            | "internal_server_error"
            | "UNAVAILABLE"
            | "INTERNAL" => FailureKind::Unavailable,
            _ => status.map_or(FailureKind::Other, FailureKind::of_status),
        };
        if found != FailureKind::Other {
            kind = found;
        }
    }
    DecodeError::Failed { kind, message: message(error) }
}

fn message(error: &Value) -> String {
    let text = error.as_str().or_else(|| error.get("message")?.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
