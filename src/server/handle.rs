//! [`ServerHandle`]: the background work of a mounted server, and its shutdown.

use std::{sync::Arc, time::Duration};

use super::configured::ServerTools;
use agui_observe::recordings::RecordingWriter;
use agui_run::host::Runs;

/// Shuts down a server that is mounted in an application.
///
/// ```no_run
/// use agui_server::{prelude::*, shutdown_signal};
///
/// # async fn hello(_: RunAgentInput, out: Emitter) -> Result<(), AgentError> { out.text("Hello!").await }
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let (router, handle) = Server::new().agent("hello", agent_fn(hello)).into_router()?;
/// let app = axum::Router::new().nest("/agents", router);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// axum::serve(listener, app)
///     .with_graceful_shutdown(async move {
///         shutdown_signal().await;
///         handle.shutdown().await;
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// Without it, an application waits at its shutdown for as long as any run continues.
#[derive(Clone)]
#[must_use = "call `shutdown` when the application ends"]
pub struct ServerHandle {
    pub(super) runs: Arc<Runs>,
    pub(super) tools: ServerTools,
    pub(super) recordings: Option<RecordingWriter>,
    pub(super) drain: Duration,
}

impl ServerHandle {
    /// Refuses new runs, lets running ones end within [`drain`](super::Server::drain), stops the others, each with its
    /// terminal event, and then stops the processes of MCP servers. Until it returns, the application should continue to
    /// serve.
    pub async fn shutdown(&self) {
        self.drain(self.drain).await;
        self.stop_tools().await;
    }

    /// The number of runs that have not ended.
    pub fn live_runs(&self) -> usize {
        self.runs.live_runs()
    }

    /// Starts the maintenance of threads, and the MCP servers. Both also start when they are first needed.
    pub(super) fn start(&self) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.runs.start_tasks();
            self.tools.start();
        }
    }

    pub(super) async fn drain(&self, time: Duration) {
        tracing::info!(runs = self.live_runs(), "shutting down");
        self.runs.drain(time).await;
    }

    /// Stops tools, and writes the rest of recordings.
    pub(super) async fn stop_tools(&self) {
        self.tools.stop().await;
        if let Some(recordings) = &self.recordings {
            recordings.flush().await;
        }
    }
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle").field("live_runs", &self.live_runs()).finish_non_exhaustive()
    }
}
