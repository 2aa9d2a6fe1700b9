//! A model's answer after its end.

use crate::{
    llm::model::StopReason,
    protocol::{AssistantMessage, Message, MessageId, ToolCall},
};

#[derive(Debug)]
pub(super) struct CompleteAnswer {
    pub(super) messages: Vec<Message>,
    pub(super) calls: Vec<CallOfTurn>,
    pub(super) stop: StopReason,
}

#[derive(Debug)]
pub(super) struct CallOfTurn {
    pub(super) call: ToolCall,
    pub(super) parent: MessageId,
}

impl CompleteAnswer {
    /// Returns the text of all messages.
    pub(super) fn text(&self) -> String {
        let texts = self.messages.iter().filter_map(|message| match message {
            Message::Assistant(message) => message.content.as_deref(),
            _ => None,
        });
        texts.collect()
    }

    /// Adds a call to the message `parent`, which is created if the answer does not have it yet.
    pub(super) fn add_call(&mut self, parent: &MessageId, call: ToolCall) {
        let known = self.messages.iter_mut().rev().find_map(|message| match message {
            Message::Assistant(message) if message.id == *parent => Some(message),
            _ => None,
        });
        if let Some(message) = known {
            message.tool_calls.get_or_insert_default().push(call);
            return;
        }
        let message = AssistantMessage { tool_calls: Some(vec![call]), ..AssistantMessage::new(parent.clone()) };
        self.messages.push(Message::Assistant(message));
    }
}
