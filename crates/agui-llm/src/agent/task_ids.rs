//! Unique ids in a run: ids of a task's messages and calls are replaced if another agent of the run
//! has used them.
//!
//! Some models number their calls from 0 in each conversation, and each task of a subagent is a conversation of its own.

use std::{collections::HashMap, ops::Deref};

use agui_agent::RunContext;
use agui_protocol::{Event, Message, MessageId, ToolCallId};

pub(super) struct TaskIds {
    cx: RunContext,
    new: HashMap<String, String>,
}

impl TaskIds {
    /// `cx` is the task's.
    pub(super) fn new(cx: RunContext) -> Self {
        Self { cx, new: HashMap::new() }
    }

    /// Keeps the ids of messages and calls that the task has from earlier runs.
    pub(super) fn keep(&mut self, messages: &[Message]) {
        for message in messages {
            let calls = message.tool_calls().iter().map(|call| &*call.id);
            let ids = calls.chain([&**message.id()]).map(str::to_owned);
            self.new.extend(ids.map(|id| (id.clone(), id)));
        }
    }

    /// Returns the new id of a message or a call; `None` if it has kept its own.
    pub(super) fn known(&self, id: &str) -> Option<&str> {
        self.new.get(id).map(String::as_str)
    }

    /// Replaces the ids in an event of the task.
    pub(super) fn replace_in(&mut self, event: &mut Event) {
        match event {
            Event::TextMessageStart(e) => self.message(&mut e.message_id),
            Event::TextMessageContent(e) => self.message(&mut e.message_id),
            Event::TextMessageEnd(e) => self.message(&mut e.message_id),
            Event::TextMessageChunk(e) => e.message_id.iter_mut().for_each(|id| self.message(id)),
            Event::ToolCallStart(e) => {
                self.call(&mut e.tool_call_id);
                e.parent_message_id.iter_mut().for_each(|id| self.message(id));
            }
            Event::ToolCallArgs(e) => self.call(&mut e.tool_call_id),
            Event::ToolCallEnd(e) => self.call(&mut e.tool_call_id),
            Event::ToolCallChunk(e) => {
                e.tool_call_id.iter_mut().for_each(|id| self.call(id));
                e.parent_message_id.iter_mut().for_each(|id| self.message(id));
            }
            Event::ToolCallResult(e) => {
                self.call(&mut e.tool_call_id);
                self.message(&mut e.message_id);
            }
            Event::ActivitySnapshot(e) => self.message(&mut e.message_id),
            Event::ActivityDelta(e) => self.message(&mut e.message_id),
            Event::ReasoningStart(e) => self.message(&mut e.message_id),
            Event::ReasoningMessageStart(e) => self.message(&mut e.message_id),
            Event::ReasoningMessageContent(e) => self.message(&mut e.message_id),
            Event::ReasoningMessageEnd(e) => self.message(&mut e.message_id),
            Event::ReasoningMessageChunk(e) => {
                e.message_id.iter_mut().for_each(|id| self.message(id))
            }
            Event::ReasoningEnd(e) => self.message(&mut e.message_id),
            Event::ReasoningEncryptedValue(e) => {
                self.replace(&mut e.entity_id, || MessageId::random().to_string())
            }
            _ => {}
        }
    }

    fn message(&mut self, id: &mut MessageId) {
        self.replace(id, MessageId::random);
    }

    fn call(&mut self, id: &mut ToolCallId) {
        self.replace(id, ToolCallId::random);
    }

    fn replace<T: Deref<Target = str> + From<String>>(&mut self, id: &mut T, random: fn() -> T) {
        if let Some(new) = self.new.get(&**id) {
            *id = new.clone().into();
        } else if !self.cx.claim_id(id) {
            let new = random();
            self.new.insert(id.to_owned(), new.to_owned());
            *id = new;
        }
    }
}
