//! The options of `GET /metrics`.

use std::net::SocketAddr;

use serde::Deserialize;

/// The section `[metrics]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MetricsOptions {
    /// The address and port on which `GET /metrics` alone is served. Loopback addresses need no key; on others the server
    /// authenticates as for all routes. `None`: there is no such listener.
    pub listen: Option<SocketAddr>,
    /// Serves `GET /metrics` beside the other routes, too: to every authenticated principal, and without authentication
    /// to processes of the server's own machine.
    pub main_listener: bool,
}

impl MetricsOptions {
    /// Serves `GET /metrics` beside the other routes.
    pub fn on_main_listener() -> Self {
        Self { main_listener: true, ..Self::default() }
    }

    /// Serves `GET /metrics` on an address of its own.
    pub fn on(address: SocketAddr) -> Self {
        Self { listen: Some(address), ..Self::default() }
    }
}
