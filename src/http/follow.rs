//! `GET /threads/{thread}/runs/{run}/events`: a detached run, from any of its events on.
//!
//! Each event has its number as `id:`, so a browser's `EventSource` comes back by itself with `Last-Event-ID` and
//! misses nothing. A client that has everything of an ended run is answered with 204, which tells an
//! `EventSource` to stay away.

use std::{convert::Infallible, sync::Arc, time::Duration};

use async_stream::stream;
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use serde::Deserialize;

use super::{
    App,
    error::ApiError,
    extract::{Path, Query},
    middleware::Caller,
    sse_response,
};
use crate::{
    encode::Encoder,
    protocol::{Event, event::RunError},
    run::{FollowError, Follower, Threads},
};

/// Where to begin.
#[derive(Deserialize)]
pub(super) struct From {
    after: Option<String>,
}

/// Whether events carry their numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cursors {
    Yes,
    No,
}

/// Streams the events after a number, until the run ends.
pub(super) async fn events(
    State(app): State<App>,
    Path((thread, run)): Path<(String, String)>,
    Query(from): Query<From>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let after = after(&headers, from.after.as_deref())?;
    let principal = caller.principal();
    match threads.follow(principal.as_ref(), &thread.into(), &run.into(), after).await? {
        None => Ok(StatusCode::NO_CONTENT.into_response()),
        Some(follower) => {
            let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let (threads, before, after_first) = (Some(threads.clone()), Vec::new(), Vec::new());
            let followed = Followed { threads, before, skip: 0, after_first, follower, cursors: Cursors::Yes };
            Ok(followed.respond(Encoder::negotiate(accept), app.options().keep_alive))
        }
    }
}

/// The header is what a reconnecting `EventSource` adds to a query that says where it began.
fn after(headers: &HeaderMap, query: Option<&str>) -> Result<u64, ApiError> {
    let expected = "the number of an event, such as 12";
    if let Some(value) = headers.get("last-event-id") {
        let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        return number.ok_or_else(|| ApiError::invalid_parameter("Last-Event-ID", expected));
    }
    let number = query.map_or(Ok(0), str::parse);
    number.map_err(|_| ApiError::invalid_parameter("after", expected))
}

/// A followed run, and what is sent beside it.
pub(super) struct Followed {
    /// Where it is noted that a client was sent the whole run.
    pub(super) threads: Option<Arc<Threads>>,
    /// Events before the run's.
    pub(super) before: Vec<Event>,
    /// How many of the run's first events are left out.
    pub(super) skip: u64,
    /// Events behind the run's first one.
    pub(super) after_first: Vec<Event>,
    pub(super) follower: Follower,
    pub(super) cursors: Cursors,
}

impl Followed {
    /// The stream as a response.
    pub(super) fn respond(self, mut encoder: Encoder, keep_alive: Option<Duration>) -> Response {
        let Self { threads, before, skip, mut after_first, mut follower, cursors } = self;
        let media_type = encoder.media_type();
        let events = stream! {
            let mut out = Vec::new();
            before.iter().for_each(|event| encoder.event(event, &mut out));
            if !out.is_empty() {
                yield piece(&mut out);
            }
            loop {
                match within(keep_alive, follower.next()).await {
                    None => encoder.heartbeat(&mut out),
                    Some(Ok(Some(chunk))) => {
                        for (number, json) in chunk.events().filter(|(number, _)| *number > skip) {
                            encoder.line(json, (cursors == Cursors::Yes).then_some(number), &mut out);
                            after_first.drain(..).for_each(|event| encoder.event(&event, &mut out));
                        }
                    }
                    Some(Ok(None)) => {
                        // The connection has taken the terminal event, or it would not ask for more.
                        if let Some(threads) = &threads {
                            threads.delivered(&follower).await;
                        }
                        break;
                    }
                    Some(Err(error)) => {
                        tracing::warn!(?error, "a run could not be followed to its end");
                        encoder.event(&error_event(&error), &mut out);
                        yield piece(&mut out);
                        break;
                    }
                }
                if !out.is_empty() {
                    yield piece(&mut out);
                }
            }
        };
        sse_response::respond(media_type, Body::from_stream(events))
    }
}

fn piece(out: &mut Vec<u8>) -> Result<Bytes, Infallible> {
    Ok(std::mem::take(out).into())
}

/// Returns the future's result; `None` when it takes longer than that.
async fn within<T>(time: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match time {
        Some(time) => tokio::time::timeout(time, future).await.ok(),
        None => Some(future.await),
    }
}

/// The event for a client whose stream cannot go on.
fn error_event(error: &FollowError) -> Event {
    match error {
        FollowError::Store(_) => RunError::new("store_unavailable", "the run cannot be followed now; please try again"),
        _ => RunError::new("log_gone", "the thread of this run was deleted, or its log removed"),
    }
    .into()
}
