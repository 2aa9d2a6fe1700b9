//! Messages of every role in one namespace: an id stands for one message for good.

use std::collections::HashMap;

use agui_server::protocol::{
    Message, MessageId, PatchOperation, Role, SubagentRunId,
    event::{ActivityDelta, ActivitySnapshot},
};
use serde_json::Value;

use super::{Owner, object};
use crate::support::checker::{Verdict, agrees, demand};

#[derive(Default)]
pub(super) struct Messages {
    known: HashMap<MessageId, Known>,
    /// The content of the activities that a delta may amend.
    activities: HashMap<MessageId, Value>,
}

pub(super) struct Known {
    role: Role,
    name: Name,
    owner: Owner,
    open: bool,
}

/// A message that is known through its tool calls alone has not said whether it has a name.
#[derive(PartialEq)]
enum Name {
    Unsaid,
    Said(Option<String>),
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

impl Messages {
    /// Opens a message, or a closed one again, which then has to be the same message. A reopening that leaves
    /// out its tag or its name says nothing about them, as a continuation does; an absent role says assistant.
    pub(super) fn open(
        &mut self,
        id: &MessageId,
        role: Role,
        name: Option<&String>,
        tag: Option<&SubagentRunId>,
    ) -> Verdict {
        self.demand_role(id, role)?;
        let Some(known) = self.known.get_mut(id) else {
            let name = Name::Said(name.cloned());
            self.known.insert(id.clone(), Known { role, name, owner: tag.cloned(), open: true });
            return Ok(());
        };
        demand(!known.open, || format!("the message {id:?} is open already"))?;
        match &known.name {
            Name::Said(said) => {
                demand(name.is_none() || name == said.as_ref(), || format!("{id:?} is reopened under another name"))?;
                agrees(tag, known.owner.as_ref())?;
            }
            // Nobody has opened it yet, so this start is the one that says whose it is.
            Name::Unsaid => {
                known.name = Name::Said(name.cloned());
                demand(tag == known.owner.as_ref(), || format!("{id:?} is {tag:?}'s, its call {:?}'s", known.owner))?;
            }
        }
        known.open = true;
        Ok(())
    }

    /// The open text message of an id.
    pub(super) fn text(&mut self, id: &MessageId) -> Result<&mut Known, String> {
        let open = self.known.get_mut(id).filter(|known| known.open && known.role != Role::Reasoning);
        open.ok_or_else(|| format!("no text message {id:?} is open"))
    }

    /// The open reasoning message of an id.
    pub(super) fn reasoning(&mut self, id: &MessageId) -> Result<&mut Known, String> {
        let open = self.known.get_mut(id).filter(|known| known.open && known.role == Role::Reasoning);
        open.ok_or_else(|| format!("no reasoning message {id:?} is open"))
    }

    /// The owner of the assistant message that holds a call; the call has to agree, and passes its own tag on
    /// to a message that is not known yet.
    pub(super) fn hold_call(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Result<Owner, String> {
        self.demand_role(id, Role::Assistant)?;
        let known = self.known.entry(id.clone()).or_insert_with(|| Known {
            role: Role::Assistant,
            name: Name::Unsaid,
            owner: tag.cloned(),
            open: false,
        });
        agrees(tag, known.owner.as_ref())?;
        Ok(known.owner.clone())
    }

    /// A result is a message of its own, and cannot be continued.
    pub(super) fn result(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Verdict {
        let result = Known { role: Role::Tool, name: Name::Said(None), owner: tag.cloned(), open: false };
        demand(self.known.insert(id.clone(), result).is_none(), || format!("the message id {id:?} is taken"))
    }

    pub(super) fn set_activity(&mut self, event: &ActivitySnapshot) -> Verdict {
        let (id, tag) = (&event.message_id, event.subagent_run_id.as_ref());
        self.demand_role(id, Role::Activity)?;
        if let (Some(known), Some(false)) = (self.known.get(id), event.replace) {
            return agrees(tag, known.owner.as_ref());
        }
        let activity = Known { role: Role::Activity, name: Name::Said(None), owner: tag.cloned(), open: false };
        self.known.insert(id.clone(), activity);
        self.activities.insert(id.clone(), object(&event.content));
        Ok(())
    }

    /// A patch that does not apply changes nothing, and one that does has to leave an object behind.
    pub(super) fn amend_activity(&mut self, event: &ActivityDelta) -> Verdict {
        let id = &event.message_id;
        let (Some(known), Some(content)) = (self.known.get(id), self.activities.get_mut(id)) else {
            return Err(format!("no activity {id:?} was set"));
        };
        agrees(event.subagent_run_id.as_ref(), known.owner.as_ref())?;
        let mut amended = content.clone();
        if apply(&mut amended, &event.patch) {
            demand(amended.is_object(), || format!("the activity {id:?} would no longer be an object"))?;
            *content = amended;
        }
        Ok(())
    }

    /// Takes a message as history or a snapshot states it.
    pub(super) fn restate(&mut self, message: &Message) {
        let known = self.known.entry(message.id().clone()).or_insert(Known {
            role: message.role(),
            name: Name::Unsaid,
            owner: None,
            open: false,
        });
        if known.role != message.role() {
            known.role = message.role();
            self.activities.remove(message.id());
        }
        known.name = Name::Said(message.name().map(str::to_owned));
        known.owner = message.subagent_run_id().cloned();
        if let Message::Activity(activity) = message {
            self.activities.insert(activity.id.clone(), object(&activity.content));
        }
    }

    pub(super) fn demand_role(&self, id: &MessageId, role: Role) -> Verdict {
        let known = self.known.get(id).map_or(role, |known| known.role);
        demand(known == role, || format!("the message {id:?} is of the role {known:?}, not {role:?}"))
    }

    /// What is being written must not become something else meanwhile.
    pub(super) fn demand_role_if_open(&self, id: &MessageId, role: Role) -> Verdict {
        let changes = self.known.get(id).is_some_and(|known| known.open && known.role != role);
        demand(!changes, || format!("the message {id:?} is open, and would be of the role {role:?}"))
    }

    pub(super) fn owner(&self, id: &MessageId) -> Option<&Owner> {
        self.known.get(id).map(|known| &known.owner)
    }

    pub(super) fn open_ones(&self) -> impl Iterator<Item = String> {
        self.known.iter().filter(|(_, known)| known.open).map(|(id, _)| format!("message {id:?}"))
    }
}

fn apply(document: &mut Value, patch: &[PatchOperation]) -> bool {
    let operations = patch.iter().map(|operation| match operation {
        // To a client, what is left when everything is removed is null; the library calls it a mistake.
        PatchOperation::Remove { path } if path.is_empty() => PatchOperation::replace("", Value::Null),
        other => other.clone(),
    });
    let same_patch = serde_json::to_value(operations.collect::<Vec<_>>()).and_then(serde_json::from_value);
    // The document is a copy, so nothing has to be undone. (The library's undoing panics on some moves.)
    same_patch.is_ok_and(|patch: json_patch::Patch| json_patch::patch_unsafe(document, &patch).is_ok())
}
