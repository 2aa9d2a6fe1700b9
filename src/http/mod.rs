//! The HTTP interface: routes, middleware, and the way from a run to a response.
//!
//! | route | response |
//! |---|---|
//! | `POST /send-message` | runs the default agent |
//! | `POST /agents/{agent}/send-message` | runs an agent |
//! | `POST` at an agent's own path | runs that agent |
//! | `GET /agents` | lists the agents |
//! | `GET /agents/{agent}/capabilities` | describes an agent |
//! | `GET /threads` | lists the caller's threads |
//! | `GET`, `DELETE /threads/{thread}` | returns or deletes a thread |
//! | `POST /threads/{thread}/connect` | streams a thread and its running run |
//! | `GET /threads/{thread}/runs/{run}/events` | follows a detached run |
//! | `POST /threads/{thread}/runs/{run}/cancel` | cancels a run |
//! | routes of [`copilotkit`](crate::copilotkit) and [`named_events`](crate::named_events) | mounted by `app` |
//! | `GET /` | describes the server |
//! | `GET /healthz`, `GET /readyz` | the process is alive; the server accepts runs |
//!
//! A request that cannot become a run is answered with a status and `{"error":{"code","message","path"?}}`; `error.rs`
//! has them all. Once a stream has begun, failures are events in it. To add a route, write a file for its resource, and
//! add it to `routes.rs`, to `route_list.rs`, and to this table.

pub(crate) mod agents;
mod body;
pub(crate) mod connect;
mod cors;
pub(crate) mod error;
pub(crate) mod extract;
pub(crate) mod fallback;
mod follow;
mod health;
mod host;
mod index;
pub(crate) mod middleware;
mod options;
pub(crate) mod read_body;
mod request_id;
mod route_list;
mod routes;
pub(crate) mod run_response;
pub(crate) mod send_message;
mod serve;
pub(crate) mod sse_response;
mod stall_timeout;
mod state;
pub(crate) mod threads;

pub use cors::Cors;
pub use options::{AgentPath, HttpOptions};
pub(crate) use route_list::Route;
pub(crate) use routes::{FurtherRoutes, router};
pub use serve::{Connections, serve};
pub(crate) use state::App;
