//! The one place where the parts are put together: from a configuration, or by hand.

mod agents;
mod build;
mod jwt;
mod remote;
mod tools;

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use tokio::net::TcpListener;

pub use self::build::OpenError;
use self::{
    agents::build_agents,
    build::{build_auth, connections, http_options, limits, open_store, principal_limits, thread_options},
    tools::build_tools,
};
use crate::{
    agent::Agent,
    auth::{ApiKey, ApiKeys, Authenticator, Jwt},
    config::{Config, ConfigError, Loaded},
    copilotkit::{self, CopilotKitOptions},
    http::{self, AgentPath, App, Connections, HttpOptions},
    named_events::{self, NamedEventOptions},
    run::{PrincipalLimits, RunLimits, Runs, RunsBuilder, ThreadOptions},
    store::{MemoryStore, Store},
    tools::ToolRegistry,
};

/// A server: agents, and how they are served.
///
/// ```no_run
/// use agui_server::{Server, agent::{RunContext, build::TextMessage, events}, protocol::RunAgentInput};
///
/// # async fn run() -> std::io::Result<()> {
/// let hello = |_: RunAgentInput, _: RunContext| events(TextMessage::whole("Hello!"));
/// Server::new().agent("hello", hello).serve("127.0.0.1:8080").await
/// # }
/// ```
pub struct Server {
    runs: RunsBuilder,
    paths: Vec<AgentPath>,
    threads: ThreadOptions,
    store: Option<Arc<dyn Store>>,
    auth: Authenticator,
    http: HttpOptions,
    copilotkit: CopilotKitOptions,
    named_events: NamedEventOptions,
    connections: Connections,
    drain: Duration,
    tools: ToolRegistry,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server without agents, with the default options and without authentication: it answers only
    /// requests to a loopback name until it has [keys](Self::api_keys), checks [tokens](Self::jwt), or has
    /// [other options](Self::http_options).
    pub fn new() -> Self {
        let config = Config::default();
        Self {
            runs: Runs::builder().limits(limits(&config)).max_concurrent(config.runs.max_concurrent),
            paths: Vec::new(),
            threads: ThreadOptions::default(),
            store: Some(Arc::new(MemoryStore::new())),
            auth: Authenticator::disabled(),
            http: http_options(&config),
            copilotkit: config.copilotkit.clone(),
            named_events: config.named_events.clone(),
            connections: connections(&config.server),
            drain: Duration::from_secs(config.server.drain_secs),
            tools: ToolRegistry::new(),
        }
    }

    /// The server that a configuration describes, with its store.
    ///
    /// # Errors
    /// When a script or a key cannot be read, or the store cannot be opened.
    pub async fn open(loaded: &Loaded) -> Result<Self, OpenError> {
        let server = Self::from_config(loaded)?;
        Ok(server.store(open_store(&loaded.config).await?))
    }

    /// The server that a configuration describes, but for its store: threads are kept in memory.
    ///
    /// # Errors
    /// A [`ConfigError`], when a script or a key cannot be read.
    pub fn from_config(Loaded { config, origin }: &Loaded) -> Result<Self, ConfigError> {
        let tools = build_tools(config, origin)?;
        let mut runs = Runs::builder()
            .limits(limits(config))
            .principal_limits(principal_limits(config))
            .max_concurrent(config.runs.max_concurrent);
        for (name, agent) in build_agents(config, &tools, origin)? {
            runs = runs.agent(name, agent);
        }
        if let Some(name) = config.default_agent() {
            runs = runs.default_agent(name);
        }
        Ok(Self {
            runs,
            paths: Vec::new(),
            threads: thread_options(config),
            store: Some(Arc::new(MemoryStore::new())),
            auth: build_auth(&config.auth, origin)?,
            http: http_options(config),
            copilotkit: config.copilotkit.clone(),
            named_events: config.named_events.clone(),
            connections: connections(&config.server),
            drain: Duration::from_secs(config.server.drain_secs),
            tools,
        })
    }

    /// Serves an agent under a name. The first one is also the default, behind `/send-message`.
    pub fn agent(mut self, name: &str, agent: impl Agent) -> Self {
        self.runs = self.runs.agent(name, Arc::new(agent));
        self
    }

    /// Serves an agent under a name, and at a path of your own choosing too, for a front end that has its
    /// address already.
    ///
    /// ```
    /// use agui_server::{Server, agent::{RunContext, build::TextMessage, events}, protocol::RunAgentInput};
    ///
    /// let sell = |_: RunAgentInput, _: RunContext| events(TextMessage::whole("We have two left."));
    /// let router = Server::new().agent_at("/api/shop/chat", "clerk", sell).into_router();
    /// // POST /api/shop/chat runs the same agent as POST /agents/clerk/send-message.
    /// # let _ = router;
    /// ```
    ///
    /// The path is written as axum's are. A server with one that is no path, or that is taken, panics when it
    /// is made into a router or served: it begins with `/`, and is none of [the server's own](crate::http).
    pub fn agent_at(mut self, path: &str, name: &str, agent: impl Agent) -> Self {
        self.paths.push(AgentPath { path: path.to_owned(), agent: name.into() });
        self.agent(name, agent)
    }

    /// Keeps threads in a store. Until then they are kept in memory.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Keeps nothing: an agent gets what the client sends, and no run outlives its connection.
    pub fn stateless(mut self) -> Self {
        self.store = None;
        self
    }

    /// Sets how threads and the runs on them are treated.
    pub fn thread_options(mut self, options: ThreadOptions) -> Self {
        self.threads = options;
        self
    }

    /// Limits every run.
    pub fn run_limits(mut self, limits: RunLimits) -> Self {
        self.runs = self.runs.limits(limits);
        self
    }

    /// Limits how many runs there may be at a time.
    pub fn max_concurrent_runs(mut self, runs: usize) -> Self {
        self.runs = self.runs.max_concurrent(runs);
        self
    }

    /// Lets in only who presents one of these keys, by whatever name the server is reached.
    pub fn api_keys(mut self, keys: impl IntoIterator<Item = ApiKey>) -> Self {
        self.auth = ApiKeys::new(keys).into();
        self.http.loopback_hosts_only = false;
        self
    }

    /// Lets in only who presents a token that this accepts, by whatever name the server is reached. The token's
    /// subject is the principal, and owns the threads it begins.
    pub fn jwt(mut self, jwt: Jwt) -> Self {
        self.auth = jwt.into();
        self.http.loopback_hosts_only = false;
        self
    }

    /// Authenticates requests: with a function of your own, or with the principal that the application's middleware put
    /// into the request's extensions. See [`Authenticator`].
    pub fn authenticator(mut self, authenticator: impl Into<Authenticator>) -> Self {
        self.auth = authenticator.into();
        self.http.loopback_hosts_only = self.auth.is_disabled();
        self
    }

    /// Limits how much of the server each principal may take. Without authentication there are none.
    pub fn principal_limits(mut self, limits: PrincipalLimits) -> Self {
        self.runs = self.runs.principal_limits(limits);
        self
    }

    /// Sets how requests are taken.
    pub fn http_options(mut self, options: HttpOptions) -> Self {
        self.http = options;
        self
    }

    /// Sets the options of the routes for [pages with CopilotKit](crate::copilotkit).
    ///
    /// A server with an invalid prefix panics when it is made into a router or served.
    pub fn copilotkit(mut self, options: CopilotKitOptions) -> Self {
        self.copilotkit = options;
        self
    }

    /// Sets the options of the [named-event endpoints](crate::named_events).
    pub fn named_events(mut self, options: NamedEventOptions) -> Self {
        self.named_events = options;
        self
    }

    /// Names the agents of the [named-event endpoints](crate::named_events), `/agent/chat/stream` and
    /// `/agent/agent/stream`. Without this, both have the default agent.
    pub fn named_event_agents(mut self, chat: impl Into<String>, agent: impl Into<String>) -> Self {
        (self.named_events.chat, self.named_events.agent) = (Some(chat.into()), Some(agent.into()));
        self
    }

    /// Sets how connections are treated.
    pub fn connections(mut self, connections: Connections) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how long runs may go on at shutdown.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }

    /// The server as an axum router, to be mounted in an application of your own. Limits on slow clients
    /// are then the application's business, as is shutting down.
    pub fn into_router(self) -> Router {
        let runs = build_runs(self.runs, self.store, self.threads);
        let further = |app: &App| further_routes(&self.copilotkit, &self.named_events, app);
        http::router(runs, self.auth, self.http, self.paths, further)
    }

    /// Listens on an address and serves until the process is told to stop (SIGTERM or Ctrl-C), then lets
    /// runs end.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn serve(self, address: impl tokio::net::ToSocketAddrs) -> io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        self.serve_on(listener, shutdown_signal()).await;
        Ok(())
    }

    /// Serves connections of a listener until `shutdown` completes, then lets runs end.
    pub async fn serve_on(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let runs = build_runs(self.runs, self.store, self.threads);
        if let Some(threads) = runs.threads() {
            threads.start_tasks();
        }
        self.tools.start();
        let further = |app: &App| further_routes(&self.copilotkit, &self.named_events, app);
        let router = http::router(runs.clone(), self.auth, self.http, self.paths, further);
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening on http://{address}");
        }
        let drained = async {
            tracing::info!(runs = runs.live_runs(), "shutting down");
            tokio::select! {
                () = runs.drain(self.drain) => {}
                // Whoever asks twice does not want to wait.
                () = shutdown_signal() => runs.drain(Duration::ZERO).await,
            }
        };
        http::serve(listener, router, self.connections, shutdown, drained).await;
        self.tools.stop().await;
    }
}

/// Completes when the process is told to stop: SIGTERM, or Ctrl-C.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "cannot wait for signals");
                std::future::pending::<()>().await;
            }
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the routes that stand on those of `http`.
fn further_routes(copilotkit: &CopilotKitOptions, named_events: &NamedEventOptions, app: &App) -> Router<App> {
    copilotkit::routes(copilotkit, app).merge(named_events::routes(named_events, app))
}

fn build_runs(runs: RunsBuilder, store: Option<Arc<dyn Store>>, options: ThreadOptions) -> Arc<Runs> {
    match store {
        Some(store) => runs.stored(store, options),
        None => runs.stateless(),
    }
}
