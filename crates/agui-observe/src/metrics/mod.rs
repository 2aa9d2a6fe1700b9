//! The metrics of a server: runs, model calls, tool calls, store operations and connections, for
//! `GET /metrics`.
//!
//! Each server has its own `Metrics`, so two servers in one process do not count together. A count
//! happens once for a run, a call or a batch, never for each token. A follower counts each batch of
//! events that it takes; the batches of a slow agent have one event.
//!
//! To add a metric, add a field to its area, and a row to the table in `docs/operations.md`.

mod area;
mod http;
mod labels;
mod models;
mod options;
mod prices;
mod runs;
mod server;
mod store;
mod text;
mod tools;

use std::{fmt, ops::Deref, sync::Arc};

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

pub use http::ConnectionEnd;
pub use labels::OTHER;
pub use models::{ModelCall, ModelCallOutcome};
pub use options::MetricsOptions;
pub use prices::{ModelPrice, Prices};
pub use runs::CountedRunEnd;
pub use text::TextFormat;
pub use tools::ToolOutcome;

/// The metrics of one server. Clones count together.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Areas>);

#[derive(Default)]
pub struct Areas {
    pub runs: runs::RunMetrics,
    pub models: models::ModelMetrics,
    pub tools: tools::ToolMetrics,
    pub store: store::StoreMetrics,
    pub http: http::HttpMetrics,
    pub server: server::ServerMetrics,
    pub prices: Prices,
}

/// Counts one more in a gauge until it is dropped.
#[derive(Debug)]
pub struct GaugeCount(Gauge);

impl GaugeCount {
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeCount {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub fn new(prices: Prices) -> Self {
        Self(Arc::new(Areas { prices, ..Areas::default() }))
    }

    /// Returns all metrics as text.
    pub fn to_text(&self, format: TextFormat) -> String {
        let mut registry = Registry::with_prefix("agui");
        self.runs.register(&mut registry);
        self.models.register(&mut registry);
        self.tools.register(&mut registry);
        self.store.register(&mut registry);
        self.http.register(&mut registry);
        self.server.register(&mut registry);
        text::encode(&registry, format)
    }
}

impl Deref for Metrics {
    type Target = Areas;

    fn deref(&self) -> &Areas {
        &self.0
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
