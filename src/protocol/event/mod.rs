//! The 31 events of AG-UI 1.0, one struct each, and [`Event`], any one of them.
//!
//! The families are in files of their own, as the specification groups them. Every event carries a
//! [`BaseEvent`]; those that can belong to a subagent's work also carry `subagent_run_id`, where
//! `None` means the parent agent.

mod activity;
mod lifecycle;
mod passthrough;
mod reasoning;
mod state;
mod subagent;
mod text_message;
mod tool_call;

pub use activity::{ActivityDelta, ActivitySnapshot};
pub use lifecycle::{RunError, RunFinished, RunOutcome, RunStarted, StepFinished, StepStarted};
pub use passthrough::{Custom, Raw};
pub use reasoning::{
    EncryptedValueSubtype, ReasoningEncryptedValue, ReasoningEnd, ReasoningMessageChunk, ReasoningMessageContent,
    ReasoningMessageEnd, ReasoningMessageStart, ReasoningRole, ReasoningStart,
};
pub use state::{MessagesSnapshot, StateDelta, StateSnapshot};
pub use subagent::{SubagentError, SubagentFinished, SubagentOutcome, SubagentStarted};
pub use text_message::{TextMessageChunk, TextMessageContent, TextMessageEnd, TextMessageRole, TextMessageStart};
pub use tool_call::{ToolCallArgs, ToolCallChunk, ToolCallEnd, ToolCallResult, ToolCallStart, ToolRole};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;

use super::{JsonObject, Metadata, SubagentRunId, is_absent};

/// What every event may carry, whatever its type: a timestamp, the provider's own event, metadata.
///
/// Hardly any event carries any of it, and events are moved a lot, so it takes no more room than a
/// pointer until there is something to keep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BaseEvent(Option<Box<BaseFields>>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BaseFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    #[serde(skip_serializing_if = "is_absent")]
    raw_event: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

impl BaseEvent {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.timestamp().is_none() && self.raw_event().is_none() && self.metadata().is_none()
    }

    /// When the event was created, in milliseconds since the Unix epoch. Nothing is ordered by it.
    pub fn timestamp(&self) -> Option<i64> {
        self.0.as_ref()?.timestamp
    }

    /// The provider's own event that this one was translated from; never `null`.
    pub fn raw_event(&self) -> Option<&Value> {
        self.0.as_ref()?.raw_event.as_ref().filter(|raw| !raw.is_null())
    }

    /// Anything more about the event. It merges into the message or tool call that the event builds.
    pub fn metadata(&self) -> Option<&JsonObject> {
        self.0.as_ref()?.metadata.as_deref()
    }

    /// Sets or removes the timestamp.
    pub fn set_timestamp(&mut self, timestamp: Option<i64>) {
        self.update(|fields| fields.timestamp = timestamp);
    }

    /// Sets or removes the provider's own event.
    pub fn set_raw_event(&mut self, raw_event: Option<Value>) {
        self.update(|fields| fields.raw_event = raw_event);
    }

    /// Sets or removes the metadata.
    pub fn set_metadata(&mut self, metadata: Option<Metadata>) {
        self.update(|fields| fields.metadata = metadata);
    }

    fn update(&mut self, change: impl FnOnce(&mut BaseFields)) {
        let mut fields = self.0.take().unwrap_or_default();
        change(&mut fields);
        self.0 = (*fields != BaseFields::default()).then_some(fields);
    }
}

impl Serialize for BaseEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(fields) => fields.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

impl<'de> Deserialize<'de> for BaseEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BaseFields::deserialize(deserializer)?;
        Ok(Self((fields != BaseFields::default()).then(|| Box::new(fields))))
    }
}

/// Derives everything that is the same for all events: the variant, the type's name, access to the
/// shared fields. The families define the structs.
macro_rules! events {
    ($($variant:ident = $name:literal, $tag:tt $(, $boxed:ident)?;)*) => {
        /// Any event of a run. The large ones are boxed, so that the others are cheap to move.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        #[non_exhaustive]
        pub enum Event {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $variant(events!(@type $variant $($boxed)?)),
            )*
        }

        /// The type of an event, as its `type` member names it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EventType {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl EventType {
            /// All types, in the order of the schema.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl Event {
            /// The event's type.
            pub fn event_type(&self) -> EventType {
                match self { $(Self::$variant(_) => EventType::$variant,)* }
            }

            /// The fields that every event has.
            pub fn base(&self) -> &BaseEvent {
                match self { $(Self::$variant(event) => &event.base,)* }
            }

            /// The fields that every event has, to be changed.
            pub fn base_mut(&mut self) -> &mut BaseEvent {
                match self { $(Self::$variant(event) => &mut event.base,)* }
            }

            /// Which subagent invocation the event is attributed to; `None` is the parent agent or the run itself.
            /// A `SUBAGENT_*` event names an invocation and is not attributed to it.
            pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
                match self { $(Self::$variant(event) => events!(@tag event $tag),)* }
            }
        }

        $(
            impl From<$variant> for Event {
                fn from(event: $variant) -> Self {
                    Self::$variant(events!(@wrap event $($boxed)?))
                }
            }
        )*
    };
    (@type $variant:ident) => { $variant };
    (@type $variant:ident boxed) => { Box<$variant> };
    (@wrap $event:ident) => { $event };
    (@wrap $event:ident boxed) => { Box::new($event) };
    (@tag $event:ident attributable) => { $event.subagent_run_id.as_ref() };
    (@tag $event:ident run_scoped) => {{ let _ = $event; None }};
}

events! {
    TextMessageStart = "TEXT_MESSAGE_START", attributable;
    TextMessageContent = "TEXT_MESSAGE_CONTENT", attributable;
    TextMessageEnd = "TEXT_MESSAGE_END", attributable;
    TextMessageChunk = "TEXT_MESSAGE_CHUNK", attributable;
    ToolCallStart = "TOOL_CALL_START", attributable;
    ToolCallArgs = "TOOL_CALL_ARGS", attributable;
    ToolCallEnd = "TOOL_CALL_END", attributable;
    ToolCallChunk = "TOOL_CALL_CHUNK", attributable;
    ToolCallResult = "TOOL_CALL_RESULT", attributable;
    StateSnapshot = "STATE_SNAPSHOT", attributable;
    StateDelta = "STATE_DELTA", attributable;
    MessagesSnapshot = "MESSAGES_SNAPSHOT", run_scoped;
    ActivitySnapshot = "ACTIVITY_SNAPSHOT", attributable, boxed;
    ActivityDelta = "ACTIVITY_DELTA", attributable;
    Raw = "RAW", attributable, boxed;
    Custom = "CUSTOM", attributable, boxed;
    RunStarted = "RUN_STARTED", run_scoped;
    RunFinished = "RUN_FINISHED", run_scoped, boxed;
    RunError = "RUN_ERROR", run_scoped;
    StepStarted = "STEP_STARTED", attributable;
    StepFinished = "STEP_FINISHED", attributable;
    ReasoningStart = "REASONING_START", attributable;
    ReasoningMessageStart = "REASONING_MESSAGE_START", attributable;
    ReasoningMessageContent = "REASONING_MESSAGE_CONTENT", attributable;
    ReasoningMessageEnd = "REASONING_MESSAGE_END", attributable;
    ReasoningMessageChunk = "REASONING_MESSAGE_CHUNK", attributable;
    ReasoningEnd = "REASONING_END", attributable;
    ReasoningEncryptedValue = "REASONING_ENCRYPTED_VALUE", attributable;
    SubagentStarted = "SUBAGENT_STARTED", run_scoped, boxed;
    SubagentFinished = "SUBAGENT_FINISHED", run_scoped, boxed;
    SubagentError = "SUBAGENT_ERROR", run_scoped;
}

impl Event {
    /// Attributes the event to a subagent invocation. Run-scoped and `SUBAGENT_*` events stay as they are.
    pub fn attributed_to(mut self, owner: Option<SubagentRunId>) -> Self {
        macro_rules! set {
            ($($variant:ident)*) => {
                match &mut self {
                    $(Self::$variant(event) => event.subagent_run_id = owner,)*
                    Self::MessagesSnapshot(_) | Self::RunStarted(_) | Self::RunFinished(_) | Self::RunError(_)
                    | Self::SubagentStarted(_) | Self::SubagentFinished(_) | Self::SubagentError(_) => {}
                }
            };
        }
        set! {
            TextMessageStart TextMessageContent TextMessageEnd TextMessageChunk
            ToolCallStart ToolCallArgs ToolCallEnd ToolCallChunk ToolCallResult
            StateSnapshot StateDelta ActivitySnapshot ActivityDelta Raw Custom StepStarted StepFinished
            ReasoningStart ReasoningMessageStart ReasoningMessageContent ReasoningMessageEnd
            ReasoningMessageChunk ReasoningEnd ReasoningEncryptedValue
        }
        self
    }
}

/// An event struct: its own fields, then attribution where the event has it, then the base fields.
macro_rules! event {
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        event!(@struct $(#[$doc])* $name { $($fields)*
            /// The subagent invocation this belongs to; `None` is the parent agent.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            subagent_run_id: Option<crate::protocol::SubagentRunId>,
        });
    };
    (run_scoped $(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        event!(@struct $(#[$doc])* $name { $($fields)* });
    };
    (@struct $(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// What every event may carry.
            #[serde(flatten)]
            pub base: crate::protocol::event::BaseEvent,
        }
    };
}
use event;

#[cfg(test)]
mod tests;
