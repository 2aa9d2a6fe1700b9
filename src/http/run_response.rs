//! A started run as a response.

use axum::{body::Body, response::Response};

use super::{body::RunBody, follow::FollowedRun, response_budget::ResponsePermit, sse_response::respond, state::App};
use crate::{
    protocol::encode::Encoder,
    run::{DetachedRun, StartedRun},
};

pub(crate) async fn respond_run(app: &App, started: StartedRun, encoder: Encoder) -> Response {
    let media_type = encoder.media_type();
    match started {
        StartedRun::Unstored(run) => respond(media_type, Body::new(RunBody::new(run, encoder))),
        StartedRun::Stored(run) => respond(media_type, Body::new(RunBody::new(run, encoder).with_first_chunk().await)),
        StartedRun::Detached(DetachedRun { follower, snapshots }) => {
            let threads = app.threads().cloned();
            FollowedRun {
                threads,
                before: Vec::new(),
                permit: ResponsePermit::NONE,
                skip: 0,
                after_first: snapshots,
                follower,
                caller: None,
            }
            .respond(encoder, app.options().keep_alive)
        }
    }
}
