//! The export of traces by OTLP over HTTP, as the environment variables of OpenTelemetry say. Without the variable of an
//! endpoint, nothing is started.
//!
//! A thread of the SDK collects spans in a queue and sends them in batches. Runs never wait for it: a full queue loses
//! spans. Requests are made by this crate's HTTP client on the server's runtime.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{Request, Response};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::{Layer as _, filter::Targets};

use super::{
    logs::{self, InvalidFilter, LogOptions},
    spans::TRACE_TARGET,
};
use crate::upstream::{self, ClientError, ClientOptions};

/// The time that the spans which are left get at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The response of a collector says what it has refused; more is not read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
const SERVICE_NAME: &str = "service.name";

/// A fault of the environment's variables, or of `[log]`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    #[error("{variable}={value} is not supported: use {supported}")]
    Unsupported { variable: &'static str, value: String, supported: &'static str },
    #[error("traces cannot be exported: {0}")]
    Exporter(#[from] ExporterBuildError),
    #[error("traces cannot be exported: {0}")]
    Client(#[from] ClientError),
}

pub(crate) struct TraceExport(Option<SdkTracerProvider>);

/// Starts logging, and the export of traces if the environment asks for it. Has to be called in a Tokio runtime.
pub(crate) fn start(log: &LogOptions) -> Result<TraceExport, StartError> {
    if !is_wanted()? {
        logs::init(log)?;
        return Ok(TraceExport(None));
    }
    let timeout = [variable("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"), variable("OTEL_EXPORTER_OTLP_TIMEOUT")];
    let timeout = timeout.into_iter().flatten().find_map(|text| text.parse().ok()).map(Duration::from_millis);
    let client = CollectorClient {
        client: upstream::client(&ClientOptions::default())?,
        runtime: Handle::current(),
        timeout: timeout.unwrap_or(REQUEST_TIMEOUT),
        is_failing: AtomicBool::new(false),
    };
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build()?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(env!("CARGO_PKG_NAME")))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(Targets::new().with_target(TRACE_TARGET, tracing::Level::TRACE));
    logs::init_with(log, Some(layer.boxed()))?;
    Ok(TraceExport(Some(provider)))
}

impl TraceExport {
    /// Sends the spans that are left, for [`SHUTDOWN_TIMEOUT`] at most.
    pub(crate) async fn shut_down(self) {
        let Some(provider) = self.0 else { return };
        let stopped = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT)).await;
        if !matches!(stopped, Ok(Ok(()))) {
            tracing::warn!("the last spans were not sent to the collector");
        }
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_wanted() -> Result<bool, StartError> {
    let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
    if is_disabled || endpoint.is_none() {
        return Ok(false);
    }
    match variable("OTEL_TRACES_EXPORTER").as_deref() {
        None | Some("otlp") => {}
        Some("none") => return Ok(false),
        Some(other) => return Err(unsupported("OTEL_TRACES_EXPORTER", other, "otlp or none")),
    }
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match variable(name).as_deref() {
            None => {}
            Some("http/protobuf") => break,
            Some(other) => return Err(unsupported(name, other, "http/protobuf")),
        }
    }
    Ok(true)
}

fn unsupported(variable: &'static str, value: &str, supported: &'static str) -> StartError {
    StartError::Unsupported { variable, value: value.to_owned(), supported }
}

/// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, with the defaults of this program.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let has_name = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|list| {
            list.split(',').any(|entry| entry.split('=').next().is_some_and(|key| key.trim() == SERVICE_NAME))
        });
    let detected = Resource::builder().with_attribute(version);
    if has_name { detected.build() } else { detected.with_service_name(env!("CARGO_PKG_NAME")).build() }
}

/// Makes the SDK's requests on the server's runtime: the SDK calls it on a thread without one.
#[derive(Debug)]
struct CollectorClient {
    client: reqwest::Client,
    runtime: Handle,
    timeout: Duration,
    is_failing: AtomicBool,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut request = reqwest::Request::try_from(request)?;
        *request.timeout_mut() = Some(self.timeout);
        let sent = match self.runtime.spawn(exchange(self.client.clone(), request)).await {
            Ok(sent) => sent.map_err(HttpError::from),
            // The process is ending.
            Err(error) => return Err(error.into()),
        };
        match &sent {
            Ok(response) if response.status().is_success() => self.note_success(),
            Ok(response) => self.note_failure(&response.status().to_string()),
            Err(error) => self.note_failure(&describe(&**error)),
        }
        sent
    }
}

impl CollectorClient {
    /// Logs only the first of several failures: each batch fails while the collector is down.
    fn note_failure(&self, reason: &str) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                reason,
                "traces cannot be sent to the collector; spans that do not fit into the queue are lost"
            );
        }
    }

    fn note_success(&self) {
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("traces are sent to the collector again");
        }
    }
}

/// The URL may contain a key, so errors are without it.
async fn exchange(client: reqwest::Client, request: reqwest::Request) -> Result<Response<Bytes>, reqwest::Error> {
    let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = response.headers().clone();
    let (mut body, mut pieces) = (BytesMut::new(), response.bytes_stream());
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.map_err(reqwest::Error::without_url)?);
        if body.len() > MAX_RESPONSE_BYTES {
            body.truncate(MAX_RESPONSE_BYTES);
            break;
        }
    }
    *answer.body_mut() = body.freeze();
    Ok(answer)
}

fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
