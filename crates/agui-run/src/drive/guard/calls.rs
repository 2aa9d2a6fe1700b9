//! Tool calls and their results.

use super::{
    Guard,
    entries::{CallDetails, ImplicitMessage},
    items::check_owner,
    known::KnownMessage,
    violation::{Owner, Violation},
};
use crate::drive::progress::EventSink;
use agui_protocol::{
    Event, EventType, MessageId, Role, ToolCallId,
    event::{ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart},
};

const KIND: &str = "tool call";

impl Guard {
    pub(crate) fn call_start(
        &mut self,
        event: &ToolCallStart,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        let kind = EventType::ToolCallStart;
        let (id, subagent) = (&event.tool_call_id, &event.subagent_run_id);
        let (parent, known) = self.call_parent(event);
        if let (Some(message), Some(known)) = (&parent, &known) {
            check_owner(kind, "parent message", message, &known.owner, subagent)?;
        }
        // A call belongs to the owner of its message, if the client knows that owner.
        let inherited = known.filter(|known| known.is_attributed).and_then(|known| known.owner);
        let owner = subagent.clone().or(inherited);
        match self.calls.check_start(kind, KIND, id, &owner)? {
            Some(closed) => {
                if closed.details.name != event.tool_call_name {
                    return Err(Violation::new(
                        kind,
                        format!("tool call {id:?} is reopened with another name"),
                    ));
                }
                if parent.is_some() && closed.details.parent != parent {
                    return Err(Violation::new(
                        kind,
                        format!("tool call {id:?} is reopened in another message"),
                    ));
                }
            }
            None if self.history.call_owner(id).is_some() => {
                let problem = format!(
                    "tool call {id:?} was made in an earlier run; only its result can follow"
                );
                return Err(Violation::new(kind, problem));
            }
            None => self.create_parent_message(id, parent.as_ref(), &owner),
        }
        let has_result = self.with_result.contains(id);
        self.calls.open(id, &owner, || CallDetails {
            name: event.tool_call_name.clone(),
            parent: parent.clone(),
            has_result,
        });
        let mut event = event.clone();
        event.parent_message_id = parent;
        out.emit(&event.into());
        Ok(())
    }

    /// Returns the parent message of a call. A call that names a message of another role is sent
    /// without a parent, because clients ignore such a parent.
    fn call_parent(&self, event: &ToolCallStart) -> (Option<MessageId>, Option<KnownMessage<'_>>) {
        // Clients ignore an empty parent.
        let Some(parent) = event.parent_message_id.as_ref().filter(|id| !id.is_empty()) else {
            return (None, None);
        };
        match self.known(parent) {
            Some(known) if known.role != Role::Assistant => {
                tracing::debug!(
                    parent = parent.as_str(),
                    "ignored the parent message of a tool call: it is not an assistant message"
                );
                (None, None)
            }
            known => (Some(parent.clone()), known),
        }
    }

    /// Records the message that clients create for a call without one, under the id of the parent
    /// or of the call.
    fn create_parent_message(
        &mut self,
        id: &ToolCallId,
        parent: Option<&MessageId>,
        owner: &Owner,
    ) {
        let message = parent.cloned().unwrap_or_else(|| id.as_str().into());
        if self.known(&message).is_none() {
            let implicit = ImplicitMessage {
                role: Role::Assistant,
                owner: owner.clone(),
                name: None,
                made_by_call: true,
            };
            self.implicit_messages.insert(message, implicit);
        }
    }

    pub(crate) fn call_args(&mut self, event: &ToolCallArgs) -> Result<bool, Violation> {
        let kind = EventType::ToolCallArgs;
        self.calls.check_continues(kind, KIND, &event.tool_call_id, &event.subagent_run_id)?;
        Ok(!event.delta.is_empty() || !event.base.is_empty())
    }

    pub(crate) fn call_end(&mut self, event: &ToolCallEnd) -> Result<bool, Violation> {
        self.calls.close(EventType::ToolCallEnd, KIND, &event.tool_call_id, &event.subagent_run_id)
    }

    pub(crate) fn call_result(
        &mut self,
        event: &ToolCallResult,
        out: &mut impl EventSink,
    ) -> Result<bool, Violation> {
        let kind = EventType::ToolCallResult;
        let (message, owner) = (&event.message_id, &event.subagent_run_id);
        if let Some(known) = self.known(message) {
            let taken = format!(
                "message id {message:?} already belongs to a message of role {}",
                known.role.as_str()
            );
            return Err(Violation::new(kind, taken));
        }
        let implicit = ImplicitMessage {
            role: Role::Tool,
            owner: owner.clone(),
            name: None,
            made_by_call: false,
        };
        self.implicit_messages.insert(message.clone(), implicit);
        match self.calls.get_mut(&event.tool_call_id) {
            Some(call) => {
                call.details.has_result = true;
                if let Some(owner) = self.calls.close_if_open(&event.tool_call_id) {
                    let end = Event::from(ToolCallEnd::new(event.tool_call_id.clone()));
                    out.emit(&end.attributed_to(owner));
                }
            }
            None => drop(self.with_result.insert(event.tool_call_id.clone())),
        }
        Ok(true)
    }

    pub(crate) fn has_pending_calls(&self) -> bool {
        self.calls.iter().any(|(_, call)| !call.details.has_result)
    }

    pub(crate) fn pending_calls(&self) -> Vec<ToolCallId> {
        self.calls
            .iter()
            .filter(|(_, call)| !call.details.has_result)
            .map(|(id, _)| id.clone())
            .collect()
    }
}
