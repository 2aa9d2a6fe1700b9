//! Connections, request bodies, and refused requests.

use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

use super::{area::metrics, labels::Counters};

/// The reason for which a connection ended with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    HeadTimeout,
    HeadTooLarge,
    Stalled,
    /// The peer closed it, sent something that is not HTTP, or is unreachable.
    Other,
}

metrics! { HttpMetrics {
    /// Refused requests by status and error code
    refusals: Counters<2> = "http_refusals",
    /// Connections that ended with an error: head_timeout, head_too_large, stalled (the client did not read), other
    broken_connections: Counters<1> = "http_broken_connections",
    /// Open connections
    pub connections: Gauge = "http_connections",
    /// Writes that waited at least a second for a slow client
    pub slow_writes: Counter = "http_slow_writes",
    // These are set when the metrics are requested.
    /// Memory of the budget for request bodies that is in use
    pub body_bytes_in_flight: Gauge = "http_body_bytes_in_flight",
    /// Memory of the budget for requests and threads of runs that is in use
    pub run_memory_bytes: Gauge = "run_memory_bytes",
} }

impl HttpMetrics {
    /// `code` is a code of `http::error`.
    pub fn refused(&self, status: u16, code: &'static str) {
        self.refusals
            .get_or_create(&[("status", status.to_string().into()), ("code", code.into())])
            .inc();
    }

    pub fn connection_broke(&self, end: ConnectionEnd) {
        let reason = match end {
            ConnectionEnd::HeadTimeout => "head_timeout",
            ConnectionEnd::HeadTooLarge => "head_too_large",
            ConnectionEnd::Stalled => "stalled",
            ConnectionEnd::Other => "other",
        };
        self.broken_connections.get_or_create(&[("reason", reason.into())]).inc();
    }
}
