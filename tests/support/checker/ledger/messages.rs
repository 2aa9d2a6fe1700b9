//! The messages of all roles. They share one namespace: an id never changes its message.

use std::collections::HashMap;

use agui_server::protocol::{
    Message, MessageId, PatchKind, PatchOperation, Role, SubagentRunId,
    event::{ActivityDelta, ActivitySnapshot},
};
use serde_json::Value;

use super::super::{Verdict, check_owner, demand};
use super::{Owner, object};

#[derive(Default)]
pub(super) struct Messages {
    known: HashMap<MessageId, KnownMessage>,
    /// The content of the activities that a delta may amend.
    activities: HashMap<MessageId, Value>,
}

pub(super) struct KnownMessage {
    role: Role,
    name: Name,
    owner: Owner,
    open: bool,
}

/// A message's name, or its absence. A message that was created by a tool call has an unknown name
/// until its start.
#[derive(PartialEq)]
enum Name {
    Unknown,
    Known(Option<String>),
}

impl KnownMessage {
    pub(super) fn proceed(&self, tag: Option<&SubagentRunId>) -> Verdict {
        check_owner(tag, self.owner.as_ref())
    }

    pub(super) fn close(&mut self, tag: Option<&SubagentRunId>) -> Verdict {
        self.open = false;
        self.proceed(tag)
    }
}

impl Messages {
    /// Opens a new message, or reopens a closed one under the same role, name and owner. A reopening may leave out name
    /// and owner, as a continuation may. An absent role means `assistant`.
    pub(super) fn open(
        &mut self,
        id: &MessageId,
        role: Role,
        name: Option<&String>,
        tag: Option<&SubagentRunId>,
    ) -> Verdict {
        self.demand_role(id, role)?;
        let Some(known) = self.known.get_mut(id) else {
            let name = Name::Known(name.cloned());
            self.known
                .insert(id.clone(), KnownMessage { role, name, owner: tag.cloned(), open: true });
            return Ok(());
        };
        demand(!known.open, || format!("the message {id:?} is open already"))?;
        match &known.name {
            Name::Known(known_name) => {
                demand(name.is_none() || name == known_name.as_ref(), || {
                    format!("{id:?} is reopened under another name")
                })?;
                check_owner(tag, known.owner.as_ref())?;
            }
            // The message was created by a tool call: this is its first start, so it has to name the call's owner.
            Name::Unknown => {
                known.name = Name::Known(name.cloned());
                demand(tag == known.owner.as_ref(), || {
                    format!("{id:?} is {tag:?}'s, its call {:?}'s", known.owner)
                })?;
            }
        }
        known.open = true;
        Ok(())
    }

    /// Returns the open text message with this id.
    pub(super) fn text(&mut self, id: &MessageId) -> Result<&mut KnownMessage, String> {
        let open =
            self.known.get_mut(id).filter(|known| known.open && known.role != Role::Reasoning);
        open.ok_or_else(|| format!("no text message {id:?} is open"))
    }

    /// Returns the open reasoning message with this id.
    pub(super) fn reasoning(&mut self, id: &MessageId) -> Result<&mut KnownMessage, String> {
        let open =
            self.known.get_mut(id).filter(|known| known.open && known.role == Role::Reasoning);
        open.ok_or_else(|| format!("no reasoning message {id:?} is open"))
    }

    /// Returns the owner of the assistant message that holds a call. A known message must have the owner that the call
    /// names. An unknown message is created with the call's owner.
    pub(super) fn hold_call(
        &mut self,
        id: &MessageId,
        tag: Option<&SubagentRunId>,
    ) -> Result<Owner, String> {
        self.demand_role(id, Role::Assistant)?;
        let known = self.known.entry(id.clone()).or_insert_with(|| KnownMessage {
            role: Role::Assistant,
            name: Name::Unknown,
            owner: tag.cloned(),
            open: false,
        });
        check_owner(tag, known.owner.as_ref())?;
        Ok(known.owner.clone())
    }

    /// A result is a message with a new id, and cannot be continued.
    pub(super) fn result(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Verdict {
        let result = KnownMessage {
            role: Role::Tool,
            name: Name::Known(None),
            owner: tag.cloned(),
            open: false,
        };
        demand(self.known.insert(id.clone(), result).is_none(), || {
            format!("the message id {id:?} is taken")
        })
    }

    pub(super) fn set_activity(&mut self, event: &ActivitySnapshot) -> Verdict {
        let (id, tag) = (&event.message_id, event.subagent_run_id.as_ref());
        self.demand_role(id, Role::Activity)?;
        if let (Some(known), Some(false)) = (self.known.get(id), event.replace) {
            return check_owner(tag, known.owner.as_ref());
        }
        let activity = KnownMessage {
            role: Role::Activity,
            name: Name::Known(None),
            owner: tag.cloned(),
            open: false,
        };
        self.known.insert(id.clone(), activity);
        self.activities.insert(id.clone(), object(&event.content));
        Ok(())
    }

    /// A patch that does not apply is legal and changes nothing. The result of one that applies has to be an object.
    pub(super) fn amend_activity(&mut self, event: &ActivityDelta) -> Verdict {
        let id = &event.message_id;
        let (Some(known), Some(content)) = (self.known.get(id), self.activities.get_mut(id)) else {
            return Err(format!("no activity {id:?} was set"));
        };
        check_owner(event.subagent_run_id.as_ref(), known.owner.as_ref())?;
        let mut amended = content.clone();
        if apply(&mut amended, &event.patch) {
            demand(amended.is_object(), || {
                format!("the activity {id:?} would no longer be an object")
            })?;
            *content = amended;
        }
        Ok(())
    }

    /// Sets a message of the input or of a snapshot.
    pub(super) fn restate(&mut self, message: &Message) {
        let known = self.known.entry(message.id().clone()).or_insert(KnownMessage {
            role: message.role(),
            name: Name::Unknown,
            owner: None,
            open: false,
        });
        if known.role != message.role() {
            known.role = message.role();
            self.activities.remove(message.id());
        }
        known.name = Name::Known(message.name().map(str::to_owned));
        known.owner = message.subagent_run_id().cloned();
        if let Message::Activity(activity) = message {
            self.activities.insert(activity.id.clone(), object(&activity.content));
        }
    }

    pub(super) fn demand_role(&self, id: &MessageId, role: Role) -> Verdict {
        let known = self.known.get(id).map_or(role, |known| known.role);
        demand(known == role, || {
            format!("the message {id:?} is of the role {known:?}, not {role:?}")
        })
    }

    /// An open message must keep its role.
    pub(super) fn demand_role_if_open(&self, id: &MessageId, role: Role) -> Verdict {
        let changes = self.known.get(id).is_some_and(|known| known.open && known.role != role);
        demand(!changes, || {
            format!("the message {id:?} is open, and would be of the role {role:?}")
        })
    }

    pub(super) fn owner(&self, id: &MessageId) -> Option<&Owner> {
        self.known.get(id).map(|known| &known.owner)
    }

    pub(super) fn open_ones(&self) -> impl Iterator<Item = String> {
        self.known.iter().filter(|(_, known)| known.open).map(|(id, _)| format!("message {id:?}"))
    }
}

fn apply(document: &mut Value, patch: &[PatchOperation]) -> bool {
    let operations = patch.iter().map(|operation| match &operation.kind {
        // Removing the root leaves null in clients, but is an error in `json_patch`.
        PatchKind::Remove { path } if path.is_empty() => PatchOperation::replace("", Value::Null),
        kind => kind.clone().into(),
    });
    let same_patch =
        serde_json::to_value(operations.collect::<Vec<_>>()).and_then(serde_json::from_value);
    // `patch_unsafe` does not roll back, which is fine for a copy. The rollback of `patch` panics on some moves.
    same_patch
        .is_ok_and(|patch: json_patch::Patch| json_patch::patch_unsafe(document, &patch).is_ok())
}
