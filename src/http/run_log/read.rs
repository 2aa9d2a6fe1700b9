//! The requests that end with one response: catch-up, long-poll and `HEAD`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use async_stream::stream;
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    page::{array, first_page},
    position::{Offset, cursor, offset_text},
    sse,
};
use crate::{
    http::{
        error::ApiError,
        etag::has_copy,
        extract::{Path, Query},
        middleware::Caller,
        state::App,
        stream_headers::{STREAM_CLOSED, STREAM_CURSOR, STREAM_NEXT_OFFSET, STREAM_UP_TO_DATE},
    },
    run::{LogPage, RunLog, Threads},
};

/// The time that a long-poll waits for events. Proxies close connections that are silent for longer than about 30 s.
const LONG_POLL_TIMEOUT: Duration = Duration::from_secs(20);

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The client's own cache asks with the `ETag` whether its copy is current.
const NO_CACHE: HeaderValue = HeaderValue::from_static("private, no-cache");
const TRUE: HeaderValue = HeaderValue::from_static("true");

#[derive(Deserialize)]
pub(in crate::http) struct LogQuery {
    offset: Option<String>,
    live: Option<String>,
    cursor: Option<String>,
}

#[derive(Clone, Copy)]
enum Live {
    LongPoll,
    Sse,
}

/// Reads from `offset`, by default from the start. Refusals have the headers against misuse by foreign pages as well.
pub(in crate::http) async fn read(
    State(app): State<App>,
    path: Path<(String, String)>,
    Query(query): Query<LogQuery>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let read = async {
        let offset = query.offset.as_deref().map(Offset::parse).transpose()?;
        let live = query.live.as_deref().map(parse_live).transpose()?;
        let log = open(&app, path, &caller).await?;
        match (live, offset) {
            (None, offset) => catch_up(&app, log, offset.unwrap_or(Offset::Start), &headers).await,
            (Some(_), None) => Err(ApiError::invalid_parameter("offset", "an offset, which `live` needs")),
            (Some(Live::LongPoll), Some(offset)) => {
                long_poll(&app, log, offset, query.cursor.as_deref(), &headers).await
            }
            (Some(Live::Sse), Some(offset)) => sse::respond(&app, log, offset, query.cursor.as_deref()).await,
        }
    };
    protected(read.await.unwrap_or_else(ApiError::into_response))
}

/// Returns the end of the log, and whether it is closed.
pub(in crate::http) async fn head(
    State(app): State<App>,
    path: Path<(String, String)>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let head = async {
        let end = open(&app, path, &caller).await?.end().await?;
        let mut response = respond(&end, Body::empty());
        response.headers_mut().remove(STREAM_UP_TO_DATE);
        response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
        Ok(response)
    };
    protected(head.await.unwrap_or_else(ApiError::into_response))
}

fn parse_live(live: &str) -> Result<Live, ApiError> {
    match live {
        "long-poll" => Ok(Live::LongPoll),
        "sse" => Ok(Live::Sse),
        _ => Err(ApiError::invalid_parameter("live", "`long-poll` or `sse`")),
    }
}

async fn open(app: &App, Path((thread, run)): Path<(String, String)>, caller: &Caller) -> Result<RunLog, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    Ok(threads.log(caller.principal().as_ref(), &thread.into(), &run.into()).await?)
}

async fn catch_up(app: &App, log: RunLog, offset: Offset, headers: &HeaderMap) -> Result<Response, ApiError> {
    let page = first_page(&log, offset).await?;
    let mut response = with_events(app, log, &page, headers);
    if matches!(offset, Offset::Now) {
        response.headers_mut().remove(header::ETAG);
        response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    }
    Ok(response)
}

async fn long_poll(
    app: &App,
    mut log: RunLog,
    offset: Offset,
    client_cursor: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let mut page = first_page(&log, offset).await?;
    if page.is_empty() && !page.is_closed() {
        let after = page.last();
        if let Ok(changed) = timeout(LONG_POLL_TIMEOUT, log.changed(after)).await {
            changed?;
            page = log.page(after).await?;
        }
    }
    let mut response = match page.is_empty() {
        true => {
            let mut response = respond(&page, Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response.headers_mut().remove(header::CONTENT_TYPE);
            response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
            response
        }
        false => with_events(app, log, &page, headers),
    };
    if !page.is_closed() {
        response.headers_mut().insert(STREAM_CURSOR, cursor(client_cursor).into());
    }
    Ok(response)
}

fn with_events(app: &App, log: RunLog, page: &LogPage, headers: &HeaderMap) -> Response {
    let etag = etag(&log, page);
    let mut response = if has_copy(headers, &etag) {
        let mut response = respond(page, Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let has_last = page.is_closed() && !page.is_empty();
        let body = match app.threads().filter(|_| has_last) {
            Some(threads) => body_to_deliver(array(page), log, threads.clone()),
            None => Body::from(array(page)),
        };
        respond(page, body)
    };
    response.headers_mut().insert(header::ETAG, HeaderValue::try_from(etag).unwrap_or(TRUE));
    response
}

/// The end of a run. It has no `Content-Length`: hyper would not poll it again after the last byte.
fn body_to_deliver(events: String, log: RunLog, threads: Arc<Threads>) -> Body {
    Body::from_stream(stream! {
        yield Ok::<_, Infallible>(events);
        // hyper polled again, so the connection has taken the last event.
        threads.delivered(log.follower()).await;
    })
}

fn respond(page: &LogPage, body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    headers.insert(STREAM_NEXT_OFFSET, offset_text(page.last()).try_into().unwrap_or(TRUE));
    if page.is_up_to_date() {
        headers.insert(STREAM_UP_TO_DATE, TRUE);
    }
    if page.is_closed() {
        headers.insert(STREAM_CLOSED, TRUE);
    }
    response
}

/// The time of the begin distinguishes the log from that of another run of the same id.
fn etag(log: &RunLog, page: &LogPage) -> String {
    let closed = if page.is_closed() { ":c" } else { "" };
    format!("\"{}:{}:{}{closed}\"", log.started_at(), page.after(), page.last())
}

/// Keeps browsers from reading the log as another type, or for another page.
fn protected(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}
