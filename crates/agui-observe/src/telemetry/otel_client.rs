//! The HTTP client for requests to a collector. It logs when a collector begins to fail, and when it accepts data again.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use super::otel_variables;
use agui_base::{
    text::error_chain,
    upstream,
    upstream::{ClientError, ClientOptions, body::read_start},
};

/// The bytes of a collector's response that are read: it says what it has refused.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Sends spans on the server's runtime: the SDK calls it on a thread without one.
#[derive(Debug)]
pub(super) struct CollectorClient {
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
            Ok(sent) => sent,
            // The process is ending.
            Err(error) => return Err(error.into()),
        };
        match &sent {
            Ok(response) if response.status().is_success() => self.note_success(),
            Ok(response) => self.note_failure(&response.status().to_string()),
            Err(error) => self.note_failure(&error_chain(&**error)),
        }
        sent
    }
}

impl CollectorClient {
    /// Has to be called in a Tokio runtime.
    pub(super) fn new() -> Result<Self, ClientError> {
        Ok(Self {
            client: upstream::client(&ClientOptions::default())?,
            runtime: Handle::current(),
            timeout: otel_variables::request_timeout(),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Logs only the first of several failures: each request fails while the collector is down.
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
async fn exchange(
    client: reqwest::Client,
    request: reqwest::Request,
) -> Result<Response<Bytes>, HttpError> {
    let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = response.headers().clone();
    *answer.body_mut() = read_start(response, MAX_RESPONSE_BYTES).await?.bytes.into();
    Ok(answer)
}
