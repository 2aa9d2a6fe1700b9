//! Applies the events of streamed messages: text, reasoning, tool calls and their results.

use super::{Transcript, merge};
use crate::protocol::{
    AssistantMessage, DeveloperMessage, JsonObject, Message, MessageContent, MessageId, ReasoningMessage,
    SystemMessage, ToolCall, ToolCallId, ToolMessage, UserMessage,
    event::{ReasoningMessageStart, TextMessageRole, TextMessageStart, ToolCallResult, ToolCallStart},
};

impl Transcript {
    /// Starts a message. If a message has the id already, it is continued.
    pub(crate) fn start_text(&mut self, event: &TextMessageStart, metadata: Option<&JsonObject>) {
        if self.position(&event.message_id).is_none() {
            self.new.push(empty_text(event));
        }
        self.annotate(&event.message_id, metadata);
    }

    /// Content that is a list of parts is replaced by the text.
    pub(crate) fn append(&mut self, id: &MessageId, delta: &str, metadata: Option<&JsonObject>) {
        let Some(message) = self.message_mut(id) else { return };
        if let Message::User(UserMessage { content, .. }) | Message::Tool(ToolMessage { content, .. }) = message
            && matches!(content, MessageContent::Parts(_))
        {
            *content = String::new().into();
        }
        let Some(text) = text_mut(message) else { return };
        text.push_str(delta);
        merge(message.metadata_mut(), metadata);
    }

    pub(crate) fn start_reasoning(&mut self, event: &ReasoningMessageStart, metadata: Option<&JsonObject>) {
        if self.position(&event.message_id).is_none() {
            self.new.push(Message::Reasoning(ReasoningMessage {
                subagent_run_id: event.subagent_run_id.clone(),
                ..ReasoningMessage::new(event.message_id.clone(), "")
            }));
        }
        self.annotate(&event.message_id, metadata);
    }

    pub(crate) fn annotate(&mut self, id: &MessageId, metadata: Option<&JsonObject>) {
        // Returning early avoids a copy of a kept message.
        if metadata.is_none() {
            return;
        }
        match self.message_mut(id) {
            None | Some(Message::Activity(_)) => {}
            Some(message) => merge(message.metadata_mut(), metadata),
        }
    }

    pub(crate) fn start_call(&mut self, event: &ToolCallStart, metadata: Option<&JsonObject>) {
        // A call that the conversation has already may be started again.
        if let Some(call) = self.call_mut(&event.tool_call_id) {
            call.function.name.clone_from(&event.tool_call_name);
            merge(&mut call.metadata, metadata);
            return;
        }
        let position = self.call_holder(event);
        let Some(Message::Assistant(holder)) = self.get_mut(position) else { return };
        let mut call = ToolCall::new(event.tool_call_id.clone(), event.tool_call_name.clone(), "");
        merge(&mut call.metadata, metadata);
        holder.tool_calls.get_or_insert_default().push(call);
    }

    pub(crate) fn annotate_call(&mut self, id: &ToolCallId, metadata: Option<&JsonObject>) {
        if metadata.is_some()
            && let Some(call) = self.call_mut(id)
        {
            merge(&mut call.metadata, metadata);
        }
    }

    /// A missing message is created under the parent's id, or the call's id if the parent is no assistant message.
    fn call_holder(&mut self, event: &ToolCallStart) -> usize {
        let own = || MessageId::from(event.tool_call_id.as_str());
        let id = match event.parent_message_id.as_ref().filter(|id| !id.is_empty()) {
            Some(parent) => match self.position(parent) {
                Some(position) if matches!(self.get(position), Some(Message::Assistant(_))) => return position,
                Some(_) => own(),
                None => parent.clone(),
            },
            None => own(),
        };
        let is_new = self.position(&id).is_none();
        let mut holder = AssistantMessage::new(id);
        holder.tool_calls = Some(Vec::new());
        holder.subagent_run_id = event.subagent_run_id.clone().filter(|_| is_new);
        self.new.push(Message::Assistant(holder));
        self.len() - 1
    }

    fn call_position(&self, id: &ToolCallId) -> Option<usize> {
        let makes = |message: &Message| message.tool_calls().iter().any(|call| call.id == *id);
        let new = || self.new.iter().position(makes).map(|position| self.kept + position);
        self.base.call_position(id).filter(|position| *position < self.kept).or_else(new)
    }

    pub(crate) fn call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        let position = self.call_position(id)?;
        match self.get_mut(position)? {
            Message::Assistant(assistant) => assistant.tool_calls.as_mut()?.iter_mut().find(|call| call.id == *id),
            _ => None,
        }
    }

    /// Inserts a result after the message with its call and the results that follow it, because models require that order. If
    /// there is no such message, the result is appended.
    pub(crate) fn insert_result(&mut self, event: &ToolCallResult, metadata: Option<&JsonObject>) {
        let result = ToolMessage::new(event.message_id.clone(), event.content.clone(), event.tool_call_id.clone());
        let mut result = ToolMessage { subagent_run_id: event.subagent_run_id.clone(), ..result };
        merge(&mut result.metadata, metadata);
        let mut position = self.call_position(&event.tool_call_id).map_or(self.len(), |holder| holder + 1);
        while matches!(self.get(position), Some(Message::Tool(_))) {
            position += 1;
        }
        self.insert(position, Message::Tool(result));
    }
}

fn empty_text(event: &TextMessageStart) -> Message {
    let (id, name, subagent_run_id) = (event.message_id.clone(), event.name.clone(), event.subagent_run_id.clone());
    match event.role.unwrap_or_default() {
        TextMessageRole::Developer => {
            Message::Developer(DeveloperMessage { name, subagent_run_id, ..DeveloperMessage::new(id, "") })
        }
        TextMessageRole::System => {
            Message::System(SystemMessage { name, subagent_run_id, ..SystemMessage::new(id, "") })
        }
        TextMessageRole::User => Message::User(UserMessage { name, subagent_run_id, ..UserMessage::new(id, "") }),
        TextMessageRole::Assistant => {
            let content = Some(String::new());
            Message::Assistant(AssistantMessage { content, name, subagent_run_id, ..AssistantMessage::new(id) })
        }
    }
}

fn text_mut(message: &mut Message) -> Option<&mut String> {
    match message {
        Message::Developer(m) => Some(&mut m.content),
        Message::System(m) => Some(&mut m.content),
        Message::Reasoning(m) => Some(&mut m.content),
        Message::Assistant(m) => Some(m.content.get_or_insert_default()),
        Message::User(UserMessage { content, .. }) | Message::Tool(ToolMessage { content, .. }) => match content {
            MessageContent::Text(text) => Some(text),
            MessageContent::Parts(_) => None,
        },
        Message::Activity(_) => None,
    }
}
