//! The stream of chat completions, as it is and as servers write it.

use serde_json::Value;

use super::{calls::Calls, usage::usage};
use crate::{
    llm::{
        BlockStart, StopReason,
        transport::{Decoder, Fault, Kind, Output, Step},
    },
    protocol::TokenUsage,
};

/// Reads one answer.
pub(super) struct ChatDecoder {
    model: String,
    /// The text or the reasoning that is open. Opening one ends the other, so that they keep their order.
    open: Option<(usize, Said)>,
    calls: Calls,
    usage: Option<TokenUsage>,
    /// Why it ends. What comes after that is only about costs.
    reason: Option<StopReason>,
    refused: bool,
    /// Whether `[DONE]` was there.
    done: bool,
    finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Text,
    Reasoning,
}

impl ChatDecoder {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            open: None,
            calls: Calls::default(),
            usage: None,
            reason: None,
            refused: false,
            done: false,
            finished: false,
        }
    }

    fn say(&mut self, said: Said, text: &str, output: &mut Output) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.open {
            Some((block, open)) if open == said => block,
            _ => {
                self.close(output);
                let block = output.start(match said {
                    Said::Text => BlockStart::Text,
                    Said::Reasoning => BlockStart::Reasoning { redacted: false },
                })?;
                self.open = Some((block, said));
                block
            }
        };
        output.delta(block, text);
        Ok(())
    }

    fn close(&mut self, output: &mut Output) {
        if let Some((block, _)) = self.open.take() {
            output.end(block, None);
        }
    }

    fn choice(&mut self, choice: &Value, output: &mut Output) -> Result<(), Fault> {
        if let Some(delta) = choice.get("delta") {
            // Some servers write the same reasoning under both names.
            let reasoning = ["reasoning_content", "reasoning"].iter().map(|key| text(delta.get(key)));
            let reasoning = reasoning.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
            self.say(Said::Reasoning, &reasoning, output)?;
            self.say(Said::Text, &text(delta.get("content")), output)?;
            let refusal = text(delta.get("refusal"));
            self.refused |= !refusal.is_empty();
            self.say(Said::Text, &refusal, output)?;
            if let Some(pieces) = delta.get("tool_calls").and_then(Value::as_array).filter(|pieces| !pieces.is_empty())
            {
                self.close(output);
                for piece in pieces {
                    self.calls.piece(piece, output)?;
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
    fn event(&mut self, name: Option<&str>, data: &str, output: &mut Output) -> Result<Step, Fault> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(Step::Complete);
        }
        if data.is_empty() {
            return Ok(Step::More);
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| Fault::Malformed(format!("a chunk: {error}")))?;
        if !chunk.is_object() {
            return Err(Fault::Malformed("a chunk is no object".to_owned()));
        }
        let error = chunk.get("error").filter(|error| !error.is_null());
        if let Some(error) = error.or((name == Some("error")).then_some(&chunk)) {
            return Err(failed(error));
        }
        // A request asks for one answer. A server that gives several has them told apart here.
        let choices = chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for choice in choices.iter().filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            self.choice(choice, output)?;
        }
        let usage = chunk.get("usage").and_then(|value| usage(&self.model, value));
        if usage.is_some() && usage != self.usage {
            self.usage.clone_from(&usage);
            usage.into_iter().for_each(|usage| output.usage(usage));
        }
        Ok(Step::More)
    }

    fn finish(&mut self, output: &mut Output) -> bool {
        if self.finished {
            return true;
        }
        // A call without a name cannot be made: the answer is not whole, whatever it says.
        self.finished = (self.done || self.reason.is_some()) && !self.calls.nameless();
        if !self.finished {
            return false;
        }
        self.close(output);
        self.calls.end(output);
        // Some servers say `stop` after calls, and `tool_calls` without any: the calls themselves are to be believed.
        output.stop(match self.reason.take() {
            None | Some(StopReason::Done) if self.refused => StopReason::Refused,
            None | Some(StopReason::Done) if !self.calls.is_empty() => StopReason::Calls,
            None => StopReason::Done,
            Some(reason) => reason,
        });
        true
    }
}

/// Text, or parts of text. Anything else is none.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        _ => String::new(),
    }
}

fn failed(error: &Value) -> Fault {
    let texts = ["code", "type", "status"].iter().filter_map(|key| error.get(key));
    let mut kind = Kind::Other;
    for value in texts {
        let status = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let found = match value.as_str().unwrap_or_default() {
            "insufficient_quota" => return Fault::Failed { kind: Kind::Other, message: message(error) },
            "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => Kind::RateLimited,
            "server_error"
            | "overloaded"
            | "overloaded_error"
            | "service_unavailable"
            | "internal_server_error"
            | "UNAVAILABLE"
            | "INTERNAL" => Kind::Unavailable,
            _ => status.map_or(Kind::Other, Kind::of_status),
        };
        if found != Kind::Other {
            kind = found;
        }
    }
    Fault::Failed { kind, message: message(error) }
}

fn message(error: &Value) -> String {
    let said = error.as_str().or_else(|| error.get("message")?.as_str());
    said.map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
