//! The input of a request: messages, reasoning, calls and their results, as items in order.

use serde_json::{Map, Value, json};

use super::content_parts::{output, parts, text};
use crate::{
    llm::{
        Block, ModelOptions, ModelReasoning, ModelRequest, Turn,
        providers::attachments::Attachments,
        providers::wire::{EMPTY_TEXT, FIRST_USER_TEXT, OPENAI, arguments_as_text, call_id},
    },
    protocol::ToolCall,
};

/// `has_phases` marks the model's own messages as commentary or final answers.
pub(super) fn items(
    options: &ModelOptions,
    request: &ModelRequest,
    has_phases: bool,
    attachments: &mut Attachments,
) -> Vec<Value> {
    let mut items = Vec::new();
    for (at, turn) in request.turns.iter().enumerate() {
        attachments.enter(at);
        match turn {
            Turn::Instructions(instructions) => items.push(message("developer", vec![text(instructions)])),
            Turn::User(all) => {
                let mut content = parts(all, options, attachments);
                if content.is_empty() {
                    content.push(text(EMPTY_TEXT));
                }
                items.push(message("user", content));
            }
            Turn::Assistant(blocks) => assistant(blocks, has_phases, &mut items),
            Turn::ToolResults(results) => items.extend(results.iter().map(|result| {
                json!({
                    "type": "function_call_output",
                    "call_id": call_id(&result.call_id),
                    "output": output(&result.content, options, attachments),
                })
            })),
        }
    }
    // The API refuses a request without input.
    if items.is_empty() {
        items.push(message("user", vec![text(FIRST_USER_TEXT)]));
    }
    // At the end, so that a change leaves the beginning of the request to the provider's cache.
    if !request.current.is_empty() {
        items.push(message("developer", request.current.iter().map(|current| text(current)).collect()));
    }
    items
}

fn message(role: &str, content: Vec<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

fn assistant(blocks: &[Block], has_phases: bool, items: &mut Vec<Value>) {
    for (at, block) in blocks.iter().enumerate() {
        let rest = &blocks[at + 1..];
        match block {
            // The API refuses reasoning without the item that came after it.
            Block::Reasoning(block) if rest.iter().any(|next| !matches!(next, Block::Reasoning(_))) => {
                items.extend(reasoning(block));
            }
            Block::Reasoning(_) => {}
            Block::Text(text) => {
                let mut message = json!({"type": "message", "role": "assistant", "content": text});
                if has_phases {
                    // The model's last words of a turn are its answer, unless it calls tools after them.
                    let is_final = rest.iter().all(|next| matches!(next, Block::Reasoning(_)));
                    message["phase"] = if is_final { "final_answer" } else { "commentary" }.into();
                }
                items.push(message);
            }
            Block::Call(made) => items.push(call(made)),
        }
    }
}

/// Reasoning returns by its encrypted content. The service has not stored it, so its id alone is not enough.
fn reasoning(block: &ModelReasoning) -> Option<Value> {
    if block.provider.as_deref().is_some_and(|provider| provider != OPENAI) {
        return None;
    }
    let item: Map<String, Value> = serde_json::from_str(block.artefact.as_deref()?).ok()?;
    let (id, encrypted) = (item.get("id")?.as_str()?, item.get("encrypted_content")?.as_str()?);
    let summary = match block.text.as_str() {
        "" => json!([]),
        text => json!([{"type": "summary_text", "text": text}]),
    };
    Some(json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}))
}

fn call(call: &ToolCall) -> Value {
    let arguments = arguments_as_text(call);
    json!({"type": "function_call", "call_id": call_id(&call.id), "name": call.function.name, "arguments": arguments})
}
