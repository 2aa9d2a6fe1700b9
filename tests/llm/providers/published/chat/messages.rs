//! The messages that providers of chat completions take.

use serde_json::Value;

use super::members::{Kind, list, members, object, text};

/// The messages that a provider takes.
pub struct Roles {
    /// The types of the parts of a user's message.
    pub parts: &'static [&'static str],
    /// The members with the reasoning of the model's messages.
    pub reasoning: &'static [&'static str],
    pub order: Order,
}

/// The order of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Any order in which each call is answered.
    Any,
    /// `_validate_message_order` of <https://github.com/mistralai/mistral-common>.
    Mistral,
    /// A strict chat template: one system message at the beginning, then users and the model in turn, results apart:
    /// <https://github.com/ggml-org/llama.cpp/issues/19851>.
    Template,
}

impl Roles {
    pub const OPENAI: Self = Self {
        parts: &["text", "image_url", "input_audio", "file"],
        reasoning: &[],
        order: Order::Any,
    };
    pub const TEMPLATE: Self = Self { order: Order::Template, ..Self::OPENAI };
    pub const MISTRAL: Self = Self {
        parts: &["text", "image_url", "input_audio", "document_url"],
        reasoning: &[],
        order: Order::Mistral,
    };
}

pub fn check_messages(messages: &[Value], roles: &Roles) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let known = object(message, "message")?;
        let role = text(&message["role"], "role")?;
        if role != "tool" && !open.is_empty() {
            return Err(format!("tool_calls must be followed by tool messages: {open:?}"));
        }
        match role {
            "system" => {
                members(known, &[&[("role", Kind::Text), ("content", Kind::Text)]], "system")?;
                not_empty(&message["content"])?;
            }
            "user" => {
                members(known, &[&[("role", Kind::Text), ("content", Kind::Any)]], "user")?;
                check_content(&message["content"], roles)?;
            }
            "assistant" => open = check_assistant(message, roles)?,
            "tool" => {
                let known_members =
                    &[("role", Kind::Text), ("tool_call_id", Kind::Text), ("content", Kind::Text)];
                members(known, &[known_members], "tool")?;
                let id = text(&message["tool_call_id"], "tool_call_id")?;
                let at = open.iter().position(|call| call == id);
                open.remove(at.ok_or_else(|| format!("the result {id} has no call"))?);
            }
            other => return Err(format!("Unexpected role {other}")),
        }
    }
    match roles.order {
        _ if !open.is_empty() => {
            Err("Not the same number of function calls and responses".to_owned())
        }
        Order::Any => Ok(()),
        Order::Mistral => check_mistral(messages),
        Order::Template => check_template(messages),
    }
}

fn not_empty(content: &Value) -> Result<(), String> {
    if text(content, "content")?.is_empty() { Err("a message is empty".to_owned()) } else { Ok(()) }
}

fn check_content(content: &Value, roles: &Roles) -> Result<(), String> {
    if content.is_string() {
        return not_empty(content);
    }
    for part in list(content, "content")? {
        let kind = text(&part["type"], "type")?;
        if !roles.parts.contains(&kind) {
            return Err(format!("unsupported content[].type {kind}"));
        }
        match kind {
            "text" => not_empty(&part["text"])?,
            "image_url" => {
                let known: &[(&str, Kind)] =
                    &[("url", Kind::Text), ("detail", Kind::Word(&["auto", "low", "high"]))];
                members(object(&part["image_url"], "image_url")?, &[known], "image_url")?;
            }
            "input_audio" => {
                let known: &[(&str, Kind)] =
                    &[("data", Kind::Text), ("format", Kind::Word(&["wav", "mp3"]))];
                members(object(&part["input_audio"], "input_audio")?, &[known], "input_audio")?;
            }
            // Chat completions take PDFs only: https://developers.openai.com/api/docs/guides/file-inputs
            "file" if part["file"]["file_id"].is_string() => {}
            "file" => {
                text(&part["file"]["filename"], "filename")?;
                if !text(&part["file"]["file_data"], "file_data")?
                    .starts_with("data:application/pdf;base64,")
                {
                    return Err("file_data is not a PDF".to_owned());
                }
            }
            _ => drop(text(&part["document_url"], "document_url")?),
        }
    }
    Ok(())
}

/// Returns the ids of the calls.
fn check_assistant(message: &Value, roles: &Roles) -> Result<Vec<String>, String> {
    let reasoning: Vec<_> = roles.reasoning.iter().map(|name| (*name, Kind::Any)).collect();
    let known = &[("role", Kind::Text), ("content", Kind::Any), ("tool_calls", Kind::List)];
    members(object(message, "assistant")?, &[known, &reasoning], "assistant")?;
    let calls = message
        .get("tool_calls")
        .map(|calls| list(calls, "tool_calls"))
        .transpose()?
        .unwrap_or_default();
    match &message["content"] {
        Value::Null if !calls.is_empty() => {}
        Value::Array(parts) if roles.order == Order::Mistral => {
            for part in parts {
                match text(&part["type"], "type")? {
                    "text" => not_empty(&part["text"])?,
                    "thinking" => {
                        list(&part["thinking"], "thinking")?
                            .iter()
                            .try_for_each(|chunk| not_empty(&chunk["text"]))?;
                    }
                    other => {
                        return Err(format!(
                            "Unexpected content chunk types in assistant message: {other}"
                        ));
                    }
                }
            }
        }
        content => not_empty(content)?,
    }
    calls
        .iter()
        .map(|call| {
            let known = &[
                ("id", Kind::Text),
                ("type", Kind::Word(&["function"])),
                ("function", Kind::Object),
                // https://ai.google.dev/gemini-api/docs/openai
                ("extra_content", Kind::Object),
            ];
            members(object(call, "tool_call")?, &[known], "tool_call")?;
            let function = &[("name", Kind::Text), ("arguments", Kind::Text)];
            members(object(&call["function"], "function")?, &[function], "function")?;
            let arguments = text(&call["function"]["arguments"], "arguments")?;
            serde_json::from_str::<Value>(arguments)
                .map_err(|error| format!("arguments: {error}"))?;
            let id = text(&call["id"], "id")?;
            let is_short = roles.order != Order::Mistral
                || id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
            match is_short && id.len() <= 40 {
                true => Ok(id.to_owned()),
                false => Err(format!(
                    "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
                )),
            }
        })
        .collect()
}

fn check_mistral(messages: &[Value]) -> Result<(), String> {
    let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
    match messages.first().map(role).as_deref() {
        Some("user" | "system") => {}
        _ => return Err("Conversation must start with a user message or system message".to_owned()),
    }
    for pair in messages.windows(2) {
        let (before, after) = (role(&pair[0]), role(&pair[1]));
        let expected: &[&str] = match before.as_str() {
            "system" | "user" => &["user", "assistant", "system"],
            "tool" => &["assistant", "tool"],
            _ => &["assistant", "user", "tool"],
        };
        // Results follow calls only.
        let has_calls = pair[0].get("tool_calls").is_some() || before == "tool";
        if !expected.contains(&after.as_str()) || after == "tool" && !has_calls {
            return Err(format!("Unexpected role '{after}' after role '{before}'"));
        }
    }
    match messages.last().map(role).as_deref() {
        Some("user" | "tool") => Ok(()),
        other => Err(format!("Expected last role User or Tool but got {other:?}")),
    }
}

fn check_template(messages: &[Value]) -> Result<(), String> {
    let rest = match messages.first() {
        Some(first) if first["role"] == "system" => &messages[1..],
        _ => messages,
    };
    let counts = |message: &&Value| {
        message["role"] == "user"
            || message["role"] == "assistant" && message.get("tool_calls").is_none()
    };
    if rest.iter().any(|message| message["role"] == "system") {
        return Err("System message must be at the beginning.".to_owned());
    }
    for (at, message) in rest.iter().filter(counts).enumerate() {
        if (message["role"] == "user") != (at % 2 == 0) {
            return Err("conversation roles must alternate user and assistant roles except for tool calls and results"
                .to_owned());
        }
    }
    match rest.last().is_some_and(|message| message["role"] == "assistant") {
        true => Err("Assistant response prefill is incompatible with enable_thinking.".to_owned()),
        false => Ok(()),
    }
}
