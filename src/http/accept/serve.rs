//! Accepts connections and serves them, until the server is stopped.
//!
//! axum's `serve` has no time limits for clients that never finish their request or never read their response.

use std::{io, net::IpAddr, time::Duration};

use axum::{Router, body::Body, http::Extensions};
use hyper::{Request, body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use smart_default::SmartDefault;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout},
};
use tower::ServiceExt as _;

use super::stall_timeout::StallTimeout;
use agui_base::{deadline::FAR_FUTURE, host_names::is_public};
use agui_observe::metrics::{ConnectionEnd, GaugeCount, Metrics};

/// The time that connections get to close after their last response. It begins again whenever one has closed: thousands of
/// them may need longer together.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for all connections together.
const CLOSE_ALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a failure to accept connections, such as a lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// The largest buffer of a connection in either direction, in bytes. It also limits the head of a request.
const MAX_BUFFER_BYTES: usize = 32 * 1024;

/// The number of connections that the kernel holds until they are accepted. `net.core.somaxconn` may lower it.
const BACKLOG: i32 = 4096;
/// The silence after which the kernel asks whether a peer still exists, and the interval and the number of its probes.
const PROBE_AFTER: Duration = Duration::from_secs(15);
const PROBE_INTERVAL: Duration = Duration::from_secs(8);
const MAX_PROBES: u32 = 3;
/// The connections beyond the limit that health checks get. They carry one request each, and any other request is refused.
const RESERVED_CONNECTIONS: usize = 32;
/// The time limit for the head of the request on such a connection.
const RESERVED_HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// The shortest interval between two log lines about too many connections.
const FULL_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The headers of a request that came through a proxy, so that its address is not the client's.
const PROXY_HEADERS: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/// The address of a request's connection.
#[derive(Debug, Clone, Copy)]
struct Peer(IpAddr);

/// Returns whether a request came through the loopback interface, and not through a proxy that says so. False if the
/// application serves the router itself.
pub(crate) fn is_from_this_machine<B>(request: &Request<B>) -> bool {
    let is_proxied = PROXY_HEADERS.into_iter().any(|name| request.headers().contains_key(name));
    let peer = request.extensions().get::<Peer>().filter(|_| !is_proxied);
    peer.is_some_and(|Peer(address)| address.to_canonical().is_loopback())
}

/// Returns whether a request may come from a proxy that the operator trusts: from this machine, or from a private network. True
/// if the application serves the router itself.
pub(crate) fn is_from_own_network(extensions: &Extensions) -> bool {
    extensions.get::<Peer>().is_none_or(|Peer(address)| !is_public(*address))
}

/// Marks a connection beyond the limit, which carries one request, and that request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BeyondLimit;

/// Limits of connections.
#[derive(Debug, Clone, Copy, SmartDefault)]
pub struct Connections {
    /// The largest number of connections. On further ones only health checks are answered.
    #[default(20_000)]
    pub max: usize,
    /// The time limit for receiving a request's head, also of the next request on a connection.
    #[default(Duration::from_secs(15))]
    pub head_timeout: Duration,
    /// The time after which a client is disconnected that does not read, or whose machine does not acknowledge packets. On
    /// systems other than Linux the second is about 40 seconds for connections without data on the way.
    #[default(Duration::from_secs(40))]
    pub stall_timeout: Duration,
}

/// Serves a router until `shutdown` completes, then calls `drain`, refuses new connections, and waits for what it returned
/// and for the connections to close.
pub(crate) async fn serve<D: Future<Output = ()>>(
    listener: TcpListener,
    router: Router,
    options: Connections,
    metrics: Metrics,
    shutdown: impl Future<Output = ()>,
    drain: impl FnOnce() -> D,
) {
    if let Err(error) = prepare(&listener, options.stall_timeout) {
        tracing::warn!(%error, "cannot set all options of the listening socket");
    }
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut logged_full = None;
    tokio::pin!(shutdown);
    loop {
        let is_full = connections.len() >= options.max.saturating_add(RESERVED_CONNECTIONS);
        let accepted = tokio::select! {
            accepted = listener.accept(), if !is_full => accepted,
            () = &mut shutdown => break,
            // Removes ended connections, so that the set does not grow.
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                let beyond_limit = (connections.len() >= options.max).then_some(BeyondLimit);
                if beyond_limit.is_some() {
                    log_full(&mut logged_full, options.max);
                }
                let (router, peer) = (router.clone(), Peer(peer.ip()));
                let connection = connection(
                    stream,
                    router,
                    peer,
                    beyond_limit,
                    options,
                    metrics.clone(),
                    stopping.clone(),
                );
                connections.spawn(connection);
            }
            Err(error) => pause_after(&error).await,
        }
    }
    // Before new connections are refused: an operator who sees that may send the second signal.
    let drained = drain();
    drop(listener);
    // Idle connections close at once, others after their current response.
    let _ = stop.send(true);
    drained.await;
    let closed =
        async { while let Ok(Some(_)) = timeout(CLOSE_TIMEOUT, connections.join_next()).await {} };
    let _ = timeout(CLOSE_ALL_TIMEOUT, closed).await;
    if !connections.is_empty() {
        tracing::debug!(connections = connections.len(), "some connections did not close in time");
    }
}

/// Sets options that the accepted connections inherit. Without them, the kernel keeps the connection of a machine that
/// has vanished for a quarter of an hour if data is on the way, and for ever if none is.
fn prepare(listener: &TcpListener, peer_timeout: Duration) -> io::Result<()> {
    let socket = SockRef::from(listener);
    // On a listening socket, this changes the backlog.
    socket.listen(BACKLOG)?;
    let probes = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_INTERVAL)
        .with_retries(MAX_PROBES);
    socket.set_tcp_keepalive(&probes)?;
    set_user_timeout(&socket, peer_timeout)
}

#[cfg(target_os = "linux")]
fn set_user_timeout(socket: &SockRef<'_>, peer_timeout: Duration) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(peer_timeout))
}

/// Other systems have probes only.
#[cfg(not(target_os = "linux"))]
fn set_user_timeout(_: &SockRef<'_>, _: Duration) -> io::Result<()> {
    Ok(())
}

fn log_full(last: &mut Option<Instant>, max: usize) {
    if last.is_none_or(|last| last.elapsed() >= FULL_LOG_INTERVAL) {
        *last = Some(Instant::now());
        tracing::warn!(
            max,
            "at the limit of connections: requests on further ones are refused; see [server] max_connections"
        );
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    peer: Peer,
    beyond_limit: Option<BeyondLimit>,
    options: Connections,
    metrics: Metrics,
    mut stopping: watch::Receiver<bool>,
) {
    let with_peer = move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        if let Some(mark) = beyond_limit {
            request.extensions_mut().insert(mark);
        }
        request.map(Body::new)
    };
    let service = TowerToHyperService::new(router.map_request(with_peer));
    let head_timeout = beyond_limit
        .map_or(options.head_timeout, |_| options.head_timeout.min(RESERVED_HEAD_TIMEOUT));
    // Events are small, and Nagle's algorithm would delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's algorithm");
    }
    let _open = GaugeCount::new(&metrics.http.connections);
    let stall_timeout = StallTimeout::new(stream, options.stall_timeout, metrics.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(beyond_limit.is_none())
        // hyper adds it to an instant.
        .header_read_timeout(head_timeout.min(FAR_FUTURE))
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stall_timeout), service)
        .with_upgrades();
    tokio::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = wait_for_stop(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        metrics.http.connection_broke(end_of(&error));
        tracing::debug!(%error, "connection ended");
    }
}

fn end_of(error: &hyper::Error) -> ConnectionEnd {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        _ if error.is_parse_too_large() => ConnectionEnd::HeadTooLarge,
        _ if error.is_timeout() => ConnectionEnd::HeadTimeout,
        Some(io::ErrorKind::TimedOut) => ConnectionEnd::Stalled,
        _ => ConnectionEnd::Other,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_connections_notice_peers_that_vanish() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        prepare(&listener, Duration::from_secs(40)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), PROBE_AFTER);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), PROBE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), MAX_PROBES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(40)));
    }
}
