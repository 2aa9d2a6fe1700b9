//! The task that sends the metrics to a collector: once in an interval, and at the end.

use std::{
    io::{self, Write as _},
    time::{Duration, SystemTime},
};

use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Method, header};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::InstrumentationScope,
    metrics::v1::{ResourceMetrics, ScopeMetrics},
    resource::v1::Resource,
};
use prost::Message as _;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    openmetrics::{self, Times},
    otel_client::CollectorClient,
    otel_variables::{self, InvalidVariable, Signal},
};

/// An export that has not begun.
pub(super) struct MetricExport {
    client: CollectorClient,
    url: reqwest::Url,
    headers: HeaderMap,
    is_compressed: bool,
    interval: Duration,
    resource: Resource,
}

/// An export that goes on until [`finish`](Self::finish) is called.
pub(super) struct RunningMetricExport {
    stop: oneshot::Sender<()>,
    /// True if the last request succeeded.
    task: JoinHandle<bool>,
}

impl MetricExport {
    /// Reads the other variables of the environment.
    pub(super) fn new(
        client: CollectorClient,
        url: reqwest::Url,
        resource: &opentelemetry_sdk::Resource,
    ) -> Result<Self, InvalidVariable> {
        let mut headers = Signal::Metrics.headers()?;
        let is_compressed = Signal::Metrics.is_compressed()?;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if is_compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let interval = otel_variables::metric_interval();
        Ok(Self { client, url, headers, is_compressed, interval, resource: resource.into() })
    }

    /// Has to be called in a Tokio runtime.
    pub(super) fn start(self, read_metrics: impl Fn() -> String + Send + Sync + 'static) -> RunningMetricExport {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(self.run(read_metrics, stopped));
        RunningMetricExport { stop, task }
    }

    async fn run(self, read_metrics: impl Fn() -> String + Send + Sync, stopped: oneshot::Receiver<()>) -> bool {
        let begun = SystemTime::now();
        let mut ticks = interval(self.interval);
        // After a slow request, the next one waits for its time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // The first tick comes at once.
        ticks.tick().await;
        let until_stopped = async {
            loop {
                ticks.tick().await;
                self.send(&read_metrics(), begun).await;
            }
        };
        // A request that is under way is given up: the last one has all it would have said.
        tokio::select! {
            () = until_stopped => {}
            _ = stopped => {}
        }
        self.send(&read_metrics(), begun).await
    }

    /// Returns true if the collector took the metrics.
    async fn send(&self, text: &str, begun: SystemTime) -> bool {
        let scope = InstrumentationScope {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let metrics = openmetrics::to_otlp(text, Times { begun, now: SystemTime::now() });
        let scope_metrics = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
        let resource_metrics = ResourceMetrics {
            resource: Some(self.resource.clone()),
            scope_metrics: vec![scope_metrics],
            ..ResourceMetrics::default()
        };
        let message = ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec();
        let Ok(body) = (if self.is_compressed { compressed(&message) } else { Ok(message) }) else { return false };
        let mut request = reqwest::Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(body.into());
        self.client.send(request).await.is_ok_and(|response| response.status().is_success())
    }
}

impl RunningMetricExport {
    /// Sends the metrics of the moment, and ends. Returns true if they were sent in time.
    pub(super) async fn finish(self, limit: Duration) -> bool {
        let Self { stop, mut task } = self;
        // The task ends only after this signal.
        let _ = stop.send(());
        let is_sent = matches!(timeout(limit, &mut task).await, Ok(Ok(true)));
        task.abort();
        is_sent
    }
}

fn compressed(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(message)?;
    encoder.finish()
}
