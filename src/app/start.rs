//! From a [`Server`]'s settings to a running server.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use tokio::net::TcpListener;

use super::{Server, ServerHandle, agents::build_agents, shutdown_signal, startup_log::log_start};
use crate::{
    config::ConfigError,
    copilotkit::{self, CopilotKitOptions},
    http::{self, App, Connections, FurtherRoutes, Route},
    named_events::{self, NamedEventOptions},
    run::Runs,
    tools::ToolRegistry,
};

impl Server {
    /// Builds all agents and tools, and throws them away. `agui-server check` is this.
    ///
    /// # Errors
    /// The first fault of the configuration, with its file, line and key.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.build_runs().map(drop)
    }

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
    pub fn into_router(self) -> Result<(Router, ServerHandle), ConfigError> {
        if self.auth.is_disabled() && self.store.is_some() {
            tracing::warn!(
                "the mounted server does not authenticate: all callers share all threads; call Server::authenticator, \
                 for example with Authenticator::from_extension()"
            );
        }
        let (router, handle, _) = self.start()?;
        Ok((router, handle))
    }

    /// Listens on an address and serves until the process is told to stop (SIGTERM or Ctrl-C), then lets runs end.
    ///
    /// # Errors
    /// The address cannot be listened on, or the configuration has a fault.
    pub async fn serve(self, address: impl tokio::net::ToSocketAddrs) -> io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        self.serve_on(listener, shutdown_signal()).await
    }

    /// Serves the connections of a listener until `shutdown` completes, then lets runs end.
    ///
    /// # Errors
    /// A fault of the configuration.
    pub async fn serve_on(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        if let Ok(address) = listener.local_addr() {
            log_start(address, &self);
        }
        let (router, handle, connections) = self.start().map_err(io::Error::other)?;
        let drained = async {
            tokio::select! {
                () = handle.drain(handle.drain) => {}
                // A second signal ends the wait.
                () = shutdown_signal() => handle.drain(Duration::ZERO).await,
            }
        };
        http::serve(listener, router, connections, shutdown, drained).await;
        handle.stop_tools().await;
        Ok(())
    }

    fn start(self) -> Result<(Router, ServerHandle, Connections), ConfigError> {
        let (runs, tools) = self.build_runs()?;
        let further = further_routes(self.copilotkit, self.named_events, self.store.is_some());
        let router = http::router(runs.clone(), self.auth, self.http, self.paths, further);
        let handle = ServerHandle { runs, tools, drain: self.drain };
        handle.start();
        Ok((router, handle, self.connections))
    }

    fn build_runs(&self) -> Result<(Arc<Runs>, ToolRegistry), ConfigError> {
        let (agents, tools) = build_agents(self.loaded.as_ref(), &self.agents, &self.models)?;
        let mut runs = Runs::builder()
            .limits(self.run_limits)
            .principal_limits(self.principal_limits)
            .max_concurrent(self.max_concurrent_runs);
        for (name, agent) in agents {
            runs = runs.agent(name, agent);
        }
        if let Some(name) = self.loaded.as_ref().and_then(|loaded| loaded.config.default_agent()) {
            runs = runs.default_agent(name);
        }
        let runs = match &self.store {
            Some(store) => runs.stored(store.clone(), self.threads.clone()),
            None => runs.stateless(),
        };
        Ok((runs, tools))
    }
}

/// Returns the routes of other modules than `http`, and their list for `GET /`.
fn further_routes(
    copilotkit: CopilotKitOptions,
    named_events: NamedEventOptions,
    stores_threads: bool,
) -> FurtherRoutes<impl FnOnce(&App) -> Router<App>> {
    let mut list = Vec::new();
    if copilotkit.enabled {
        let path = copilotkit.prefix.clone().into();
        list.push(Route { methods: "POST", path, purpose: "is the runtime for pages with CopilotKit".into() });
    }
    if named_events.enabled && stores_threads {
        for path in ["/agent/chat/stream", "/agent/agent/stream"] {
            list.push(Route { methods: "POST", path: path.into(), purpose: "runs an agent with named events".into() });
        }
    }
    let build = move |app: &App| copilotkit::routes(&copilotkit, app).merge(named_events::routes(&named_events, app));
    FurtherRoutes { list, build }
}
