//! The member `messages` of a request.
//!
//! Messages alternate between `user` and `assistant`, `user` first and last. Tool results come before the other content
//! of the user's message. Later instructions stay in their place, as a `<system-instructions>` element: at the front
//! they would apply to other messages, and change the cached part of the request.

use serde_json::{Value, json};

use super::{
    content_blocks::{blocks, has_file, text, tool_result},
    server_blocks::{self, ServerCalls},
};
use crate::{
    Block, ModelReasoning, ModelStep, SkippedAttachment,
    known_models::MessagesServer,
    providers::{
        attachments::Attachments,
        wire::{
            ANTHROPIC, EMPTY_TEXT, RoleMessage, RoleMessages, arguments, call_id,
            marked_instructions,
        },
    },
};

/// The place of the instructions about the current context and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CurrentPlace {
    /// True for a message with the role `system`, which some models take.
    pub(super) as_system: bool,
    /// True for the place right after the user's last step instead of the end. It does not move
    /// while the model calls tools.
    pub(super) behind_user: bool,
}

#[derive(Debug)]
pub(super) struct ClaudeMessages<'r> {
    list: RoleMessages,
    attachments: Attachments,
    /// The last message and the last block of the user's last step.
    user_step: Option<(usize, usize)>,
    server_calls: ServerCalls,
    sends_thinking: bool,
    server: &'r MessagesServer,
}

impl<'r> ClaudeMessages<'r> {
    pub(super) fn new(
        steps: &[ModelStep],
        server: &'r MessagesServer,
        sends_thinking: bool,
    ) -> Self {
        let mut messages = Self {
            list: RoleMessages::default(),
            attachments: Attachments::new(steps),
            user_step: None,
            server_calls: ServerCalls::from_steps(steps),
            sends_thinking,
            server,
        };
        for (at, step) in steps.iter().enumerate() {
            messages.attachments.enter(at);
            messages.add_step(step);
        }
        // Models from 4.6 on refuse to continue an assistant's message
        // (https://platform.claude.com/docs/en/about-claude/models/migration-guide).
        if messages.list.complete(text) {
            messages.user_step = messages.user_step.map(|(message, block)| (message + 1, block));
        }
        messages
    }

    /// Marks the ends of the last two messages of the user, and of the user's last step, for the
    /// cache.
    ///
    /// The API looks for an earlier request's mark among the 20 blocks before a mark
    /// (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching>). A step with many calls has more blocks,
    /// so the mark of the request before stays.
    pub(super) fn mark_for_cache(&mut self) {
        let list = &mut self.list.0;
        let ends =
            list.iter().enumerate().rev().filter(|(_, message)| message.role == "user").take(2);
        let ends: Vec<_> = ends.map(|(at, message)| (at, message.parts.len() - 1)).collect();
        for (message, block) in ends.into_iter().chain(self.user_step) {
            if let Some(block) =
                list.get_mut(message).and_then(|message| message.parts.get_mut(block))
            {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
        }
    }

    /// Adds instructions about the current context and state, after the marks for the cache.
    pub(super) fn add_current(&mut self, current: &str, place: CurrentPlace) {
        let end = self.end();
        let (message, block) = self.user_step.filter(|_| place.behind_user).unwrap_or(end);
        // A message with other content than results would leave a server tool's call without a
        // result. The API refuses this.
        if (message, block) == end && self.server_calls.has_open() {
            tracing::debug!(
                "left out context and state: a call to a tool of the provider waits for its result"
            );
        } else if place.as_system {
            self.list.0.insert(
                message + 1,
                RoleMessage { role: "system", is_whole: true, parts: vec![text(current)] },
            );
        } else {
            self.list.0[message].parts.insert(block + 1, text(&marked_instructions(current)));
        }
    }

    /// Returns whether a message contains a file at the provider.
    pub(super) fn has_files(&self) -> bool {
        self.list
            .0
            .iter()
            .any(|message| message.role == "user" && message.parts.iter().any(has_file))
    }

    /// Returns the messages, and the attachments that they do not contain.
    pub(super) fn into_json(self) -> (Value, Vec<SkippedAttachment>) {
        let messages = self
            .list
            .0
            .into_iter()
            .map(|message| json!({"role": message.role, "content": message.parts}));
        (messages.collect(), self.attachments.skipped)
    }

    /// Returns the last message, and its last block.
    fn end(&self) -> (usize, usize) {
        let message = self.list.0.len() - 1;
        (message, self.list.0[message].parts.len() - 1)
    }

    fn add_step(&mut self, step: &ModelStep) {
        match step {
            ModelStep::Instructions(instructions) => {
                self.list.push("user", vec![text(&marked_instructions(instructions))])
            }
            ModelStep::User(parts) => {
                let mut content = blocks(parts, &mut self.attachments);
                if content.is_empty() {
                    content.push(text(EMPTY_TEXT));
                }
                self.list.push("user", content);
                self.user_step = Some(self.end());
            }
            ModelStep::Assistant(blocks) => {
                let blocks = self.assistant(blocks);
                self.list.push("assistant", blocks);
            }
            ModelStep::ToolResults(results) => {
                let content = results
                    .iter()
                    .map(|result| tool_result(result, &mut self.attachments))
                    .collect();
                self.list.push("user", content);
            }
        }
    }

    fn assistant(&self, blocks: &[Block]) -> Vec<Value> {
        let blocks = blocks.iter().filter_map(|block| match block {
            Block::Reasoning(block) => self.reasoning(block),
            Block::Text(answer) => (!answer.trim().is_empty()).then(|| text(answer)),
            Block::Call(call) => Some(json!({
                "type": "tool_use",
                "id": call_id(&call.id),
                "name": call.function.name,
                "input": arguments(&call.function.arguments),
            })),
        });
        let mut blocks: Vec<_> = blocks.collect();
        // The API refuses a message that ends with thinking.
        let is_thinking =
            |block: &mut Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
        while blocks.pop_if(is_thinking).is_some() {}
        blocks
    }

    fn reasoning(&self, block: &ModelReasoning) -> Option<Value> {
        match own_artefact(block, self.server).and_then(server_blocks::from_artefact) {
            Some(block) => self.server_calls.is_complete(&block).then_some(block),
            None => thinking_block(block, self.server).filter(|_| self.sends_thinking),
        }
    }
}

/// Returns the name that marks the reasoning of the server's models.
pub(super) fn vendor(server: &MessagesServer) -> &str {
    if server.name.is_empty() { ANTHROPIC } else { &server.name }
}

/// Returns the thinking block that the API sent. The API refuses reasoning without its own
/// signature; some servers sign none.
pub(super) fn thinking_block(block: &ModelReasoning, server: &MessagesServer) -> Option<Value> {
    let is_own = block.provider.as_deref().is_none_or(|provider| provider == vendor(server));
    if server.unsigned_thinking && is_own && block.artefact.is_none() && !block.text.is_empty() {
        return Some(json!({"type": "thinking", "thinking": block.text}));
    }
    let artefact = own_artefact(block, server)
        .filter(|artefact| server_blocks::from_artefact(artefact).is_none())?;
    Some(if block.redacted {
        json!({"type": "redacted_thinking", "data": artefact})
    } else {
        json!({"type": "thinking", "thinking": block.text, "signature": artefact})
    })
}

/// Returns the artefact if it is the server's. One of an unknown provider counts if it has the
/// right form.
fn own_artefact<'b>(block: &'b ModelReasoning, server: &MessagesServer) -> Option<&'b str> {
    let artefact = block.artefact.as_deref().filter(|artefact| !artefact.is_empty())?;
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    let is_own = match block.provider.as_deref() {
        Some(provider) => provider == vendor(server),
        None => artefact.chars().all(is_base64) || server_blocks::from_artefact(artefact).is_some(),
    };
    is_own.then_some(artefact)
}
