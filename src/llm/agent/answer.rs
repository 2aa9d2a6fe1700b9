//! Turns the stream of a model's answer into events for the client and messages of the conversation. Both are made of
//! the same pieces, so the next request to the model is the same as if the client had sent the messages back.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    agent::emit::{self, TextMessage},
    llm::{
        history::{PROVIDER, REDACTED},
        model::{BlockStart, ModelError, ModelEvent, StopReason},
    },
    protocol::{
        AssistantMessage, Event, Message, MessageId, Metadata, ReasoningMessage, TokenUsage, ToolCall, ToolCallId,
        event::{EncryptedValueSubtype, ReasoningEncryptedValue},
    },
};

pub(super) struct AnswerBuilder<'r> {
    provider: &'r str,
    /// Some models use the ids of earlier calls again.
    call_ids: &'r mut HashSet<ToolCallId>,
    /// With the model's index, in the order of their starts.
    blocks: Vec<(usize, AnswerBlock)>,
    /// The assistant's message that calls are added to. Reasoning ends it, so that the conversation keeps the order.
    call_message: Option<MessageId>,
    usage: TokenUsage,
    stop: Option<StopReason>,
}

enum AnswerBlock {
    Text { message: Option<TextMessage>, text: String },
    Reasoning { opened: Option<emit::ReasoningSpan>, text: String, redacted: bool, artefact: Option<String> },
    Call { events: emit::ToolCallEvents, parent: MessageId, call: ToolCall },
}

#[derive(Debug)]
pub(super) struct CompleteAnswer {
    pub(super) messages: Vec<Message>,
    pub(super) calls: Vec<CallOfTurn>,
    pub(super) stop: StopReason,
}

#[derive(Debug)]
pub(super) struct CallOfTurn {
    pub(super) call: ToolCall,
    pub(super) parent: MessageId,
}

impl<'r> AnswerBuilder<'r> {
    pub(super) fn new(provider: &'r str, call_ids: &'r mut HashSet<ToolCallId>) -> Self {
        Self { provider, call_ids, blocks: Vec::new(), call_message: None, usage: TokenUsage::default(), stop: None }
    }

    /// Adds the client's events to `out`, and returns the tokens used since the last report.
    pub(super) fn apply(&mut self, event: ModelEvent, out: &mut Vec<Event>) -> Option<TokenUsage> {
        match event {
            ModelEvent::Start { index, block } => self.start(index, block, out),
            ModelEvent::Delta { index, text } => self.delta(index, text, out),
            ModelEvent::End { index, artefact } => self.end(index, artefact, out),
            ModelEvent::Usage(usage) => return Some(self.usage_since_last(usage)),
            ModelEvent::Stop(reason) => self.stop = Some(reason),
        }
        None
    }

    fn start(&mut self, index: usize, block: BlockStart, out: &mut Vec<Event>) {
        let block = match block {
            BlockStart::Text => AnswerBlock::Text { message: None, text: String::new() },
            BlockStart::Reasoning { redacted } => {
                self.call_message = None;
                AnswerBlock::Reasoning { opened: None, text: String::new(), redacted, artefact: None }
            }
            BlockStart::Call { id, name } => {
                let id = if self.call_ids.insert(id.clone()) { id } else { self.new_call_id() };
                let parent = self.call_message.get_or_insert_with(MessageId::random).clone();
                let events =
                    emit::ToolCallEvents::with_id(id.clone(), &*name).within(&TextMessage::with_id(parent.clone()));
                out.push(events.start());
                AnswerBlock::Call { events, parent, call: ToolCall::new(id, name, "") }
            }
        };
        self.blocks.push((index, block));
    }

    fn new_call_id(&mut self) -> ToolCallId {
        let id = ToolCallId::random();
        self.call_ids.insert(id.clone());
        id
    }

    fn block(&mut self, index: usize) -> Option<&mut AnswerBlock> {
        self.blocks.iter_mut().rev().find(|(of, _)| *of == index).map(|(_, block)| block)
    }

    fn delta(&mut self, index: usize, delta: String, out: &mut Vec<Event>) {
        match self.block(index) {
            Some(AnswerBlock::Text { message, text }) => {
                text.push_str(&delta);
                if let Some(message) = message {
                    out.push(message.delta(delta));
                } else {
                    let opened = message.insert(TextMessage::new());
                    out.extend([opened.start(), opened.delta(delta)]);
                    let id = opened.id().clone();
                    self.call_message = Some(id);
                }
            }
            Some(AnswerBlock::Reasoning { opened, text, .. }) => {
                text.push_str(&delta);
                if opened.is_none() {
                    out.extend(opened.insert(emit::ReasoningSpan::new()).start());
                }
                out.extend(opened.as_ref().map(|reasoning| reasoning.delta(delta)));
            }
            Some(AnswerBlock::Call { events, call, .. }) => {
                call.function.arguments.push_str(&delta);
                out.push(events.delta(delta));
            }
            None => {}
        }
    }

    fn end(&mut self, index: usize, end_artefact: Option<String>, out: &mut Vec<Event>) {
        let provider = self.provider.to_owned();
        match self.block(index) {
            Some(AnswerBlock::Text { message, .. }) => out.extend(message.as_ref().map(TextMessage::end)),
            Some(AnswerBlock::Reasoning { opened, redacted, artefact, .. }) => {
                let Some(value) = end_artefact else {
                    out.extend(opened.iter().flat_map(emit::ReasoningSpan::end));
                    return;
                };
                if opened.is_none() {
                    out.extend(opened.insert(emit::ReasoningSpan::new()).start());
                }
                let Some(reasoning) = opened else { return };
                let [mut message_end, span_end] = reasoning.end();
                message_end.base_mut().set_metadata(Some(artefact_metadata(provider, *redacted)));
                let subtype = EncryptedValueSubtype::Message;
                let encrypted = ReasoningEncryptedValue::new(subtype, reasoning.message_id().as_str(), value.clone());
                out.extend([message_end, encrypted.into(), span_end]);
                *artefact = Some(value);
            }
            Some(AnswerBlock::Call { events, call, .. }) => {
                out.push(events.end());
                if let Some(value) = end_artefact {
                    let subtype = EncryptedValueSubtype::ToolCall;
                    out.push(ReasoningEncryptedValue::new(subtype, events.id().as_str(), value.clone()).into());
                    call.encrypted_value = Some(value);
                }
            }
            None => {}
        }
    }

    fn usage_since_last(&mut self, usage: TokenUsage) -> TokenUsage {
        let before = std::mem::replace(&mut self.usage, usage.clone());
        let more = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        TokenUsage {
            input_tokens: more(usage.input_tokens, before.input_tokens),
            output_tokens: more(usage.output_tokens, before.output_tokens),
            total_tokens: more(usage.total_tokens, before.total_tokens),
            reasoning_tokens: more(usage.reasoning_tokens, before.reasoning_tokens),
            cached_input_tokens: more(usage.cached_input_tokens, before.cached_input_tokens),
            cache_write_input_tokens: more(usage.cache_write_input_tokens, before.cache_write_input_tokens),
            provider: usage.provider,
            model: usage.model,
        }
    }

    pub(super) fn finish(self) -> Result<CompleteAnswer, ModelError> {
        let Some(stop) = self.stop else {
            return Err(ModelError::new("model_interrupted", "the model's answer broke off"));
        };
        let provider = self.provider;
        let mut answer = CompleteAnswer { messages: Vec::new(), calls: Vec::new(), stop };
        for (_, block) in self.blocks {
            match block {
                AnswerBlock::Text { message: Some(message), text } => {
                    let message =
                        AssistantMessage { content: Some(text), ..AssistantMessage::new(message.id().clone()) };
                    answer.messages.push(Message::Assistant(message));
                }
                AnswerBlock::Reasoning { opened: Some(reasoning), text, redacted, artefact } => {
                    let metadata = artefact.is_some().then(|| artefact_metadata(provider.to_owned(), redacted));
                    answer.messages.push(Message::Reasoning(ReasoningMessage {
                        id: reasoning.message_id().clone(),
                        content: text,
                        encrypted_value: artefact,
                        metadata,
                        subagent_run_id: None,
                    }));
                }
                AnswerBlock::Call { parent, call, .. } => {
                    answer.add_call(&parent, call.clone());
                    answer.calls.push(CallOfTurn { call, parent });
                }
                AnswerBlock::Text { message: None, .. } | AnswerBlock::Reasoning { opened: None, .. } => {}
            }
        }
        Ok(answer)
    }
}

impl CompleteAnswer {
    fn add_call(&mut self, parent: &MessageId, call: ToolCall) {
        let known = self.messages.iter_mut().rev().find_map(|message| match message {
            Message::Assistant(message) if message.id == *parent => Some(message),
            _ => None,
        });
        if let Some(message) = known {
            message.tool_calls.get_or_insert_default().push(call);
            return;
        }
        let message = AssistantMessage { tool_calls: Some(vec![call]), ..AssistantMessage::new(parent.clone()) };
        self.messages.push(Message::Assistant(message));
    }
}

fn artefact_metadata(provider: String, redacted: bool) -> Metadata {
    let mut members = vec![(PROVIDER.to_owned(), Value::from(provider))];
    if redacted {
        members.push((REDACTED.to_owned(), true.into()));
    }
    members.into_iter().collect()
}
