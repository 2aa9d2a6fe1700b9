//! Events with data that the protocol does not describe.

use serde_json::Value;

use super::base::{BaseEvent, event};

event! {
    /// A provider's event, unchanged.
    Raw {
        /// The provider's event, any JSON.
        event: Value,
        /// The provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    }
}

event! {
    /// An application's own event. Names should have the prefix of a vendor.
    Custom {
        /// The name.
        name: String,
        /// Any JSON, also `null`.
        value: Value,
    }
}

impl Raw {
    /// Creates the event.
    pub fn new(event: impl Into<Value>) -> Self {
        Self { event: event.into(), source: None, subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl Custom {
    /// Creates the event.
    pub fn new(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { name: name.into(), value: value.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}
