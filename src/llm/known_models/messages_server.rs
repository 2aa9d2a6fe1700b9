//! The differences between servers with Anthropic's Messages API.

use indexmap::IndexMap;
use serde::Deserialize;

/// A server with the Messages API that is not Anthropic's.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::llm) struct MessagesServer {
    /// Its name, which marks the reasoning that it signed; empty for servers that are not recognised.
    #[serde(skip)]
    pub(in crate::llm) name: String,
    pub(super) domains: Vec<String>,
    /// `true` if thinking returns also without a signature.
    pub(in crate::llm) unsigned_thinking: bool,
}

/// The tables of the file.
pub(super) type MessagesServers = IndexMap<String, MessagesServer>;
