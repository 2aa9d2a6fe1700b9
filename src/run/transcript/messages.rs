//! Messages as they are streamed: text, reasoning, tool calls and their results.

use super::{Transcript, merge};
use crate::protocol::{
    AssistantMessage, DeveloperMessage, JsonObject, Message, MessageId, ReasoningMessage, SystemMessage, ToolCall,
    ToolCallId, ToolMessage, UserMessage,
    event::{ReasoningMessageStart, TextMessageRole, TextMessageStart, ToolCallResult, ToolCallStart},
};

impl Transcript {
    /// A start under a known id continues that message; only an activity has no text to continue.
    pub(super) fn start_text(&mut self, event: &TextMessageStart, metadata: Option<&JsonObject>) {
        if self.position(&event.message_id).is_none() {
            self.messages.push(empty_text(event));
        }
        self.annotate(&event.message_id, metadata);
    }

    pub(super) fn start_reasoning(&mut self, event: &ReasoningMessageStart, metadata: Option<&JsonObject>) {
        if self.position(&event.message_id).is_none() {
            self.messages.push(Message::Reasoning(ReasoningMessage {
                id: event.message_id.clone(),
                content: String::new(),
                encrypted_value: None,
                metadata: None,
                subagent_run_id: event.subagent_run_id.clone(),
            }));
        }
        self.annotate(&event.message_id, metadata);
    }

    pub(super) fn annotate(&mut self, id: &MessageId, metadata: Option<&JsonObject>) {
        match self.message_mut(id) {
            None | Some(Message::Activity(_)) => {}
            Some(message) => merge(message.metadata_mut(), metadata),
        }
    }

    pub(super) fn start_call(&mut self, event: &ToolCallStart, metadata: Option<&JsonObject>) {
        // The same start can come twice, when a call that the conversation already has is replayed.
        if let Some(call) = self.call_mut(&event.tool_call_id) {
            call.function.name.clone_from(&event.tool_call_name);
            merge(&mut call.metadata, metadata);
            return;
        }
        let index = self.holder(event);
        let Some(Message::Assistant(holder)) = self.messages.get_mut(index) else { return };
        let mut call = ToolCall::new(event.tool_call_id.clone(), event.tool_call_name.clone(), "");
        merge(&mut call.metadata, metadata);
        holder.tool_calls.get_or_insert_default().push(call);
    }

    /// Where the assistant message is that a call belongs to; it is made if there is none: under the
    /// parent's id, or under the call's when there is no parent or the parent is not an assistant's message.
    fn holder(&mut self, event: &ToolCallStart) -> usize {
        let own = || MessageId::from(event.tool_call_id.as_str());
        let id = match event.parent_message_id.as_ref().filter(|id| !id.is_empty()) {
            Some(parent) => match self.position(parent) {
                Some(index) if matches!(self.messages[index], Message::Assistant(_)) => return index,
                Some(_) => own(),
                None => parent.clone(),
            },
            None => own(),
        };
        let is_new = self.position(&id).is_none();
        let mut holder = AssistantMessage::new(id);
        holder.tool_calls = Some(Vec::new());
        holder.subagent_run_id = event.subagent_run_id.clone().filter(|_| is_new);
        self.messages.push(Message::Assistant(holder));
        self.messages.len() - 1
    }

    /// The call of an id, in the first message that has it.
    pub(super) fn call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        self.messages.iter_mut().find_map(|message| match message {
            Message::Assistant(assistant) => assistant.tool_calls.as_mut()?.iter_mut().find(|call| call.id == *id),
            _ => None,
        })
    }

    /// A result follows the message that made the call, behind results that are already there, because
    /// models insist on it; without such a message it comes last.
    pub(super) fn insert_result(&mut self, event: &ToolCallResult, metadata: Option<&JsonObject>) {
        let mut result = ToolMessage {
            id: event.message_id.clone(),
            content: event.content.clone(),
            tool_call_id: event.tool_call_id.clone(),
            error: None,
            encrypted_value: None,
            metadata: None,
            subagent_run_id: event.subagent_run_id.clone(),
        };
        merge(&mut result.metadata, metadata);
        let holds = |message: &Message| match message {
            Message::Assistant(assistant) => assistant.tool_calls().iter().any(|call| call.id == event.tool_call_id),
            _ => false,
        };
        let index = match self.messages.iter().position(holds) {
            None => self.messages.len(),
            Some(holder) => {
                let behind = &self.messages[holder + 1..];
                holder + 1 + behind.iter().take_while(|message| matches!(message, Message::Tool(_))).count()
            }
        };
        self.messages.insert(index, Message::Tool(result));
    }
}

fn empty_text(event: &TextMessageStart) -> Message {
    let (id, name, subagent_run_id) = (event.message_id.clone(), event.name.clone(), event.subagent_run_id.clone());
    let (content, encrypted_value, metadata) = (String::new(), None, None);
    match event.role.unwrap_or_default() {
        TextMessageRole::Developer => {
            Message::Developer(DeveloperMessage { id, content, name, encrypted_value, metadata, subagent_run_id })
        }
        TextMessageRole::System => {
            Message::System(SystemMessage { id, content, name, encrypted_value, metadata, subagent_run_id })
        }
        TextMessageRole::User => {
            let content = content.into();
            Message::User(UserMessage { id, content, name, encrypted_value, metadata, subagent_run_id })
        }
        TextMessageRole::Assistant => {
            let assistant = AssistantMessage { content: Some(content), name, ..AssistantMessage::new(id) };
            Message::Assistant(AssistantMessage { subagent_run_id, ..assistant })
        }
    }
}
