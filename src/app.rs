//! The one place where the parts are put together: from a configuration, or by hand.

use std::{io, path::Path, sync::Arc, time::Duration};

use axum::Router;
use tokio::net::TcpListener;

use crate::{
    agent::Agent,
    agents::{Echo, Script},
    auth::{ApiKey, ApiKeys, Authenticator},
    config::{self, AgentKind, AuthMode, Config, ConfigError, Loaded, Origin},
    http::{self, Connections, Cors, HttpOptions},
    run::{RunLimits, Runner, RunnerBuilder},
};

/// The demo script, which is served unless a configuration names other agents.
const DEMO: &str = include_str!("../config/scripts/demo.toml");
/// What the default configuration calls it.
const DEMO_PATH: &str = "scripts/demo.toml";

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
    runner: RunnerBuilder,
    auth: Authenticator,
    http: HttpOptions,
    connections: Connections,
    drain: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server without agents, with the default options and without authentication: it answers only
    /// requests to a loopback name until it has [keys](Self::api_keys) or
    /// [other options](Self::http_options).
    pub fn new() -> Self {
        let config = Config::default();
        Self {
            runner: Runner::builder().limits(limits(&config)).max_concurrent(config.runs.max_concurrent),
            auth: Authenticator::Open,
            http: http_options(&config),
            connections: connections(&config.server),
            drain: Duration::from_secs(config.server.drain_secs),
        }
    }

    /// The server that a configuration describes.
    ///
    /// # Errors
    /// A [`ConfigError`], when a script or a key cannot be read.
    pub fn from_config(Loaded { config, origin }: &Loaded) -> Result<Self, ConfigError> {
        let mut runner = Runner::builder().limits(limits(config)).max_concurrent(config.runs.max_concurrent);
        for (name, agent) in &config.agents {
            runner = runner.agent(name.as_str(), build_agent(name, agent, origin)?);
        }
        if let Some(name) = config.default_agent() {
            runner = runner.default_agent(name);
        }
        Ok(Self {
            runner,
            auth: build_auth(&config.auth, origin)?,
            http: http_options(config),
            connections: connections(&config.server),
            drain: Duration::from_secs(config.server.drain_secs),
        })
    }

    /// Serves an agent under a name. The first one is also the default, behind `/send-message`.
    pub fn agent(mut self, name: &str, agent: impl Agent) -> Self {
        self.runner = self.runner.agent(name, Arc::new(agent));
        self
    }

    /// Limits every run.
    pub fn run_limits(mut self, limits: RunLimits) -> Self {
        self.runner = self.runner.limits(limits);
        self
    }

    /// Limits how many runs there may be at a time.
    pub fn max_concurrent_runs(mut self, runs: usize) -> Self {
        self.runner = self.runner.max_concurrent(runs);
        self
    }

    /// Lets in only who presents one of these keys, by whatever name the server is reached.
    pub fn api_keys(mut self, keys: impl IntoIterator<Item = ApiKey>) -> Self {
        self.auth = Authenticator::ApiKeys(ApiKeys::new(keys));
        self.http.loopback_hosts_only = false;
        self
    }

    /// Sets how requests are taken.
    pub fn http_options(mut self, options: HttpOptions) -> Self {
        self.http = options;
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
        http::router(Arc::new(self.runner.build()), self.auth, self.http)
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
        let runner = Arc::new(self.runner.build());
        let router = http::router(runner.clone(), self.auth, self.http);
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening on http://{address}");
        }
        let drained = async {
            tracing::info!(runs = runner.live_runs(), "shutting down");
            tokio::select! {
                () = runner.drain(self.drain) => {}
                // Whoever asks twice does not want to wait.
                () = shutdown_signal() => runner.drain(Duration::ZERO).await,
            }
        };
        http::serve(listener, router, self.connections, shutdown, drained).await;
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

fn build_agent(name: &str, agent: &config::Agent, origin: &Origin) -> Result<Arc<dyn Agent>, ConfigError> {
    match (agent.kind, &agent.script) {
        (AgentKind::Echo, _) => Ok(Arc::new(Echo)),
        (AgentKind::Script, Some(path)) => Ok(Arc::new(read_script(name, path, origin)?)),
        (AgentKind::Script, None) => Err(origin.error(&["agents", name], "kind = \"script\" needs `script`, a file")),
    }
}

fn read_script(name: &str, path: &Path, origin: &Origin) -> Result<Script, ConfigError> {
    let resolved = origin.resolve(path);
    let text = if path == Path::new(DEMO_PATH) && !origin.mentions(&["agents", name]) {
        DEMO.to_owned()
    } else {
        std::fs::read_to_string(&resolved).map_err(|error| {
            origin.error(&["agents", name, "script"], &format!("{} cannot be read: {error}", resolved.display()))
        })?
    };
    Script::parse(&text).map_err(|error| ConfigError::at(&resolved, &text, error.span(), error.message()))
}

fn build_auth(auth: &config::Auth, origin: &Origin) -> Result<Authenticator, ConfigError> {
    if auth.mode != Some(AuthMode::ApiKey) {
        return Ok(Authenticator::Open);
    }
    let keys = auth.api_keys.iter().map(|key| {
        let fault = |problem: String| origin.error(&["auth", "api_keys"], &format!("key {:?}: {problem}", key.name));
        if let Some(digest) = &key.sha256 {
            return ApiKey::from_sha256(key.name.as_str(), digest).map_err(|error| fault(error.to_string()));
        }
        let variable = key.env.as_deref().unwrap_or_default();
        match std::env::var(variable) {
            Ok(secret) if !secret.trim().is_empty() => Ok(ApiKey::from_secret(key.name.as_str(), secret.trim())),
            _ => Err(fault(format!("the environment variable {variable} is not set"))),
        }
    });
    Ok(Authenticator::ApiKeys(ApiKeys::new(keys.collect::<Result<Vec<_>, _>>()?)))
}

/// A number of seconds of which 0 means no limit.
fn seconds(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn limits(config: &Config) -> RunLimits {
    RunLimits {
        max: seconds(config.runs.max_seconds),
        idle: seconds(config.runs.idle_seconds),
        heartbeat: seconds(config.server.keep_alive_secs),
    }
}

fn http_options(config: &Config) -> HttpOptions {
    HttpOptions {
        max_body_bytes: config.server.max_body_bytes,
        body_timeout: Duration::from_secs(config.server.body_timeout_secs),
        cors: Cors { allow_localhost: config.cors.allow_localhost, allow_origins: config.cors.allow_origins.clone() },
        loopback_hosts_only: config.auth.mode != Some(AuthMode::ApiKey) && !config.auth.allow_unauthenticated,
    }
}

fn connections(server: &config::Server) -> Connections {
    Connections {
        head_timeout: Duration::from_secs(server.head_timeout_secs),
        stall_timeout: Duration::from_secs(server.stall_timeout_secs),
    }
}
