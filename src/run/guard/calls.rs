//! Tool calls and their results.

use super::{Guard, Owner, Violation, items::agree};
use crate::{
    protocol::{
        Event, EventType, MessageId, Role, ToolCallId,
        event::{TextMessageRole, ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart},
    },
    run::EventSink,
};

const KIND: &str = "tool call";

/// What the start of a call said, which a reopening has to repeat.
pub(super) struct Call {
    pub(super) name: String,
    pub(super) parent: Option<MessageId>,
    answered: bool,
}

impl Guard {
    pub(super) fn call_start(&mut self, event: &ToolCallStart, out: &mut impl EventSink) -> Result<(), Violation> {
        let kind = EventType::ToolCallStart;
        let (id, tag) = (&event.tool_call_id, &event.subagent_run_id);
        let (parent, parent_owner) = self.call_parent(event);
        if let (Some(message), Some(owner)) = (&parent, &parent_owner) {
            agree(kind, "parent message", message, owner, tag)?;
        }
        let owner = tag.clone().or(parent_owner.flatten());
        match self.calls.check_start(kind, KIND, id, &owner)? {
            Some(closed) => {
                if closed.detail.name != event.tool_call_name {
                    return Err(Violation::new(kind, format!("tool call {id:?} is reopened with another name")));
                }
                if parent.is_some() && closed.detail.parent != parent {
                    return Err(Violation::new(kind, format!("tool call {id:?} is reopened in another message")));
                }
            }
            None if self.history.has_call(id) => {
                let problem = format!("tool call {id:?} was made in an earlier run; only its result can follow");
                return Err(Violation::new(kind, problem));
            }
            None => self.mint_holder(id, parent.as_ref(), &owner),
        }
        let call = || Call { name: event.tool_call_name.clone(), parent: parent.clone(), answered: false };
        self.calls.open(id, &owner, call);
        let mut event = event.clone();
        event.parent_message_id = parent;
        out.emit(&event.into());
        Ok(())
    }

    /// The assistant message that holds a call, and its owner where that is known.
    ///
    /// Only an assistant's message can hold a call. A call that names another one is sent without a
    /// parent, which is what clients make of it, with less ado.
    fn call_parent(&self, event: &ToolCallStart) -> (Option<MessageId>, Option<Owner>) {
        let Some(parent) = &event.parent_message_id else { return (None, None) };
        let (role, owner) = if let Some(text) = self.texts.get(parent) {
            let assistant = text.detail.role == TextMessageRole::Assistant;
            (Some(if assistant { Role::Assistant } else { Role::User }), Some(text.owner.clone()))
        } else if let Some((role, owner)) = self.minted.get(parent) {
            (Some(*role), Some(owner.clone()))
        } else if self.thoughts.get(parent).is_some() || self.activities.contains_key(parent) {
            (Some(Role::Reasoning), None)
        } else {
            (self.history.role(parent), None)
        };
        match role {
            None | Some(Role::Assistant) => (Some(parent.clone()), owner),
            Some(_) => {
                tracing::debug!(?parent, "a tool call names a message as its parent that is not the assistant's");
                (None, None)
            }
        }
    }

    /// A call without a message to hold it makes one: under the parent's id, or else under its own.
    fn mint_holder(&mut self, id: &ToolCallId, parent: Option<&MessageId>, owner: &Owner) {
        let holder = parent.cloned().unwrap_or_else(|| id.as_str().into());
        if self.texts.get(&holder).is_none() && self.history.role(&holder).is_none() {
            self.minted.entry(holder).or_insert_with(|| (Role::Assistant, owner.clone()));
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
        self.claim(kind, message, Role::Tool, owner)?;
        if self.minted.contains_key(message) || self.history.role(message).is_some() {
            return Err(Violation::new(kind, format!("message id {message:?} already belongs to a tool message")));
        }
        self.minted.insert(message.clone(), (Role::Tool, owner.clone()));
        if let Some(call) = self.calls.get_mut(&event.tool_call_id) {
            call.detail.answered = true;
            if std::mem::take(&mut call.open) {
                let end = Event::from(ToolCallEnd::new(event.tool_call_id.clone()));
                out.emit(&end.attributed_to(call.owner.clone()));
            }
        }
        Ok(true)
    }

    /// The calls that this run made and did not answer, in order.
    pub(super) fn pending_calls(&self) -> Vec<ToolCallId> {
        self.calls.iter().filter(|(_, call)| !call.detail.answered).map(|(id, _)| id.clone()).collect()
    }
}
