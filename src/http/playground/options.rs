//! Options of the playground: the section `[playground]` of a configuration.

use serde::Deserialize;

/// Options of the playground. The address of a mounted server is unknown, so it serves the page only if `enabled` is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PlaygroundOptions {
    /// True serves the page `/playground`, which chats with every agent and shows its events. Its
    /// files need no key; with authentication, the page asks for a key or token. If not set, it is
    /// served only by a server that listens on a loopback address without authentication.
    pub enabled: Option<bool>,
}

impl PlaygroundOptions {
    /// Serves the page, also with authentication and on other addresses.
    pub fn enabled() -> Self {
        Self { enabled: Some(true) }
    }

    /// Does not serve the page.
    pub fn disabled() -> Self {
        Self { enabled: Some(false) }
    }

    /// `is_private`: the server listens on a loopback address, without authentication.
    pub(crate) fn is_served(&self, is_private: bool) -> bool {
        self.enabled.unwrap_or(is_private)
    }
}
