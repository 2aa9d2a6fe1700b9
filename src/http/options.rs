//! Options of the routes.

use std::{sync::Arc, time::Duration};

use super::cors::Cors;

/// Options of the routes.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// The silence after which the stream of a followed run gets a keep-alive comment.
    pub keep_alive: Option<Duration>,
    /// The time limit for receiving a request's body.
    pub body_timeout: Duration,
    /// The web pages that may use the server.
    pub cors: Cors,
    /// True refuses requests whose `Host` is not a loopback name, which protects a server without authentication from web
    /// pages that rebind their DNS name to this machine. `None` is true without authentication, and false with it.
    pub loopback_hosts_only: Option<bool>,
    /// The names of request headers that are passed on to agents. No others are.
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

/// A path of its own for an agent, in addition to `/agents/{agent}/send-message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPath {
    /// The path, in the syntax of axum's routes.
    pub path: String,
    /// The agent's name.
    pub agent: Arc<str>,
}
