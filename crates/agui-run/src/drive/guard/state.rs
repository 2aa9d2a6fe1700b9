//! Activities, and snapshots of messages.

use std::collections::HashSet;

use super::{
    Guard,
    entries::ImplicitMessage,
    items::check_owner,
    violation::{Violation, check_patch},
};
use agui_protocol::{
    EventType, Message, PatchOperation, Role,
    event::{ActivityDelta, ActivitySnapshot, MessagesSnapshot},
};

const ACTIVITY: &str = "activity";

impl Guard {
    pub(crate) fn activity_snapshot(
        &mut self,
        event: &ActivitySnapshot,
    ) -> Result<bool, Violation> {
        let kind = EventType::ActivitySnapshot;
        let (id, subagent) = (&event.message_id, &event.subagent_run_id);
        let owner = match self.known(id) {
            Some(known) if known.role == Role::Activity => {
                // Only a snapshot that replaces the activity may change its owner.
                if event.replace == Some(false) {
                    check_owner(kind, ACTIVITY, id, &known.owner, subagent)?;
                    known.owner
                } else {
                    subagent.clone()
                }
            }
            _ => {
                self.check_message_id(kind, id, Role::Activity, subagent)?;
                subagent.clone()
            }
        };
        self.activities.insert(id.clone(), owner);
        Ok(true)
    }

    pub(crate) fn activity_delta(&mut self, event: &ActivityDelta) -> Result<bool, Violation> {
        let kind = EventType::ActivityDelta;
        let id = &event.message_id;
        check_patch(kind, &event.patch)?;
        if !event.patch.iter().all(PatchOperation::keeps_object) {
            return Err(Violation::new(
                kind,
                "an activity's content is an object, and the patch puts something else there",
            ));
        }
        match self.known(id).filter(|known| known.role == Role::Activity) {
            Some(known) => {
                check_owner(kind, ACTIVITY, id, &known.owner, &event.subagent_run_id).map(|()| true)
            }
            None => {
                tracing::warn!(
                    activity = id.as_str(),
                    "skipped an activity delta: no snapshot has created the activity"
                );
                Ok(false)
            }
        }
    }

    pub(crate) fn messages_snapshot(
        &mut self,
        event: &MessagesSnapshot,
    ) -> Result<bool, Violation> {
        self.check_snapshot(event)?;
        for message in &event.messages {
            let (id, role) = (message.id(), message.role());
            let owner = message.subagent_run_id().cloned();
            let name = message.name().map(str::to_owned);
            if let Message::Assistant(assistant) = message {
                for call in assistant.tool_calls() {
                    match self.calls.get_mut(&call.id) {
                        Some(known) => known.owner = owner.clone(),
                        None => self.history.set_call(call.id.clone(), owner.clone()),
                    }
                }
            }
            if role == Role::Reasoning
                && let Some(span) = self.reasoning_spans.get_mut(id)
            {
                span.owner = owner.clone();
            }
            if self.known(id).is_some_and(|known| known.role != role) {
                self.texts.remove(id);
                self.reasoning_messages.remove(id);
                self.activities.remove(id);
            }
            if role == Role::Activity {
                self.activities.insert(id.clone(), owner);
            } else if let Some(text) = self.texts.get_mut(id) {
                text.owner = owner;
                text.details.name = name;
            } else if let Some(message) = self.reasoning_messages.get_mut(id) {
                message.owner = owner;
            } else {
                self.implicit_messages
                    .insert(id.clone(), ImplicitMessage { role, owner, name, made_by_call: false });
            }
        }
        Ok(true)
    }

    fn check_snapshot(&self, event: &MessagesSnapshot) -> Result<(), Violation> {
        let refuse = |problem: String| Err(Violation::new(EventType::MessagesSnapshot, problem));
        let (mut ids, mut calls) = (HashSet::new(), HashSet::new());
        for message in &event.messages {
            let id = message.id();
            if !ids.insert(id) {
                return refuse(format!("message {id:?} is in the snapshot twice"));
            }
            let open = self.texts.is_open(id) || self.reasoning_messages.is_open(id);
            if open && self.known(id).is_some_and(|known| known.role != message.role()) {
                return refuse(format!(
                    "message {id:?} is open, and has another role in the snapshot"
                ));
            }
            if let Message::Assistant(assistant) = message
                && let Some(twice) =
                    assistant.tool_calls().iter().find(|call| !calls.insert(&call.id))
            {
                return refuse(format!("tool call {:?} is in the snapshot twice", twice.id));
            }
        }
        Ok(())
    }
}
