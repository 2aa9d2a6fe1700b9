//! Memory and responses of a server with hundreds of hostile connections of each kind.
//!
//! ```sh
//! cargo test --test memory hostile_connections -- --nocapture --test-threads 1
//! ```
//!
//! shows all figures; with `AGUI_SERVER_BINARY=PATH`, those of another build. `tests/vanished_peers.sh` measures clients
//! whose packets are dropped.

use std::time::Duration;

use futures::future::join_all;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::load_server::{HEAD, LoadServer, MEGABYTE};

const CONNECTIONS: usize = 2000;
/// Fewer, because a debug build takes long to fill the buffers of each.
const STREAMS: usize = 500;

impl LoadServer {
    /// Opens all connections at once, and sends `head` and `body` on each, as far as the server takes them.
    async fn hold(&self, head: &str, body: &[u8]) -> Vec<TcpStream> {
        join_all((0..CONNECTIONS).map(|_| async {
            let mut stream = self.connect().await;
            stream.write_all(head.as_bytes()).await.unwrap();
            // The server may refuse the rest.
            let _ = timeout(Duration::from_secs(4), stream.write_all(body)).await;
            stream
        }))
        .await
    }

    /// Checks that other clients get their answers, and that the peak of the memory is below a limit.
    async fn check(&self, connections: usize, kind: &str, max_megabytes: usize) {
        let started = Instant::now();
        self.run("hello", "RUN_FINISHED").await;
        let latency = started.elapsed();
        self.wait_until_idle().await;
        let [now, peak] = ["VmRSS", "VmHWM"].map(|member| self.memory(member) / MEGABYTE);
        println!(
            "{connections} connections, {kind}: {now} MB, at most {peak} MB; a run took {latency:?}"
        );
        assert!(peak < max_megabytes, "{kind}: {peak} MB");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_send_nothing_take_little_memory() {
    let server = LoadServer::start(CONNECTIONS);
    let held = server.hold("", b"").await;
    server.check(CONNECTIONS, "which send nothing", 100).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_never_end_take_little_memory() {
    let server = LoadServer::start(CONNECTIONS);
    let head = format!("{HEAD}X-Long: {}", "x".repeat(8000));
    let held = server.hold(&head, b"").await;
    server.check(CONNECTIONS, "with 8 kB of a head", 140).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_never_end_stay_within_their_budget() {
    let server = LoadServer::start(CONNECTIONS);
    let head = format!("{HEAD}Content-Length: 9400000\r\n\r\n");
    let held = server.hold(&head, &vec![b' '; MEGABYTE]).await;
    server.check(CONNECTIONS, "with 1 MB of a body of 9.4 MB", 300).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_take_little_memory() {
    let server = LoadServer::start(CONNECTIONS);
    let held = join_all((0..STREAMS).map(|_| server.begin_run("burst"))).await;
    server.check(STREAMS, "which do not read their stream", 250).await;
    drop(held);
}
