//! Decodes the stream of the Gemini API. Each event is a whole response with the next parts of the answer. The stream
//! has no end mark: the answer is complete with a finish reason.

use serde_json::Value;

use super::{
    citations::CitedSources,
    signature::{TextSignatures, call_artefact},
};
use crate::{
    Artefact, BlockStart, StopReason,
    providers::wire::{GEMINI, token_usage},
    refusal::FailureKind,
    transport::{
        AnswerEvents, DecodeFault, DecodeStep, Decoder, call_start, check_error,
        json::{list, number, parse, text},
    },
};
use agui_base::text::is_in;
use agui_protocol::TokenUsage;

#[derive(Default)]
pub(crate) struct GeminiDecoder {
    model: String,
    open: Option<OpenTextBlock>,
    /// The block of the last text and its artefact. Its end is delayed: its sources may come after
    /// a later call or thought.
    ended_text: Option<(usize, Option<Artefact>)>,
    sources: CitedSources,
    reason: Option<StopReason>,
}

/// A block of text or of thoughts. Parts of one kind are one block, until a part of another kind.
struct OpenTextBlock {
    block: usize,
    is_thought: bool,
    signatures: TextSignatures,
}

impl GeminiDecoder {
    pub(crate) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    fn response(&mut self, response: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        if !response.is_object() {
            return Err(DecodeFault::Malformed("an event is not an object".to_owned()));
        }
        check_error(response)?;
        // The prompt was blocked, so there are no candidates.
        let blocked = response.pointer("/promptFeedback/blockReason").and_then(Value::as_str);
        if blocked.is_some_and(|reason| reason != "BLOCKED_REASON_UNSPECIFIED") {
            self.reason = Some(StopReason::Filtered);
        }
        // A request asks for one candidate, so others are ignored.
        for candidate in
            list(response, "candidates").iter().filter(|candidate| number(candidate, "index") == 0)
        {
            self.candidate(candidate, output)?;
        }
        output.usage(response.get("usageMetadata").and_then(|value| usage(&self.model, value)));
        Ok(())
    }

    fn candidate(
        &mut self,
        candidate: &Value,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        for part in
            candidate.get("content").map(|content| list(content, "parts")).unwrap_or_default()
        {
            self.part(part, output)?;
        }
        output.hold(self.sources.read(candidate))?;
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.reason =
                stop_reason(reason, text(candidate, "finishMessage"))?.or(self.reason.take());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let signature = part
            .get("thoughtSignature")
            .and_then(Value::as_str)
            .filter(|signature| !signature.is_empty());
        output.hold(signature.map_or(0, str::len))?;
        if let Some(call) = part.get("functionCall") {
            return self.call(call, signature, output);
        }
        let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
        if let Some(data) = part.get("inlineData") {
            // The pictures of thoughts are drafts. The signature of a picture is not kept: the
            // picture is sent back in a user's message.
            if !is_thought {
                self.close(output);
                output.media(text(data, "mimeType"), text(data, "data"));
            }
            return Ok(());
        }
        let text = part.get("text").and_then(Value::as_str);
        let text = match (text, signature) {
            (None, None) => {
                // A part of the provider's own tools, which only `extra_body` can offer.
                tracing::debug!(parts = ?part.as_object().map(|part| part.keys().collect::<Vec<_>>()), "ignored a part");
                return Ok(());
            }
            (text, _) => text.unwrap_or_default(),
        };
        self.text(text, is_thought, signature, output)
    }

    fn text(
        &mut self,
        text: &str,
        is_thought: bool,
        signature: Option<&str>,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        if self.open.as_ref().is_some_and(|open| open.is_thought != is_thought) {
            self.close(output);
        }
        let mut signatures = TextSignatures::default();
        let open = match &mut self.open {
            Some(open) => open,
            None if text.is_empty() && !is_thought => {
                // A signature without a text.
                let block = output.start(BlockStart::Reasoning { redacted: true })?;
                signatures.add(text, signature);
                output.end(block, signatures.artefact(is_thought));
                return Ok(());
            }
            None => {
                let start = if is_thought {
                    BlockStart::Reasoning { redacted: false }
                } else {
                    BlockStart::Text
                };
                if !is_thought {
                    self.end_text(output);
                }
                self.open.insert(OpenTextBlock {
                    block: output.start(start)?,
                    is_thought,
                    signatures,
                })
            }
        };
        output.delta(open.block, text);
        open.signatures.add(text, signature);
        Ok(())
    }

    fn call(
        &mut self,
        call: &Value,
        signature: Option<&str>,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        self.close(output);
        let block = output.start(call_start(text(call, "id"), text(call, "name"))?)?;
        let arguments = call.get("args").filter(|arguments| arguments.is_object());
        output.delta(block, arguments.map_or_else(|| "{}".to_owned(), Value::to_string));
        output.end(block, signature.map(call_artefact));
        Ok(())
    }

    /// Ends a thought. The end of a text is delayed.
    fn close(&mut self, output: &mut AnswerEvents) {
        let Some(open) = self.open.take() else { return };
        let artefact = open.signatures.artefact(open.is_thought);
        if open.is_thought {
            output.end(open.block, artefact)
        } else {
            self.ended_text = Some((open.block, artefact))
        }
    }

    fn end_text(&mut self, output: &mut AnswerEvents) {
        if let Some((block, artefact)) = self.ended_text.take() {
            output.end(block, artefact);
        }
    }
}

impl Decoder for GeminiDecoder {
    fn event(
        &mut self,
        _: Option<&str>,
        data: &str,
        output: &mut AnswerEvents,
    ) -> Result<DecodeStep, DecodeFault> {
        let data = data.trim();
        // The API has no end mark, but gateways add OpenAI's. If it is the first event, the answer
        // is empty.
        if data == "[DONE]" && !output.has_answer {
            self.reason.get_or_insert(StopReason::Done);
        }
        if data.is_empty() || data == "[DONE]" {
            return Ok(DecodeStep::More);
        }
        let event = parse(data, "an event")?;
        // Some errors are in a list of one.
        match &event {
            Value::Array(responses) => {
                responses.iter().try_for_each(|response| self.response(response, output))?
            }
            response => self.response(response, output)?,
        }
        Ok(DecodeStep::More)
    }

    fn finish(&mut self, output: &mut AnswerEvents) -> bool {
        let Some(reason) = self.reason.take() else { return false };
        self.close(output);
        if let Some((block, _)) = self.ended_text {
            let citations = std::mem::take(&mut self.sources).into_citations();
            citations.into_iter().for_each(|citation| output.citation(block, citation));
        }
        self.end_text(output);
        output.stop(if reason == StopReason::Done && output.has_calls {
            StopReason::Calls
        } else {
            reason
        });
        true
    }
}

const FILTERED: &str = "\
    SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT \
    IMAGE_RECITATION";

/// Returns the reason of the stop (<https://ai.google.dev/api/generate-content#FinishReason>);
/// `None` if the answer continues.
fn stop_reason(reason: &str, message: &str) -> Result<Option<StopReason>, DecodeFault> {
    let kind = match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => return Ok(None),
        // Gateways have a reason of their own for calls.
        "STOP" | "FUNCTION_CALL" => return Ok(Some(StopReason::Done)),
        "MAX_TOKENS" => return Ok(Some(StopReason::Length)),
        reason if is_in(FILTERED, reason) => return Ok(Some(StopReason::Filtered)),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            return Ok(Some(StopReason::MalformedCall));
        }
        // A retry would fail in the same way.
        "MISSING_THOUGHT_SIGNATURE" | "NO_IMAGE" | "TOO_MANY_TOOL_CALLS" => FailureKind::Other,
        // `OTHER` and future reasons: the model failed.
        _ => FailureKind::Unavailable,
    };
    Err(DecodeFault::Failed {
        kind,
        message: format!("the model stopped with {reason}. {message}").trim().to_owned(),
    })
}

/// Returns the usage; `None` without counts. The counts of a stream are cumulative.
///
/// `candidatesTokenCount` does not contain the thoughts, and `promptTokenCount` contains the cached tokens:
/// <https://ai.google.dev/api/generate-content#UsageMetadata>.
pub(super) fn usage(model: &str, value: &Value) -> Option<TokenUsage> {
    let count = |name: &str| value.get(name).and_then(Value::as_u64);
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b),
        (a, b) => a.or(b),
    };
    let input_tokens = sum(count("promptTokenCount"), count("toolUsePromptTokenCount"));
    let reasoning_tokens = count("thoughtsTokenCount");
    let output_tokens = sum(count("candidatesTokenCount"), reasoning_tokens);
    let total_tokens = count("totalTokenCount").or_else(|| sum(input_tokens, output_tokens));
    Some(TokenUsage {
        reasoning_tokens,
        cached_input_tokens: count("cachedContentTokenCount"),
        ..token_usage(GEMINI, model, [input_tokens, output_tokens, total_tokens])?
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod usage_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn thoughts_are_a_part_of_the_output() {
        let read = |value| {
            usage("m", &value).map(|usage| {
                let TokenUsage {
                    input_tokens, output_tokens, total_tokens, reasoning_tokens, ..
                } = usage;
                [
                    input_tokens,
                    output_tokens,
                    total_tokens,
                    reasoning_tokens,
                    usage.cached_input_tokens,
                ]
            })
        };
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"trafficType": "ON_DEMAND"})), None);
        let whole = json!({
            "promptTokenCount": 9, "candidatesTokenCount": 23, "thoughtsTokenCount": 302, "totalTokenCount": 334,
            "cachedContentTokenCount": 4,
        });
        assert_eq!(read(whole), Some([Some(9), Some(325), Some(334), Some(302), Some(4)]));
        let thinking = json!({"promptTokenCount": 9, "thoughtsTokenCount": 5});
        assert_eq!(read(thinking), Some([Some(9), Some(5), Some(14), Some(5), None]));
        let with_tool = json!({"promptTokenCount": 9, "toolUsePromptTokenCount": 10, "candidatesTokenCount": 1});
        assert_eq!(read(with_tool), Some([Some(19), Some(1), Some(20), None, None]));
    }
}
