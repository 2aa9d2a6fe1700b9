//! Requests of the Messages API.
//!
//! Messages alternate between `user` and `assistant`, `user` first. Tool results come before the other content of the
//! user's message. Later instructions stay in their place, as a `<system-instructions>` element: at the front they
//! would apply to other messages, and change the cached part of the request.

use serde_json::{Map, Value, json};

use super::{
    content::{Content, parts, text, tool_result},
    options::{AnthropicOptions, PROVIDER, Thinking},
};
use crate::llm::{
    AssistantTurn, Block, ModelRequest, ReasoningBlock, Turn,
    wire::{UNREADABLE_TEXT, arguments, call_id, calls, schema},
};

const FIRST_USER_TEXT: &str = "(The conversation begins.)";
const MIN_BUDGET_TOKENS: u32 = 1024;

pub(super) struct RequestBody {
    pub(super) json: Value,
    pub(super) has_files: bool,
}

pub(super) fn body(options: &AnthropicOptions, request: &ModelRequest) -> RequestBody {
    let (leading, turns) = leading_instructions(&request.turns);
    let system = request.system.iter().map(String::as_str).chain(leading);
    let mut system: Vec<_> = system.filter(|text| !text.trim().is_empty()).map(text).collect();
    let mut messages = MessageList::default();
    let thinking = thinking(options, request);
    for turn in turns {
        messages.add_turn(turn);
    }
    let MessageList { mut list, has_files } = messages;
    if list.first().is_none_or(|first| first.role != "user") {
        list.insert(0, RoleMessage { role: "user", content: vec![text(FIRST_USER_TEXT)] });
    }
    let mut tools = tools(request);
    if options.cache {
        // The API caches the request up to a marked block. Tools and instructions change least, and the whole
        // conversation is the beginning of the next request.
        let front = system.last_mut().or(tools.last_mut());
        let last = list.last_mut().and_then(|message| message.content.last_mut());
        for block in front.into_iter().chain(last) {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    let messages = list.into_iter().map(|message| json!({"role": message.role, "content": message.content}));
    let mut json = json!({
        "model": options.model,
        "max_tokens": options.max_tokens,
        "stream": true,
        "messages": messages.collect::<Vec<_>>(),
    });
    if !system.is_empty() {
        json["system"] = system.into();
    }
    if !tools.is_empty() {
        json["tools"] = tools.into();
        if request.tools.is_empty() {
            json["tool_choice"] = json!({"type": "none"});
        }
    }
    match thinking {
        Some(Thinking::Budget(budget)) => {
            let budget = (*budget).max(MIN_BUDGET_TOKENS);
            json["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
            if options.max_tokens <= budget {
                json["max_tokens"] = budget.saturating_add(options.max_tokens).into();
            }
        }
        Some(Thinking::Adaptive { effort }) => {
            // Newer models hide their thinking unless `display` is set.
            json["thinking"] = json!({"type": "adaptive", "display": "summarized"});
            if let Some(effort) = effort {
                json["output_config"] = json!({"effort": effort});
            }
        }
        // Leaving `thinking` out switches it off for every model.
        None => {
            if let Some(temperature) = options.temperature {
                json["temperature"] = temperature.into();
            }
        }
    }
    RequestBody { json, has_files }
}

fn leading_instructions(turns: &[Turn]) -> (impl Iterator<Item = &str>, &[Turn]) {
    let count = turns.iter().take_while(|turn| matches!(turn, Turn::Instructions(_))).count();
    let (leading, rest) = turns.split_at(count);
    let texts = leading.iter().filter_map(|turn| match turn {
        Turn::Instructions(text) => Some(text.as_str()),
        _ => None,
    });
    (texts, rest)
}

/// `None` if the model does not think.
fn thinking<'a>(options: &'a AnthropicOptions, request: &ModelRequest) -> Option<&'a Thinking> {
    if !request.thinking.unwrap_or(options.think) {
        return None;
    }
    if matches!(options.thinking, Thinking::Budget(_)) && lacks_thinking(&request.turns) {
        tracing::debug!("the model does not think about this request: the thinking before its tool calls is lost");
        return None;
    }
    Some(&options.thinking)
}

/// With a budget, the API refuses a request whose calls since the last user's message have no thinking before them. One
/// block of thinking is enough, because many models do not think again after their first calls.
fn lacks_thinking(turns: &[Turn]) -> bool {
    let since = turns.iter().rposition(|turn| matches!(turn, Turn::User(_))).map_or(0, |at| at + 1);
    let mut own_turns = turns[since..].iter().filter_map(|turn| match turn {
        Turn::Assistant(turn) => Some(&turn.blocks),
        _ => None,
    });
    let begins_with_thinking = |blocks: &Vec<Block>| {
        let first = blocks.iter().find_map(|block| match block {
            Block::Reasoning(block) => thinking_block(block).map(|_| true),
            Block::Text(_) | Block::Call(_) => Some(false),
        });
        first == Some(true)
    };
    own_turns.clone().next().is_some() && !own_turns.any(begins_with_thinking)
}

/// The provider refuses reasoning without a signature of its own.
fn thinking_block(block: &ReasoningBlock) -> Option<Value> {
    let artefact = block.artefact.as_ref().filter(|artefact| !artefact.is_empty())?;
    if block.provider.as_deref().is_some_and(|provider| provider != PROVIDER) {
        return None;
    }
    Some(match block.redacted {
        true => json!({"type": "redacted_thinking", "data": artefact}),
        false => json!({"type": "thinking", "thinking": block.text, "signature": artefact}),
    })
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    let tool = |name: &str, description: &str, schema: Value| {
        let mut tool = Map::from_iter([("name".to_owned(), name.into())]);
        if !description.is_empty() {
            tool.insert("description".to_owned(), description.into());
        }
        tool.insert("input_schema".to_owned(), schema);
        Value::from(tool)
    };
    if !request.tools.is_empty() {
        return request
            .tools
            .iter()
            .map(|spec| tool(&spec.name, &spec.description, schema(&spec.parameters)))
            .collect();
    }
    // The API refuses a conversation with calls but without tools. So the called ones are declared, and `tool_choice`
    // forbids calls.
    let mut names: Vec<_> = calls(&request.turns).map(|call| call.function.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| tool(name, "", schema(&Value::Null))).collect()
}

struct RoleMessage {
    role: &'static str,
    content: Vec<Value>,
}

#[derive(Default)]
struct MessageList {
    list: Vec<RoleMessage>,
    has_files: bool,
}

impl MessageList {
    fn add_turn(&mut self, turn: &Turn) {
        match turn {
            Turn::Instructions(instructions) => {
                let marked = format!("<system-instructions>\n{instructions}\n</system-instructions>");
                self.push("user", vec![text(&marked)]);
            }
            Turn::User(all) => {
                let Content { mut blocks, has_files } = parts(all);
                self.has_files |= has_files;
                if blocks.is_empty() {
                    blocks.push(text(UNREADABLE_TEXT));
                }
                self.push("user", blocks);
            }
            Turn::Assistant(turn) => self.push("assistant", assistant(turn)),
            Turn::ToolResults(results) => {
                for result in results {
                    let (block, has_files) = tool_result(result);
                    self.has_files |= has_files;
                    self.push("user", vec![block]);
                }
            }
        }
    }

    /// Adds to the last message if it has the same role.
    fn push(&mut self, role: &'static str, content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        match self.list.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.extend(content),
            None => self.list.push(RoleMessage { role, content }),
        }
    }
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    let blocks = turn.blocks.iter().filter_map(|block| match block {
        Block::Reasoning(block) => thinking_block(block),
        Block::Text(words) => (!words.trim().is_empty()).then(|| text(words)),
        Block::Call(call) => Some(json!({
            "type": "tool_use",
            "id": call_id(&call.id),
            "name": call.function.name,
            "input": arguments(&call.function.arguments),
        })),
    });
    let blocks: Vec<_> = blocks.collect();
    // The API refuses a message of thinking alone.
    let is_thinking_alone = blocks.iter().all(|block| block.get("text").is_none() && block.get("input").is_none());
    if is_thinking_alone { Vec::new() } else { blocks }
}

#[cfg(test)]
mod tests;
