//! Turns an AG-UI conversation into the turns of a request to a model.
//!
//! Providers require an assistant's turn with all its blocks, and right after it a result for each of its calls. In a
//! conversation, results may be late or missing. No conversation makes this fail; what a model cannot take is left out
//! and logged.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::model::{AssistantTurn, Block, ReasoningBlock, ToolResult, Turn};
use crate::protocol::{
    AssistantMessage, ContentPart, Message, MessageContent, Metadata, ReasoningMessage, ToolCall, ToolCallId,
    ToolMessage,
};

/// The provider that issued a reasoning message's artefact.
pub(super) const PROVIDER: &str = "provider";
/// True if the provider hides the text of a reasoning message.
pub(super) const REDACTED: &str = "redacted";
pub(super) const FAILED: &str = "failed";
/// The arguments with which a person replaced the model's.
pub(super) const EDITED: &str = "editedArgs";

const UNANSWERED: &str = "There is no result: the call was not answered.";

pub(super) fn turns(messages: &[Message]) -> Vec<Turn> {
    let mut results = ToolResults::collect(messages);
    let mut turns = Turns::default();
    for message in messages.iter().filter(|message| message.subagent_run_id().is_none()) {
        match message {
            Message::Developer(m) => turns.instructions(&m.content, &mut results),
            Message::System(m) => turns.instructions(&m.content, &mut results),
            Message::User(m) => turns.user(&m.content, &mut results),
            Message::Reasoning(m) => turns.current.push(Block::Reasoning(reasoning(m))),
            Message::Assistant(m) => turns.assistant(m, &results),
            // The results come right after the turn, wherever they are in the conversation.
            Message::Tool(_) => turns.flush(&mut results),
            Message::Activity(_) => {}
        }
    }
    turns.flush(&mut results);
    results.warn_about_orphans();
    turns.done
}

/// Of several answers to a call, the last one counts.
pub(super) fn calls(messages: &[Message]) -> impl Iterator<Item = (&ToolCall, Option<&ToolMessage>)> {
    let answers: HashMap<&ToolCallId, &ToolMessage> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(tool) => Some((&tool.tool_call_id, tool)),
            _ => None,
        })
        .collect();
    let own = messages.iter().filter_map(|message| match message {
        Message::Assistant(assistant) if assistant.subagent_run_id.is_none() => Some(assistant.tool_calls()),
        _ => None,
    });
    own.flatten().map(move |call| (call, answers.get(&call.id).copied()))
}

pub(super) fn unanswered(messages: &[Message]) -> Vec<&ToolCall> {
    calls(messages).filter(|(_, answer)| answer.is_none()).map(|(call, _)| call).collect()
}

/// Subagents' calls included.
pub(super) fn call_ids(messages: &[Message]) -> HashSet<ToolCallId> {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant(assistant) => Some(assistant.tool_calls()),
        _ => None,
    });
    calls.flatten().map(|call| call.id.clone()).collect()
}

fn reasoning(message: &ReasoningMessage) -> ReasoningBlock {
    let value = |key: &str| message.metadata.as_ref().and_then(|metadata| metadata.get(key));
    ReasoningBlock {
        text: message.content.clone(),
        artefact: message.encrypted_value.clone(),
        // A client may have dropped the metadata. An artefact without text is nearly always hidden reasoning.
        redacted: value(REDACTED).and_then(Value::as_bool).unwrap_or(message.content.is_empty()),
        provider: value(PROVIDER).and_then(Value::as_str).map(str::to_owned),
    }
}

fn is_set(metadata: Option<&Metadata>, key: &str) -> bool {
    metadata.and_then(|metadata| metadata.get(key)).is_some_and(|value| *value == Value::Bool(true))
}

/// The tool messages by their call, marked when used. Of several for a call, the last one counts.
struct ToolResults<'m>(HashMap<&'m ToolCallId, (&'m ToolMessage, bool)>);

impl<'m> ToolResults<'m> {
    fn collect(messages: &'m [Message]) -> Self {
        let tools = messages.iter().filter_map(|message| match message {
            Message::Tool(tool) if tool.subagent_run_id.is_none() => Some((&tool.tool_call_id, (tool, false))),
            _ => None,
        });
        Self(tools.collect())
    }

    /// A person may have edited the call's arguments.
    fn amended(&self, call: &ToolCall) -> ToolCall {
        let mut call = call.clone();
        let edited = self.0.get(&call.id).and_then(|(tool, _)| tool.metadata.as_ref()?.get(EDITED));
        if let Some(edited) = edited {
            call.function.arguments = edited.to_string();
        }
        call
    }

    fn take(&mut self, call: &ToolCall) -> ToolResult {
        let (content, failed) = match self.0.get_mut(&call.id) {
            Some((tool, used)) => {
                *used = true;
                content(tool)
            }
            None => (MessageContent::from(UNANSWERED), true),
        };
        ToolResult { call_id: call.id.clone(), name: call.function.name.clone(), content, failed }
    }

    fn warn_about_orphans(&self) {
        let orphans = self.0.values().filter(|(_, used)| !used).count();
        if orphans > 0 {
            tracing::warn!(results = orphans, "left out tool results whose calls are not in the conversation");
        }
    }
}

fn content(tool: &ToolMessage) -> (MessageContent, bool) {
    let Some(error) = &tool.error else {
        return (tool.content.clone(), is_set(tool.metadata.as_ref(), FAILED));
    };
    let error = format!("Error: {error}");
    let content = match &tool.content {
        MessageContent::Text(text) if text.trim().is_empty() => error.into(),
        MessageContent::Text(text) => format!("{text}\n{error}").into(),
        MessageContent::Parts(parts) => {
            parts.iter().cloned().chain([ContentPart::text(error)]).collect::<Vec<_>>().into()
        }
    };
    (content, true)
}

#[derive(Default)]
struct Turns {
    done: Vec<Turn>,
    current: Vec<Block>,
    seen: HashSet<ToolCallId>,
}

impl Turns {
    fn instructions(&mut self, text: &str, results: &mut ToolResults<'_>) {
        self.flush(results);
        if !text.trim().is_empty() {
            self.done.push(Turn::Instructions(text.to_owned()));
        }
    }

    fn user(&mut self, content: &MessageContent, results: &mut ToolResults<'_>) {
        self.flush(results);
        let parts: Vec<ContentPart> = match content {
            MessageContent::Text(text) => vec![ContentPart::text(text.as_str())],
            MessageContent::Parts(parts) => parts.clone(),
        };
        let is_not_empty = |part: &ContentPart| !matches!(part, ContentPart::Text(text) if text.text.is_empty());
        let parts: Vec<_> = parts.into_iter().filter(is_not_empty).collect();
        if !parts.is_empty() {
            self.done.push(Turn::User(parts));
        }
    }

    fn assistant(&mut self, message: &AssistantMessage, results: &ToolResults<'_>) {
        if let Some(text) = message.content.as_ref().filter(|text| !text.is_empty()) {
            self.current.push(Block::Text(text.clone()));
        }
        for call in message.tool_calls() {
            if self.seen.insert(call.id.clone()) {
                self.current.push(Block::Call(results.amended(call)));
            } else {
                tracing::warn!(call = ?call.id, "left out a tool call whose id is already used in the conversation");
            }
        }
    }

    fn flush(&mut self, results: &mut ToolResults<'_>) {
        let blocks = std::mem::take(&mut self.current);
        if blocks.iter().all(|block| matches!(block, Block::Reasoning(_))) {
            return;
        }
        let answers: Vec<_> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Call(call) => Some(results.take(call)),
                _ => None,
            })
            .collect();
        self.done.push(Turn::Assistant(AssistantTurn { blocks }));
        if !answers.is_empty() {
            self.done.push(Turn::ToolResults(answers));
        }
    }
}

#[cfg(test)]
mod tests;
