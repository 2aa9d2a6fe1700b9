//! Tool calls and their results.

use super::{
    Guard,
    entries::{Call, Implicit},
    items::agree,
    known::Known,
    violation::{Owner, Violation},
};
use crate::{
    protocol::{
        Event, EventType, MessageId, Role, ToolCallId,
        event::{ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart},
    },
    run::drive::EventSink,
};

const KIND: &str = "tool call";

impl Guard {
    pub(super) fn call_start(&mut self, event: &ToolCallStart, out: &mut impl EventSink) -> Result<(), Violation> {
        let kind = EventType::ToolCallStart;
        let (id, tag) = (&event.tool_call_id, &event.subagent_run_id);
        let (parent, known) = self.call_parent(event);
        if let (Some(message), Some(known)) = (&parent, &known) {
            agree(kind, "parent message", message, &known.owner, tag)?;
        }
        // A call is its message's owner's, as far as the client knows whose the message is.
        let inherited = known.filter(|known| known.attributed).and_then(|known| known.owner);
        let owner = tag.clone().or(inherited);
        match self.calls.check_start(kind, KIND, id, &owner)? {
            Some(closed) => {
                if closed.detail.name != event.tool_call_name {
                    return Err(Violation::new(kind, format!("tool call {id:?} is reopened with another name")));
                }
                if parent.is_some() && closed.detail.parent != parent {
                    return Err(Violation::new(kind, format!("tool call {id:?} is reopened in another message")));
                }
            }
            None if self.history.call_owner(id).is_some() => {
                let problem = format!("tool call {id:?} was made in an earlier run; only its result can follow");
                return Err(Violation::new(kind, problem));
            }
            None => self.mint_holder(id, parent.as_ref(), &owner),
        }
        let answered = self.answered.contains(id);
        self.calls.open(id, &owner, || Call { name: event.tool_call_name.clone(), parent: parent.clone(), answered });
        let mut event = event.clone();
        event.parent_message_id = parent;
        out.emit(&event.into());
        Ok(())
    }

    /// The assistant message that holds a call, and what is known about it.
    ///
    /// Only an assistant's message can hold a call. A call that names another one is sent without a
    /// parent, which is what clients make of it, with less ado.
    fn call_parent(&self, event: &ToolCallStart) -> (Option<MessageId>, Option<Known<'_>>) {
        // To clients, an empty parent is none.
        let Some(parent) = event.parent_message_id.as_ref().filter(|id| !id.is_empty()) else { return (None, None) };
        match self.known(parent) {
            Some(known) if known.role != Role::Assistant => {
                tracing::debug!(?parent, "a tool call names a message as its parent that is not the assistant's");
                (None, None)
            }
            known => (Some(parent.clone()), known),
        }
    }

    /// A call without a message to hold it makes one: under the parent's id, or else under its own.
    fn mint_holder(&mut self, id: &ToolCallId, parent: Option<&MessageId>, owner: &Owner) {
        let holder = parent.cloned().unwrap_or_else(|| id.as_str().into());
        if self.known(&holder).is_none() {
            let implicit = Implicit { role: Role::Assistant, owner: owner.clone(), name: None, by_call: true };
            self.implicit.insert(holder, implicit);
        }
    }

    pub(super) fn call_args(&mut self, event: &ToolCallArgs) -> Result<bool, Violation> {
        let kind = EventType::ToolCallArgs;
        self.calls.check_continues(kind, KIND, &event.tool_call_id, &event.subagent_run_id)?;
        Ok(!event.delta.is_empty() || !event.base.is_empty())
    }

    pub(super) fn call_end(&mut self, event: &ToolCallEnd) -> Result<bool, Violation> {
        self.calls.close(EventType::ToolCallEnd, KIND, &event.tool_call_id, &event.subagent_run_id)
    }

    pub(super) fn call_result(&mut self, event: &ToolCallResult, out: &mut impl EventSink) -> Result<bool, Violation> {
        let kind = EventType::ToolCallResult;
        let (message, owner) = (&event.message_id, &event.subagent_run_id);
        if let Some(known) = self.known(message) {
            let taken = format!("message id {message:?} already belongs to a message of role {}", known.role.as_str());
            return Err(Violation::new(kind, taken));
        }
        let implicit = Implicit { role: Role::Tool, owner: owner.clone(), name: None, by_call: false };
        self.implicit.insert(message.clone(), implicit);
        match self.calls.get_mut(&event.tool_call_id) {
            Some(call) => {
                call.detail.answered = true;
                if std::mem::take(&mut call.open) {
                    let end = Event::from(ToolCallEnd::new(event.tool_call_id.clone()));
                    out.emit(&end.attributed_to(call.owner.clone()));
                }
            }
            None => drop(self.answered.insert(event.tool_call_id.clone())),
        }
        Ok(true)
    }

    /// The calls that this run made and did not answer, in order.
    pub(super) fn pending_calls(&self) -> Vec<ToolCallId> {
        self.calls.iter().filter(|(_, call)| !call.detail.answered).map(|(id, _)| id.clone()).collect()
    }
}
