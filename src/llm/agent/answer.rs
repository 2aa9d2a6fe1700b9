//! What a model says, as it says it: events for the client, and messages for the conversation.
//!
//! Both are made from the same pieces, so that the next question to the model is what it would be had the client
//! brought the messages back. A message, a call or reasoning is opened with its first piece: what turns out
//! to be empty never was.

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

/// An answer that is being made.
pub(super) struct Answer<'r> {
    provider: &'r str,
    /// The ids of calls that the conversation has. Some models number theirs anew in every turn.
    taken: &'r mut HashSet<ToolCallId>,
    /// Blocks by the model's index, in the order in which they began.
    parts: Vec<(usize, Part)>,
    /// The assistant's message that calls belong to. Reasoning in between begins another one, so that the order
    /// can be told from the conversation.
    holder: Option<MessageId>,
    usage: TokenUsage,
    stop: Option<StopReason>,
}

enum Part {
    Text { message: Option<TextMessage>, text: String },
    Reasoning { opened: Option<emit::ReasoningSpan>, text: String, redacted: bool, artefact: Option<String> },
    Call { call: emit::ToolCallEvents, parent: MessageId, made: ToolCall },
}

/// An answer that is complete.
#[derive(Debug)]
pub(super) struct Answered {
    /// What the conversation has gained.
    pub(super) messages: Vec<Message>,
    /// What was called, in order.
    pub(super) calls: Vec<CallOfTurn>,
    pub(super) stop: StopReason,
}

/// A call, and the message that it belongs to.
#[derive(Debug)]
pub(super) struct CallOfTurn {
    pub(super) call: ToolCall,
    pub(super) parent: MessageId,
}

impl<'r> Answer<'r> {
    pub(super) fn new(provider: &'r str, taken: &'r mut HashSet<ToolCallId>) -> Self {
        Self { provider, taken, parts: Vec::new(), holder: None, usage: TokenUsage::default(), stop: None }
    }

    /// Takes a piece. What the client is told about it is added to `out`; what it has cost more is answered.
    pub(super) fn take(&mut self, event: ModelEvent, out: &mut Vec<Event>) -> Option<TokenUsage> {
        match event {
            ModelEvent::Start { index, block } => self.start(index, block, out),
            ModelEvent::Delta { index, text } => self.delta(index, text, out),
            ModelEvent::End { index, artefact } => self.end(index, artefact, out),
            ModelEvent::Usage(usage) => return Some(self.meter(usage)),
            ModelEvent::Stop(reason) => self.stop = Some(reason),
        }
        None
    }

    fn start(&mut self, index: usize, block: BlockStart, out: &mut Vec<Event>) {
        let part = match block {
            BlockStart::Text => Part::Text { message: None, text: String::new() },
            BlockStart::Reasoning { redacted } => {
                self.holder = None;
                Part::Reasoning { opened: None, text: String::new(), redacted, artefact: None }
            }
            BlockStart::Call { id, name } => {
                let id = if self.taken.insert(id.clone()) { id } else { self.another_id() };
                let parent = self.holder.get_or_insert_with(MessageId::random).clone();
                let call =
                    emit::ToolCallEvents::with_id(id.clone(), &*name).within(&TextMessage::with_id(parent.clone()));
                out.push(call.start());
                Part::Call { call, parent, made: ToolCall::new(id, name, "") }
            }
        };
        self.parts.push((index, part));
    }

    fn another_id(&mut self) -> ToolCallId {
        let id = ToolCallId::random();
        self.taken.insert(id.clone());
        id
    }

    fn part(&mut self, index: usize) -> Option<&mut Part> {
        self.parts.iter_mut().rev().find(|(of, _)| *of == index).map(|(_, part)| part)
    }

    fn delta(&mut self, index: usize, delta: String, out: &mut Vec<Event>) {
        match self.part(index) {
            Some(Part::Text { message, text }) => {
                text.push_str(&delta);
                if let Some(message) = message {
                    out.push(message.delta(delta));
                } else {
                    let opened = message.insert(TextMessage::new());
                    out.extend([opened.start(), opened.delta(delta)]);
                    let id = opened.id().clone();
                    self.holder = Some(id);
                }
            }
            Some(Part::Reasoning { opened, text, .. }) => {
                text.push_str(&delta);
                if opened.is_none() {
                    out.extend(opened.insert(emit::ReasoningSpan::new()).start());
                }
                out.extend(opened.as_ref().map(|reasoning| reasoning.delta(delta)));
            }
            Some(Part::Call { call, made, .. }) => {
                made.function.arguments.push_str(&delta);
                out.push(call.delta(delta));
            }
            None => {}
        }
    }

    fn end(&mut self, index: usize, came_with: Option<String>, out: &mut Vec<Event>) {
        let provider = self.provider.to_owned();
        match self.part(index) {
            Some(Part::Text { message, .. }) => out.extend(message.as_ref().map(TextMessage::end)),
            Some(Part::Reasoning { opened, redacted, artefact, .. }) => {
                let Some(value) = came_with else {
                    out.extend(opened.iter().flat_map(emit::ReasoningSpan::end));
                    return;
                };
                if opened.is_none() {
                    out.extend(opened.insert(emit::ReasoningSpan::new()).start());
                }
                let Some(reasoning) = opened else { return };
                let [mut message_end, span_end] = reasoning.end();
                message_end.base_mut().set_metadata(Some(about(provider, *redacted)));
                let subtype = EncryptedValueSubtype::Message;
                let encrypted = ReasoningEncryptedValue::new(subtype, reasoning.message_id().as_str(), value.clone());
                out.extend([message_end, encrypted.into(), span_end]);
                *artefact = Some(value);
            }
            Some(Part::Call { call, made, .. }) => {
                out.push(call.end());
                if let Some(value) = came_with {
                    let subtype = EncryptedValueSubtype::ToolCall;
                    out.push(ReasoningEncryptedValue::new(subtype, call.id().as_str(), value.clone()).into());
                    made.encrypted_value = Some(value);
                }
            }
            None => {}
        }
    }

    /// What the call has cost since the last report.
    fn meter(&mut self, usage: TokenUsage) -> TokenUsage {
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

    /// The whole answer.
    ///
    /// # Errors
    /// When the stream ended before the answer did.
    pub(super) fn finish(self) -> Result<Answered, ModelError> {
        let Some(stop) = self.stop else {
            return Err(ModelError::new("model_interrupted", "the model's answer broke off"));
        };
        let provider = self.provider;
        let mut answered = Answered { messages: Vec::new(), calls: Vec::new(), stop };
        for (_, part) in self.parts {
            match part {
                Part::Text { message: Some(message), text } => {
                    let said = AssistantMessage { content: Some(text), ..AssistantMessage::new(message.id().clone()) };
                    answered.messages.push(Message::Assistant(said));
                }
                Part::Reasoning { opened: Some(reasoning), text, redacted, artefact } => {
                    let metadata = artefact.is_some().then(|| about(provider.to_owned(), redacted));
                    answered.messages.push(Message::Reasoning(ReasoningMessage {
                        id: reasoning.message_id().clone(),
                        content: text,
                        encrypted_value: artefact,
                        metadata,
                        subagent_run_id: None,
                    }));
                }
                Part::Call { parent, made, .. } => {
                    answered.hold(&parent, made.clone());
                    answered.calls.push(CallOfTurn { call: made, parent });
                }
                Part::Text { message: None, .. } | Part::Reasoning { opened: None, .. } => {}
            }
        }
        Ok(answered)
    }
}

impl Answered {
    /// Puts a call into its message, which is made if there is none yet.
    fn hold(&mut self, parent: &MessageId, call: ToolCall) {
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

/// What has to be known about an artefact to return it: whose it is, and what it stands for.
fn about(provider: String, redacted: bool) -> Metadata {
    let mut members = vec![(PROVIDER.to_owned(), Value::from(provider))];
    if redacted {
        members.push((REDACTED.to_owned(), true.into()));
    }
    members.into_iter().collect()
}
