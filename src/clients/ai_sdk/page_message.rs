//! A message of a page, and the stored messages that it stands for.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::part::{INTERRUPT, INTERRUPT_ID, MESSAGE_ID, OWN_METADATA, is_approval};
use agui_protocol::{
    AssistantMessage, ContentPart, Interrupt, InterruptId, MediaPart, Message, MessageContent,
    MessageId, PartSource, ReasoningMessage, ResumeEntry, ResumeStatus, SystemMessage, ToolCall,
    ToolCallId, ToolMessage, approval::allows_reason,
};

/// A message of a page.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AiSdkMessage)]
pub(super) struct PageMessage {
    #[serde(default)]
    pub(super) id: MessageId,
    pub(super) role: PageRole,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(super) parts: Vec<PagePart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AiSdkRole)]
pub(super) enum PageRole {
    System,
    User,
    Assistant,
}

/// The members of all parts that are read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PagePart {
    #[serde(rename = "type")]
    kind: String,
    /// Of a data part.
    id: Option<String>,
    text: Option<String>,
    url: Option<String>,
    media_type: Option<String>,
    filename: Option<String>,
    tool_call_id: Option<ToolCallId>,
    tool_name: Option<String>,
    state: Option<String>,
    input: Option<Value>,
    raw_input: Option<Value>,
    output: Option<Value>,
    error_text: Option<String>,
    approval: Option<PageApproval>,
    #[serde(skip_serializing)]
    provider_metadata: Option<Value>,
    #[serde(skip_serializing)]
    call_provider_metadata: Option<Value>,
    #[serde(skip_serializing)]
    tool_metadata: Option<Value>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PageApproval {
    id: InterruptId,
    #[serde(default)]
    approved: bool,
    reason: Option<String>,
}

impl PagePart {
    /// Returns the id of the stored message that the part belongs to.
    fn stored_message(&self) -> Option<&str> {
        self.own_member(MESSAGE_ID)
    }

    fn own_member(&self, name: &str) -> Option<&str> {
        let metadata = self.call_provider_metadata.as_ref().or(self.provider_metadata.as_ref());
        metadata?.get(OWN_METADATA)?.get(name)?.as_str()
    }

    /// Returns the name of the tool; `None` for a part that is not about a call.
    fn tool(&self) -> Option<&str> {
        match &self.tool_name {
            Some(name) if self.kind == "dynamic-tool" => Some(name),
            _ => self.kind.strip_prefix("tool-"),
        }
    }

    /// Returns the call, and the tool.
    pub(super) fn call(&self) -> Option<(&ToolCallId, &str)> {
        Some((self.tool_call_id.as_ref()?, self.tool()?))
    }

    /// True for a part that no agent has called: it stands for an interrupt.
    fn is_interrupt(&self) -> bool {
        self.own_member(INTERRUPT_ID).is_some()
    }

    fn is_in(&self, state: &str) -> bool {
        self.state.as_deref() == Some(state)
    }

    /// Returns the person's decision.
    pub(super) fn decision(&self) -> Option<(&InterruptId, bool)> {
        let approval = self.approval.as_ref().filter(|_| self.is_in("approval-responded"))?;
        Some((&approval.id, approval.approved))
    }

    pub(super) fn has_output(&self) -> bool {
        ["output-available", "output-error", "output-denied"].iter().any(|state| self.is_in(state))
    }

    /// True for an output that may answer an interrupt.
    fn answers_question(&self) -> bool {
        let asked = self.tool_metadata.as_ref().and_then(|metadata| metadata.get(INTERRUPT));
        asked.is_some() && self.has_output()
    }

    /// Returns the ids of the stored activity or file of the part.
    fn shown_activity(&self) -> Option<&str> {
        match &*self.kind {
            "file" => self.stored_message(),
            kind if kind.starts_with("data-") => self.id.as_deref(),
            _ => None,
        }
    }
}

impl PageMessage {
    /// Returns what a request with this newest message asks: the message, or the decisions and
    /// outputs in it.
    pub(super) fn asked(&self) -> Value {
        match self.role {
            PageRole::Assistant => {
                let calls = self.parts.iter().filter(|part| part.call().is_some());
                json!([self.id, calls.collect::<Vec<_>>()])
            }
            _ => json!([self.id, self.parts]),
        }
    }

    /// Returns whether the message may answer interrupts.
    pub(super) fn may_reply(&self) -> bool {
        let replies = |part: &PagePart| part.decision().is_some() || part.answers_question();
        self.role == PageRole::Assistant && self.parts.iter().any(replies)
    }

    /// Returns the replies to the open interrupts. If none of them is open, those of the last step:
    /// another page may have replied before.
    pub(super) fn replies(&self, open: &[Interrupt]) -> Vec<ResumeEntry> {
        let last_step = self.parts.iter().rposition(|part| part.kind == "step-start").unwrap_or(0);
        let (mut replies, mut late) = (Vec::new(), Vec::new());
        for (at, part) in self.parts.iter().enumerate() {
            let is_about = |interrupt: &&Interrupt| match part.decision() {
                Some((id, _)) => interrupt.id == *id,
                None => part.tool_call_id.as_ref().is_some_and(|call| {
                    interrupt.tool_call_id.as_ref() == Some(call) || interrupt.id == **call
                }),
            };
            let interrupt = open.iter().find(is_about);
            match (interrupt, part.reply(interrupt)) {
                (Some(_), Some(reply)) => replies.push(reply),
                (None, Some(reply)) if at >= last_step => late.push(reply),
                _ => {}
            }
        }
        if replies.is_empty() { late } else { replies }
    }

    /// Returns the stored messages that the message stands for. Outputs that reply to the
    /// interrupts of `answered` are not results of their calls.
    pub(super) fn to_messages(&self, answered: &HashSet<ToolCallId>) -> Vec<Message> {
        match self.role {
            PageRole::User => vec![Message::user(self.id.clone(), self.content())],
            PageRole::System => {
                vec![Message::System(SystemMessage::new(self.id.clone(), self.content().text()))]
            }
            PageRole::Assistant => {
                let mut answer = AnswerParts { id: &self.id, ..AnswerParts::default() };
                self.parts.iter().for_each(|part| answer.read(part, answered));
                answer.close();
                answer.messages
            }
        }
    }

    /// Returns the ids of activities and files that the message shows.
    pub(super) fn activities(&self) -> impl Iterator<Item = MessageId> {
        self.parts.iter().filter_map(|part| part.shown_activity().map(MessageId::from))
    }

    fn content(&self) -> MessageContent {
        let mut parts: Vec<_> = self.parts.iter().filter_map(PagePart::content).collect();
        match &mut parts[..] {
            [] => MessageContent::default(),
            [ContentPart::Text(text)] => std::mem::take(&mut text.text).into(),
            _ => parts.into(),
        }
    }
}

impl PagePart {
    /// Returns the part of a user's message.
    fn content(&self) -> Option<ContentPart> {
        match (&*self.kind, &self.url) {
            ("text", _) => Some(ContentPart::text(self.text.clone().unwrap_or_default())),
            ("file", Some(url)) => {
                let media_type = self.media_type.as_deref().unwrap_or_default();
                let mime_type = media_type.contains('/').then(|| media_type.to_owned());
                let mut media = MediaPart::new(PartSource::Url { value: url.clone(), mime_type });
                media.metadata = self.filename.as_ref().map(|name| json!({ "filename": name }));
                Some(match media_type.split('/').next() {
                    Some("image") => ContentPart::Image(media),
                    Some("audio") => ContentPart::Audio(media),
                    Some("video") => ContentPart::Video(media),
                    _ => ContentPart::Document(media),
                })
            }
            _ => None,
        }
    }

    /// Returns the reply of the part. `interrupt` is the open one.
    fn reply(&self, interrupt: Option<&Interrupt>) -> Option<ResumeEntry> {
        let entry = |id: &InterruptId, payload: Option<Value>| ResumeEntry {
            interrupt_id: id.clone(),
            status: if payload.is_some() {
                ResumeStatus::Resolved
            } else {
                ResumeStatus::Cancelled
            },
            payload,
            metadata: None,
        };
        if let Some((id, approved)) = self.decision() {
            let mut payload = json!({ "approved": approved });
            let schema = interrupt.and_then(|interrupt| interrupt.response_schema.as_ref());
            let reason = self.approval.as_ref().and_then(|approval| approval.reason.as_deref());
            if let Some(reason) = reason.filter(|_| schema.is_none_or(allows_reason)) {
                payload["reason"] = reason.into();
            }
            return Some(entry(id, Some(payload)));
        }
        if !self.has_output() || interrupt.is_some_and(is_approval) {
            return None;
        }
        let asked = || self.tool_metadata.as_ref()?.get(INTERRUPT)?.get("id")?.as_str();
        let id = match interrupt {
            Some(interrupt) => interrupt.id.clone(),
            None => InterruptId::from(asked()?),
        };
        let output = || self.output.clone().unwrap_or_default();
        Some(entry(&id, self.is_in("output-available").then(output)))
    }
}

/// Reads the parts of an answer in order. Parts of one stored message follow each other.
#[derive(Default)]
struct AnswerParts<'a> {
    id: &'a str,
    messages: Vec<Message>,
    /// The message that parts are added to, and the id by which the parts name it.
    current: Option<(Option<&'a str>, AssistantMessage)>,
    results: Vec<Message>,
    /// The number of messages that no part names. They are not of this server.
    unnamed: usize,
}

impl<'a> AnswerParts<'a> {
    fn read(&mut self, part: &'a PagePart, answered: &HashSet<ToolCallId>) {
        let text = part.text.as_deref().unwrap_or_default();
        match (&*part.kind, part.stored_message()) {
            ("text", stored) if !text.is_empty() => {
                self.message(stored).content.get_or_insert_default().push_str(text);
            }
            ("reasoning", Some(id)) => {
                self.close();
                self.messages.push(Message::Reasoning(ReasoningMessage::new(id, text)));
            }
            ("step-start", _) => self.close(),
            (_, stored) => {
                let Some((id, tool)) = part.call().filter(|_| !part.is_interrupt()) else { return };
                let calls = self.message(stored).tool_calls.get_or_insert_default();
                calls.push(ToolCall::new(id.clone(), tool, part.arguments()));
                let result = part.result(id).filter(|_| !answered.contains(id));
                self.results.extend(result.map(Message::Tool));
            }
        }
    }

    /// Returns the message that the parts with this id belong to.
    fn message(&mut self, stored: Option<&'a str>) -> &mut AssistantMessage {
        if self.current.as_ref().is_none_or(|(id, _)| *id != stored) {
            self.close();
        }
        let (id, unnamed) = (self.id, &mut self.unnamed);
        let begin = || {
            let id = match stored {
                Some(stored) => stored.to_owned(),
                None => {
                    *unnamed += 1;
                    if *unnamed == 1 { id.to_owned() } else { format!("{id}:{unnamed}") }
                }
            };
            (stored, AssistantMessage::new(id))
        };
        &mut self.current.get_or_insert_with(begin).1
    }

    fn close(&mut self) {
        self.messages.extend(self.current.take().map(|(_, message)| Message::Assistant(message)));
        self.messages.append(&mut self.results);
    }
}

impl PagePart {
    /// Returns the arguments of the call as text. Those of a call that was cut are its begin.
    fn arguments(&self) -> String {
        match (&self.raw_input, &self.input) {
            (Some(Value::String(text)), _) if self.is_in("input-streaming") => text.clone(),
            (_, Some(Value::String(text))) if self.is_in("output-error") => text.clone(),
            (_, Some(input)) => input.to_string(),
            (_, None) => String::new(),
        }
    }

    /// Returns the result of the call. The server has stored those of its own tools.
    fn result(&self, call: &ToolCallId) -> Option<ToolMessage> {
        let id = format!("{call}:result");
        if self.is_in("output-available") {
            let output = self.output.clone().unwrap_or_default();
            return Some(ToolMessage::new(id, call.clone(), output));
        }
        let error = self.error_text.clone().filter(|_| self.is_in("output-error"))?;
        let mut result = ToolMessage::new(id, call.clone(), error.as_str());
        result.error = Some(error);
        Some(result)
    }
}
