//! `GET /threads/{thread}/runs/{run}/events`: a detached run, from any of its events on.
//!
//! Each event has its number as `id:`, so a browser's `EventSource` reconnects with `Last-Event-ID` and gets every event
//! once. A client that has all events of an ended run gets 204, which stops an `EventSource`.

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
    error::ApiError,
    extract::{Path, Query},
    middleware::Caller,
    sse_response,
    state::App,
};
use crate::{
    encode::Encoder,
    protocol::{Event, event::RunError},
    run::{FollowError, Follower, Threads},
};

#[derive(Deserialize)]
pub(super) struct FollowQuery {
    /// The number of the last event that the client has.
    after: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventIds {
    Yes,
    No,
}

pub(super) async fn events(
    State(app): State<App>,
    Path((thread, run)): Path<(String, String)>,
    Query(query): Query<FollowQuery>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let after = after(&headers, query.after.as_deref())?;
    let principal = caller.principal();
    match threads.follow(principal.as_ref(), &thread.into(), &run.into(), after).await? {
        None => Ok(StatusCode::NO_CONTENT.into_response()),
        Some(follower) => {
            let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let (threads, before, after_first) = (Some(threads.clone()), Vec::new(), Vec::new());
            let followed = FollowedRun { threads, before, skip: 0, after_first, follower, event_ids: EventIds::Yes };
            Ok(followed.respond(Encoder::negotiate(accept), app.options().keep_alive))
        }
    }
}

/// The header wins: a reconnecting `EventSource` adds it to its URL.
fn after(headers: &HeaderMap, query: Option<&str>) -> Result<u64, ApiError> {
    let expected = "the number of an event, such as 12";
    if let Some(value) = headers.get("last-event-id") {
        let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        return number.ok_or_else(|| ApiError::invalid_parameter("Last-Event-ID", expected));
    }
    let number = query.map_or(Ok(0), str::parse);
    number.map_err(|_| ApiError::invalid_parameter("after", expected))
}

pub(super) struct FollowedRun {
    /// To record that the run was delivered to the end.
    pub(super) threads: Option<Arc<Threads>>,
    pub(super) before: Vec<Event>,
    /// The number of the run's first events that are not sent.
    pub(super) skip: u64,
    pub(super) after_first: Vec<Event>,
    pub(super) follower: Follower,
    pub(super) event_ids: EventIds,
}

impl FollowedRun {
    pub(super) fn respond(self, mut encoder: Encoder, keep_alive: Option<Duration>) -> Response {
        let Self { threads, before, skip, mut after_first, mut follower, event_ids } = self;
        let media_type = encoder.media_type();
        let events = stream! {
            let mut out = Vec::new();
            before.iter().for_each(|event| encoder.event(event, &mut out));
            if !out.is_empty() {
                yield chunk(&mut out);
            }
            loop {
                match with_timeout(keep_alive, follower.next()).await {
                    None => encoder.heartbeat(&mut out),
                    Some(Ok(Some(events))) => {
                        for (number, json) in events.events().filter(|(number, _)| *number > skip) {
                            encoder.line(json, (event_ids == EventIds::Yes).then_some(number), &mut out);
                            after_first.drain(..).for_each(|event| encoder.event(&event, &mut out));
                        }
                    }
                    Some(Ok(None)) => {
                        // hyper polled again, so the connection has taken the terminal event.
                        if let Some(threads) = &threads {
                            threads.delivered(&follower).await;
                        }
                        break;
                    }
                    Some(Err(error)) => {
                        tracing::warn!(?error, "cannot follow a run to its end");
                        encoder.event(&error_event(&error), &mut out);
                        yield chunk(&mut out);
                        break;
                    }
                }
                if !out.is_empty() {
                    yield chunk(&mut out);
                }
            }
        };
        sse_response::respond(media_type, Body::from_stream(events))
    }
}

fn chunk(out: &mut Vec<u8>) -> Result<Bytes, Infallible> {
    Ok(std::mem::take(out).into())
}

async fn with_timeout<T>(timeout: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, future).await.ok(),
        None => Some(future.await),
    }
}

fn error_event(error: &FollowError) -> Event {
    match error {
        FollowError::Store(_) => RunError::new("store_unavailable", "the run cannot be followed now; try again later"),
        _ => RunError::new("log_gone", "the thread of this run was deleted, or its log removed"),
    }
    .into()
}
