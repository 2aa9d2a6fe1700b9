//! The messages of a request, in the order and in the roles that the server takes.

use serde_json::{Map, Value, json};

use super::{
    assistant::{assistant, call_id},
    user_parts::{native, text_part},
};
use crate::{
    ModelOptions, ModelRequest, ModelStep, SkippedAttachment, Thinking, ToolResult,
    known_models::{Profile, StructuredOutputs, SystemMessages, ToolChoiceForm},
    providers::{
        attachments::Attachments,
        wire::{
            EMPTY_TEXT, FIRST_USER_TEXT, LAST_USER_TEXT, forced_call_in_words, marked_instructions,
            schema_in_words, texts,
        },
    },
};
use agui_protocol::{ContentPart, MessageContent};

/// Returns the messages, and the attachments that they cannot contain.
pub(super) fn messages(
    options: &ModelOptions,
    profile: &Profile,
    request: &ModelRequest,
    offers_tools: bool,
) -> (Vec<Value>, Vec<SkippedAttachment>) {
    // Words replace members that the server's request format lacks.
    let takes_schema = profile.structured_outputs == StructuredOutputs::JsonSchema;
    let schema = request.response_schema.as_deref().filter(|_| !takes_schema).map(schema_in_words);
    let can_force = profile.tool_choice_form != ToolChoiceForm::Auto;
    let forced_call = Some(&request.tool_choice)
        .filter(|_| offers_tools && !can_force)
        .and_then(forced_call_in_words);
    let is_thinking_off = options.thinking_of(request.thinking) == Some(Thinking::Off);
    let is_anywhere = profile.system_messages == SystemMessages::Anywhere;
    let image_detail = options.image_detail.as_deref();
    let attachments = Attachments::new(&request.steps);
    let mut list = ChatMessages { profile, image_detail, attachments, messages: Vec::new() };
    let later = request.steps.iter().filter_map(|step| match step {
        ModelStep::Instructions(text) if !is_anywhere => Some(text),
        _ => None,
    });
    let current: Vec<&str> =
        request.current.iter().chain(&forced_call).map(String::as_str).collect();
    let is_joined =
        matches!(profile.system_messages, SystemMessages::Joined | SystemMessages::None);
    let mut first: Vec<&str> =
        request.system.iter().chain(&schema).chain(later).map(String::as_str).collect();
    first.extend(current.iter().filter(|_| is_joined));
    list.first_instructions(first);
    for (index, step) in request.steps.iter().enumerate() {
        list.attachments.enter(index);
        match step {
            ModelStep::Instructions(text) if is_anywhere => list.system(text),
            ModelStep::Instructions(_) => {}
            ModelStep::User(parts) => {
                let content = list.content(parts);
                list.push("user", json!({"role": "user", "content": content}));
            }
            ModelStep::Assistant(blocks) => {
                list.push("assistant", assistant(blocks, profile, is_thinking_off, &request.form))
            }
            ModelStep::ToolResults(results) => list.tool_results(results),
        }
    }
    if !is_joined {
        list.current(&current);
    }
    if profile.alternate_roles || !profile.assistant_last {
        list.complete();
    }
    (list.messages, list.attachments.skipped)
}

struct ChatMessages<'r> {
    profile: &'r Profile,
    image_detail: Option<&'r str>,
    attachments: Attachments,
    messages: Vec<Value>,
}

impl ChatMessages<'_> {
    fn first_instructions(&mut self, texts: Vec<&str>) {
        match self.profile.system_messages {
            _ if texts.is_empty() => {}
            SystemMessages::One | SystemMessages::Joined => self.system(&texts.join("\n\n")),
            SystemMessages::None => {
                let content = marked_instructions(&texts.join("\n\n"));
                self.messages.push(json!({"role": "user", "content": content}));
            }
            SystemMessages::Anywhere | SystemMessages::First => {
                texts.into_iter().for_each(|text| self.system(text))
            }
        }
    }

    fn system(&mut self, text: &str) {
        let role = if self.profile.developer_role { "developer" } else { "system" };
        self.messages.push(json!({"role": role, "content": text}));
    }

    fn last_role(&self) -> Option<&str> {
        self.messages.last()?["role"].as_str()
    }

    /// Adds a message. If roles have to alternate, adds its content to the message before of the
    /// same role.
    fn push(&mut self, role: &str, message: Value) {
        if !self.profile.user_after_results
            && role == "user"
            && let Some(told) = self.take_unanswered_calls()
        {
            self.push("user", json!({"role": "user", "content": told}));
        }
        if self.profile.alternate_roles && self.last_role() == Some(role) {
            if let Some(Value::Object(last)) = self.messages.last_mut() {
                merge(last, message);
            }
        } else {
            self.messages.push(message);
        }
    }

    /// Removes the calls at the end, with their results, and returns them in words. A sentence of
    /// the server with the role of the model would come back as the model's own.
    fn take_unanswered_calls(&mut self) -> Option<String> {
        let results = self
            .messages
            .iter()
            .rposition(|message| message["role"] != "tool")
            .map_or(0, |last| last + 1);
        let results = self.messages.split_off(results);
        if results.is_empty() {
            return None;
        }
        let mut told =
            "[Note of the server: you called these tools, and gave no answer after them.]"
                .to_owned();
        let calls =
            self.messages.last_mut().and_then(|last| last.as_object_mut()?.remove("tool_calls"));
        for call in calls.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let result = results.iter().find(|result| result["tool_call_id"] == call["id"]);
            let content = result.and_then(|result| result["content"].as_str()).unwrap_or_default();
            let text = |member: &str| call["function"][member].as_str().unwrap_or_default();
            told.push_str(&format!(
                "\n{} with {} returned: {content}",
                text("name"),
                text("arguments")
            ));
        }
        self.messages.pop_if(|last| last["role"] == "assistant" && last["content"].is_null());
        Some(told)
    }

    /// Returns a part in the sent form. A text replaces a part that the model cannot read.
    fn part(&mut self, part: &ContentPart) -> Value {
        let sent =
            self.attachments.sent(part, |part| native(part, self.profile, self.image_detail));
        sent.unwrap_or_else(|note| text_part(&note))
    }

    /// Returns the content of a user's parts. Text alone is a string, because some servers take
    /// only strings.
    fn content(&mut self, parts: &[ContentPart]) -> Value {
        let parts: Vec<_> =
            parts.iter().map(|part| self.part(part)).filter(|part| part["text"] != "").collect();
        match texts(&parts) {
            Some(texts) if texts.is_empty() => EMPTY_TEXT.into(),
            Some(texts) => texts.join("\n").into(),
            None => parts.into(),
        }
    }

    /// Adds results. They can have text only, so images follow in a user's message that names the
    /// tool.
    fn tool_results(&mut self, results: &[ToolResult]) {
        let mut media: Vec<Value> = Vec::new();
        for result in results {
            let id = call_id(&result.call_id, self.profile);
            let (text, mut readable) = match &result.content {
                MessageContent::Text(text) => (text.clone(), Vec::new()),
                MessageContent::Parts(parts) => self.text_and_media(parts),
            };
            self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            if !readable.is_empty() {
                media.push(text_part(&format!("Returned by {} ({id}):", result.name)));
                media.append(&mut readable);
            }
        }
        if !media.is_empty() {
            self.messages.push(json!({"role": "user", "content": media}));
        }
    }

    /// Returns the text of a result, and its parts that are not text.
    fn text_and_media(&mut self, parts: &[ContentPart]) -> (String, Vec<Value>) {
        let (mut text, mut media) = (String::new(), Vec::new());
        for part in parts {
            if !self.profile.user_after_results {
                text.push_str(
                    &self.attachments.replacement(part, "this model takes no attachments of tools"),
                );
                continue;
            }
            let part = self.part(part);
            match part["text"].as_str() {
                Some(more) => text.push_str(more),
                None => media.push(part),
            }
        }
        if text.is_empty() && !media.is_empty() {
            "(The result follows in the next message.)".clone_into(&mut text);
        }
        (text, media)
    }

    /// Adds the instructions about the current context and state at the end. If system messages
    /// have to be first, the instructions are a user's message. If no user's message may follow
    /// results, they are a part of the user's last one.
    fn current(&mut self, texts: &[&str]) {
        if texts.is_empty() {
            return;
        }
        if self.profile.system_messages == SystemMessages::Anywhere {
            texts.iter().for_each(|text| self.system(text));
            return;
        }
        let message = json!({"role": "user", "content": texts.join("\n\n")});
        let is_last = |message: &Value| message["role"] == "user";
        let joins_earlier = !self.profile.user_after_results && self.last_role() == Some("tool");
        let last_user = match self.last_role() {
            Some("user") => self.messages.last_mut(),
            Some("tool") if joins_earlier => {
                self.messages.iter_mut().rev().find(|message| is_last(message))
            }
            _ => None,
        };
        match last_user {
            Some(Value::Object(last)) => merge(last, message),
            // No user's message is before the results.
            _ if joins_earlier => {
                let begin = self.begin().unwrap_or_default();
                self.messages.insert(begin, message);
            }
            _ => self.messages.push(message),
        }
    }

    /// Returns the place of the first message with another role than the system's.
    fn begin(&self) -> Option<usize> {
        self.messages
            .iter()
            .position(|message| message["role"] != "system" && message["role"] != "developer")
    }

    /// Adds the messages of a user that the server requires at the beginning and at the end.
    fn complete(&mut self) {
        if let Some(begin) =
            self.begin().filter(|begin| self.messages[*begin]["role"] == "assistant")
        {
            self.messages.insert(begin, json!({"role": "user", "content": FIRST_USER_TEXT}));
        }
        if !self.profile.assistant_last && !matches!(self.last_role(), Some("user" | "tool")) {
            self.messages.push(json!({"role": "user", "content": LAST_USER_TEXT}));
        }
    }
}

/// Adds the content of `message` and its calls to `last`.
fn merge(last: &mut Map<String, Value>, message: Value) {
    let Value::Object(mut message) = message else { return };
    let content = message.remove("content").unwrap_or_default();
    let merged = match (last.remove("content").unwrap_or_default(), content) {
        (Value::Null, content) | (content, Value::Null) => content,
        (Value::String(a), Value::String(b)) if a.is_empty() || b.is_empty() => (a + &b).into(),
        (Value::String(a), Value::String(b)) => format!("{a}\n\n{b}").into(),
        (a, b) => Value::from_iter(as_parts(a).into_iter().chain(as_parts(b))),
    };
    last.insert("content".to_owned(), merged);
    last.extend(message);
}

fn as_parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::String(text) if !text.is_empty() => vec![text_part(&text)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
