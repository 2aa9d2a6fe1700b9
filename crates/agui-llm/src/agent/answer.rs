//! Turns the stream of a model's answer into events for the client and messages of the conversation. Both are made of
//! the same pieces, so the next request to the model is the same as if the client had sent the messages back.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::foreign_texts::ForeignTexts;
use crate::{
    history,
    model::{
        Artefact, BlockStart, ModelError, ModelEvent, SkippedAttachment, StopReason, WrittenCall,
    },
};
use agui_agent::{RunContext, emit, emit::TextMessage, files::SharedFile};
use agui_base::{
    RunErrorCode,
    repairs::{Partner, Repair, repaired},
};
use agui_protocol::{
    AssistantMessage, Event, Message, MessageId, Metadata, ReasoningMessage, TokenUsage, ToolCall,
    ToolCallId,
    event::{Custom, EncryptedValueSubtype, ReasoningEncryptedValue},
    own_names::{ATTACHMENT_SKIPPED, CITATIONS, CONTEXT_TRIMMED, PROVIDER, REDACTED},
};

/// The most citations of a text, as JSON. Bounds the memory; more are left out.
const MAX_CITATION_BYTES: usize = 256 * 1024;
/// The index of calls that the model wrote as text; the provider gives them none.
const WRITTEN: usize = usize::MAX;

/// The call ids and the skipped attachments that the answers of a run share.
pub(super) struct CallIds {
    cx: RunContext,
    /// Some models use the ids of earlier calls again.
    used: HashSet<ToolCallId>,
    /// Every request skips the same attachments again. The client is told once.
    skipped: Vec<SkippedAttachment>,
    /// True if the client was told that the beginning of the conversation was left out.
    is_trimmed: bool,
}

impl CallIds {
    /// `used` are the ids of the conversation's calls.
    pub(super) fn new(cx: RunContext, used: HashSet<ToolCallId>) -> Self {
        Self { cx, used, skipped: Vec::new(), is_trimmed: false }
    }

    /// Returns the event for the client, once a run.
    fn trimmed(&mut self) -> Option<Event> {
        let is_new = !std::mem::replace(&mut self.is_trimmed, true);
        is_new.then(|| Custom::new(CONTEXT_TRIMMED, json!({})).into())
    }

    /// Returns the id, or a new one if it is used already.
    fn unique(&mut self, id: ToolCallId) -> ToolCallId {
        let is_new = !self.used.contains(&id) && self.cx.claim_id(&id);
        let id = if is_new { id } else { ToolCallId::random() };
        self.used.insert(id.clone());
        id
    }
}

pub(super) struct AnswerBuilder<'r> {
    provider: &'r str,
    call_ids: &'r mut CallIds,
    foreign: ForeignTexts<'r>,
    /// Attachments that earlier requests skipped, and this one did not yet.
    to_skip_again: Vec<SkippedAttachment>,
    citation_bytes: usize,
    /// The blocks with the model's index, in the order in which they started.
    blocks: Vec<(usize, AnswerBlock)>,
    /// The assistant's message that calls are added to. Reasoning ends it, so that the conversation keeps the order.
    call_message: Option<MessageId>,
    usage: TokenUsage,
    stop: Option<StopReason>,
    has_media: bool,
}

enum AnswerBlock {
    Text {
        events: TextMessage,
        /// Has no content before the first text.
        message: AssistantMessage,
        citations: Vec<Value>,
    },
    Reasoning {
        events: emit::ReasoningSpan,
        message: ReasoningMessage,
        /// `false` before the first text or the artefact.
        is_open: bool,
        redacted: bool,
    },
    Call {
        events: emit::ToolCallEvents,
        parent: MessageId,
        call: ToolCall,
    },
}

impl<'r> AnswerBuilder<'r> {
    pub(super) fn new(
        provider: &'r str,
        call_ids: &'r mut CallIds,
        foreign: ForeignTexts<'r>,
    ) -> Self {
        Self {
            provider,
            to_skip_again: call_ids.skipped.clone(),
            call_ids,
            foreign,
            citation_bytes: 0,
            blocks: Vec::new(),
            call_message: None,
            usage: TokenUsage::default(),
            stop: None,
            has_media: false,
        }
    }

    /// Like [`apply`](Self::apply); also stores generated media, and checks calls written as text.
    pub(super) async fn read(
        &mut self,
        event: ModelEvent,
        out: &mut Vec<Event>,
    ) -> Option<TokenUsage> {
        match event {
            ModelEvent::Media { media_type, base64 } => {
                if let Some(file) = SharedFile::from_data(base64, media_type).await {
                    self.has_media = true;
                    out.push(file.into_event_or_problem(self.call_ids.cx.files()).await);
                }
            }
            ModelEvent::WrittenCalls { text, calls } => {
                let are_foreign = self.foreign.have(&calls).await;
                self.written_calls(text, calls, are_foreign, out);
            }
            event => return self.apply(event, out),
        }
        None
    }

    /// Adds the client's events to `out`, and returns the tokens used since the last report.
    fn apply(&mut self, event: ModelEvent, out: &mut Vec<Event>) -> Option<TokenUsage> {
        match event {
            ModelEvent::Start { index, block } => self.start(index, block, out),
            ModelEvent::Delta { index, text } => self.delta(index, text, out),
            ModelEvent::End { index, artefact } => self.end(index, artefact, out),
            ModelEvent::Usage(usage) => return Some(self.usage_since_last(usage)),
            ModelEvent::Stop(reason) => self.stop = Some(reason),
            ModelEvent::Skipped(attachment) => out.extend(self.skip(attachment)),
            ModelEvent::Trimmed => out.extend(self.call_ids.trimmed()),
            ModelEvent::Citation { index, citation } => self.cite(index, citation),
            // `read` handles these.
            ModelEvent::Media { .. } | ModelEvent::WrittenCalls { .. } => {}
        }
        None
    }

    fn start(&mut self, index: usize, block: BlockStart, out: &mut Vec<Event>) {
        let block = match block {
            BlockStart::Text => {
                let events = TextMessage::new();
                let message = AssistantMessage::new(events.id().clone());
                AnswerBlock::Text { events, message, citations: Vec::new() }
            }
            BlockStart::Reasoning { redacted } => {
                self.call_message = None;
                let events = emit::ReasoningSpan::new();
                let message = ReasoningMessage::new(events.message_id().clone(), "");
                AnswerBlock::Reasoning { events, message, is_open: false, redacted }
            }
            BlockStart::Call { id, name } => {
                let id = self.call_ids.unique(id);
                let parent = self.call_message.get_or_insert_with(MessageId::random).clone();
                let events = emit::ToolCallEvents::with_id(id.clone(), &*name)
                    .within(&TextMessage::with_id(parent.clone()));
                out.push(events.start());
                AnswerBlock::Call { events, parent, call: ToolCall::new(id, name, "") }
            }
        };
        self.blocks.push((index, block));
    }

    /// Adds the calls, or their text if a foreign text contains one of them.
    fn written_calls(
        &mut self,
        text: String,
        calls: Vec<WrittenCall>,
        are_foreign: bool,
        out: &mut Vec<Event>,
    ) {
        if are_foreign {
            tracing::warn!(
                "a call that the model wrote as text stands in a text of somebody else, and does not run"
            );
            self.start(WRITTEN, BlockStart::Text, out);
            self.delta(WRITTEN, text, out);
            return self.end(WRITTEN, None, out);
        }
        for WrittenCall { name, arguments, .. } in calls {
            repaired(Partner::Model, Repair::WrittenCall);
            self.start(WRITTEN, BlockStart::Call { id: ToolCallId::random(), name }, out);
            self.delta(WRITTEN, arguments, out);
            self.end(WRITTEN, None, out);
        }
    }

    /// Counts equal attachments: two images without names are reported twice.
    fn skip(&mut self, attachment: SkippedAttachment) -> Option<Event> {
        if let Some(at) = self.to_skip_again.iter().position(|earlier| *earlier == attachment) {
            self.to_skip_again.swap_remove(at);
            return None;
        }
        let value = json!(attachment);
        self.call_ids.skipped.push(attachment);
        repaired(Partner::Model, Repair::AttachmentSkipped);
        Some(Custom::new(ATTACHMENT_SKIPPED, value).into())
    }

    fn cite(&mut self, index: usize, citation: Value) {
        self.citation_bytes += citation.to_string().len();
        if self.citation_bytes > MAX_CITATION_BYTES {
            tracing::warn!(
                MAX_CITATION_BYTES,
                "left out a citation, because the answer has too many"
            );
        } else if let Some(AnswerBlock::Text { citations, .. }) = self.block(index) {
            citations.push(citation);
        }
    }

    fn block(&mut self, index: usize) -> Option<&mut AnswerBlock> {
        self.blocks.iter_mut().rev().find(|(of, _)| *of == index).map(|(_, block)| block)
    }

    fn delta(&mut self, index: usize, delta: String, out: &mut Vec<Event>) {
        match self.block(index) {
            Some(AnswerBlock::Text { events, message, .. }) => {
                let is_first = message.content.is_none();
                message.content.get_or_insert_default().push_str(&delta);
                out.extend(is_first.then(|| events.start()));
                out.push(events.delta(delta));
                if is_first {
                    let id = message.id.clone();
                    self.call_message = Some(id);
                }
            }
            Some(AnswerBlock::Reasoning { events, message, is_open, .. }) => {
                message.content.push_str(&delta);
                if !std::mem::replace(is_open, true) {
                    out.extend(events.start());
                }
                out.push(events.delta(delta));
            }
            Some(AnswerBlock::Call { events, call, .. }) => {
                call.function.arguments.push_str(&delta);
                out.push(events.delta(delta));
            }
            None => {}
        }
    }

    fn end(&mut self, index: usize, end_artefact: Option<Artefact>, out: &mut Vec<Event>) {
        let provider = self.provider.to_owned();
        let encrypted = |subtype, id: &str| {
            end_artefact.as_ref().map(|artefact| encrypted_value(subtype, id, artefact))
        };
        match self.block(index) {
            Some(AnswerBlock::Text { events, message, citations }) if message.content.is_some() => {
                message.metadata =
                    end_artefact.as_ref().map(|_| artefact_metadata(provider, false));
                if !citations.is_empty() {
                    let citations = std::mem::take(citations).into();
                    message
                        .metadata
                        .get_or_insert_default()
                        .insert(CITATIONS.to_owned(), citations);
                }
                let mut message_end = events.end();
                message_end.base_mut().set_metadata(message.metadata.clone());
                out.push(message_end);
                out.extend(encrypted(EncryptedValueSubtype::Message, &message.id));
                (message.encrypted_value, message.encrypted_value_type) = members(end_artefact);
            }
            Some(AnswerBlock::Reasoning { events, message, is_open, redacted }) => {
                if end_artefact.is_none() && !*is_open {
                    return;
                }
                if !std::mem::replace(is_open, true) {
                    out.extend(events.start());
                }
                // Set even without an artefact, so that no other vendor's model gets the text.
                message.metadata = Some(artefact_metadata(provider, *redacted));
                let [mut message_end, span_end] = events.end();
                message_end.base_mut().set_metadata(message.metadata.clone());
                out.push(message_end);
                out.extend(encrypted(EncryptedValueSubtype::Message, &message.id));
                out.push(span_end);
                (message.encrypted_value, message.encrypted_value_type) = members(end_artefact);
            }
            Some(AnswerBlock::Call { events, call, .. }) => {
                out.push(events.end());
                out.extend(encrypted(EncryptedValueSubtype::ToolCall, events.id()));
                if end_artefact.is_some() {
                    (call.encrypted_value, call.encrypted_value_type) = members(end_artefact);
                }
            }
            Some(AnswerBlock::Text { .. }) | None => {}
        }
    }

    fn usage_since_last(&mut self, usage: TokenUsage) -> TokenUsage {
        let before = std::mem::replace(&mut self.usage, usage.clone());
        let more = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        TokenUsage {
            input_tokens: more(usage.input_tokens, before.input_tokens),
            output_tokens: more(usage.output_tokens, before.output_tokens),
            total_tokens: more(usage.total_tokens, before.total_tokens),
            reasoning_tokens: more(usage.reasoning_tokens, before.reasoning_tokens),
            cached_input_tokens: more(usage.cached_input_tokens, before.cached_input_tokens),
            cache_write_input_tokens: more(
                usage.cache_write_input_tokens,
                before.cache_write_input_tokens,
            ),
            provider: usage.provider,
            model: usage.model,
        }
    }

    pub(super) fn finish(self) -> Result<CompleteAnswer, ModelError> {
        let Some(stop) = self.stop else {
            return Err(ModelError::new(
                RunErrorCode::ModelInterrupted.as_str(),
                "the model's answer broke off",
            ));
        };
        let mut answer = CompleteAnswer { messages: Vec::new(), stop, has_media: self.has_media };
        for (_, block) in self.blocks {
            match block {
                AnswerBlock::Text { message, .. } if message.content.is_some() => {
                    answer.messages.push(Message::Assistant(message));
                }
                AnswerBlock::Reasoning { message, is_open: true, .. } => {
                    answer.messages.push(Message::Reasoning(message));
                }
                AnswerBlock::Call { parent, call, .. } => answer.add_call(parent, call),
                AnswerBlock::Text { .. } | AnswerBlock::Reasoning { .. } => {}
            }
        }
        Ok(answer)
    }
}

/// A model's answer after its end.
#[derive(Debug)]
pub(super) struct CompleteAnswer {
    pub(super) messages: Vec<Message>,
    pub(super) stop: StopReason,
    /// True if the answer has an image or another file.
    pub(super) has_media: bool,
}

impl CompleteAnswer {
    /// Returns the text of all messages.
    pub(super) fn text(&self) -> String {
        let texts = self.messages.iter().filter_map(|message| match message {
            Message::Assistant(message) => message.content.as_deref(),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the calls, each with the message that it is in.
    pub(super) fn calls(&self) -> Vec<(&ToolCall, &MessageId)> {
        history::calls_of(&self.messages).collect()
    }

    /// Adds a call to the message `parent`, which is created if the answer does not have it yet.
    fn add_call(&mut self, parent: MessageId, call: ToolCall) {
        let known = self.messages.iter_mut().rev().find_map(|message| match message {
            Message::Assistant(message) if message.id == parent => Some(message),
            _ => None,
        });
        if let Some(message) = known {
            message.tool_calls.get_or_insert_default().push(call);
            return;
        }
        let message =
            AssistantMessage { tool_calls: Some(vec![call]), ..AssistantMessage::new(parent) };
        self.messages.push(Message::Assistant(message));
    }
}

fn encrypted_value(subtype: EncryptedValueSubtype, id: &str, artefact: &Artefact) -> Event {
    ReasoningEncryptedValue::new(subtype, id, artefact.value.clone())
        .with_type(artefact.kind.clone())
        .into()
}

/// Returns an artefact as the members `encryptedValue` and `encryptedValueType`.
fn members(artefact: Option<Artefact>) -> (Option<String>, Option<String>) {
    artefact.map(|artefact| (artefact.value, artefact.kind.into_owned())).unzip()
}

fn artefact_metadata(provider: String, redacted: bool) -> Metadata {
    let mut members = vec![(PROVIDER.to_owned(), Value::from(provider))];
    if redacted {
        members.push((REDACTED.to_owned(), true.into()));
    }
    members.into_iter().collect()
}

#[cfg(test)]
mod tests;
