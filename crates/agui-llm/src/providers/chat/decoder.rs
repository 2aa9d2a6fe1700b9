//! Decodes the stream of chat completions, in all variants that servers write.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    calls::ChatCalls,
    reasoning::{self, ReasoningDetails},
    tags::{AnswerPiece, PieceKind, TagReader},
    text_chunk::text_alone,
    written_calls::{WrittenCallReader, WrittenEnd},
};
use crate::{
    BlockStart, StopReason,
    known_models::{Profile, ReasoningMember, ThinkTags},
    providers::wire::{OPENAI, token_usage},
    refusal::FailureKind,
    transport::{
        AnswerEvents, DecodeFault, DecodeStep, Decoder,
        json::{list, number, parse_object, text},
    },
};
use agui_base::text::{is_in, short_name};
use agui_protocol::TokenUsage;
use agui_tools::ToolSpec;

/// The reasons of a complete answer, in lower case. SGLang and vLLM write `abort` for one that they broke off.
const DONE: &str = "\
    stop stop_sequence end_turn eos eos_token eos_found end complete completed done finished normal \
    tool_calls tool_call tool_use function_call";

#[derive(Default)]
pub(crate) struct ChatDecoder {
    model: String,
    /// The open block. A block of another kind ends it, so that blocks keep their order.
    open: Option<(usize, PieceKind)>,
    tags: TagReader,
    written: WrittenCallReader,
    /// The details of the open block of reasoning, if they are sent back to the model.
    details: Option<ReasoningDetails>,
    calls: ChatCalls,
    has_written_calls: bool,
    /// The type of a call that is not a function's.
    unknown_tool: Option<String>,
    has_text: bool,
    /// The reason of the stop. Only usage follows it.
    reason: Option<StopReason>,
    refused: bool,
    done: bool,
}

impl ChatDecoder {
    /// Creates a decoder. `is_thinking_off` is true if the request turned thinking off: no text
    /// begins with reasoning then.
    pub(crate) fn new(
        model: &str,
        profile: &Profile,
        is_thinking_off: bool,
        tools: Arc<[ToolSpec]>,
    ) -> Self {
        let tags = match profile.think_tags {
            ThinkTags::Closing if is_thinking_off => ThinkTags::Paired,
            tags => tags,
        };
        let returns_details = profile.reasoning_member == ReasoningMember::ReasoningDetails;
        let details = returns_details.then(ReasoningDetails::default);
        Self {
            model: model.to_owned(),
            tags: TagReader::new(tags, profile.thoughts.clone()),
            written: WrittenCallReader::new(profile.written_calls.clone(), tools),
            details,
            ..Self::default()
        }
    }

    fn choice(&mut self, choice: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        // A completion without a stream has a message.
        if let Some(delta) = choice.get("delta").or(choice.get("message")) {
            self.reasoning(delta, output)?;
            self.content(delta, output)?;
            self.images(delta, output)?;
            self.calls(delta, output)?;
        }
        match text(choice, "finish_reason") {
            "" => Ok(()),
            reason => self.stop(reason, output),
        }
    }

    fn reasoning(&mut self, delta: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let text = reasoning::member_text(delta);
        self.add_text(PieceKind::Reasoning, &text, output)?;
        if let Some(details) = &mut self.details {
            details.add(delta, output)?;
        }
        // LangChain's list repeats `content`.
        let Some(blocks) = delta.get("content_blocks").and_then(Value::as_array) else {
            return Ok(());
        };
        let has_content = !reasoning::text(delta.get("content")).is_empty();
        for (kind, more) in reasoning::parts(blocks) {
            match kind {
                PieceKind::Reasoning if text.is_empty() => self.add_text(kind, &more, output)?,
                PieceKind::Text if !has_content => self.add_answer(&more, output)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn content(&mut self, delta: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        match delta.get("content") {
            Some(Value::String(text)) => self.add_answer(text, output)?,
            Some(Value::Array(list)) => {
                for (kind, text) in reasoning::parts(list) {
                    match kind {
                        PieceKind::Reasoning => self.add_text(kind, &text, output)?,
                        PieceKind::Text => self.add_answer(&text, output)?,
                    }
                }
            }
            _ => {}
        }
        let refusal = reasoning::text(delta.get("refusal"));
        self.refused |= !refusal.is_empty();
        self.add_text(PieceKind::Text, &refusal, output)?;
        // The text of a spoken answer is shown; its sound is dropped.
        let transcript =
            delta.get("audio").map(|audio| text(audio, "transcript")).unwrap_or_default();
        self.add_text(PieceKind::Text, transcript, output)
    }

    /// Adds pictures, which are `data:` URLs:
    /// <https://openrouter.ai/docs/guides/overview/multimodal/image-generation>.
    fn images(&mut self, delta: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        for image in list(delta, "images") {
            let url = image.get("image_url").map(|image| text(image, "url")).unwrap_or_default();
            let Some((media_type, base64)) =
                url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"))
            else {
                tracing::warn!(
                    "left out a picture of a model that is not in the answer, but at a URL"
                );
                continue;
            };
            self.add_held(output)?;
            self.close(output)?;
            self.has_text = true;
            output.media(media_type, base64);
        }
        Ok(())
    }

    fn calls(&mut self, delta: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let mut pieces = list(delta, "tool_calls");
        // The form before `tool_calls`: one call without an id.
        let old: [Value; 1];
        if let Some(call) =
            delta.get("function_call").filter(|call| call.is_object() && pieces.is_empty())
        {
            old = [json!({ "function": call })];
            pieces = &old;
        }
        if pieces.is_empty() {
            return Ok(());
        }
        self.add_held(output)?;
        self.close(output)?;
        for piece in pieces {
            let kind = piece.get("type").and_then(Value::as_str).unwrap_or("function");
            if matches!(kind, "function" | "custom" | "") || piece.get("function").is_some() {
                self.calls.add_piece(piece, output)?;
            } else {
                tracing::warn!(kind, "left out a call of a tool of the provider");
                self.unknown_tool = Some(short_name(kind));
            }
        }
        Ok(())
    }

    /// Sets the reason of the end.
    fn stop(&mut self, reason: &str, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        self.reason = Some(match reason {
            "length" | "max_tokens" => StopReason::Length,
            // https://docs.mistral.ai/api/endpoint/chat, https://docs.z.ai/api-reference/llm/chat-completion
            "model_length" | "model_context_window_exceeded" => StopReason::ContextFull,
            "content_filter" | "sensitive" | "safety" | "recitation" => StopReason::Filtered,
            "refusal" => StopReason::Refused,
            // Gemini's endpoint writes `function_call_filter: MALFORMED_FUNCTION_CALL`.
            reason if reason.to_ascii_lowercase().ends_with("malformed_function_call") => {
                StopReason::MalformedCall
            }
            // https://openrouter.ai/docs/api/reference/errors-and-debugging, https://api-docs.deepseek.com/api/create-chat-completion
            "error" | "network_error" | "insufficient_system_resource" => {
                let message = format!("the answer ended with the reason {reason}");
                return Err(DecodeFault::Failed { kind: FailureKind::Unavailable, message });
            }
            reason if is_in(DONE, &reason.to_ascii_lowercase()) => {
                return self.check_content(output).map(|()| self.reason = Some(StopReason::Done));
            }
            reason => {
                tracing::warn!(
                    reason = short_name(reason),
                    "the answer ended for an unknown reason"
                );
                StopReason::Aborted
            }
        });
        Ok(())
    }

    /// Fails at the end of an answer that consists of calls of tools that only the provider can
    /// run.
    fn check_content(&mut self, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let Some(kind) = self.unknown_tool.take() else { return Ok(()) };
        self.add_held(output)?;
        if self.has_text || self.has_calls() {
            return Ok(());
        }
        let message = format!(
            "the model called a tool of the type {kind:?}, which only the provider can run"
        );
        Err(DecodeFault::Failed { kind: FailureKind::Other, message })
    }

    fn has_calls(&self) -> bool {
        self.has_written_calls || !self.calls.is_empty()
    }

    /// Adds text that may begin with tagged reasoning.
    fn add_answer(&mut self, text: &str, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        if self.tags.is_text() {
            return self.add_unwritten(text, output);
        }
        let pieces = self.tags.read(text);
        self.add_pieces(pieces, output)
    }

    /// Adds the held text that may have been the beginning of a tag.
    fn add_held(&mut self, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let held = self.tags.end();
        self.add_pieces(held, output)?;
        let WrittenEnd { text, calls } = self.written.end();
        if calls.is_empty() {
            return self.add_text(PieceKind::Text, &text, output);
        }
        self.close(output)?;
        self.has_written_calls = true;
        output.written_calls(text, calls);
        Ok(())
    }

    /// Adds text that may contain calls.
    fn add_unwritten(&mut self, text: &str, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        if self.written.is_off() {
            return self.add_text(PieceKind::Text, text, output);
        }
        output.hold(text.len())?;
        let shown = self.written.read(text);
        output.release(shown.len());
        self.add_text(PieceKind::Text, &shown, output)
    }

    fn add_pieces(
        &mut self,
        pieces: Vec<AnswerPiece>,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        pieces.into_iter().try_for_each(|(kind, text)| match kind {
            PieceKind::Text => self.add_unwritten(&text, output),
            PieceKind::Reasoning => self.add_text(kind, &text, output),
        })
    }

    fn add_text(
        &mut self,
        kind: PieceKind,
        text: &str,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.has_text |= kind == PieceKind::Text;
        let block = match self.open {
            Some((block, open)) if open == kind => block,
            _ => {
                // Details before the text of the same reasoning are kept until its end.
                if kind == PieceKind::Reasoning {
                    self.end_open(output)
                } else {
                    self.close(output)?
                }
                let block = output.start(match kind {
                    PieceKind::Text => BlockStart::Text,
                    PieceKind::Reasoning => BlockStart::Reasoning { redacted: false },
                })?;
                self.open = Some((block, kind));
                block
            }
        };
        output.delta(block, text);
        Ok(())
    }

    fn end_open(&mut self, output: &mut AnswerEvents) {
        if let Some((block, kind)) = self.open.take() {
            let details = self.details.as_mut().filter(|_| kind == PieceKind::Reasoning);
            output.end(block, details.and_then(ReasoningDetails::take_artefact));
        }
    }

    /// Ends the open block. Details without a text become a block of hidden reasoning.
    fn close(&mut self, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        self.end_open(output);
        if let Some(details) = self.details.as_mut().and_then(ReasoningDetails::take_artefact) {
            let block = output.start(BlockStart::Reasoning { redacted: true })?;
            output.end(block, Some(details));
        }
        Ok(())
    }
}

impl Decoder for ChatDecoder {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        output: &mut AnswerEvents,
    ) -> Result<DecodeStep, DecodeFault> {
        let data = data.trim();
        if data == "[DONE]" {
            self.check_content(output)?;
            self.done = true;
            return Ok(DecodeStep::Complete);
        }
        if data.is_empty() {
            return Ok(DecodeStep::More);
        }
        if name != Some("error")
            && let Some(text) = text_alone(data)
        {
            return self.add_answer(&text, output).map(|()| DecodeStep::More);
        }
        let chunk = parse_object(data, "a chunk")?;
        let error = chunk.get("error").filter(|error| !error.is_null());
        if let Some(error) = error.or((name == Some("error")).then_some(&chunk)) {
            return Err(DecodeFault::from_provider(error));
        }
        // A request asks for one choice, so others are ignored.
        let choices = list(&chunk, "choices");
        for choice in choices.iter().filter(|choice| number(choice, "index") == 0) {
            self.choice(choice, output)?;
        }
        // Groq and Moonshot write the usage in their own members.
        let members = [Some(&chunk), chunk.get("x_groq"), choices.first()];
        let counts = members.into_iter().flatten().filter_map(|member| member.get("usage"));
        output.usage(
            counts
                .filter(|counts| counts.is_object())
                .find_map(|counts| usage(&self.model, counts)),
        );
        Ok(DecodeStep::More)
    }

    fn finish(&mut self, output: &mut AnswerEvents) -> bool {
        // A call without a name cannot be run, so such an answer is incomplete.
        if !(self.done || self.reason.is_some()) || self.calls.has_nameless() {
            return false;
        }
        // An answer with too many blocks ends with its first ones.
        let _ = self.add_held(output).and_then(|()| self.close(output));
        self.calls.end(output);
        // Some servers send the reason `stop` after calls, or `tool_calls` without calls. So the
        // calls decide.
        output.stop(match self.reason.take() {
            None | Some(StopReason::Done) if self.refused => StopReason::Refused,
            None | Some(StopReason::Done) if self.has_calls() => StopReason::Calls,
            None => StopReason::Done,
            Some(reason) => reason,
        });
        true
    }
}

/// Returns the usage. A missing count stays absent.
pub(super) fn usage(model: &str, value: &Value) -> Option<TokenUsage> {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let [input_tokens, output, total] =
        ["/prompt_tokens", "/completion_tokens", "/total_tokens"].map(count);
    let reasoning_tokens = count("/completion_tokens_details/reasoning_tokens");
    let sum = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
    // The total shows whether a provider counts reasoning apart from the output. In the protocol,
    // reasoning is a part of the output.
    let with_reasoning = sum(output, reasoning_tokens);
    let beside = reasoning_tokens.is_some_and(|count| count > 0)
        && total.is_some()
        && total == sum(input_tokens, with_reasoning);
    let output_tokens = if beside { with_reasoning } else { output };
    // OpenAI and most others, DeepSeek, and Moonshot.
    let cached =
        ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"];
    Some(TokenUsage {
        reasoning_tokens,
        cached_input_tokens: cached.into_iter().find_map(count),
        // https://openrouter.ai/docs/guides/administration/usage-accounting
        cache_write_input_tokens: count("/prompt_tokens_details/cache_write_tokens"),
        ..token_usage(OPENAI, model, [input_tokens, output_tokens, total])?
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod usage_tests {
    use super::*;

    #[test]
    fn missing_counts_are_absent_and_zeros_are_kept() {
        let read = |value| {
            usage("m", &value).map(|usage| {
                [
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.total_tokens,
                    usage.reasoning_tokens,
                    usage.cached_input_tokens,
                ]
            })
        };
        assert_eq!(read(json!(null)), None);
        assert_eq!(read(json!({"prompt_tokens": null})), None);
        assert_eq!(read(json!({"prompt_tokens": 3})), Some([Some(3), None, None, None, None]));
        assert_eq!(
            read(
                json!({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}})
            ),
            Some([Some(3), Some(4), Some(7), None, Some(0)])
        );
        let moonshot = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "cached_tokens": 2});
        assert_eq!(read(moonshot), Some([Some(3), Some(4), Some(7), None, Some(2)]));
        let openrouter = json!({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2}});
        assert_eq!(usage("m", &openrouter).unwrap().cache_write_input_tokens, Some(2));
        let inside = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 2}});
        assert_eq!(read(inside), Some([Some(3), Some(4), Some(7), Some(2), None]));
        let beside = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 2}});
        assert_eq!(read(beside), Some([Some(3), Some(6), Some(9), Some(2), None]));
    }
}
