//! Tool calls: their names, their owners, and which of them have a result.

use std::collections::{HashMap, HashSet};

use agui_server::protocol::{Message, MessageId, SubagentRunId, ToolCallId, event::ToolCallStart};

use super::super::{Verdict, check_owner, demand};
use super::{Owner, calls_of};

#[derive(Default)]
pub(super) struct Calls {
    known: HashMap<ToolCallId, KnownCall>,
    /// The calls this run has started, in order.
    started: Vec<ToolCallId>,
    answered: HashSet<ToolCallId>,
}

pub(super) struct KnownCall {
    name: String,
    /// The message that holds the call, as named by its start event.
    parent: Option<MessageId>,
    owner: Owner,
    open: bool,
    /// `true` for a call of the input. The run may answer such a call, but not start it again.
    is_from_input: bool,
}

impl KnownCall {
    pub(super) fn proceed(&self, tag: Option<&SubagentRunId>) -> Verdict {
        check_owner(tag, self.owner.as_ref())
    }

    pub(super) fn close(&mut self, tag: Option<&SubagentRunId>) -> Verdict {
        self.open = false;
        self.proceed(tag)
    }
}

impl Calls {
    /// Opens a new call, or reopens a closed one under the same name, parent and owner. A reopening may leave out owner
    /// and parent. `owner` is the attribution of the event, or the parent's owner if the event has none.
    pub(super) fn open(&mut self, event: &ToolCallStart, owner: Owner) -> Verdict {
        let (id, parent) = (&event.tool_call_id, &event.parent_message_id);
        if !self.started.contains(id) {
            self.started.push(id.clone());
        }
        let Some(known) = self.known.get_mut(id) else {
            let (name, parent) = (event.tool_call_name.clone(), parent.clone());
            self.known.insert(
                id.clone(),
                KnownCall { name, parent, owner, open: true, is_from_input: false },
            );
            return Ok(());
        };
        demand(!known.is_from_input, || format!("the call {id:?} was made by an earlier run"))?;
        demand(!std::mem::replace(&mut known.open, true), || {
            format!("the call {id:?} is open already")
        })?;
        let same =
            known.name == event.tool_call_name && (parent.is_none() || *parent == known.parent);
        demand(same, || format!("the call {id:?} is reopened as another one"))?;
        check_owner(owner.as_ref(), known.owner.as_ref())
    }

    pub(super) fn open_call(&mut self, id: &ToolCallId) -> Result<&mut KnownCall, String> {
        self.known
            .get_mut(id)
            .filter(|known| known.open)
            .ok_or_else(|| format!("no call {id:?} is open"))
    }

    /// Accepts a result for any call. The stream does not show whether a tool is the server's or the application's:
    /// both may have one of the same name, as in the first example of the specification documents.
    pub(super) fn answer(&mut self, id: &ToolCallId) {
        self.answered.insert(id.clone());
    }

    /// Sets the calls of a message of the input or of a snapshot.
    pub(super) fn restate(&mut self, message: &Message, is_from_input: bool) {
        for call in calls_of(message) {
            let known = self.known.entry(call.id.clone()).or_insert_with(|| KnownCall {
                name: String::new(),
                parent: Some(message.id().clone()),
                owner: None,
                open: false,
                is_from_input,
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
