//! Accepts connections and serves them, until the server is stopped.
//!
//! axum's `serve` has no time limits for clients that never finish their request or never read their response.

use std::{io, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use hyper::{Request, body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tower::ServiceExt as _;

use super::stall_timeout::StallTimeout;

/// The time that connections get to close after their last response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause after a failure to accept connections, such as a lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// The largest buffer of a connection in either direction, in bytes. It also limits the head of a request.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// Time limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// The time limit for receiving a request's head, also of the next request on a connection.
    pub head_timeout: Duration,
    /// The time after which a client that does not read is disconnected.
    pub stall_timeout: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self { head_timeout: Duration::from_secs(15), stall_timeout: Duration::from_secs(60) }
    }
}

/// Serves a router until `shutdown` completes, then waits for `drained` and for the connections to close.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    options: Connections,
    shutdown: impl Future<Output = ()>,
    drained: impl Future<Output = ()>,
) {
    let service = Arc::new(router.map_request(|request: Request<Incoming>| request.map(Body::new)));
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
            // Removes ended connections, so that the set does not grow.
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let service = TowerToHyperService::new((*service).clone());
                connections.spawn(connection(stream, service, options, stopping.clone()));
            }
            Err(error) => pause_after(&error).await,
        }
    }
    drop(listener);
    // Idle connections close at once, others after their current response.
    let _ = stop.send(true);
    drained.await;
    let closed = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
        tracing::debug!("some connections did not close in time");
    }
}

async fn connection<S>(
    stream: TcpStream,
    service: TowerToHyperService<S>,
    options: Connections,
    mut stopping: watch::Receiver<bool>,
) where
    S: tower::Service<Request<Incoming>, Response = axum::response::Response, Error = std::convert::Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    // Events are small, and Nagle's algorithm would delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's algorithm");
    }
    let io = TokioIo::new(StallTimeout::new(stream, options.stall_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = wait_for_stop(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}

async fn wait_for_stop(stopping: &mut watch::Receiver<bool>) {
    // A dropped sender also means that the server has stopped.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// There is no pause after an error that concerns only one connection, which is gone already.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(ACCEPT_BACKOFF).await;
    }
}
