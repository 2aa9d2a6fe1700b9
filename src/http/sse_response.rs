//! Streams of events as responses.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};

use super::{
    App,
    body::RunBody,
    follow::{Cursors, Followed},
};
use crate::{
    encode::Encoder,
    run::{DetachedRun, StartedRun},
};

/// A stream of this media type.
pub(crate) fn respond(media_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        // Nothing on the way may hold the stream back: no cache, no compression, no proxy's buffer.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// A run that was started.
pub(crate) async fn respond_run(app: &App, started: StartedRun, encoder: Encoder) -> Response {
    let media_type = encoder.media_type();
    match started {
        StartedRun::Stateless(run) => respond(media_type, Body::new(RunBody::new(run, encoder))),
        StartedRun::Stored(run) => respond(media_type, Body::new(RunBody::new(run, encoder).with_first_piece().await)),
        StartedRun::Detached(DetachedRun { follower, snapshots }) => {
            let threads = app.threads().cloned();
            Followed { threads, before: Vec::new(), skip: 0, after_first: snapshots, follower, cursors: Cursors::No }
                .respond(encoder, app.options().keep_alive)
        }
    }
}
