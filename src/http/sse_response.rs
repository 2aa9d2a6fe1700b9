//! Responses that are streams of events.

use std::{
    future::pending,
    io,
    pin::pin,
    time::{Duration, SystemTime},
};

use async_stream::stream;
use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use serde::Serialize;

use agui_agent::Principal;
use agui_base::deadline::FAR_FUTURE;
use agui_protocol::encode::SSE_MEDIA_TYPE;

/// Sent at once, so that the client knows that it gets all later events.
const CONNECTED: &[u8] = b": connected\n\n";
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The headers keep caches and proxies from storing, buffering or compressing the stream.
pub(crate) fn respond(media_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// Responds with the frames of new events. The response has no end: it breaks when the caller's credential expires, or the
/// server stops. After each silence of `keep_alive` the client gets a comment.
pub(crate) fn respond_live(
    keep_alive: Option<Duration>,
    caller: Option<&Principal>,
    frames: impl Stream<Item = Bytes> + Send + 'static,
) -> Response {
    let body = stream! {
        let mut frames = pin!(frames);
        yield Ok(Bytes::from_static(CONNECTED));
        loop {
            match with_timeout(keep_alive, frames.next()).await {
                None => yield Ok(Bytes::from_static(KEEP_ALIVE)),
                Some(Some(frame)) => yield Ok(frame),
                Some(None) => {
                    yield Err(broken());
                    break;
                }
            }
        }
    };
    respond(SSE_MEDIA_TYPE, Body::from_stream(break_at_expiry(caller, body)))
}

/// Returns the error of a body that is cut: over HTTP/1.1 the last chunk is absent, over HTTP/2 the stream is reset.
pub(crate) fn broken() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

/// Breaks a stream when the caller's credential expires.
pub(crate) fn break_at_expiry<S: Stream<Item = io::Result<Bytes>> + Send>(
    caller: Option<&Principal>,
    frames: S,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<S> {
    let expiry = expiry(caller);
    stream! {
        let (mut frames, mut expiry) = (pin!(frames), pin!(expiry));
        loop {
            let frame = tokio::select! {
                biased;
                () = &mut expiry => Some(Err(broken())),
                frame = frames.next() => frame,
            };
            let Some(frame) = frame else { break };
            let is_broken = frame.is_err();
            yield frame;
            if is_broken {
                break;
            }
        }
    }
}

/// Returns the frame of an event without a name.
pub(crate) fn frame(data: &impl Serialize) -> String {
    format!("data: {}\n\n", serde_json::to_string(data).unwrap_or_default())
}

/// Completes when the caller's credential expires.
pub(crate) fn expiry(caller: Option<&Principal>) -> impl Future<Output = ()> + Send + use<> {
    let time = caller.and_then(Principal::expires_at);
    let left =
        time.map(|time| time.duration_since(SystemTime::now()).unwrap_or_default().min(FAR_FUTURE));
    async move {
        match left {
            Some(left) => tokio::time::sleep(left).await,
            None => pending().await,
        }
    }
}

pub(crate) async fn with_timeout<T>(
    timeout: Option<Duration>,
    future: impl Future<Output = T>,
) -> Option<T> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, future).await.ok(),
        None => Some(future.await),
    }
}
