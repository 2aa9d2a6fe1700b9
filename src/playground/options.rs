//! Options of the playground: the section `[playground]` of a configuration.

use serde::Deserialize;

/// Options of the playground.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PlaygroundOptions {
    /// Serves the page. `None`: only if the server listens on a loopback address, without authentication. The address of a
    /// mounted server is unknown, so `None` does not serve it there.
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
