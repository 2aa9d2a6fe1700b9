//! The options of `GET /metrics`.

use std::net::SocketAddr;

use serde::Deserialize;

/// Metrics for Prometheus: the section `[metrics]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MetricsOptions {
    /// The address and port on which `GET /metrics` is served, for Prometheus, and nothing else.
    /// Loopback addresses need no key. Other addresses need authentication (`[auth]`), and the
    /// scraper then sends a key or a token as every client does. If not set, there is no such
    /// listener.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = agui_base::units::SOCKET_ADDRESS)))]
    pub listen: Option<SocketAddr>,
    /// True serves `GET /metrics` beside the other routes, too: to every key or token, and without
    /// authentication to this machine only. A proxy on this machine counts as this machine.
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
