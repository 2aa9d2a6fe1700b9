//! The server's face: routes, what stands before them, and how a run becomes a response.
//!
//! | route | |
//! |---|---|
//! | `POST /send-message` | runs the default agent |
//! | `POST /agents/{agent}/send-message` | runs an agent by name |
//! | `POST` at an agent's own path, if it has one | runs that agent |
//! | `GET /agents` | the agents that are served |
//! | `GET /agents/{agent}/capabilities` | what one says about itself |
//! | `GET /threads` | the caller's threads |
//! | `GET`, `DELETE /threads/{thread}` | one of them |
//! | `POST /threads/{thread}/connect` | what a client needs to come back to one, as a stream |
//! | `GET /threads/{thread}/runs/{run}/events` | follows a detached run |
//! | `POST /threads/{thread}/runs/{run}/cancel` | stops a run |
//! | routes of [`copilotkit`](crate::copilotkit) and [`named_events`](crate::named_events) | mounted by `app` |
//! | `GET /healthz` | the process is alive |
//! | `GET /readyz` | it takes new runs |
//!
//! A request that cannot become a run is answered with a status and `{"error":{"code","message","path"?}}`
//! (see `error`); once the stream has begun, failures are events in it.

pub(crate) mod agents;
mod body;
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod extract;
mod follow;
mod health;
mod host;
mod io;
pub(crate) mod middleware;
pub(crate) mod read_body;
pub(crate) mod send_message;
mod serve;
pub(crate) mod sse_response;
pub(crate) mod threads;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    routing::{get, post},
};

pub use middleware::Cors;
pub use serve::{Connections, serve};

use crate::{
    auth::Authenticator,
    run::{Runs, Threads},
};

/// What the routes need.
#[derive(Clone)]
pub(crate) struct App(Arc<AppInner>);

struct AppInner {
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
}

impl App {
    pub(crate) fn runs(&self) -> &Arc<Runs> {
        &self.0.runs
    }

    /// The stored threads; `None` on a server that stores nothing.
    pub(crate) fn threads(&self) -> Option<&Arc<Threads>> {
        self.0.runs.threads()
    }

    fn auth(&self) -> &Authenticator {
        &self.0.auth
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.0.options
    }
}

/// How requests are taken.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// How long the stream of a followed run is silent before the client is sent a sign of life.
    pub keep_alive: Option<Duration>,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// Which pages may use the server from a browser.
    pub cors: Cors,
    /// Whether to refuse requests whose `Host` is not a loopback name. `None` does so on a server without
    /// authentication, where only the name tells a page of this machine from one that rebinds its DNS name.
    pub loopback_hosts_only: Option<bool>,
    /// Names of request headers that agents may see. They see no others.
    pub pass_headers: Vec<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body_bytes: 10 * 1024 * 1024,
            keep_alive: Some(Duration::from_secs(15)),
            body_timeout: Duration::from_secs(30),
            cors: Cors::default(),
            loopback_hosts_only: None,
            pass_headers: Vec::new(),
        }
    }
}

/// A path of its own that an agent answers at, beside the one that its name gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPath {
    /// The path, as axum's routes are written.
    pub path: String,
    /// The agent's name.
    pub agent: Arc<str>,
}

/// Returns the routes of the whole server. `further` returns those of other modules, which get the same middleware. A
/// server that stores no threads has none of the routes below `/threads`.
///
/// # Panics
/// Panics if a path is invalid or already routed.
pub(crate) fn router(
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
    paths: Vec<AgentPath>,
    further: impl FnOnce(&App) -> Router<App>,
) -> Router {
    let app = App(Arc::new(AppInner { runs, auth, options }));
    let public = Router::new().route("/healthz", get(health::alive)).route("/readyz", get(health::ready));
    let mut private = Router::new()
        .route("/send-message", post(send_message::default_agent))
        .route("/agents", get(agents::list))
        .route("/agents/{agent}/send-message", post(send_message::named_agent))
        .route("/agents/{agent}/capabilities", get(agents::capabilities));
    if app.threads().is_some() {
        private = private
            .route("/threads", get(threads::list))
            .route("/threads/{thread}", get(threads::read).delete(threads::delete))
            .route("/threads/{thread}/connect", post(connect::connect))
            .route("/threads/{thread}/runs/{run}/events", get(follow::events))
            .route("/threads/{thread}/runs/{run}/cancel", post(threads::cancel));
    }
    private = private.merge(further(&app));
    for AgentPath { path, agent } in paths {
        private = private.route(&path, send_message::agent_of(agent));
    }
    let routes = public
        .merge(middleware::authenticated(private, &app))
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::method_not_allowed);
    middleware::stack(routes, &app).with_state(app)
}
