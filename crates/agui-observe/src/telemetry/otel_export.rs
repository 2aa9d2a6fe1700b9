//! The export of traces by OTLP over HTTP, configured by the environment variables of
//! OpenTelemetry. Without the variable of an endpoint, nothing is started.
//!
//! A thread of the SDK collects spans in a queue and sends them in batches. Runs do not wait for it: a full queue loses
//! spans. Requests are made by this crate's HTTP client on the server's runtime.

use std::{error::Error, fmt, time::Duration};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::{Layer as _, filter::Targets};

use super::{
    logs::{self, LogOptions},
    otel_client::CollectorClient,
    otel_variables,
    spans::TRACE_TARGET,
};

/// The time limit of sending the remaining spans at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub struct TraceExport(Option<SdkTracerProvider>);

/// Starts logging, and the export of traces if the environment asks for it. Has to be called in a Tokio runtime.
///
/// # Errors
/// A fault of the environment variables, or of `[log]`.
pub fn start(log: &LogOptions) -> Result<TraceExport, Box<dyn Error>> {
    if otel_variables::is_enabled()? {
        return Ok(TraceExport(Some(start_traces(log)?)));
    }
    logs::init(log)?;
    Ok(TraceExport(None))
}

fn start_traces(log: &LogOptions) -> Result<SdkTracerProvider, Box<dyn Error>> {
    let failed = |error: &dyn fmt::Display| format!("traces cannot be exported: {error}");
    let (client, resource) =
        (CollectorClient::new().map_err(|error| failed(&error))?, otel_variables::resource());
    // The exporter reads endpoint, headers and compression from the environment itself.
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| failed(&error))?;
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(agui_base::SERVER_NAME))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(Targets::new().with_target(TRACE_TARGET, tracing::Level::TRACE));
    logs::init_with(log, Some(layer.boxed()))?;
    Ok(provider)
}

impl TraceExport {
    /// Sends the remaining spans, within [`SHUTDOWN_TIMEOUT`].
    pub async fn shut_down(self) {
        let Some(provider) = self.0 else { return };
        let stopped =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT))
                .await;
        if !matches!(stopped, Ok(Ok(()))) {
            tracing::warn!("the last spans were not sent to the collector");
        }
    }
}
