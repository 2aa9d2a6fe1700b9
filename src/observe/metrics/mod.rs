//! What a server counts: runs, model calls, tool calls, store operations and connections, for `GET /metrics`.
//!
//! Each server has its own `Metrics`, which is passed to the places that count, so two servers in one process do not
//! count together. Everything is counted once for a run, a call or a batch, never once for a token; a follower counts each
//! batch of events that it takes, and while a slow agent runs, a batch has one event.
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

pub(crate) use http::ConnectionEnd;
pub(crate) use labels::OTHER;
pub(crate) use models::{ModelCall, ModelCallOutcome};
pub use options::MetricsOptions;
pub use prices::{ModelPrice, Prices};
pub(crate) use runs::CountedRunEnd;
pub(crate) use text::TextFormat;
pub(crate) use tools::ToolOutcome;

/// The metrics of one server. Clones count together.
#[derive(Clone, Default)]
pub(crate) struct Metrics(Arc<Areas>);

#[derive(Default)]
pub(crate) struct Areas {
    pub(crate) runs: runs::RunMetrics,
    pub(crate) models: models::ModelMetrics,
    pub(crate) tools: tools::ToolMetrics,
    pub(crate) store: store::StoreMetrics,
    pub(crate) http: http::HttpMetrics,
    pub(crate) server: server::ServerMetrics,
    pub(crate) prices: Prices,
}

/// Counts one more in a gauge until it is dropped.
#[derive(Debug)]
pub(crate) struct GaugeCount(Gauge);

impl GaugeCount {
    pub(crate) fn new(gauge: &Gauge) -> Self {
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
    pub(crate) fn new(prices: Prices) -> Self {
        Self(Arc::new(Areas { prices, ..Areas::default() }))
    }

    /// Returns all metrics as text.
    pub(crate) fn to_text(&self, format: TextFormat) -> String {
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
