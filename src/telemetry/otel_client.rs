//! The HTTP client for requests to a collector. It logs when a collector begins to fail, and when it accepts data again.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use super::otel_variables::Signal;
use crate::upstream::{self, ClientError, ClientOptions};

/// The response of a collector says what it has refused; more is not read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Sends what is exported of one signal, on the server's runtime: the SDK calls it on a thread without one.
#[derive(Debug)]
pub(super) struct CollectorClient {
    signal: Signal,
    client: reqwest::Client,
    runtime: Handle,
    timeout: Duration,
    is_failing: AtomicBool,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.send(reqwest::Request::try_from(request)?).await
    }
}

impl CollectorClient {
    /// Has to be called in a Tokio runtime.
    pub(super) fn new(signal: Signal) -> Result<Self, ClientError> {
        Ok(Self {
            signal,
            client: upstream::client(&ClientOptions::default())?,
            runtime: Handle::current(),
            timeout: signal.timeout(),
            is_failing: AtomicBool::new(false),
        })
    }

    pub(super) async fn send(&self, mut request: reqwest::Request) -> Result<Response<Bytes>, HttpError> {
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

    /// Logs only the first of several failures: each request fails while the collector is down.
    fn note_failure(&self, reason: &str) {
        if self.is_failing.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.signal {
            Signal::Traces => tracing::warn!(
                reason,
                "traces cannot be sent to the collector; spans that do not fit into the queue are lost"
            ),
            Signal::Metrics => tracing::warn!(
                reason,
                "metrics cannot be sent to the collector; they go on counting, and are sent again after the interval"
            ),
        }
    }

    fn note_success(&self) {
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("{} are sent to the collector again", self.signal.as_str());
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
