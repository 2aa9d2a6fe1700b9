//! From a [`Server`]'s settings to a running server.

use std::{io, net::SocketAddr, time::Duration};

use axum::Router;
use futures::future::BoxFuture;
use tokio::{net::TcpListener, sync::oneshot};

use super::{
    Server, ServerError, ServerHandle, configured::BuiltAgents, shutdown_signal,
    startup_log::log_start,
};
use crate::{
    clients, http,
    http::{Connections, HttpOptions, Routers},
};
use agui_agent::surfaces;
use agui_base::memory_budget::Sharing;
use agui_observe::{metrics::Metrics, recordings::RecordingWriter, telemetry::logs};
use agui_run::host::{RunLimits, RunMemoryBudget, RunsBuilder};

/// Connections on the listener for metrics. Requests on further ones are refused.
const MAX_METRICS_CONNECTIONS: usize = 32;

impl Server {
    /// The server as an axum router, to be mounted in an application of your own, and a handle that ends its runs when
    /// the application shuts down. The application limits slow clients itself.
    ///
    /// Call it in a tokio runtime, so that runs which a crash left open are closed at once and MCP servers start.
    ///
    /// # Errors
    /// A fault of the configuration.
    ///
    /// # Panics
    /// Panics if a path of [`agent_at`](Server::agent_at) is invalid or already routed.
    pub fn into_router(self) -> Result<(Router, ServerHandle), ServerError> {
        if self.auth.is_disabled() {
            tracing::warn!(
                "the mounted server does not authenticate: all callers share all threads; call Server::authenticator, \
                 for example with Authenticator::from_extension()"
            );
        }
        let (routers, handle, _) = self.start(None)?;
        Ok((routers.main, handle))
    }

    /// Listens on an address and serves until the process is told to stop (SIGTERM or Ctrl-C), then lets runs end.
    ///
    /// A program without a `tracing` subscriber gets one that logs to standard error: where the server listens, and why
    /// runs fail. `RUST_LOG` sets its level.
    ///
    /// # Errors
    /// The address cannot be listened on, `RUST_LOG` is invalid, or the configuration has a fault.
    pub async fn serve(self, address: impl tokio::net::ToSocketAddrs) -> io::Result<()> {
        logs::init_unless_set().map_err(|error| io::Error::other(format!("RUST_LOG: {error}")))?;
        let listener = TcpListener::bind(address).await?;
        self.serve_on(listener, shutdown_signal()).await
    }

    /// Serves the connections of a listener until `shutdown` completes, then lets runs end. Unlike [`serve`](Self::serve), it
    /// starts no log: call [`logs::init`](crate::logs::init), or set a subscriber.
    ///
    /// # Errors
    /// A fault of the configuration.
    pub async fn serve_on(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        // Boxed, so that programs do not compile the server again for the type of their future.
        self.serve_until(listener, Box::pin(shutdown)).await
    }

    async fn serve_until(
        self,
        listener: TcpListener,
        shutdown: BoxFuture<'_, ()>,
    ) -> io::Result<()> {
        let metrics_listener = metrics_listener(&self).await?;
        let address = listener.local_addr().ok();
        let (routers, handle, connections) = self.start(address).map_err(io::Error::other)?;
        let metrics = handle.runs.metrics.clone();
        let router = routers.main;
        // Stops serving metrics when it is dropped, which is after the runs have ended.
        let _metrics_server = match metrics_listener {
            None => None,
            Some((listener, is_loopback)) => {
                let routes =
                    if is_loopback { routers.open_metrics } else { routers.authenticated_metrics };
                Some(serve_metrics(listener, routes, connections))
            }
        };
        let drain = || {
            let second_signal = shutdown_signal();
            async {
                tokio::select! {
                    () = handle.drain(handle.drain) => {}
                    () = second_signal => handle.drain(Duration::ZERO).await,
                }
            }
        };
        http::serve(listener, router, connections, metrics, shutdown, drain).await;
        handle.stop_tools().await;
        Ok(())
    }

    /// Builds the routes. `address` is the listener's; `None` if the server is mounted.
    fn start(
        self,
        address: Option<SocketAddr>,
    ) -> Result<(Routers, ServerHandle, Connections), ServerError> {
        self.check_settings()?;
        let recordings = RecordingWriter::open(&self.record).map_err(|error| {
            ServerError::Record { dir: self.record.dir.clone().unwrap_or_default(), error }
        })?;
        let BuiltAgents { agents, tools, warnings } = self.configured.build(&self.agents)?;
        if let Some(address) = address {
            log_start(address, &agents.keys().map(String::as_str).collect::<Vec<_>>(), &self);
        }
        let mut optional = self.optional_routes(address);
        optional.extend(tools.login_routes(&self.store, address));
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let mut principal_limits = self.principal_limits;
        let sharing = self.auth.sharing();
        if sharing == Sharing::SingleOwner {
            principal_limits.share_percent = 100;
        }
        let limits = self.threads.runs;
        let memory =
            RunMemoryBudget::new(limits.max_memory_bytes, self.http.max_body_bytes, sharing);
        let mut threads = self.threads;
        threads.files.public_url.clone_from(&self.http.public_url);
        let mut runs = RunsBuilder {
            store: self.store,
            threads,
            limits: RunLimits {
                max: limits.max,
                idle: limits.idle,
                heartbeat: self.http.keep_alive,
            },
            principal_limits,
            memory,
            max_concurrent: limits.max_concurrent,
            metrics: Metrics::new(self.prices),
            recordings: recordings.clone(),
            begin_drawing: Some(surfaces::begin),
            records_content: self.telemetry.content,
            ..RunsBuilder::default()
        };
        for (name, agent) in agents {
            runs = runs.agent(name, agent);
        }
        if let Some(name) = self.configured.default_agent() {
            runs.agents.set_default(name.into());
        }
        let runs = runs.build();
        if let Some(data) = tools.thread_data() {
            runs.threads.set_data(data);
        }
        let mut built_in = vec![clients::runs::route_set()];
        built_in.extend(http::built_in(self.metrics.main_listener));
        let dependencies = tools.dependencies();
        let mut http = self.http;
        if self.transcription.is_some() {
            http.transcribe_path = clients::transcribe_path(&http);
        }
        if address.is_some() {
            limit_streams(&mut http, self.connections.max);
        }
        let known = clients::known(&http.clients);
        let routers =
            http::router(runs.clone(), self.auth, http, known, built_in, optional, dependencies);
        let handle = ServerHandle { runs, tools, recordings, drain: self.drain };
        handle.start();
        Ok((routers, handle, self.connections))
    }

    fn check_settings(&self) -> Result<(), ServerError> {
        if let Err((option, path, problem)) = clients::check_paths(&self.http) {
            return Err(ServerError::ClientPath { option, path, problem });
        }
        match self.prices.find_invalid() {
            Some(model) => Err(ServerError::Price(model.to_owned())),
            None => Ok(()),
        }
    }
}

/// Lowers the number of streams to half of the connections: streams without an end leave connections for everything else.
fn limit_streams(http: &mut HttpOptions, max_connections: usize) {
    let most = (max_connections / 2).max(1);
    if http.max_streams > most {
        tracing::warn!(
            configured = http.max_streams,
            "[server] max_streams is lowered to {most}, half of the {max_connections} connections that the server can have"
        );
        http.max_streams = most;
    }
}

/// Binds the listener for metrics. Returns it, and whether it is on loopback.
async fn metrics_listener(server: &Server) -> io::Result<Option<(TcpListener, bool)>> {
    let Some(address) = server.metrics.listen else { return Ok(None) };
    let is_loopback = address.ip().to_canonical().is_loopback();
    if server.auth.is_disabled() && !is_loopback {
        let problem =
            format!("metrics on {address} need authentication: use 127.0.0.1, or configure it");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address} for metrics: {error}"))
    })?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "serving metrics on http://{address}/metrics");
    Ok(Some((listener, is_loopback)))
}

/// Serves metrics until the returned sender is dropped.
fn serve_metrics(
    listener: TcpListener,
    routes: Router,
    options: Connections,
) -> oneshot::Sender<()> {
    let (stop, stopped) = oneshot::channel();
    let stopped = async move { drop(stopped.await) };
    let options = Connections { max: MAX_METRICS_CONNECTIONS, ..options };
    // Its connections are not those of clients, so they do not count.
    tokio::spawn(http::serve(listener, routes, options, Metrics::default(), stopped, || {
        std::future::ready(())
    }));
    stop
}
