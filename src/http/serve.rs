//! Accepts connections and serves each, until it is told to stop.
//!
//! axum's own `serve` has no time-outs for clients that never finish their request or never read their
//! answer, and that is most of what is here.

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

use super::io::StallLimit;

/// How long connections may take to close once their last response is sent.
const GOODBYE: Duration = Duration::from_secs(2);
/// How long to wait when the system has no more connections to give.
const NO_MORE_FILES: Duration = Duration::from_millis(100);
/// The most that is buffered of a connection in either direction, and so about the largest request head.
const BUFFER: usize = 64 * 1024;

/// How connections are treated.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// How long a request's head may take to arrive, also on a connection that is kept alive.
    pub head_timeout: Duration,
    /// How long a client may leave what is sent to it unread.
    pub stall_timeout: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self { head_timeout: Duration::from_secs(15), stall_timeout: Duration::from_secs(60) }
    }
}

/// Serves a router until `shutdown` completes; then accepts nothing more, lets `drained` complete, and
/// waits for the connections to close.
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
            // Ended connections are forgotten as they end, so that the set does not grow.
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let service = TowerToHyperService::new((*service).clone());
                connections.spawn(connection(stream, service, options, stopping.clone()));
            }
            Err(error) => refused(&error).await,
        }
    }
    drop(listener);
    // Idle connections close at once, busy ones after the response they are sending.
    let _ = stop.send(true);
    drained.await;
    let closed = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GOODBYE, closed).await.is_err() {
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
    // Events are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not turn off Nagle's algorithm");
    }
    let io = TokioIo::new(StallLimit::new(stream, options.stall_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .max_buf_size(BUFFER)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = told(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}

async fn told(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same as one that says so.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Some errors concern one connection that is gone already; the others mean that there is nothing to
/// accept connections with, and trying again at once would only burn time.
async fn refused(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(NO_MORE_FILES).await;
    }
}
