//! What is known about a message, however it came to be: streamed, made by a tool call, answered, restated by
//! a snapshot, or there before the run.

use super::{
    Guard,
    entries::Implicit,
    items::agree,
    violation::{Owner, Violation},
};
use crate::protocol::{EventType, MessageId, Role};

/// A message, as far as it matters to what may come next.
pub(super) struct Known<'g> {
    pub(super) role: Role,
    pub(super) owner: Owner,
    pub(super) name: Option<&'g str>,
    pub(super) by_call: bool,
    /// Whether this run has said whose it is, so that its client knows.
    pub(super) attributed: bool,
}

impl Guard {
    pub(super) fn known(&self, id: &str) -> Option<Known<'_>> {
        let said = |role, owner: &Owner, name| {
            Some(Known { role, owner: owner.clone(), name, by_call: false, attributed: true })
        };
        if let Some(text) = self.texts.get(id) {
            said(text.detail.role.into(), &text.owner, text.detail.name.as_deref())
        } else if let Some(thought) = self.reasoning_messages.get(id) {
            said(Role::Reasoning, &thought.owner, None)
        } else if let Some(owner) = self.activities.get(id) {
            said(Role::Activity, owner, None)
        } else if let Some(Implicit { role, owner, name, by_call }) = self.implicit.get(id) {
            let (owner, name) = (owner.clone(), name.as_deref());
            Some(Known { role: *role, owner, name, by_call: *by_call, attributed: !by_call })
        } else {
            let earlier = self.history.message(id)?;
            let owner = earlier.subagent_run_id().cloned();
            Some(Known { role: earlier.role(), owner, name: earlier.name(), by_call: false, attributed: false })
        }
    }

    /// Checks that a message of `role` may be opened under an id: nothing else has the id, in this run or
    /// before it, and no other owner has the message.
    pub(super) fn claim(
        &self,
        event: EventType,
        id: &MessageId,
        role: Role,
        tag: &Owner,
    ) -> Result<Option<Known<'_>>, Violation> {
        let Some(known) = self.known(id) else { return Ok(None) };
        if known.role != role {
            let taken = format!("message id {id:?} already belongs to a message of role {}", known.role.as_str());
            return Err(Violation::new(event, taken));
        }
        agree(event, "message", id, &known.owner, tag)?;
        if known.by_call && known.owner != *tag {
            return Err(Violation::new(event, format!("message {id:?} holds a tool call of another owner")));
        }
        Ok(Some(known))
    }
}
