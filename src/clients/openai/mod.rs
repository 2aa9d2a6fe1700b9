//! OpenAI's API as a door to the agents: `GET /v1/models`, `GET /v1/models/{model}` and
//! `POST /v1/chat/completions`, for scripts, editors and chat front ends.
//!
//! A model is an agent. A completion is a run beside any thread: nothing is stored, and the caller
//! sends the whole conversation. `chat.rs` handles a request; `request.rs` reads its body as the
//! input of a run, `answer.rs` reads the events of the run as an answer, `chunks.rs` writes it.

mod answer;
mod chat;
mod chunks;
mod content;
mod error;
mod keyed;
mod models;
mod request;

use std::sync::Arc;

use axum::Extension;
#[cfg(test)]
pub(crate) use chunks::test_encoder;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::http::{RouteAccess, RouteSet, client_options::OpenAiOptions};

/// Returns the routes, if the options have them.
pub(crate) fn route_set(options: &OpenAiOptions) -> Option<RouteSet> {
    let routes = || {
        OpenApiRouter::new()
            .routes(routes!(models::list_models))
            .routes(routes!(models::read_model))
            .routes(routes!(chat::create_chat_completion))
            .layer(Extension(Arc::new(keyed::KeyedAnswers::new())))
    };
    let routes = options.enabled.then(routes)?;
    let tag = ("OpenAI", "The agents as models, for clients of OpenAI's API.");
    let set = RouteSet::new(tag, RouteAccess::Authenticated, routes);
    Some(set.refusing_as(error::REFUSALS))
}
