//! Operations on the store.

use std::time::Instant;

use prometheus_client::metrics::{gauge::Gauge, histogram::Histogram};

use super::{
    area::metrics,
    labels::{Counters, Histograms},
};

/// In seconds.
const LATENCY_BUCKETS: [f64; 12] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
/// In runs and in events.
const BATCH_BUCKETS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 1_000.0, 10_000.0];

metrics! { StoreMetrics {
    /// Duration of operations on the store, with the time in its queue
    latency: Histograms<1> = "store_operation_duration" in seconds LATENCY_BUCKETS,
    /// Failed operations on the store; kind: unavailable (may succeed later) or failed
    errors: Counters<2> = "store_errors",
    /// Operations on the store that are queued or running
    queue_depth: Gauge = "store_queue_depth",
    /// Runs whose events are written to their logs together
    batch_runs: Histogram = "store_batch_runs" in buckets BATCH_BUCKETS,
    /// Events that are written to logs together
    batch_events: Histogram = "store_batch_events" in buckets BATCH_BUCKETS,
    /// Threads and logs of runs that retention removed
    removed: Counters<1> = "retention_removed",
} }

/// A running operation. Counted when it is dropped.
struct StoreOperation<'m> {
    metrics: &'m StoreMetrics,
    operation: &'static str,
    begun: Instant,
}

impl Drop for StoreOperation<'_> {
    fn drop(&mut self) {
        self.metrics.queue_depth.dec();
        let labels = [("operation", self.operation.into())];
        self.metrics.latency.get_or_create(&labels).observe(self.begun.elapsed().as_secs_f64());
    }
}

impl StoreMetrics {
    /// Begins an operation, which ends when the returned value is dropped.
    pub fn begin(&self, operation: &'static str) -> impl Sized {
        self.queue_depth.inc();
        StoreOperation { metrics: self, operation, begun: Instant::now() }
    }

    /// `kind` is `unavailable` or `failed`.
    pub fn failed(&self, operation: &'static str, kind: &'static str) {
        self.errors.get_or_create(&[("operation", operation.into()), ("kind", kind.into())]).inc();
    }

    pub fn appended(&self, runs: usize, events: usize) {
        self.batch_runs.observe(runs as f64);
        self.batch_events.observe(events as f64);
    }

    pub fn removed(&self, threads: u64, logs: u64) {
        for (kind, count) in [("threads", threads), ("logs", logs)] {
            self.removed.get_or_create(&[("kind", kind.into())]).inc_by(count);
        }
    }
}
