//! Snapshots and patches: of activities, of the conversation, and the form of patches.

use super::{Guard, Violation, items::agree};
use crate::protocol::{
    EventType, JsonPatch, Message, Role,
    event::{ActivityDelta, ActivitySnapshot, MessagesSnapshot},
    patch::is_pointer,
};

const ACTIVITY: &str = "activity";

impl Guard {
    pub(super) fn activity_snapshot(&mut self, event: &ActivitySnapshot) -> Result<bool, Violation> {
        let kind = EventType::ActivitySnapshot;
        let (id, owner) = (&event.message_id, &event.subagent_run_id);
        match self.activities.get(id) {
            // Only a replacing snapshot gives the activity to another owner.
            Some(established) if event.replace == Some(false) => agree(kind, ACTIVITY, id, established, owner)?,
            Some(_) => drop(self.activities.insert(id.clone(), owner.clone())),
            None => {
                self.claim(kind, id, Role::Activity, owner)?;
                self.activities.insert(id.clone(), owner.clone());
            }
        }
        Ok(true)
    }

    pub(super) fn activity_delta(&mut self, event: &ActivityDelta) -> Result<bool, Violation> {
        let kind = EventType::ActivityDelta;
        let id = &event.message_id;
        match self.activities.get(id) {
            Some(owner) => agree(kind, ACTIVITY, id, owner, &event.subagent_run_id)?,
            None if self.history.role(id) == Some(Role::Activity) => {}
            None => return Err(Violation::new(kind, format!("activity {id:?} has no snapshot that it could amend"))),
        }
        check_patch(kind, &event.patch)
    }

    /// A snapshot restates the conversation, and with it whose each message is.
    pub(super) fn messages_snapshot(&mut self, event: &MessagesSnapshot) -> bool {
        for message in &event.messages {
            let (id, owner) = (message.id(), message.subagent_run_id().cloned());
            if let Message::Assistant(assistant) = message {
                for call in assistant.tool_calls() {
                    match self.calls.get_mut(&call.id) {
                        Some(known) => known.owner = owner.clone(),
                        None => self.history.add_call(call.id.clone()),
                    }
                }
            }
            if message.role() == Role::Activity {
                self.activities.insert(id.clone(), owner);
            } else if let Some(text) = self.texts.get_mut(id) {
                text.owner = owner;
            } else if let Some(thought) = self.thoughts.get_mut(id) {
                thought.owner = owner.clone();
                if let Some(span) = self.spans.get_mut(id) {
                    span.owner = owner;
                }
            } else {
                self.minted.insert(id.clone(), (message.role(), owner));
            }
        }
        true
    }
}

/// Whether every pointer of a patch is one. Whether the patch applies is for the client to see.
pub(super) fn check_patch(event: EventType, patch: &JsonPatch) -> Result<bool, Violation> {
    for operation in patch {
        let (path, from) = operation.pointers();
        if let Some(text) = [Some(path), from].into_iter().flatten().find(|text| !is_pointer(text)) {
            return Err(Violation::new(event, format!("{text:?} is not a JSON Pointer")));
        }
    }
    Ok(true)
}
