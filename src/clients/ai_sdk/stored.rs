//! The messages of a thread as a page holds them.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    page_message::PageRole,
    part::{
        Ask, INTERRUPT, file, has_failed, input, is_hidden_activity, output, own_metadata, sources,
    },
};
use agui_protocol::{
    ContentPart, Interrupt, Message, MessageContent, MessageId, PartSource, ToolCall, ToolCallId,
    ToolMessage, UserMessage, own_names::FILE,
};

/// A message of a thread as a page holds it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AiSdkStoredMessage)]
pub(super) struct RestatedMessage {
    id: MessageId,
    role: PageRole,
    #[schema(value_type = Vec<Object>)]
    parts: Vec<Value>,
}

/// Returns the messages of a branch, with its open interrupts.
pub(super) fn shown_messages(branch: &[&Message], open: &[Interrupt]) -> Vec<RestatedMessage> {
    let mut shown = ShownThread::default();
    branch.iter().for_each(|message| shown.add(message));
    open.iter().for_each(|interrupt| shown.ask(interrupt));
    shown.messages
}

#[derive(Default)]
struct ShownThread<'a> {
    messages: Vec<RestatedMessage>,
    /// The place of each call: its message, and its part.
    calls: HashMap<&'a ToolCallId, (usize, usize, &'a ToolCall)>,
    /// True after an output: the next part answers it, in a new step.
    has_output: bool,
}

impl<'a> ShownThread<'a> {
    fn add(&mut self, message: &'a Message) {
        let id = message.id();
        match message {
            Message::User(user) => self.push(id, PageRole::User, content_parts(user)),
            Message::System(it) => self.push(id, PageRole::System, vec![text_part(&it.content)]),
            Message::Developer(it) => self.push(id, PageRole::System, vec![text_part(&it.content)]),
            Message::Reasoning(it) => self.add_part(id, of_message("reasoning", id, &it.content)),
            Message::Assistant(assistant) => {
                if let Some(text) = assistant.content.as_deref().filter(|text| !text.is_empty()) {
                    self.add_part(id, of_message("text", id, text));
                    let sources = sources(id, message.metadata().map(|metadata| &**metadata));
                    sources.into_iter().for_each(|source| self.add_part(id, source));
                }
                for call in assistant.tool_calls() {
                    self.add_part(id, call_part(id, call));
                    let (message, part) = self.last_part();
                    self.calls.insert(&call.id, (message, part, call));
                }
            }
            Message::Tool(result) => self.add_output(result),
            Message::Activity(activity) if is_hidden_activity(&activity.activity_type) => {}
            Message::Activity(activity) if activity.activity_type == FILE => {
                if let Some(mut part) = file(&activity.content) {
                    part["providerMetadata"] = own_metadata(id);
                    self.add_part(id, part);
                }
            }
            Message::Activity(activity) => {
                let kind = format!("data-{}", activity.activity_type);
                self.add_part(id, json!({ "type": kind, "id": id, "data": activity.content }));
            }
        }
    }

    fn push(&mut self, id: &MessageId, role: PageRole, parts: Vec<Value>) {
        self.has_output = false;
        self.messages.push(RestatedMessage { id: id.clone(), role, parts });
    }

    /// Adds a part of a stored message to the answer.
    fn add_part(&mut self, id: &MessageId, part: Value) {
        if self.messages.last().is_none_or(|last| last.role != PageRole::Assistant) {
            self.push(id, PageRole::Assistant, vec![json!({ "type": "step-start" })]);
        }
        let step = std::mem::take(&mut self.has_output).then(|| json!({ "type": "step-start" }));
        if let Some(answer) = self.messages.last_mut() {
            answer.parts.extend(step.into_iter().chain([part]));
        }
    }

    /// Returns the place of the last part: its message, and the part within it.
    fn last_part(&self) -> (usize, usize) {
        let parts = self.messages.last().map_or(0, |last| last.parts.len());
        (self.messages.len().saturating_sub(1), parts.saturating_sub(1))
    }

    fn add_output(&mut self, result: &ToolMessage) {
        let Some(&(at, part, _)) = self.calls.get(&result.tool_call_id) else { return };
        self.has_output |= at + 1 == self.messages.len();
        let part = &mut self.messages[at].parts[part];
        let metadata = result.metadata.as_deref();
        if result.error.is_some() || has_failed(metadata) {
            part["state"] = "output-error".into();
            part["errorText"] = result.content.text().into();
        } else {
            part["state"] = "output-available".into();
            part["output"] = output(&result.content);
        }
    }

    fn ask(&mut self, interrupt: &Interrupt) {
        let call = interrupt.tool_call_id.as_ref().and_then(|id| self.calls.get(id)).copied();
        let ask = Ask::new(interrupt, call.map(|(.., call)| &call.function));
        let (at, part) = match call {
            Some((at, part, _)) => (at, part),
            None => {
                let mut part =
                    json!({ "type": format!("tool-{}", ask.name), "toolCallId": ask.call });
                if let Some(metadata) = ask.metadata() {
                    part["callProviderMetadata"] = metadata;
                }
                self.add_part(&ask.call.as_str().into(), part);
                self.last_part()
            }
        };
        let part = &mut self.messages[at].parts[part];
        part["state"] =
            if ask.is_approval { "approval-requested" } else { "input-available" }.into();
        part["input"] = ask.input;
        if ask.is_approval {
            part["approval"] = json!({ "id": interrupt.id, "descriptor": interrupt });
            if let Some(message) = &interrupt.message {
                part["approval"]["requestReason"] = message.as_str().into();
            }
        } else {
            part["toolMetadata"] = json!({ INTERRUPT: interrupt });
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn of_message(kind: &str, id: &MessageId, text: &str) -> Value {
    let mut part = json!({ "type": kind, "text": text, "state": "done", "providerMetadata": own_metadata(id) });
    if kind == "reasoning" {
        part["id"] = json!(id);
    }
    part
}

fn call_part(message: &MessageId, call: &ToolCall) -> Value {
    let input = input(&call.function.arguments).unwrap_or_else(Value::from);
    json!({
        "type": format!("tool-{}", call.function.name), "toolCallId": call.id,
        "state": "input-available", "input": input, "callProviderMetadata": own_metadata(message),
    })
}

fn content_parts(user: &UserMessage) -> Vec<Value> {
    match &user.content {
        MessageContent::Text(text) => vec![text_part(text)],
        MessageContent::Parts(parts) => parts.iter().filter_map(content_part).collect(),
    }
}

/// Returns `None` for a file that only a provider can read.
fn content_part(part: &ContentPart) -> Option<Value> {
    let (media, any) = match part {
        ContentPart::Text(text) => return Some(text_part(&text.text)),
        ContentPart::Image(media) => (media, "image"),
        ContentPart::Audio(media) => (media, "audio"),
        ContentPart::Video(media) => (media, "video"),
        ContentPart::Document(media) => (media, "application/octet-stream"),
    };
    let url = match &media.source {
        PartSource::Data { value, mime_type } => format!("data:{mime_type};base64,{value}"),
        PartSource::Url { value, .. } => value.clone(),
        PartSource::File { .. } => return None,
    };
    let media_type = media.source.mime_type().unwrap_or(any);
    let mut file = json!({ "type": "file", "mediaType": media_type, "url": url });
    if let Some(name) = media.file_name() {
        file["filename"] = name.into();
    }
    Some(file)
}
