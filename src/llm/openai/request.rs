//! Requests of chat completions.

use serde_json::{Map, Value, json};

use super::options::{OpenAiOptions, PROVIDER};
use crate::{
    llm::{
        AssistantTurn, Block, ModelRequest, ToolResult, Turn,
        wire::{UNREADABLE_TEXT, arguments, call_id, essence, file_name, schema, warn_left_out},
    },
    protocol::{ContentPart, MediaPart, MessageContent, PartSource, ToolCall},
    tools::ToolSpec,
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    /// OpenAI's newer models require `max_completion_tokens`, which most other servers do not support.
    pub(super) completion_tokens: bool,
    pub(super) return_reasoning: bool,
}

pub(super) fn body(options: &OpenAiOptions, dialect: Dialect, request: &ModelRequest) -> Value {
    let mut messages: Vec<Value> = request.system.iter().map(|text| system(text)).collect();
    for turn in &request.turns {
        match turn {
            Turn::Instructions(text) => messages.push(system(text)),
            Turn::User(parts) => messages.push(json!({"role": "user", "content": user(parts)})),
            Turn::Assistant(turn) => messages.push(assistant(turn, dialect)),
            Turn::ToolResults(results) => tool_results(results, &mut messages),
        }
    }
    let mut body = json!({
        "model": options.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(max_tokens) = options.max_tokens {
        body[if dialect.completion_tokens { "max_completion_tokens" } else { "max_tokens" }] = max_tokens.into();
    }
    if let Some(temperature) = options.temperature {
        body["temperature"] = temperature.into();
    }
    let effort = match request.thinking {
        Some(false) => None,
        Some(true) => Some(options.reasoning_effort.as_deref().unwrap_or("medium")),
        None => options.reasoning_effort.as_deref(),
    };
    if let Some(effort) = effort {
        body["reasoning_effort"] = effort.into();
    }
    body
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": schema(&tool.parameters)});
    json!({"type": "function", "function": function})
}

/// Text alone is a string, because some servers support nothing else.
fn user(parts: &[ContentPart]) -> Value {
    let usable: Vec<_> = parts.iter().filter_map(|part| Some((part, content(part)?))).collect();
    if usable.is_empty() {
        return UNREADABLE_TEXT.into();
    }
    let texts: Option<Vec<_>> = usable
        .iter()
        .map(|(part, _)| match part {
            ContentPart::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) => texts.join("\n").into(),
        None => usable.into_iter().map(|(_, content)| content).collect(),
    }
}

fn content(part: &ContentPart) -> Option<Value> {
    let content = match part {
        ContentPart::Text(text) if text.text.is_empty() => return None,
        ContentPart::Text(text) => Some(json!({"type": "text", "text": text.text})),
        ContentPart::Image(media) => image(media),
        ContentPart::Audio(media) => audio(media),
        ContentPart::Video(_) => None,
        ContentPart::Document(media) => document(media),
    };
    if content.is_none() {
        warn_left_out(PROVIDER, part);
    }
    content
}

fn image(media: &MediaPart) -> Option<Value> {
    let url = match &media.source {
        PartSource::Data { value, mime_type } => format!("data:{};base64,{value}", essence(mime_type)),
        PartSource::Url { value, .. } => value.clone(),
        PartSource::File { .. } => return None,
    };
    Some(json!({"type": "image_url", "image_url": {"url": url}}))
}

fn audio(media: &MediaPart) -> Option<Value> {
    let PartSource::Data { value, mime_type } = &media.source else { return None };
    let format = match essence(mime_type).as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" | "audio/mpeg3" | "audio/x-mpeg-3" => "mp3",
        _ => return None,
    };
    Some(json!({"type": "input_audio", "input_audio": {"data": value, "format": format}}))
}

fn document(media: &MediaPart) -> Option<Value> {
    let file = match &media.source {
        PartSource::Data { value, mime_type } if essence(mime_type) == "application/pdf" => json!({
            "filename": file_name(media).unwrap_or("document.pdf"),
            "file_data": format!("data:application/pdf;base64,{value}"),
        }),
        PartSource::File { value, provider, .. } if provider.as_deref() == Some(PROVIDER) => json!({"file_id": value}),
        _ => return None,
    };
    Some(json!({"type": "file", "file": file}))
}

fn assistant(turn: &AssistantTurn, dialect: Dialect) -> Value {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for block in &turn.blocks {
        match block {
            Block::Text(more) => text.push_str(more),
            Block::Call(made) => calls.push(call(made)),
            // This API has no member for artefacts.
            Block::Reasoning(block) if block.artefact.is_none() => {
                if block.provider.as_deref().is_none_or(|provider| provider == PROVIDER) {
                    reasoning.push_str(&block.text);
                }
            }
            Block::Reasoning(_) => {}
        }
    }
    // A message of calls alone has `null` as its content; servers refuse an empty string.
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
        if dialect.return_reasoning && !reasoning.is_empty() {
            message["reasoning_content"] = reasoning.into();
        }
    }
    message
}

fn call(call: &ToolCall) -> Value {
    let original = &call.function.arguments;
    let is_object = serde_json::from_str::<Map<String, Value>>(original).is_ok();
    // The model's own text, if it is valid: the provider's cache compares characters.
    let text = if is_object { original.clone() } else { Value::from(arguments("")).to_string() };
    let mut value = json!({
        "id": call_id(&call.id),
        "type": "function",
        "function": {"name": call.function.name, "arguments": text},
    });
    // Another provider's artefact is not a JSON object.
    let extra = call.encrypted_value.as_deref().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    if let Some(extra) = extra {
        value["extra_content"] = extra.into();
    }
    value
}

/// Results can have text only, so images follow in a user's message that names the tool.
fn tool_results(results: &[ToolResult], messages: &mut Vec<Value>) {
    let mut media_content = Vec::new();
    for result in results {
        let id = call_id(&result.call_id);
        let mut text = result.content.text().into_owned();
        if let MessageContent::Parts(parts) = &result.content {
            let media = parts.iter().filter(|part| !matches!(part, ContentPart::Text(_)));
            let readable: Vec<_> = media.filter_map(content).collect();
            if !readable.is_empty() {
                media_content.push(json!({"type": "text", "text": format!("Returned by {} ({id}):", result.name)}));
                media_content.extend(readable);
                if text.is_empty() {
                    text = "(The result follows in the next message.)".to_owned();
                }
            } else if text.is_empty() && !parts.is_empty() {
                text = UNREADABLE_TEXT.to_owned();
            }
        }
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    if !media_content.is_empty() {
        messages.push(json!({"role": "user", "content": media_content}));
    }
}

#[cfg(test)]
mod tests;
