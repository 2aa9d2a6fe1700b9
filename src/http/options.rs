//! Options of the routes.

use std::{sync::Arc, time::Duration};

use super::{accept::cors::Cors, allow::AllowRule};

/// Options of the routes.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// The bytes of the request bodies that all clients are sending, together. At least two bodies of the largest size
    /// have room. Without authentication or with one API key a single caller may use all of it, otherwise half.
    pub max_body_bytes_in_flight: usize,
    /// The bytes of the answers with messages of threads that clients are being sent, together. At least two of the largest
    /// threads have room, and with several principals one gets at most half.
    pub max_answer_bytes_in_flight: usize,
    /// Maximum memory of the requests of all runs and imports and of the threads that runs read, in bytes.
    pub max_run_memory_bytes: usize,
    /// The largest number of streams of what happens from now on: event streams without an end, and WebSockets. With several
    /// principals, each gets at most its share ([`PrincipalLimits`](crate::run::PrincipalLimits)). More are refused with 503.
    pub max_streams: usize,
    /// The silence after which the stream of a followed run gets a keep-alive comment.
    pub keep_alive: Option<Duration>,
    /// The time limit for receiving a request's body.
    pub body_timeout: Duration,
    /// The web pages that may use the server.
    pub cors: Cors,
    /// The host names, without port, that a server without authentication answers under, in addition to names like
    /// `localhost` and IP addresses; `*` allows all. Others are refused, because a web page can rebind its own DNS name to
    /// this server. With authentication all names are allowed.
    pub allowed_hosts: Vec<String>,
    /// The names of request headers that are passed on to agents. No others are.
    pub pass_headers: Vec<String>,
    /// The callers of agents that are not for everyone.
    pub allow: Vec<AllowRule>,
    /// True makes a request with `traceparent` a part of the caller's trace. With false, each request begins its own.
    pub accept_traceparent: bool,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body_bytes: 10 * 1024 * 1024,
            max_body_bytes_in_flight: 128 * 1024 * 1024,
            max_answer_bytes_in_flight: 128 * 1024 * 1024,
            max_run_memory_bytes: 256 * 1024 * 1024,
            max_streams: 2000,
            keep_alive: Some(Duration::from_secs(15)),
            body_timeout: Duration::from_secs(30),
            cors: Cors::default(),
            allowed_hosts: Vec::new(),
            pass_headers: Vec::new(),
            allow: Vec::new(),
            accept_traceparent: true,
        }
    }
}

/// A path of its own for an agent, in addition to `/agents/{agent}/send-message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentPath {
    /// The path, in the syntax of axum's routes.
    pub(crate) path: String,
    /// The agent's name.
    pub(crate) agent: Arc<str>,
}
