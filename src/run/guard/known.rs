//! What is known about a message, however it came to be: streamed, made by a tool call, answered, restated by
//! a snapshot, or there before the run.

use super::{Guard, Owner, Violation, items::agree};
use crate::protocol::{EventType, MessageId, Role};

/// A message that exists without having been streamed.
pub(super) struct Minted {
    pub(super) role: Role,
    pub(super) owner: Owner,
    pub(super) name: Option<String>,
    /// Made to hold a tool call: nobody has said yet whose it is and what it is called, and the client takes
    /// neither from the call.
    pub(super) by_call: bool,
}

/// A message, as far as it matters to what may come next.
pub(super) struct Known<'g> {
    pub(super) role: Role,
    pub(super) owner: &'g Owner,
    pub(super) name: Option<&'g str>,
    pub(super) by_call: bool,
    /// Whether this run has said whose it is, so that its client knows.
    pub(super) said: bool,
}

impl Guard {
    pub(super) fn known(&self, id: &str) -> Option<Known<'_>> {
        let said = |role, owner, name| Some(Known { role, owner, name, by_call: false, said: true });
        if let Some(text) = self.texts.get(id) {
            said(text.detail.role.into(), &text.owner, text.detail.name.as_deref())
        } else if let Some(thought) = self.thoughts.get(id) {
            said(Role::Reasoning, &thought.owner, None)
        } else if let Some(owner) = self.activities.get(id) {
            said(Role::Activity, owner, None)
        } else if let Some(Minted { role, owner, name, by_call }) = self.minted.get(id) {
            Some(Known { role: *role, owner, name: name.as_deref(), by_call: *by_call, said: !by_call })
        } else {
            let earlier = self.history.message(id)?;
            let name = earlier.name.as_deref();
            Some(Known { role: earlier.role, owner: &earlier.owner, name, by_call: false, said: false })
        }
    }

    /// Checks that a message of `role` may be opened under an id: nothing else has the id, in this run or
    /// before it, and nobody else has the message.
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
        agree(event, "message", id, known.owner, tag)?;
        if known.by_call && known.owner != tag {
            return Err(Violation::new(event, format!("message {id:?} holds a tool call of another owner")));
        }
        Ok(Some(known))
    }
}
