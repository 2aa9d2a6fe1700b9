//! Connections, request bodies, and refused requests.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

use super::labels::Counters;

/// The reason for which a connection ended with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    HeadTimeout,
    HeadTooLarge,
    Stalled,
    /// The peer closed it, sent something that is not HTTP, or is unreachable.
    Other,
}

#[derive(Default)]
pub(crate) struct HttpMetrics {
    refusals: Counters<2>,
    broken_connections: Counters<1>,
    pub(crate) connections: Gauge,
    pub(crate) slow_writes: Counter,
    // Set when the metrics are requested.
    pub(crate) body_bytes_in_flight: Gauge,
    pub(crate) run_memory_bytes: Gauge,
}

impl HttpMetrics {
    /// `code` is one of those of `http::error`.
    pub(crate) fn refused(&self, status: u16, code: &'static str) {
        self.refusals.get_or_create(&[("status", status.to_string().into()), ("code", code.into())]).inc();
    }

    pub(crate) fn connection_broke(&self, end: ConnectionEnd) {
        let reason = match end {
            ConnectionEnd::HeadTimeout => "head_timeout",
            ConnectionEnd::HeadTooLarge => "head_too_large",
            ConnectionEnd::Stalled => "stalled",
            ConnectionEnd::Other => "other",
        };
        self.broken_connections.get_or_create(&[("reason", reason.into())]).inc();
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("http_refusals", "Refused requests by status and error code", self.refusals.clone());
        let text = "Connections that ended with an error: head_timeout, head_too_large, stalled (the client did not read), other";
        registry.register("http_broken_connections", text, self.broken_connections.clone());
        registry.register("http_connections", "Open connections", self.connections.clone());
        let text = "Writes that waited at least a second for a slow client";
        registry.register("http_slow_writes", text, self.slow_writes.clone());
        let text = "Memory of the budget for request bodies that is in use";
        registry.register("http_body_bytes_in_flight", text, self.body_bytes_in_flight.clone());
        let text = "Memory of the budget for requests and threads of runs that is in use";
        registry.register("run_memory_bytes", text, self.run_memory_bytes.clone());
    }
}
