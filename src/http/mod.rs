//! The HTTP interface: routes, middleware, and the way from a run to a response.
//!
//! `route_list.rs` lists the routes; [`copilotkit`](crate::copilotkit) and [`named_events`](crate::named_events) have
//! more. A request that cannot become a run is answered with a status and `{"error":{"code","message","path"?}}`; once
//! a stream has begun, failures are events in it. To add a route, write a file for its resource, and add it to
//! `routes.rs` and `route_list.rs`.

pub(crate) mod agents;
mod body;
mod body_budget;
pub(crate) mod connect;
mod cors;
pub(crate) mod dependencies;
pub(crate) mod error;
pub(crate) mod error_code;
pub(crate) mod etag;
pub(crate) mod extract;
pub(crate) mod fallback;
mod follow;
mod foreign_page;
mod health;
mod host;
mod index;
mod join;
pub(crate) mod media_type;
mod metrics;
pub(crate) mod middleware;
mod options;
pub(crate) mod read_body;
mod request_id;
mod route_list;
mod routes;
mod run_log;
pub(crate) mod run_response;
pub(crate) mod send_message;
mod serve;
mod server_span;
pub(crate) mod sse_response;
mod stall_timeout;
mod state;
mod store_probe;
mod stream_headers;
pub(crate) mod threads;
mod ui_message;

pub use cors::Cors;
pub use options::{AgentPath, HttpOptions};
pub(crate) use route_list::Route;
pub(crate) use routes::{ReadMetrics, RouteSet, Routers, router};
pub use serve::Connections;
pub(crate) use serve::is_from_this_machine;
pub(crate) use serve::serve;
pub(crate) use state::App;
#[cfg(feature = "openapi")]
pub(crate) use stream_headers::{STREAM_CLOSED, STREAM_CURSOR, STREAM_NEXT_OFFSET, STREAM_UP_TO_DATE};
