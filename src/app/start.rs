//! From a [`Server`]'s settings to a running server.

use std::{io, time::Duration};

use axum::Router;
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use super::{Server, ServerError, ServerHandle, shutdown_signal, startup_log::log_start};
use crate::{
    copilotkit::{self, CopilotKitOptions},
    http::{self, App, Connections, FurtherRoutes, Route},
    named_events::{self, NamedEventOptions},
    run::Runs,
};

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
    pub async fn serve_on(self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) -> io::Result<()> {
        // Boxed, so that programs do not compile the server again for the type of their future.
        self.serve_until(listener, Box::pin(shutdown)).await
    }

    async fn serve_until(self, listener: TcpListener, shutdown: BoxFuture<'_, ()>) -> io::Result<()> {
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

    fn start(self) -> Result<(Router, ServerHandle, Connections), ServerError> {
        #[cfg(feature = "config")]
        let (agents, tools) = self.configured.build(&self.agents)?;
        #[cfg(not(feature = "config"))]
        let agents = self.agents;
        let mut runs = Runs::builder()
            .limits(self.run_limits)
            .principal_limits(self.principal_limits)
            .max_concurrent(self.max_concurrent_runs);
        for (name, agent) in agents {
            runs = runs.agent(name, agent);
        }
        #[cfg(feature = "config")]
        if let Some(name) = self.configured.default_agent() {
            runs = runs.default_agent(name);
        }
        let further = further_routes(self.copilotkit, self.named_events, self.store.is_some());
        let runs = match self.store {
            Some(store) => runs.stored(store, self.threads),
            None => runs.stateless(),
        };
        let router = http::router(runs.clone(), self.auth, self.http, self.paths, further);
        let handle = ServerHandle {
            runs,
            #[cfg(feature = "config")]
            tools,
            drain: self.drain,
        };
        handle.start();
        Ok((router, handle, self.connections))
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
