//! The live read as Server-Sent Events: after each `data` event a `control` event with the position.

use std::{convert::Infallible, time::Duration};

use async_stream::stream;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::{
    page::{array, first_page},
    position::{Offset, cursor, offset_text},
};
use crate::{
    encode::SSE_MEDIA_TYPE,
    http::{error::ApiError, sse_response, state::App},
    run::{LogPage, LookupError, RunLog},
    units::deadline,
};

/// The time after which a connection is closed, and the client makes another. The protocol asks for about a minute.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(60);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Control {
    stream_next_offset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_cursor: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    up_to_date: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream_closed: bool,
}

pub(super) async fn respond(
    app: &App,
    mut log: RunLog,
    offset: Offset,
    client_cursor: Option<&str>,
) -> Result<Response, ApiError> {
    let mut page = first_page(&log, offset).await?;
    let cursor = cursor(client_cursor).to_string();
    let (threads, keep_alive) = (app.threads().cloned(), app.options().keep_alive);
    let until = Instant::now() + CONNECTION_LIFETIME;
    let events = stream! {
        loop {
            yield chunk(frames(&page, &cursor));
            if page.is_closed() {
                // hyper polled again, so the connection has taken the last event.
                if let Some(threads) = &threads {
                    threads.delivered(log.follower()).await;
                }
                return;
            }
            page = loop {
                let silence = keep_alive.map_or(until, |keep_alive| until.min(deadline(Instant::now(), keep_alive)));
                match timeout_at(silence, next_page(&mut log, &page)).await {
                    Ok(Ok(next)) => break next,
                    Ok(Err(error)) => {
                        tracing::warn!(run = ?log.follower().run_id(), ?error, "cannot read a run's log to its end");
                        return;
                    }
                    Err(_) if Instant::now() >= until => return,
                    Err(_) => yield chunk(": keep-alive\n\n".to_owned()),
                }
            };
        }
    };
    Ok(sse_response::respond(SSE_MEDIA_TYPE, Body::from_stream(events)))
}

/// Waits for events if `page` is the last one that is stored.
async fn next_page(log: &mut RunLog, page: &LogPage) -> Result<LogPage, LookupError> {
    if page.is_up_to_date() {
        log.changed(page.last()).await?;
    }
    log.page(page.last()).await
}

fn chunk(text: String) -> Result<Bytes, Infallible> {
    Ok(text.into())
}

fn frames(page: &LogPage, cursor: &str) -> String {
    let control = Control {
        stream_next_offset: offset_text(page.last()),
        stream_cursor: (!page.is_closed()).then(|| cursor.to_owned()),
        up_to_date: page.is_up_to_date(),
        stream_closed: page.is_closed(),
    };
    // The control event always has a JSON form.
    let control = serde_json::to_string(&control).unwrap_or_default();
    // Without spaces after the colons, as the conformance tests of the protocol expect it.
    let data = if page.is_empty() { String::new() } else { format!("event: data\ndata:{}\n\n", array(page)) };
    format!("{data}event: control\ndata:{control}\n\n")
}
