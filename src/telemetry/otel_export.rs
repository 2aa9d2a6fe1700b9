//! The export of traces and metrics by OTLP over HTTP, as the environment variables of OpenTelemetry say. Without the
//! variable of an endpoint, nothing is started.
//!
//! A thread of the SDK collects spans in a queue and sends them in batches. A task sends the metrics, with the values that
//! `GET /metrics` shows, once in an interval. Runs wait for neither: a full queue loses spans. Requests are made by this
//! crate's HTTP client on the server's runtime.

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing_subscriber::{Layer as _, filter::Targets};

use super::{
    logs::{self, InvalidFilter, LogOptions},
    otel_client::CollectorClient,
    otel_metrics::{MetricExport, RunningMetricExport},
    otel_variables::{self, InvalidVariable, Signal},
    spans::TRACE_TARGET,
};
use crate::upstream::ClientError;

/// The time that what is left gets at shutdown: spans and metrics at the same time.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A fault of the environment's variables, or of `[log]`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    #[error(transparent)]
    Variable(#[from] InvalidVariable),
    #[error("traces cannot be exported: {0}")]
    Traces(#[from] ExporterBuildError),
    #[error("traces and metrics cannot be exported: {0}")]
    Client(#[from] ClientError),
}

pub(crate) struct Export {
    traces: Option<SdkTracerProvider>,
    metrics: Option<MetricExport>,
    running_metrics: Option<RunningMetricExport>,
}

/// Starts logging, and the export of traces if the environment asks for it. Has to be called in a Tokio runtime.
pub(crate) fn start(log: &LogOptions) -> Result<Export, StartError> {
    let resource = otel_variables::resource();
    let metrics = match Signal::Metrics.endpoint()? {
        Some(url) => Some(MetricExport::new(CollectorClient::new(Signal::Metrics)?, url, &resource)?),
        None => None,
    };
    let traces = match Signal::Traces.endpoint()? {
        // The exporter of the SDK reads the URL itself.
        Some(_) => Some(start_traces(log, resource)?),
        None => {
            logs::init(log)?;
            None
        }
    };
    Ok(Export { traces, metrics, running_metrics: None })
}

fn start_traces(log: &LogOptions, resource: Resource) -> Result<SdkTracerProvider, StartError> {
    let client = CollectorClient::new(Signal::Traces)?;
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build()?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(env!("CARGO_PKG_NAME")))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(Targets::new().with_target(TRACE_TARGET, tracing::Level::TRACE));
    logs::init_with(log, Some(layer.boxed()))?;
    Ok(provider)
}

impl Export {
    /// Begins to export metrics if the environment asks for it. `read_metrics` returns the values of the moment in the text
    /// format of OpenMetrics. Has to be called in a Tokio runtime.
    pub(crate) fn start_metrics(&mut self, read_metrics: impl Fn() -> String + Send + Sync + 'static) {
        self.running_metrics = self.metrics.take().map(|export| export.start(read_metrics));
    }

    /// Sends the metrics of the moment and the spans that are left, for [`SHUTDOWN_TIMEOUT`] at most.
    pub(crate) async fn shut_down(self) {
        let Self { traces, running_metrics, .. } = self;
        let traces = async {
            let Some(provider) = traces else { return };
            let stopped = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT)).await;
            if !matches!(stopped, Ok(Ok(()))) {
                tracing::warn!("the last spans were not sent to the collector");
            }
        };
        let metrics = async {
            let Some(export) = running_metrics else { return };
            if !export.finish(SHUTDOWN_TIMEOUT).await {
                tracing::warn!("the last metrics were not sent to the collector");
            }
        };
        tokio::join!(traces, metrics);
    }
}
