//! A conversation as the Messages API wants it.
//!
//! Messages alternate between `user` and `assistant`, and `user` is first. Results of tools are the user's, and come
//! before what else the user says. Instructions have a place of their own, before everything: those that come later
//! in a conversation stay where they are, in a `<system-instructions>` element within the user's message, as moving
//! them to the front would change what they are about (and spoil the cache).

use serde_json::{Map, Value, json};

use super::{
    AnthropicOptions, PROVIDER, Thinking,
    content::{Content, parts, tool_result},
};
use crate::llm::{
    AssistantTurn, Block, ModelRequest, ReasoningBlock, Turn,
    wire::{LEFT_OUT, arguments, call_id, calls, schema},
};

/// What a conversation begins with that the user has not begun.
const BEGINNING: &str = "(The conversation begins.)";
/// The least budget that the API accepts.
const LEAST_BUDGET: u32 = 1024;

/// The body of a request.
pub(super) struct Body {
    pub(super) json: Value,
    /// Whether a file is in it that is at the provider.
    pub(super) has_files: bool,
}

pub(super) fn body(options: &AnthropicOptions, request: &ModelRequest) -> Body {
    let (leading, turns) = leading_instructions(&request.turns);
    let system = request.system.iter().map(String::as_str).chain(leading);
    let mut system: Vec<_> = system.filter(|text| !text.trim().is_empty()).map(text).collect();
    let mut messages = Messages::default();
    let thinking = thinking(options, request);
    for turn in turns {
        messages.turn(turn);
    }
    let Messages { mut list, has_files } = messages;
    if list.first().is_none_or(|first| first.role != "user") {
        list.insert(0, Message { role: "user", content: vec![text(BEGINNING)] });
    }
    let mut tools = tools(request);
    if options.cache {
        // The front of a request changes least: tools, then the system's instructions. What has come so far is the front of
        // the next request.
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
            let budget = (*budget).max(LEAST_BUDGET);
            json["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
            if options.max_tokens <= budget {
                json["max_tokens"] = budget.saturating_add(options.max_tokens).into();
            }
        }
        Some(Thinking::Adaptive { effort }) => {
            // Newer models keep their thoughts to themselves unless they are asked.
            json["thinking"] = json!({"type": "adaptive", "display": "summarized"});
            if let Some(effort) = effort {
                json["output_config"] = json!({"effort": effort});
            }
        }
        // Nothing is said to switch it off: nothing is what every model understands.
        None => {
            if let Some(temperature) = options.temperature {
                json["temperature"] = temperature.into();
            }
        }
    }
    Body { json, has_files }
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Instructions at the front of the conversation, and what comes after them.
fn leading_instructions(turns: &[Turn]) -> (impl Iterator<Item = &str>, &[Turn]) {
    let count = turns.iter().take_while(|turn| matches!(turn, Turn::Instructions(_))).count();
    let (leading, rest) = turns.split_at(count);
    let texts = leading.iter().filter_map(|turn| match turn {
        Turn::Instructions(text) => Some(text.as_str()),
        _ => None,
    });
    (texts, rest)
}

/// How the model thinks about this request.
fn thinking<'a>(options: &'a AnthropicOptions, request: &ModelRequest) -> Option<&'a Thinking> {
    if !request.thinking.unwrap_or(options.think) {
        return None;
    }
    if matches!(options.thinking, Thinking::Budget(_)) && thoughts_are_missing(&request.turns) {
        tracing::debug!("the model does not think about this request: its thoughts from before the calls are gone");
        return None;
    }
    Some(&options.thinking)
}

/// Whether the model is in the middle of using tools, and nothing of what it thought since a person last spoke is
/// there. With a budget, the API insists on it. One thought is enough: after the first calls, many models think no
/// more.
fn thoughts_are_missing(turns: &[Turn]) -> bool {
    let since = turns.iter().rposition(|turn| matches!(turn, Turn::User(_))).map_or(0, |at| at + 1);
    let mut made = turns[since..].iter().filter_map(|turn| match turn {
        Turn::Assistant(turn) => Some(&turn.blocks),
        _ => None,
    });
    let begins_with_thought = |blocks: &Vec<Block>| {
        let sent = blocks.iter().find_map(|block| match block {
            Block::Reasoning(block) => thought(block).map(|_| true),
            Block::Text(_) | Block::Call(_) => Some(false),
        });
        sent == Some(true)
    };
    made.clone().next().is_some() && !made.any(begins_with_thought)
}

/// Reasoning goes back exactly as it came, or not at all: the provider checks its signature.
fn thought(block: &ReasoningBlock) -> Option<Value> {
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
    // A conversation that has calls in it is refused without tools. They are named, and may not be called.
    let mut names: Vec<_> = calls(&request.turns).map(|call| call.function.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| tool(name, "", schema(&Value::Null))).collect()
}

struct Message {
    role: &'static str,
    content: Vec<Value>,
}

#[derive(Default)]
struct Messages {
    list: Vec<Message>,
    has_files: bool,
}

impl Messages {
    fn turn(&mut self, turn: &Turn) {
        match turn {
            Turn::Instructions(instructions) => {
                let marked = format!("<system-instructions>\n{instructions}\n</system-instructions>");
                self.say("user", vec![text(&marked)]);
            }
            Turn::User(said) => {
                let Content { mut blocks, has_files } = parts(said);
                self.has_files |= has_files;
                if blocks.is_empty() {
                    blocks.push(text(LEFT_OUT));
                }
                self.say("user", blocks);
            }
            Turn::Assistant(turn) => self.say("assistant", assistant(turn)),
            Turn::ToolResults(results) => {
                for result in results {
                    let (block, has_files) = tool_result(result);
                    self.has_files |= has_files;
                    self.say("user", vec![block]);
                }
            }
        }
    }

    /// Adds to the last message if it is of the same role.
    fn say(&mut self, role: &'static str, content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        match self.list.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.extend(content),
            None => self.list.push(Message { role, content }),
        }
    }
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    let blocks = turn.blocks.iter().filter_map(|block| match block {
        Block::Reasoning(block) => thought(block),
        Block::Text(said) => (!said.trim().is_empty()).then(|| text(said)),
        Block::Call(call) => Some(json!({
            "type": "tool_use",
            "id": call_id(&call.id),
            "name": call.function.name,
            "input": arguments(&call.function.arguments),
        })),
    });
    let blocks: Vec<_> = blocks.collect();
    // Thoughts alone are no message.
    let thoughts_alone = blocks.iter().all(|block| block.get("text").is_none() && block.get("input").is_none());
    if thoughts_alone { Vec::new() } else { blocks }
}

#[cfg(test)]
mod tests;
