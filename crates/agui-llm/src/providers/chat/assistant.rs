//! The messages of the model.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::{user_parts::text_part, vendor};
use crate::{
    Block, ModelReasoning, RequestForm,
    known_models::{Profile, ReasoningMember, RequiredReasoning, ThinkingMember},
    providers::{wire, wire::OPENAI},
};
use agui_protocol::{ToolCall, ToolCallId};

/// Returns a message of the model. `form` says whether its reasoning is sent.
pub(super) fn assistant(
    blocks: &[Block],
    profile: &Profile,
    is_thinking_off: bool,
    form: &RequestForm,
) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut reasoning = Vec::new();
    for block in blocks {
        match block {
            Block::Text(more) => text.push_str(more),
            Block::Call(made) => calls.push(call(made, profile, form)),
            Block::Reasoning(block) if is_own(block, profile) => reasoning.push(block),
            Block::Reasoning(_) => {}
        }
    }
    // The content of a message of calls alone is `null`; servers refuse an empty string.
    let is_null = text.is_empty() && !calls.is_empty() && profile.null_content;
    let content = if is_null { Value::Null } else { text.into() };
    let mut message =
        Map::from_iter([("role".to_owned(), "assistant".into()), ("content".to_owned(), content)]);
    add_reasoning(&mut message, &reasoning, profile, !calls.is_empty(), is_thinking_off);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    message.into()
}

/// Returns whether reasoning is the server's. Reasoning of an unknown vendor, or with only the
/// API's name in the type of its artefact, counts: a client may have dropped the metadata.
fn is_own(block: &ModelReasoning, profile: &Profile) -> bool {
    block.provider.as_deref().is_none_or(|name| name == vendor(profile) || name == OPENAI)
}

/// Adds reasoning. Its text is sent with calls only: without calls, servers drop it themselves.
fn add_reasoning(
    message: &mut Map<String, Value>,
    reasoning: &[&ModelReasoning],
    profile: &Profile,
    has_calls: bool,
    is_thinking_off: bool,
) {
    let text: String = reasoning
        .iter()
        .filter(|block| has_readable_text(block))
        .map(|block| block.text.as_str())
        .collect();
    let has_text = has_calls && !text.is_empty();
    match profile.reasoning_member {
        ReasoningMember::ReasoningContent
            if is_required(profile, has_calls, is_thinking_off) || has_text =>
        {
            message.insert("reasoning_content".to_owned(), text.into());
        }
        ReasoningMember::Reasoning if has_text => {
            message.insert("reasoning".to_owned(), text.into());
        }
        ReasoningMember::ReasoningDetails => {
            let details: Vec<_> =
                reasoning.iter().filter_map(|block| details(block)).flatten().collect();
            if !details.is_empty() {
                message.insert("reasoning_details".to_owned(), details.into());
            } else if has_text {
                message.insert("reasoning".to_owned(), text.into());
            }
        }
        ReasoningMember::Content if has_text => {
            // https://docs.mistral.ai/capabilities/reasoning/
            let answer = message
                .get("content")
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(text_part);
            let thinking = json!({"type": "thinking", "thinking": [text_part(&text)]});
            message.insert("content".to_owned(), [thinking].into_iter().chain(answer).collect());
        }
        _ => {}
    }
}

/// Returns whether a message needs reasoning. A message of another model gets an empty one.
fn is_required(profile: &Profile, has_calls: bool, is_thinking_off: bool) -> bool {
    profile.adds_reasoning
        || !is_thinking_off
            && profile.thinking_member == ThinkingMember::Thinking
            && match profile.required_reasoning {
                RequiredReasoning::None => false,
                RequiredReasoning::OfCalls => has_calls,
                RequiredReasoning::All => true,
            }
}

/// Returns whether the text of reasoning can be sent. Text with a signature belongs to another API,
/// but a list of details has the same content as the text.
fn has_readable_text(block: &ModelReasoning) -> bool {
    !block.redacted && (block.artefact.is_none() || details(block).is_some())
}

fn details(block: &ModelReasoning) -> Option<Vec<Value>> {
    serde_json::from_str(block.artefact.as_deref()?).ok()
}

fn call(call: &ToolCall, profile: &Profile, form: &RequestForm) -> Value {
    let mut value = json!({
        "id": call_id(&call.id, profile),
        "type": "function",
        "function": {"name": call.function.name, "arguments": wire::arguments_as_text(call)},
    });
    // Another provider's artefact is not a JSON object.
    let extra = call
        .encrypted_value
        .as_deref()
        .filter(|_| form.has_reasoning())
        .and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    if let Some(extra) = extra {
        value["extra_content"] = extra.into();
    }
    value
}

/// Returns an id that the server takes. Equal ids get equal results, so that a call and its result
/// agree.
pub(super) fn call_id(id: &ToolCallId, profile: &Profile) -> String {
    let length = profile.call_id_length;
    if length == 0 {
        return wire::call_id(id);
    }
    if id.len() == length && id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return id.as_str().to_owned();
    }
    (0..length)
        .map(|at| {
            let mut hasher = DefaultHasher::new();
            (id, at).hash(&mut hasher);
            char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[(hasher.finish() % 36) as usize])
        })
        .collect()
}
