//! Messages as TanStack AI's pages hold them: reasoning, tool calls and their results are parts of the assistant message
//! that they belong to.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use agui_protocol::{
    AssistantMessage, ContentPart, Message, MessageContent, MessageId, Metadata, ToolCall,
    ToolCallId, ToolMessage,
};

/// A message as TanStack AI's pages hold it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UiMessage<'a> {
    id: &'a MessageId,
    #[schema(pattern = "^(user|assistant|system)$")]
    role: &'static str,
    parts: Vec<UiPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum UiPart<'a> {
    Own(#[schema(inline)] UiOwnPart<'a>),
    Media(&'a ContentPart),
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum UiOwnPart<'a> {
    Text {
        content: &'a str,
    },
    Thinking {
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    ToolCall {
        id: &'a ToolCallId,
        name: &'a str,
        arguments: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Value>)]
        input: Option<&'a RawValue>,
        #[schema(pattern = "^(input-complete|complete|error)$")]
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Value>)]
        output: Option<UiOutput<'a>>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        id: &'a MessageId,
        tool_call_id: &'a ToolCallId,
        content: &'a MessageContent,
        #[schema(pattern = "^(complete|error)$")]
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum UiOutput<'a> {
    Json(&'a RawValue),
    Content(&'a MessageContent),
}

impl<'a> UiMessage<'a> {
    fn new(message: &'a Message, role: &'static str, parts: Vec<UiPart<'a>>) -> Self {
        Self { id: message.id(), role, parts, name: message.name(), metadata: message.metadata() }
    }
}

pub(crate) fn ui_messages<'a>(branch: impl IntoIterator<Item = &'a Message>) -> Vec<UiMessage<'a>> {
    let mut ui = UiMessages::default();
    branch.into_iter().for_each(|message| ui.add(message));
    ui.push_reasoning();
    ui.messages
}

#[derive(Default)]
struct UiMessages<'a> {
    messages: Vec<UiMessage<'a>>,
    /// The position of each call: of its message, and within the message.
    calls: HashMap<&'a ToolCallId, (usize, usize)>,
    /// Reasoning, which comes before the assistant message that it belongs to.
    reasoning: Vec<(&'a Message, UiPart<'a>)>,
}

impl<'a> UiMessages<'a> {
    fn add(&mut self, message: &'a Message) {
        match message {
            Message::Reasoning(it) => {
                let part = UiOwnPart::Thinking {
                    content: &it.content,
                    signature: it.encrypted_value.as_deref(),
                };
                self.reasoning.push((message, UiPart::Own(part)));
            }
            Message::Assistant(assistant) => self.add_assistant(message, assistant),
            Message::Tool(result) => self.add_result(message, result),
            Message::User(it) => self.push(message, "user", content_parts(&it.content)),
            Message::System(it) => self.push(message, "system", text_part(&it.content)),
            Message::Developer(it) => self.push(message, "system", text_part(&it.content)),
            // These pages have no place for activities.
            Message::Activity(_) => {}
        }
    }

    fn push(&mut self, message: &'a Message, role: &'static str, parts: Vec<UiPart<'a>>) {
        self.push_reasoning();
        self.messages.push(UiMessage::new(message, role, parts));
    }

    /// Reasoning of a run that ended before its answer is a message of its own.
    fn push_reasoning(&mut self) {
        let reasoning = self.reasoning.drain(..);
        self.messages.extend(
            reasoning.map(|(message, part)| UiMessage::new(message, "assistant", vec![part])),
        );
    }

    fn add_assistant(&mut self, message: &'a Message, assistant: &'a AssistantMessage) {
        let mut parts: Vec<_> = self.reasoning.drain(..).map(|(_, part)| part).collect();
        parts.extend(text_part(assistant.content.as_deref().unwrap_or_default()));
        for call in assistant.tool_calls() {
            self.calls.insert(&call.id, (self.messages.len(), parts.len()));
            parts.push(tool_call(call));
        }
        self.messages.push(UiMessage::new(message, "assistant", parts));
    }

    fn add_result(&mut self, message: &'a Message, result: &'a ToolMessage) {
        let ToolMessage { id, tool_call_id, content, error, .. } = result;
        let result_state = if error.is_some() { "error" } else { "complete" };
        let part = UiPart::Own(UiOwnPart::ToolResult {
            id,
            tool_call_id,
            content,
            state: result_state,
            error: error.as_deref(),
        });
        let Some(&(owner, call)) = self.calls.get(tool_call_id) else {
            return self.push(message, "assistant", vec![part]);
        };
        let parts = &mut self.messages[owner].parts;
        if let Some(UiPart::Own(UiOwnPart::ToolCall { state, output, .. })) = parts.get_mut(call) {
            (*state, *output) = (result_state, Some(output_of(content)));
        }
        parts.push(part);
    }
}

fn text_part(text: &str) -> Vec<UiPart<'_>> {
    if text.is_empty() { Vec::new() } else { vec![UiPart::Own(UiOwnPart::Text { content: text })] }
}

fn content_parts(content: &MessageContent) -> Vec<UiPart<'_>> {
    let parts = match content {
        MessageContent::Text(text) => return text_part(text),
        MessageContent::Parts(parts) => parts.iter(),
    };
    let parts = parts.map(|part| match part {
        ContentPart::Text(text) => UiPart::Own(UiOwnPart::Text { content: &text.text }),
        media => UiPart::Media(media),
    });
    parts.collect()
}

fn tool_call(call: &ToolCall) -> UiPart<'_> {
    let arguments = call.function.arguments.as_str();
    // A model can write arguments that are not JSON.
    let input = serde_json::from_str(arguments).ok();
    let (id, name) = (&call.id, call.function.name.as_str());
    UiPart::Own(UiOwnPart::ToolCall {
        id,
        name,
        arguments,
        input,
        state: "input-complete",
        output: None,
    })
}

/// The value of a result that is JSON, otherwise its text or parts.
fn output_of(content: &MessageContent) -> UiOutput<'_> {
    let json = match content {
        MessageContent::Text(text) => serde_json::from_str(text).ok(),
        MessageContent::Parts(_) => None,
    };
    json.map_or(UiOutput::Content(content), UiOutput::Json)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(messages: Value) -> Value {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        serde_json::to_value(ui_messages(&messages)).unwrap()
    }

    fn call(id: &str, arguments: &str) -> Value {
        json!({ "id": id, "type": "function", "function": { "name": "find", "arguments": arguments } })
    }

    #[test]
    fn reasoning_calls_and_results_are_parts_of_their_assistant_message() {
        let shown = shown(json!([
            { "id": "u", "role": "user", "content": "hi", "name": "Ada", "metadata": { "a": null } },
            { "id": "r", "role": "reasoning", "content": "hm", "encryptedValue": "x" },
            { "id": "a", "role": "assistant", "content": "Wait.", "toolCalls": [call("c1", "{\"q\":1}"), call("c2", "{")] },
            { "id": "x", "role": "activity", "activityType": "PLAN", "content": {} },
            { "id": "t1", "role": "tool", "toolCallId": "c1", "content": "[1]" },
            { "id": "t2", "role": "tool", "toolCallId": "c2", "content": "no", "error": "failed" },
            { "id": "b", "role": "assistant", "content": "Done." },
        ]));
        let parts = json!([
            { "type": "thinking", "content": "hm", "signature": "x" },
            { "type": "text", "content": "Wait." },
            { "type": "tool-call", "id": "c1", "name": "find", "arguments": "{\"q\":1}", "input": { "q": 1 },
                "state": "complete", "output": [1] },
            { "type": "tool-call", "id": "c2", "name": "find", "arguments": "{", "state": "error", "output": "no" },
            { "type": "tool-result", "id": "t1", "toolCallId": "c1", "content": "[1]", "state": "complete" },
            { "type": "tool-result", "id": "t2", "toolCallId": "c2", "content": "no", "state": "error", "error": "failed" },
        ]);
        let expected = json!([
            { "id": "u", "role": "user", "parts": [{ "type": "text", "content": "hi" }], "name": "Ada",
                "metadata": { "a": null } },
            { "id": "a", "role": "assistant", "parts": parts },
            { "id": "b", "role": "assistant", "parts": [{ "type": "text", "content": "Done." }] },
        ]);
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_belongs_to_no_message_is_a_message_of_its_own() {
        let image = json!({ "type": "image", "source": { "type": "url", "value": "https://x.example/a.png" } });
        let shown = shown(json!([
            { "id": "s", "role": "system", "content": "Be brief." },
            { "id": "d", "role": "developer", "content": "" },
            { "id": "t", "role": "tool", "toolCallId": "unknown", "content": "1" },
            { "id": "r1", "role": "reasoning", "content": "hm" },
            { "id": "u", "role": "user", "content": [{ "type": "text", "text": "look" }, image] },
            { "id": "r2", "role": "reasoning", "content": "so" },
        ]));
        let result = json!({ "type": "tool-result", "id": "t", "toolCallId": "unknown", "content": "1", "state": "complete" });
        let expected = json!([
            { "id": "s", "role": "system", "parts": [{ "type": "text", "content": "Be brief." }] },
            { "id": "d", "role": "system", "parts": [] },
            { "id": "t", "role": "assistant", "parts": [result] },
            { "id": "r1", "role": "assistant", "parts": [{ "type": "thinking", "content": "hm" }] },
            { "id": "u", "role": "user", "parts": [{ "type": "text", "content": "look" }, image] },
            { "id": "r2", "role": "assistant", "parts": [{ "type": "thinking", "content": "so" }] },
        ]);
        assert_eq!(shown, expected);
    }
}
