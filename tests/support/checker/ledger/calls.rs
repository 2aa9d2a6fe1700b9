//! Tool calls: what was called, whose the calls are, and which of them have their answer.

use std::collections::{HashMap, HashSet};

use agui_server::protocol::{Message, MessageId, SubagentRunId, ToolCallId, event::ToolCallStart};

use super::{Owner, calls_of};
use crate::support::checker::{Verdict, agrees, demand};

#[derive(Default)]
pub(super) struct Calls {
    known: HashMap<ToolCallId, Known>,
    /// The calls this run has started, in order.
    started: Vec<ToolCallId>,
    answered: HashSet<ToolCallId>,
}

pub(super) struct Known {
    name: String,
    /// The message that holds it, as its start named it.
    parent: Option<MessageId>,
    owner: Owner,
    open: bool,
    /// Whether it comes from the input. A run may answer such a call, but not make it again.
    earlier: bool,
}

impl Known {
    pub(super) fn proceed(&self, tag: Option<&SubagentRunId>) -> Verdict {
        agrees(tag, self.owner.as_ref())
    }

    pub(super) fn close(&mut self, tag: Option<&SubagentRunId>) -> Verdict {
        self.open = false;
        self.proceed(tag)
    }
}

impl Calls {
    /// Opens a call, or a closed one again, which then has to be the same call. A reopening that leaves out its
    /// owner or its parent says nothing about them. The owner given here is the tag's or else the parent's.
    pub(super) fn open(&mut self, event: &ToolCallStart, owner: Owner) -> Verdict {
        let (id, parent) = (&event.tool_call_id, &event.parent_message_id);
        if !self.started.contains(id) {
            self.started.push(id.clone());
        }
        let Some(known) = self.known.get_mut(id) else {
            let (name, parent) = (event.tool_call_name.clone(), parent.clone());
            self.known.insert(id.clone(), Known { name, parent, owner, open: true, earlier: false });
            return Ok(());
        };
        demand(!known.earlier, || format!("the call {id:?} was made by an earlier run"))?;
        demand(!std::mem::replace(&mut known.open, true), || format!("the call {id:?} is open already"))?;
        let same = known.name == event.tool_call_name && (parent.is_none() || *parent == known.parent);
        demand(same, || format!("the call {id:?} is reopened as another one"))?;
        agrees(owner.as_ref(), known.owner.as_ref())
    }

    pub(super) fn open_call(&mut self, id: &ToolCallId) -> Result<&mut Known, String> {
        self.known.get_mut(id).filter(|known| known.open).ok_or_else(|| format!("no call {id:?} is open"))
    }

    /// Whose a tool is cannot be told from outside: a server may have one of the same name as the application,
    /// as in the first example of the documents this one was built after.
    pub(super) fn answer(&mut self, id: &ToolCallId) {
        self.answered.insert(id.clone());
    }

    /// Takes the calls of a message as history or a snapshot states them.
    pub(super) fn restate(&mut self, message: &Message, earlier: bool) {
        for call in calls_of(message) {
            let known = self.known.entry(call.id.clone()).or_insert_with(|| Known {
                name: String::new(),
                parent: Some(message.id().clone()),
                owner: None,
                open: false,
                earlier,
            });
            known.name.clone_from(&call.function.name);
            known.owner = message.subagent_run_id().cloned();
        }
    }

    pub(super) fn unanswered(&self) -> Vec<ToolCallId> {
        self.started.iter().filter(|id| !self.answered.contains(*id)).cloned().collect()
    }

    pub(super) fn owner(&self, id: &ToolCallId) -> Option<&Owner> {
        self.known.get(id).map(|known| &known.owner)
    }

    pub(super) fn open_calls(&self) -> impl Iterator<Item = String> {
        self.known.iter().filter(|(_, known)| known.open).map(|(id, _)| format!("call {id:?}"))
    }
}
