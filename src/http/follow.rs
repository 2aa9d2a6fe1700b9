//! Detached runs, from any of their events on: `GET /threads/{thread}/runs/{run}/events`, and a `POST` of a run with
//! `Last-Event-ID`.
//!
//! Each event has its number as `id:`, so a browser's `EventSource` reconnects with `Last-Event-ID` and gets every event
//! once. A client that has all events of an ended run gets 204, which stops an `EventSource`.

use std::io;

use async_stream::stream;
use axum::{
    Extension,
    body::Body,
    extract::{FromRequestParts, State},
    http::{HeaderMap, StatusCode, Uri, request::Parts},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use serde::Deserialize;
use utoipa::{
    IntoParams, PartialSchema as _,
    openapi::path::{Parameter, ParameterBuilder, ParameterIn},
};

use super::{
    ApiError, ApiResult, App, Caller, ClientEncoder, Path, Query,
    client::ClientSigns,
    refuse, response,
    response_budget::ResponsePermit,
    sse_response::{break_at_expiry, broken, respond, with_timeout},
};
use agui_agent::Principal;
use agui_protocol::{Event, RunId, ThreadId, encode::Encoder};
use agui_run::host::{FollowError, Follower, thread_deleted};

/// The parameters of the query that stand for `Last-Event-ID`: `event-source-polyfill` sends no headers of its own. The first one
/// is in the reference.
const LAST_EVENT_ID_PARAMETERS: [&str; 2] = ["lastEventId", "lastEventID"];

/// The number of the last event that a reconnecting client has; `None` if it names none.
pub(crate) struct LastEventId(pub(crate) Option<u64>);

impl LastEventId {
    /// Reads the header, or else the query. An empty one is absent.
    pub(crate) fn read(headers: &HeaderMap, uri: &Uri) -> ApiResult<Self> {
        let header = headers.get("last-event-id");
        let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let query = query.map(|query| query.0).unwrap_or_default().into_iter();
        let is_named = |(name, _): &(String, String)| LAST_EVENT_ID_PARAMETERS.contains(&&**name);
        let named = query.filter(is_named).map(|(_, value)| value);
        let number = header.into_iter().chain(named).find(|value| !value.trim().is_empty());
        let number = number.map(|value| event_number("Last-Event-ID", value.trim()));
        number.transpose().map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        Self::read(&parts.headers, &parts.uri)
    }
}

impl IntoParams for LastEventId {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about =
            "The number of the last event that the client has. The response continues after it.";
        let named = |name: &str, place| {
            let parameter = ParameterBuilder::new().name(name).parameter_in(place);
            parameter.schema(Some(u64::schema())).description(Some(about)).build()
        };
        vec![
            named("Last-Event-ID", ParameterIn::Header),
            named(LAST_EVENT_ID_PARAMETERS[0], ParameterIn::Query),
        ]
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowQuery {
    /// The number of the last event that the client has. 0 by default.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
}

/// Follows a detached run.
#[utoipa::path(
    get,
    path = "/threads/{thread}/runs/{run}/events",
    params(FollowQuery, LastEventId),
    responses(
        response::EventResponse,
        response::CaughtUp,
        refuse::Follow,
        refuse::Parameter,
        refuse::Store,
    )
)]
pub(crate) async fn follow_run(
    State(app): State<App>,
    Path((thread, run)): Path<(ThreadId, RunId)>,
    Query(query): Query<FollowQuery>,
    Extension(caller): Extension<Caller>,
    LastEventId(last): LastEventId,
    headers: HeaderMap,
) -> ApiResult {
    // A reconnecting `EventSource` adds the last event to the URL that it began with.
    let after = match last {
        Some(number) => number,
        None => query.after.map_or(Ok(0), |after| event_number("after", &after))?,
    };
    let signs = ClientSigns::of_headers(&headers);
    let encoder = ClientEncoder::for_client(&app, &caller, &signs).await;
    follow_after(&app, &caller, thread, &run, after, encoder).await
}

pub(crate) fn event_number(name: &'static str, value: &str) -> ApiResult<u64> {
    // `parse` alone would take `+12`.
    let number =
        value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten();
    number
        .ok_or(ApiError::InvalidParameter { name, expected: "the number of an event, such as 12" })
}

/// Responds with the events of a detached run after the event with number `after`.
pub(crate) async fn follow_after(
    app: &App,
    caller: &Caller,
    thread: ThreadId,
    run: &RunId,
    after: u64,
    encoder: ClientEncoder,
) -> ApiResult {
    let follower = app.threads.follow(&caller.key(thread), run, after).await?;
    let Some(mut follower) = follower else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    if let Encoder::Dialect(_) = encoder.encoder {
        follower.rewind();
    }
    Ok(FollowedRun { skip: after, caller: caller.principal.clone(), ..FollowedRun::new(follower) }
        .respond(app, encoder))
}

/// The events of a detached run as a response, each with its number.
pub(crate) struct FollowedRun {
    /// Sent in place of the run's first `skip` events.
    pub(crate) before: Vec<Event>,
    /// The permit of those events.
    pub(crate) permit: ResponsePermit,
    pub(crate) skip: u64,
    pub(crate) follower: Follower,
    /// The stream breaks when its credential expires. `None` for the response that starts the run, whose time is limited.
    pub(crate) caller: Option<Principal>,
}

impl FollowedRun {
    /// All events of a run, for the request that starts it.
    pub(crate) fn new(follower: Follower) -> Self {
        Self { before: Vec::new(), permit: ResponsePermit::NONE, skip: 0, follower, caller: None }
    }

    pub(crate) fn respond(self, app: &App, mut encoder: ClientEncoder) -> Response {
        let Self { before, permit, skip, mut follower, caller } = self;
        let (threads, keep_alive) = (app.threads.clone(), app.options.keep_alive);
        let media_type = encoder.media_type();
        let events = stream! {
            let mut out = Vec::new();
            write_with_number(&before, skip, &mut encoder, &mut out);
            drop(before);
            if !out.is_empty() {
                yield Ok(permit.bytes(std::mem::take(&mut out)));
            }
            loop {
                match with_timeout(keep_alive, follower.next()).await {
                    None => encoder.encoder.heartbeat(&mut out),
                    Some(Ok(Some(events))) => {
                        for (number, json) in events.events() {
                            if number <= skip {
                                encoder.encoder.skip(json);
                                continue;
                            }
                            let number_of_line = (!follower.has_snapshots()).then_some(number);
                            encoder.line(&follower.renamed(json), number_of_line, &mut out);
                            write_with_number(&follower.take_snapshots(), number, &mut encoder, &mut out);
                        }
                    }
                    Some(Ok(None)) => {
                        // hyper polled again, so the connection has taken the terminal event.
                        threads.delivered(&follower).await;
                        break;
                    }
                    // An end, so that no client asks for the rest.
                    Some(Err(FollowError::ThreadDeleted)) => {
                        encoder.event(&thread_deleted(), &mut out);
                        yield chunk(&mut out);
                        break;
                    }
                    // The client has to be able to tell the cut from the run's end. It then asks again.
                    Some(Err(error)) => {
                        tracing::info!(run = follower.run_id.as_str(), ?error, "a followed stream breaks");
                        yield Err(broken());
                        break;
                    }
                }
                if !out.is_empty() {
                    yield chunk(&mut out);
                }
            }
        };
        respond(media_type, Body::from_stream(break_at_expiry(caller.as_ref(), events)))
    }
}

/// The last one of the events has the number, so a client that reconnects with it has all of them.
fn write_with_number(
    events: &[Event],
    number: u64,
    encoder: &mut ClientEncoder,
    out: &mut Vec<u8>,
) {
    for (index, event) in events.iter().enumerate() {
        if index + 1 == events.len() {
            encoder.encoder.number(number, out);
        }
        encoder.event(event, out);
    }
}

fn chunk(out: &mut Vec<u8>) -> io::Result<Bytes> {
    Ok(std::mem::take(out).into())
}
