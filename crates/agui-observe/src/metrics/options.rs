//! The options of `GET /metrics`.

use std::net::SocketAddr;

use serde::Deserialize;

/// Metrics for Prometheus: the section `[metrics]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MetricsOptions {
    /// The address and port on which `GET /metrics` is served, and nothing else. Loopback addresses need no key; others
    /// need authentication (`[auth]`). If not set, there is no such listener.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = agui_base::units::SOCKET_ADDRESS)))]
    pub listen: Option<SocketAddr>,
    /// True serves `GET /metrics` beside the other routes, too: to every authenticated client, and without
    /// authentication to this machine only.
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
