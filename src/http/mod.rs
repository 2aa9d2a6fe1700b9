//! The HTTP interface: routes, middleware, and the way from a run to a response.
//!
//! A handler declares its endpoint with `#[utoipa::path]`: method, path, purpose, bodies and refusals. `GET /`,
//! `/openapi.json` and the suggestions in 404s are made of these declarations; optional sets have more of them. A request that
//! cannot become a run gets a status and `{"error":{"code","message","path"?}}`; once a stream has begun,
//! failures are events in it. To add a route, write the handler, and add it to the `routes!` of its resource.

pub(crate) mod accept;
#[cfg(feature = "llm")]
pub(crate) mod accounts;
pub(crate) mod agents;
mod allow;
pub(crate) mod client;
mod client_encoder;
pub(crate) mod client_options;
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod etag;
pub(crate) mod fallback;
pub(crate) mod files;
pub(crate) mod follow;
mod health;
mod index;
#[cfg(feature = "llm")]
mod login_pages;
mod metrics;
pub(crate) mod openapi;
mod options;
mod own_path;
#[cfg(feature = "upstream")]
pub(crate) mod playground;
pub(crate) mod read_run;
pub(crate) mod refusal_response;
mod response_budget;
mod route_list;
mod routes;
pub(crate) mod run_document;
pub(crate) mod run_response;
pub(crate) mod send_message;
pub(crate) mod sse_response;
pub(crate) mod state;
mod store_probe;
pub(crate) mod threads;

pub use accept::cors::Cors;
pub use accept::serve::Connections;
pub(crate) use accept::serve::{is_from_this_machine, serve};
pub(crate) use accept::{
    extract::{OwnThreads, Path, Query},
    media_type::accepted,
    middleware::Caller,
    read_body,
};
pub use allow::AllowRule;
pub(crate) use client_encoder::{ClientEncoder, ClientFiles};
pub(crate) use error::{ApiError, ApiResult};
pub(crate) use index::example;
pub(crate) use openapi::{refuse, response};
pub use options::HttpOptions;
pub(crate) use own_path::{AgentPath, check_own_path};
pub(crate) use route_list::{RUNS, RouteAccess, Tag};
pub(crate) use routes::{RefusalForm, RouteSet, Routers, at, built_in, router};
pub(crate) use state::{App, Credential};
