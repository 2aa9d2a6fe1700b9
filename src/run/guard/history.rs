//! What the input's messages already named. Ids are unique within a thread, so an event of this run
//! must not take one for something else.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use crate::protocol::{Message, MessageId, Role, ToolCallId};

/// How many look-ups go through the list before an index pays for itself.
const SCANS: u32 = 16;

/// The messages and tool calls of earlier runs.
#[derive(Default)]
pub(super) struct History {
    messages: Vec<(MessageId, Role)>,
    calls: HashSet<ToolCallId>,
    index: RefCell<Index>,
}

#[derive(Default)]
struct Index {
    scans: u32,
    roles: Option<HashMap<MessageId, Role>>,
}

impl History {
    pub(super) fn of(messages: &[Message]) -> Self {
        let calls = messages.iter().filter_map(|message| match message {
            Message::Assistant(assistant) => Some(assistant.tool_calls()),
            _ => None,
        });
        Self {
            messages: messages.iter().map(|message| (message.id().clone(), message.role())).collect(),
            calls: calls.flatten().map(|call| call.id.clone()).collect(),
            index: RefCell::default(),
        }
    }

    /// The role of an earlier message.
    pub(super) fn role(&self, id: &MessageId) -> Option<Role> {
        let mut index = self.index.borrow_mut();
        if let Some(roles) = &index.roles {
            return roles.get(id).copied();
        }
        index.scans += 1;
        if index.scans > SCANS {
            let roles: HashMap<_, _> = self.messages.iter().cloned().collect();
            let role = roles.get(id).copied();
            index.roles = Some(roles);
            return role;
        }
        self.messages.iter().find(|(known, _)| known == id).map(|(_, role)| *role)
    }

    pub(super) fn has_call(&self, id: &ToolCallId) -> bool {
        self.calls.contains(id)
    }

    pub(super) fn add_call(&mut self, id: ToolCallId) {
        self.calls.insert(id);
    }
}
