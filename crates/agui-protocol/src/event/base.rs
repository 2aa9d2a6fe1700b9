//! The fields that every event has, and the macro that adds them to the event structs.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{JsonObject, Metadata, is_absent};

/// The optional fields of every event. Boxed, because few events have any of them and events are moved often.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct BaseEvent(Option<Box<BaseFields>>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BaseFields {
    /// The time of creation, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    /// The provider's event from which this one was made.
    #[serde(skip_serializing_if = "is_absent")]
    raw_event: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

impl BaseEvent {
    /// Returns whether no field has a value.
    pub fn is_empty(&self) -> bool {
        self.timestamp().is_none() && self.raw_event().is_none() && self.metadata().is_none()
    }

    /// Returns the time of creation, in milliseconds since the Unix epoch. Events are not ordered by it.
    pub fn timestamp(&self) -> Option<i64> {
        self.0.as_ref()?.timestamp
    }

    /// Returns the provider's event from which this one was made; never `null`.
    pub fn raw_event(&self) -> Option<&Value> {
        self.0.as_ref()?.raw_event.as_ref().filter(|raw| !raw.is_null())
    }

    /// Returns the metadata. Clients merge it into the message or tool call that the event builds.
    pub fn metadata(&self) -> Option<&JsonObject> {
        self.0.as_ref()?.metadata.as_deref()
    }

    /// Sets or removes the timestamp.
    pub fn set_timestamp(&mut self, timestamp: Option<i64>) {
        self.update(|fields| fields.timestamp = timestamp);
    }

    /// Sets or removes the provider's event.
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

impl<'de> Deserialize<'de> for BaseEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BaseFields::deserialize(deserializer)?;
        Ok(Self((fields != BaseFields::default()).then(|| Box::new(fields))))
    }
}

/// Defines an event struct as [`wire_struct!`](crate::wire_struct) does: with the attribution to a subagent unless
/// it is `run_scoped`, and with the base fields.
macro_rules! event {
    (@define [$($new:ident)?] [$($attribution:tt)*] $(#[$meta:meta])* $name:ident { $($required:tt)* }
        $(open { $($open:tt)* })? $(optional { $($optional:tt)* })? $(defaulted { $($defaulted:tt)* })?
    ) => {
        $crate::wire_struct::wire_struct! {
            $($new)? $(#[$meta])* $name { $($required)* }
            $(open { $($open)* })?
            optional { $($($optional)*)? $($attribution)* }
            defaulted {
                $($($defaulted)*)?
                /// Timestamp, provider's event and metadata.
                #[serde(flatten)]
                #[schema(value_type = crate::event::base::BaseFields, inline)]
                base: crate::event::BaseEvent,
            }
        }
    };
    (run_scoped own_new $($event:tt)*) => { event!(@define [own_new] [] $($event)*); };
    (run_scoped $($event:tt)*) => { event!(@define [] [] $($event)*); };
    (without_new $($event:tt)*) => { event!(@attributable [without_new] $($event)*); };
    (own_new $($event:tt)*) => { event!(@attributable [own_new] $($event)*); };
    (@attributable [$($new:ident)?] $($event:tt)*) => {
        event!(@define [$($new)?] [
            /// The subagent invocation that the event belongs to. Absent for the parent agent.
            subagent_run_id: crate::SubagentRunId,
        ] $($event)*);
    };
    ($($event:tt)*) => { event!(@attributable [] $($event)*); };
}
pub(super) use event;
