//! The two ways to send what the protocol does not describe.

use serde_json::Value;

use super::{BaseEvent, event};

event! {
    /// A provider's own event, untranslated.
    Raw {
        /// The provider's event, any JSON.
        event: Value,
        /// Which provider it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    }
}

event! {
    /// An application's own event. Names should carry a vendor's prefix.
    Custom {
        /// What it is.
        name: String,
        /// What it says, any JSON, also `null`.
        value: Value,
    }
}

impl Raw {
    /// Passes a provider's event on.
    pub fn new(event: impl Into<Value>) -> Self {
        Self { event: event.into(), source: None, subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl Custom {
    /// An event of the application's own.
    pub fn new(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { name: name.into(), value: value.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}
