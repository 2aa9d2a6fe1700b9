//! Options of the named-event endpoints: the section `[named_events]` of a configuration.

use serde::Deserialize;
use smart_default::SmartDefault;

/// Options of the named-event endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NamedEventOptions {
    /// True serves the endpoints. False removes them.
    #[default(true)]
    pub enabled: bool,
    /// The agent of `/agent/chat/stream`. Default: the default agent.
    pub chat: Option<String>,
    /// The agent of `/agent/agent/stream`. Default: the default agent.
    pub agent: Option<String>,
}
