//! Decodes the stream of the Responses API: <https://developers.openai.com/api/reference/resources/responses>,
//! "Streaming events".
//!
//! An answer is a list of items. A message has text, reasoning has summaries, a function call has arguments. Items of
//! the provider's own tools, such as `web_search_call`, are not shown, except the picture of an
//! `image_generation_call`.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::items::{OpenItem, ReasoningEnd};
use crate::{
    StopReason,
    providers::wire::{OPENAI, token_usage},
    refusal::FailureKind,
    transport::{
        AnswerEvents, DecodeFault, DecodeStep, Decoder, check_error, check_open_blocks,
        json::{list, parse_object, text},
    },
};
use agui_protocol::TokenUsage;

/// The ids of items that are kept. It bounds the memory; answers have far fewer items.
const MAX_IDS: usize = 1024;

#[derive(Default)]
pub(crate) struct ResponsesDecoder {
    model: String,
    /// The largest number of output tokens, if the request sets one.
    max_tokens: Option<u64>,
    /// The open items by their index in the output.
    open: BTreeMap<u64, OpenItem>,
    /// The indices by the ids of items, for events without an index.
    ids: HashMap<String, u64>,
    /// The index after the last one.
    next: u64,
    has_items: bool,
    /// Reasoning whose end is delayed until the next item: the API takes reasoning back only before
    /// the item that followed it, and a hidden item is not sent back.
    ended_reasoning: Vec<ReasoningEnd>,
    refused: bool,
    stop: Option<StopReason>,
}

impl ResponsesDecoder {
    pub(crate) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    pub(crate) fn with_max_tokens(self, max_tokens: Option<u64>) -> Self {
        Self { max_tokens, ..self }
    }

    /// Returns the index of an event's item. llama.cpp and LiteLLM leave it out: then it is that of the item with the same
    /// id, or else of a new item, if the event begins one, and of the last open item.
    fn index(&mut self, event: &Value, begins_item: bool) -> u64 {
        let item = event.get("item").unwrap_or(&Value::Null);
        let ids = [text(event, "item_id"), text(item, "id"), text(item, "call_id")];
        let ids = ids.into_iter().filter(|id| !id.is_empty());
        let known = ids.clone().find_map(|id| self.ids.get(id)).copied();
        let last = || self.open.last_key_value().map(|(index, _)| *index).filter(|_| !begins_item);
        let index = event.get("output_index").and_then(Value::as_u64);
        let index = index.or(known).or_else(last).unwrap_or(self.next);
        self.next = self.next.max(index.saturating_add(1));
        for id in ids.take(MAX_IDS.saturating_sub(self.ids.len())) {
            self.ids.insert(id.to_owned(), index);
        }
        index
    }

    fn item_added(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let index = self.index(event, true);
        let item = event.get("item").unwrap_or(&Value::Null);
        self.open_item(index, item, output)
    }

    fn open_item(
        &mut self,
        index: u64,
        item: &Value,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        if self.open.contains_key(&index) {
            return Ok(());
        }
        check_open_blocks(self.open.len() + self.ended_reasoning.len())?;
        self.has_items = true;
        let kind = text(item, "type");
        if kind != "reasoning" {
            let is_hidden = !matches!(kind, "message" | "function_call");
            self.ended_reasoning
                .drain(..)
                .try_for_each(|reasoning| reasoning.end(is_hidden, output))?;
        }
        let item = OpenItem::open(item, output)?;
        self.open.insert(index, item);
        Ok(())
    }

    fn item_done(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let item = event.get("item").unwrap_or(&Value::Null);
        let is_last =
            self.open.last_key_value().is_some_and(|(_, open)| open.is_of(text(item, "type")));
        let index = self.index(event, !is_last);
        // Some servers do not announce an item.
        self.open_item(index, item, output)?;
        let Some(mut open) = self.open.remove(&index) else { return Ok(()) };
        self.refused |= open.complete(item, output)?;
        if let Some(reasoning) = open.end(item, output) {
            output.hold(reasoning.artefact.len())?;
            self.ended_reasoning.push(reasoning);
        }
        Ok(())
    }

    /// Adds a part of an item. Some servers announce no items.
    fn delta(
        &mut self,
        kind: &str,
        event: &Value,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        let of = match kind {
            // A call has no name here. It comes again when the item is done.
            "response.function_call_arguments.delta" => "",
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                "reasoning"
            }
            _ => "message",
        };
        let last = self.open.last_key_value().filter(|(_, open)| open.is_of(of));
        let last = last.map(|(index, _)| *index);
        let index = self.index(event, last.is_none() && !of.is_empty());
        // A wrong index means the announced item, whose text would come twice otherwise.
        let index = last.filter(|_| !self.open.contains_key(&index)).unwrap_or(index);
        if !of.is_empty() && !text(event, "delta").is_empty() {
            self.open_item(index, &json!({ "type": of }), output)?;
        }
        self.open.get_mut(&index).map_or(Ok(()), |item| item.update(kind, event, output))
    }

    fn items_of(&mut self, response: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        for (index, item) in list(response, "output").iter().enumerate() {
            self.item_done(&json!({ "output_index": index, "item": item }), output)?;
        }
        let words = text(response, "output_text");
        if !self.has_items && !words.is_empty() {
            let content = json!([{ "type": "output_text", "text": words }]);
            self.item_done(&json!({ "item": { "type": "message", "content": content } }), output)?;
        }
        Ok(())
    }

    fn ended(&mut self, event: &Value, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        let response = event.get("response").unwrap_or(&Value::Null);
        if !self.has_items {
            // The items come with the whole response alone, or its text as in the SDKs.
            self.items_of(response, output)?;
        }
        let usage = response.get("usage").and_then(|value| usage(&self.model, value));
        // llama.cpp completes an answer that it has cut off.
        let has_reached_limit = self
            .max_tokens
            .is_some_and(|max| usage.as_ref().and_then(|usage| usage.output_tokens) >= Some(max));
        output.usage(usage);
        let status = text(response, "status");
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.stop = Some(match (text(event, "type"), status, reason) {
            ("response.failed", ..) | (_, "failed", _) => {
                // The whole response must not be the message: it repeats the instructions.
                return Err(DecodeFault::from_provider(
                    response.get("error").unwrap_or(&Value::Null),
                ));
            }
            ("response.cancelled", ..) | (_, "cancelled", _) => {
                let message = "the response was cancelled".to_owned();
                return Err(DecodeFault::Failed { kind: FailureKind::Other, message });
            }
            (_, _, Some("content_filter")) => StopReason::Filtered,
            ("response.incomplete", ..) | (_, "incomplete", _) => StopReason::Length,
            _ if has_reached_limit => StopReason::Length,
            _ if output.has_calls => StopReason::Calls,
            _ if self.refused => StopReason::Refused,
            _ => StopReason::Done,
        });
        Ok(())
    }
}

impl Decoder for ResponsesDecoder {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        output: &mut AnswerEvents,
    ) -> Result<DecodeStep, DecodeFault> {
        let data = data.trim();
        // Some servers end the stream like chat completions do. If this is the first event, the
        // answer is empty.
        if data == "[DONE]" && !output.has_answer {
            self.stop = Some(StopReason::Done);
            return Ok(DecodeStep::Complete);
        }
        if data.is_empty() || data == "[DONE]" {
            return Ok(DecodeStep::More);
        }
        let event = parse_object(data, "an event")?;
        // A whole response, in place of a stream.
        if text(&event, "object") == "response" {
            self.ended(&json!({"response": event}), output)?;
            return Ok(DecodeStep::Complete);
        }
        match event.get("type").and_then(Value::as_str).or(name).unwrap_or_default() {
            "response.output_item.added" => self.item_added(&event, output)?,
            kind @ ("response.output_text.delta"
            | "response.refusal.delta"
            | "response.output_text.annotation.added"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta") => {
                self.refused |= kind == "response.refusal.delta";
                self.delta(kind, &event, output)?;
            }
            "response.output_item.done" => self.item_done(&event, output)?,
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                self.ended(&event, output)?;
                return Ok(DecodeStep::Complete);
            }
            "error" => return Err(DecodeFault::from_provider(&event)),
            _ => check_error(&event)?,
        }
        Ok(DecodeStep::More)
    }

    fn finish(&mut self, output: &mut AnswerEvents) -> bool {
        let Some(stop) = self.stop.take() else { return false };
        for reasoning in self.ended_reasoning.drain(..) {
            // The only possible error, too many blocks, does not matter to a complete answer.
            let _ = reasoning.end(false, output);
        }
        for item in std::mem::take(&mut self.open).into_values() {
            item.end(&Value::Null, output);
        }
        output.stop(stop);
        true
    }
}

/// Returns the usage. A missing count stays absent. Reasoning is a part of the output, and cached
/// tokens are a part of the input.
pub(super) fn usage(model: &str, value: &Value) -> Option<TokenUsage> {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let counts = ["/input_tokens", "/output_tokens", "/total_tokens"].map(count);
    Some(TokenUsage {
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        cached_input_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_input_tokens: count("/input_tokens_details/cache_write_tokens"),
        ..token_usage(OPENAI, model, counts)?
    })
}

#[cfg(test)]
mod tests;
