//! Applies snapshots of the conversation, and the events of activities.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{Effect, Transcript, merge};
use agui_protocol::{
    ActivityMessage, Event, JsonObject, Message, MessageId, Messages, Role,
    event::{ActivityDelta, ActivitySnapshot, MessagesSnapshot},
    patch,
};

/// The metadata key of the reference client with which a producer says which activities a snapshot covers.
const SCOPE_KEY: &str = "@ag-ui/client";
const COVERED_TYPES: &str = "authoritativeActivityTypes";

/// The activities that are removed if a snapshot does not have them.
enum ActivityScope<'a> {
    /// All activities if the snapshot has any, otherwise none of them.
    Inferred,
    All,
    OfTypes(Vec<&'a str>),
}

impl Transcript {
    /// Applies a snapshot: replaces known messages in place, appends new ones, removes missing
    /// ones. Activities and reasoning, which some servers do not store, are only removed if the
    /// snapshot has messages of that role.
    pub(crate) fn reconcile(&mut self, event: &MessagesSnapshot) {
        let snapshot: HashMap<&MessageId, &Message> =
            event.messages.iter().map(|m| (m.id(), m)).collect();
        let has = |role| event.messages.iter().any(|message| message.role() == role);
        let (has_activity, has_reasoning) = (has(Role::Activity), has(Role::Reasoning));
        let scope = activity_scope(event);
        let keeps = |message: &Message| match message {
            Message::Activity(activity) => match &scope {
                ActivityScope::Inferred => !has_activity,
                ActivityScope::All => false,
                ActivityScope::OfTypes(types) => !types.contains(&activity.activity_type.as_str()),
            },
            Message::Reasoning(_) => !has_reasoning,
            _ => false,
        };
        let mut messages = self.messages().into_vec();
        messages.retain_mut(|message| match snapshot.get(message.id()) {
            Some(restated) => {
                message.clone_from(restated);
                true
            }
            None => keeps(message),
        });
        let known: HashSet<MessageId> =
            messages.iter().map(|message| message.id().clone()).collect();
        messages
            .extend(event.messages.iter().filter(|message| !known.contains(message.id())).cloned());
        let same_place = |(one, other): &(&Message, &Message)| one.id() == other.id();
        self.kept = self.base[..self.kept].iter().zip(&messages).take_while(same_place).count();
        self.new = messages.split_off(self.kept).into_iter().collect();
        self.last = None;
        for (position, message) in messages.into_iter().enumerate() {
            if self.base[position] != message {
                self.base.to_mut()[position] = message;
                self.changed.insert(position);
            }
        }
    }

    pub(crate) fn set_activity(&mut self, event: &ActivitySnapshot, metadata: Option<&JsonObject>) {
        let replace = event.replace != Some(false);
        let (id, content) = (event.message_id.clone(), event.content.clone());
        let mut activity = ActivityMessage {
            subagent_run_id: event.subagent_run_id.clone(),
            ..ActivityMessage::new(id, &*event.activity_type, content)
        };
        match self.message_mut(&event.message_id) {
            None => {
                merge(&mut activity.metadata, metadata);
                self.new.push(Message::Activity(activity));
            }
            Some(Message::Activity(known)) => {
                if replace {
                    // The old metadata is kept, the old owner is not.
                    activity.metadata = known.metadata.take();
                    *known = activity;
                }
                merge(&mut known.metadata, metadata);
            }
            Some(other) if replace => {
                merge(&mut activity.metadata, metadata);
                *other = Message::Activity(activity);
                // The message may have been a result, or have had calls.
                self.new = std::mem::take(&mut self.new).into_iter().collect();
                self.last = None;
            }
            Some(_) => {}
        }
    }

    pub(crate) fn amend_activity(
        &mut self,
        event: &ActivityDelta,
        metadata: Option<&JsonObject>,
    ) -> Effect {
        let mut budget = self.patch_budget;
        let Some(Message::Activity(activity)) = self.message_mut(&event.message_id) else {
            return Effect::None;
        };
        // The reference client merges the metadata even if the patch fails.
        merge(&mut activity.metadata, metadata);
        let mut content = Value::Object(std::mem::take(&mut activity.content));
        let is_applied = match patch::apply_within(&mut content, &event.patch, &mut budget) {
            Ok(_) if content.is_object() => {
                activity.activity_type.clone_from(&event.activity_type);
                true
            }
            Ok(changes) => {
                tracing::warn!("skipped an activity delta whose result is not an object");
                changes.undo(&mut content);
                false
            }
            Err(error) => {
                tracing::warn!(%error, "skipped an activity delta that does not apply");
                false
            }
        };
        if let Value::Object(content) = content {
            activity.content = content;
        }
        self.patch_budget = budget;
        match is_applied {
            true => Effect::Whole,
            false if metadata.is_some() => Effect::WithoutPatch,
            false => Effect::None,
        }
    }
}

/// Returns a snapshot that also retracts the activities that it does not have.
pub(crate) fn replaced_messages(messages: Messages) -> Event {
    let mut snapshot = Event::from(MessagesSnapshot::new(messages));
    let scope = (SCOPE_KEY.to_owned(), json!({ COVERED_TYPES: null }));
    snapshot.base_mut().set_metadata(Some([scope].into_iter().collect()));
    snapshot
}

fn activity_scope(event: &MessagesSnapshot) -> ActivityScope<'_> {
    let declared = event.base.metadata().and_then(|metadata| metadata.get(SCOPE_KEY));
    let types = match declared {
        None => return ActivityScope::Inferred,
        Some(Value::Object(declared)) => declared.get(COVERED_TYPES),
        Some(_) => return ActivityScope::OfTypes(Vec::new()),
    };
    match types {
        None => ActivityScope::Inferred,
        Some(Value::Null) => ActivityScope::All,
        Some(Value::Array(types)) => {
            let names: Option<Vec<&str>> = types.iter().map(Value::as_str).collect();
            ActivityScope::OfTypes(names.unwrap_or_default())
        }
        Some(_) => ActivityScope::OfTypes(Vec::new()),
    }
}
