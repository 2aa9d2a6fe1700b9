//! Applies the events of streamed messages: text, reasoning, tool calls and their results.

use super::{NewMessages, Place, Transcript, merge};
use agui_protocol::{
    AssistantMessage, DeveloperMessage, JsonObject, Message, MessageContent, MessageId,
    ReasoningMessage, SystemMessage, ToolCall, ToolCallId, ToolMessage, UserMessage,
    event::{
        ReasoningMessageStart, TextMessageRole, TextMessageStart, ToolCallResult, ToolCallStart,
    },
};

impl Transcript {
    /// Starts a message. If a message has the id already, it is continued.
    pub(crate) fn start_text(&mut self, event: &TextMessageStart, metadata: Option<&JsonObject>) {
        if self.position(&event.message_id).is_none() {
            self.new.push(empty_text(event));
        }
        self.annotate(&event.message_id, metadata);
    }

    /// Appends to the text of a message. Replaces a content that is a list of parts.
    pub fn append(&mut self, id: &MessageId, delta: &str, metadata: Option<&JsonObject>) {
        let Some(message) = self.message_mut(id) else { return };
        if let Message::User(UserMessage { content, .. })
        | Message::Tool(ToolMessage { content, .. }) = message
            && matches!(content, MessageContent::Parts(_))
        {
            *content = String::new().into();
        }
        let Some(text) = text_mut(message) else { return };
        text.push_str(delta);
        merge(message.metadata_mut(), metadata);
    }

    pub(crate) fn start_reasoning(
        &mut self,
        event: &ReasoningMessageStart,
        metadata: Option<&JsonObject>,
    ) {
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
        let mut call = ToolCall::new(event.tool_call_id.clone(), event.tool_call_name.clone(), "");
        merge(&mut call.metadata, metadata);
        match self.call_holder(event) {
            Place::New(place) => self.new.push_call(place, call),
            Place::Kept(position) => {
                self.changed.insert(position);
                self.base.push_call(position, call);
            }
        }
    }

    pub(crate) fn annotate_call(&mut self, id: &ToolCallId, metadata: Option<&JsonObject>) {
        if metadata.is_some()
            && let Some(call) = self.call_mut(id)
        {
            merge(&mut call.metadata, metadata);
        }
    }

    /// Returns the message of a call. Creates a missing one under the parent's id, or under the
    /// call's id if the parent is not an assistant message.
    fn call_holder(&mut self, event: &ToolCallStart) -> Place {
        let own = || MessageId::from(event.tool_call_id.as_str());
        let id = match event.parent_message_id.as_ref().filter(|id| !id.is_empty()) {
            Some(parent) => match self.position(parent) {
                Some(place) if matches!(self.get(place), Some(Message::Assistant(_))) => {
                    return place;
                }
                Some(_) => own(),
                None => parent.clone(),
            },
            None => own(),
        };
        let is_new = self.position(&id).is_none();
        let mut holder = AssistantMessage::new(id);
        holder.tool_calls = Some(Vec::new());
        holder.subagent_run_id = event.subagent_run_id.clone().filter(|_| is_new);
        Place::New(self.new.push(Message::Assistant(holder)))
    }

    /// Returns the place of the message that made a call, and the number of the call in it.
    fn call_position(&mut self, id: &ToolCallId) -> Option<(Place, usize)> {
        let kept = self.base.call_place(id).filter(|(position, _)| *position < self.kept);
        let kept = kept.map(|(position, number)| (Place::Kept(position), number));
        kept.or_else(|| {
            self.new.call_position(id).map(|(place, number)| (Place::New(place), number))
        })
    }

    pub(crate) fn call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        let (place, number) = self.call_position(id)?;
        match self.get_mut(place)? {
            Message::Assistant(assistant) => assistant.tool_calls.as_mut()?.get_mut(number),
            _ => None,
        }
    }

    /// Inserts a result after the message with its call and the results that follow it, because
    /// models require that order. Appends it if there is no such message.
    pub(crate) fn insert_result(&mut self, event: &ToolCallResult, metadata: Option<&JsonObject>) {
        let result = ToolMessage::new(
            event.message_id.clone(),
            event.tool_call_id.clone(),
            event.content.clone(),
        );
        let mut result = ToolMessage { subagent_run_id: event.subagent_run_id.clone(), ..result };
        merge(&mut result.metadata, metadata);
        let result = Message::Tool(result);
        match self.call_position(&event.tool_call_id) {
            None => self.new.push(result),
            Some((Place::New(place), _)) => self.new.push_result(place, result),
            Some((Place::Kept(position), _)) => {
                self.split_after_results_of(position);
                self.new.push_result(NewMessages::START, result)
            }
        };
    }

    /// Turns the kept messages that follow the results of a message into new ones.
    fn split_after_results_of(&mut self, position: usize) {
        let is_result = |message: &&Message| matches!(message, Message::Tool(_));
        let results = self.base[position + 1..self.kept].iter().take_while(is_result).count();
        let kept = position + 1 + results;
        if kept < self.kept {
            let tail = self.base[kept..self.kept].iter().cloned();
            self.new = tail.chain(std::mem::take(&mut self.new)).collect();
            (self.kept, self.last) = (kept, None);
        }
    }
}

fn empty_text(event: &TextMessageStart) -> Message {
    let id = event.message_id.clone();
    let name = event.name.clone();
    let subagent_run_id = event.subagent_run_id.clone();
    match event.role.unwrap_or_default() {
        TextMessageRole::Developer => Message::Developer(DeveloperMessage {
            name,
            subagent_run_id,
            ..DeveloperMessage::new(id, "")
        }),
        TextMessageRole::System => {
            Message::System(SystemMessage { name, subagent_run_id, ..SystemMessage::new(id, "") })
        }
        TextMessageRole::User => {
            Message::User(UserMessage { name, subagent_run_id, ..UserMessage::new(id, "") })
        }
        TextMessageRole::Assistant => {
            let content = Some(String::new());
            Message::Assistant(AssistantMessage {
                content,
                name,
                subagent_run_id,
                ..AssistantMessage::new(id)
            })
        }
    }
}

fn text_mut(message: &mut Message) -> Option<&mut String> {
    match message {
        Message::Developer(m) => Some(&mut m.content),
        Message::System(m) => Some(&mut m.content),
        Message::Reasoning(m) => Some(&mut m.content),
        Message::Assistant(m) => Some(m.content.get_or_insert_default()),
        Message::User(UserMessage { content, .. }) | Message::Tool(ToolMessage { content, .. }) => {
            match content {
                MessageContent::Text(text) => Some(text),
                MessageContent::Parts(_) => None,
            }
        }
        Message::Activity(_) => None,
    }
}
