//! The server's face: routes, what stands before them, and how a run becomes a response.
//!
//! | route | |
//! |---|---|
//! | `POST /send-message` | runs the default agent |
//! | `POST /agents/{agent}/send-message` | runs an agent by name |
//! | `GET /agents` | the agents that are served |
//! | `GET /agents/{agent}/capabilities` | what one says about itself |
//! | `GET /healthz` | the process is alive |
//! | `GET /readyz` | it takes new runs |
//!
//! A request that cannot become a run is answered with a status and `{"error":{"code","message","path"?}}`
//! (see `error`); once the stream has begun, failures are events in it.

mod agents;
mod body;
mod error;
mod health;
mod host;
mod io;
mod middleware;
mod read_body;
mod send_message;
mod serve;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    routing::{get, post},
};

pub use middleware::Cors;
pub use serve::{Connections, serve};

use crate::{auth::Authenticator, run::Runner};

/// What the routes need.
#[derive(Clone)]
pub(crate) struct App(Arc<AppInner>);

struct AppInner {
    runner: Arc<Runner>,
    auth: Authenticator,
    options: HttpOptions,
}

impl App {
    fn runner(&self) -> &Arc<Runner> {
        &self.0.runner
    }

    fn auth(&self) -> &Authenticator {
        &self.0.auth
    }

    fn options(&self) -> &HttpOptions {
        &self.0.options
    }
}

/// How requests are taken.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// Which pages may use the server from a browser.
    pub cors: Cors,
    /// Whether to refuse requests whose `Host` is not a loopback name: for a server that asks for no
    /// credentials, where the name is what tells a page of this machine from one that rebinds its DNS name.
    pub loopback_hosts_only: bool,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body_bytes: 10 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            cors: Cors::default(),
            loopback_hosts_only: true,
        }
    }
}

/// The whole server as an axum router, to be served or mounted.
pub fn router(runner: Arc<Runner>, auth: Authenticator, options: HttpOptions) -> Router {
    let app = App(Arc::new(AppInner { runner, auth, options }));
    let public = Router::new().route("/healthz", get(health::alive)).route("/readyz", get(health::ready));
    let private = Router::new()
        .route("/send-message", post(send_message::default_agent))
        .route("/agents", get(agents::list))
        .route("/agents/{agent}/send-message", post(send_message::named_agent))
        .route("/agents/{agent}/capabilities", get(agents::capabilities));
    let routes = public
        .merge(middleware::authenticated(private, &app))
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::method_not_allowed);
    middleware::stack(routes, &app).with_state(app)
}
