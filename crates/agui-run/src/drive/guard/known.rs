//! Looks up a message of any source: a stream, a tool call, a tool result, a snapshot, or the time
//! before the run.

use super::{
    Guard,
    entries::ImplicitMessage,
    items::check_owner,
    violation::{Owner, Violation},
};
use agui_protocol::{EventType, MessageId, Role};

pub(crate) struct KnownMessage<'g> {
    pub(crate) role: Role,
    pub(crate) owner: Owner,
    pub(crate) name: Option<&'g str>,
    pub(crate) made_by_call: bool,
    /// True if an event of this run told the client the owner.
    pub(crate) is_attributed: bool,
}

impl Guard {
    pub(crate) fn known(&self, id: &str) -> Option<KnownMessage<'_>> {
        let attributed = |role, owner: &Owner, name| {
            let owner = owner.clone();
            KnownMessage { role, owner, name, made_by_call: false, is_attributed: true }
        };
        Some(if let Some(text) = self.texts.get(id) {
            attributed(text.details.role.into(), &text.owner, text.details.name.as_deref())
        } else if let Some(message) = self.reasoning_messages.get(id) {
            attributed(Role::Reasoning, &message.owner, None)
        } else if let Some(owner) = self.activities.get(id) {
            attributed(Role::Activity, owner, None)
        } else if let Some(ImplicitMessage { role, owner, name, made_by_call }) =
            self.implicit_messages.get(id)
        {
            let known = attributed(*role, owner, name.as_deref());
            KnownMessage { made_by_call: *made_by_call, is_attributed: !made_by_call, ..known }
        } else {
            let earlier = self.history.message(id)?;
            let known =
                attributed(earlier.role(), &earlier.subagent_run_id().cloned(), earlier.name());
            KnownMessage { is_attributed: false, ..known }
        })
    }

    pub(crate) fn check_message_id(
        &self,
        event: EventType,
        id: &MessageId,
        role: Role,
        subagent: &Owner,
    ) -> Result<Option<KnownMessage<'_>>, Violation> {
        let Some(known) = self.known(id) else { return Ok(None) };
        if known.role != role {
            let taken = format!(
                "message id {id:?} already belongs to a message of role {}",
                known.role.as_str()
            );
            return Err(Violation::new(event, taken));
        }
        check_owner(event, "message", id, &known.owner, subagent)?;
        if known.made_by_call && known.owner != *subagent {
            return Err(Violation::new(
                event,
                format!("message {id:?} holds a tool call of another owner"),
            ));
        }
        Ok(Some(known))
    }
}
