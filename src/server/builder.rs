//! [`Server`]: the builder. It only stores what it is given, so the order of its calls does not matter.

use std::{fmt, sync::Arc, time::Duration};

use indexmap::IndexMap;
use smart_default::SmartDefault;

use super::configured::Configured;
#[cfg(feature = "jwt")]
use crate::auth::Jwt;
#[cfg(feature = "upstream")]
use crate::http::playground::PlaygroundOptions;
use crate::{
    auth::{ApiKey, ApiKeys, Authenticator},
    clients::Transcribe,
    http::{AgentPath, Connections, HttpOptions},
};
use agui_agent::{Agent, IntoAgent};
use agui_observe::{
    metrics::{MetricsOptions, Prices},
    recordings::RecordOptions,
    telemetry::TelemetryOptions,
};
use agui_run::{PrincipalLimits, ThreadOptions};
use agui_store::{IntoStore, MemoryStore, Store};

/// A server: agents, and how they are served.
///
/// ```no_run
/// use agui_server::prelude::*;
///
/// async fn hello(_: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
///     out.text("Hello!").await
/// }
///
/// # async fn run() -> std::io::Result<()> {
/// Server::new().agent("hello", hello).serve("127.0.0.1:8080").await
/// # }
/// ```
#[derive(SmartDefault)]
#[must_use]
pub struct Server {
    pub(super) configured: Configured,
    pub(super) agents: IndexMap<String, Arc<dyn Agent>>,
    pub(super) paths: Vec<AgentPath>,
    pub(super) principal_limits: PrincipalLimits,
    pub(super) threads: ThreadOptions,
    #[default(Arc::new(MemoryStore::new()))]
    pub(super) store: Arc<dyn Store>,
    /// The name of the store, for the log.
    #[default("memory".to_owned())]
    pub(super) store_name: String,
    #[default(Authenticator::disabled())]
    pub(super) auth: Authenticator,
    pub(super) http: HttpOptions,
    pub(super) transcription: Option<Arc<dyn Transcribe>>,
    #[cfg(feature = "upstream")]
    pub(super) playground: PlaygroundOptions,
    pub(super) prices: Prices,
    pub(super) connections: Connections,
    pub(super) metrics: MetricsOptions,
    pub(super) record: RecordOptions,
    pub(super) telemetry: TelemetryOptions,
    #[default(Duration::from_secs(10))]
    pub(super) drain: Duration,
}

impl Server {
    /// A server without agents, with default options, with threads in memory, and without authentication. Without
    /// authentication it answers only requests whose `Host` is a loopback name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves an agent, which is an async function or an [`Agent`], under a name, in place of a configured one of that name.
    /// The first agent of a server is the default one, behind `/send-message`, unless the configuration names another.
    pub fn agent<K>(mut self, name: &str, agent: impl IntoAgent<K>) -> Self {
        self.configured.remove_demo();
        self.agents.insert(name.to_owned(), agent.into_agent());
        self
    }

    /// Serves an agent under a name, and also at a path, for a front end that already has a URL.
    ///
    /// ```
    /// use agui_server::prelude::*;
    ///
    /// async fn sell(_: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    ///     out.text("We have two left.").await
    /// }
    ///
    /// // POST /api/shop/chat runs the same agent as POST /agents/clerk/send-message.
    /// let server = Server::new().agent_at("/api/shop/chat", "clerk", sell);
    /// # let _ = server.into_router();
    /// ```
    ///
    /// The path is written as axum's are. A server panics when it starts if the path does not begin with `/`, or is one
    /// of the server's own.
    pub fn agent_at<K>(mut self, path: &str, name: &str, agent: impl IntoAgent<K>) -> Self {
        self.paths.push(AgentPath { path: path.to_owned(), agent: name.into() });
        self.agent(name, agent)
    }

    /// Stores threads. The default is a store in memory.
    pub fn store(mut self, store: impl IntoStore) -> Self {
        self.store = store.into_store();
        self.store_name = "the application's own store".to_owned();
        self
    }

    /// Sets the options of threads, and the limits of runs.
    pub fn thread_options(mut self, options: ThreadOptions) -> Self {
        self.threads = options;
        self
    }

    /// Authenticates requests by API keys. The name of a key is the principal's.
    pub fn api_keys(self, keys: impl IntoIterator<Item = ApiKey>) -> Self {
        self.authenticator(ApiKeys::new(keys))
    }

    /// Authenticates requests by tokens. The subject of a token is the principal's name.
    #[cfg(feature = "jwt")]
    pub fn jwt(self, jwt: Jwt) -> Self {
        self.authenticator(jwt)
    }

    /// Authenticates requests: by a function of your own ([`Authenticator::from_fn`]), or by the principal that the
    /// application's middleware put into the request's extensions ([`Authenticator::from_extension`]). A thread belongs
    /// to the principal that created it.
    ///
    /// ```
    /// use agui_server::{auth::{AuthError, Authenticator}, prelude::*};
    /// use axum::http::request::Parts;
    ///
    /// async fn sign_in(request: Parts) -> Result<Principal, AuthError> {
    ///     match request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
    ///         Some(user) => Ok(Principal::new("proxy", user)),
    ///         None => Err(AuthError::refused("sign in first")),
    ///     }
    /// }
    ///
    /// let server = Server::new().authenticator(Authenticator::from_fn(sign_in));
    /// ```
    pub fn authenticator(mut self, authenticator: impl Into<Authenticator>) -> Self {
        self.auth = authenticator.into();
        self
    }

    /// Limits the runs of each principal. Has no effect without authentication.
    pub fn principal_limits(mut self, limits: PrincipalLimits) -> Self {
        self.principal_limits = limits;
        self
    }

    /// Sets the options of the routes, also of those of single clients.
    pub fn http_options(mut self, options: HttpOptions) -> Self {
        self.http = options;
        self
    }

    /// Sets the options of the playground. Without this, [`serve`](Self::serve) and
    /// [`serve_on`](Self::serve_on) serve it on loopback addresses without authentication, and a mounted server does not.
    #[cfg(feature = "upstream")]
    pub fn playground(mut self, options: PlaygroundOptions) -> Self {
        self.playground = options;
        self
    }

    /// Serves the server's metrics for Prometheus. A listener of its own is for [`serve`](Self::serve) and
    /// [`serve_on`](Self::serve_on) only.
    pub fn metrics(mut self, options: MetricsOptions) -> Self {
        self.metrics = options;
        self
    }

    /// Records each run in a folder. A server whose folder cannot be written does not start.
    pub fn record(mut self, options: RecordOptions) -> Self {
        self.record = options;
        self
    }

    /// Sets the options of traces.
    pub fn telemetry(mut self, options: TelemetryOptions) -> Self {
        self.telemetry = options;
        self
    }

    /// Sets the prices of models, for the cost in metrics, logs and runs. A server with an invalid price does not start.
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets the options of connections, for [`serve`](Self::serve) and [`serve_on`](Self::serve_on).
    pub fn connections(mut self, connections: Connections) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how long runs may continue at shutdown.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("agents", &self.agents.keys().collect::<Vec<_>>())
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}
