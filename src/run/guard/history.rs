//! What the conversation already had before this run. Ids are unique within a thread, so an event of this
//! run must not take one for something else.

use std::{cell::RefCell, collections::HashMap};

use super::Owner;
use crate::protocol::{Message, MessageId, Role, ToolCallId};

/// How many look-ups go through the list before an index pays for itself.
const SCANS: u32 = 16;

/// The messages of earlier runs, and the tool calls of those and of snapshots.
#[derive(Default)]
pub(super) struct History {
    messages: Vec<Earlier>,
    calls: HashMap<ToolCallId, Owner>,
    index: RefCell<Index>,
}

/// A message of an earlier run.
pub(super) struct Earlier {
    id: MessageId,
    pub(super) role: Role,
    pub(super) owner: Owner,
    pub(super) name: Option<Box<str>>,
}

#[derive(Default)]
struct Index {
    scans: u32,
    positions: Option<HashMap<MessageId, usize>>,
}

impl History {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut history = Self { messages: Vec::with_capacity(messages.len()), ..Self::default() };
        for message in messages {
            let owner = message.subagent_run_id().cloned();
            if let Message::Assistant(assistant) = message {
                history.calls.extend(assistant.tool_calls().iter().map(|call| (call.id.clone(), owner.clone())));
            }
            let name = message.name().map(Box::from);
            history.messages.push(Earlier { id: message.id().clone(), role: message.role(), owner, name });
        }
        history
    }

    pub(super) fn message(&self, id: &str) -> Option<&Earlier> {
        let mut index = self.index.borrow_mut();
        if index.positions.is_none() && index.scans < SCANS {
            index.scans += 1;
            return self.messages.iter().find(|message| *message.id == *id);
        }
        let positions = index.positions.get_or_insert_with(|| {
            let of_ids = self.messages.iter().enumerate();
            of_ids.map(|(position, message)| (message.id.clone(), position)).collect()
        });
        positions.get(id).map(|position| &self.messages[*position])
    }

    /// Whose an earlier call is, if there is one.
    pub(super) fn call_owner(&self, id: &str) -> Option<&Owner> {
        self.calls.get(id)
    }

    pub(super) fn set_call(&mut self, id: ToolCallId, owner: Owner) {
        self.calls.insert(id, owner);
    }
}
