//! Memory of a server with hundreds of hostile connections of each kind, and whether it still answers.
//!
//! ```sh
//! cargo test --test memory hostile_connections -- --nocapture --test-threads 1
//! ```
//!
//! shows all figures; with `AGUI_SERVER_BINARY=PATH`, those of another build. `tests/vanished_peers.sh` measures clients
//! whose packets are dropped.

use std::{fs, process::Command, time::Duration};

use futures::future::join_all;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::{Instant, timeout},
};

use crate::server::{BINARY, Process};

const CONNECTIONS: usize = 2000;
/// Fewer, because a debug build takes long to fill the buffers of each.
const STREAMS: usize = 500;
const MEGABYTE: usize = 1024 * 1024;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const HEAD: &str = "POST /send-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const CONFIG: &str = r#"
[server]
drain_secs = 0
[runs]
max_concurrent = 3000
[agents.load]
kind = "script"
script = "load.toml"
"#;
const SCRIPT: &str = r#"
[[reply]]
when.user = "burst"
play = [{ count = "1000000", most = 1000000, every_ms = 0 }]
[[reply]]
play = [{ text = "Hello" }]
"#;

struct Server {
    process: Process,
    _files: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
        assert!(files > 2 * CONNECTIONS as u64, "this machine gives a process no more than {files} open files");
        let files = tempfile::tempdir().unwrap();
        let config = files.path().join("load-config.toml");
        fs::write(&config, CONFIG).unwrap();
        fs::write(files.path().join("load.toml"), SCRIPT).unwrap();
        let binary = std::env::var("AGUI_SERVER_BINARY").unwrap_or_else(|_| BINARY.to_owned());
        let arguments = [
            "--config",
            config.to_str().unwrap(),
            "--log",
            "error,agui_server::http::accept::serve=info,agui_server::server=info",
        ];
        let process = Process::launch(Command::new(binary), tempfile::tempdir().unwrap(), &arguments, &[]);
        Self { process, _files: files }
    }

    /// Connects with small buffers, so that what is sent is in the server's memory and not in the kernel's.
    async fn connect(&self) -> TcpStream {
        let address = self.process.url.strip_prefix("http://").unwrap().parse().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.set_send_buffer_size(32 * 1024).unwrap();
        timeout(TEST_TIMEOUT, socket.connect(address)).await.unwrap().unwrap()
    }

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

    async fn wait_until_idle(&self) {
        let ticks = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.child.id())).unwrap();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
        };
        let mut before = ticks();
        timeout(TEST_TIMEOUT, async {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let now = ticks();
                if now < before + 3 {
                    break;
                }
                before = now;
            }
        })
        .await
        .expect("the server is never idle");
    }

    /// Checks that other clients get their answers, and that the peak of the memory is below a limit.
    async fn check(&self, connections: usize, kind: &str, max_megabytes: usize) {
        let started = Instant::now();
        let answer = self.run("hello").await;
        assert!(answer.contains("RUN_FINISHED"), "{answer}");
        let latency = started.elapsed();
        self.wait_until_idle().await;
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.child.id())).unwrap();
        let megabytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() / 1024
        };
        let (now, peak) = (megabytes("VmRSS:"), megabytes("VmHWM:"));
        println!("{connections} connections, {kind}: {now} MB, at most {peak} MB; a run took {latency:?}");
        assert!(peak < max_megabytes, "{kind}: {peak} MB");
    }

    async fn run(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request(text).as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(TEST_TIMEOUT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    }
}

fn request(text: &str) -> String {
    let thread = uuid::Uuid::new_v4().to_string();
    let body =
        json!({ "threadId": thread, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": text }] })
            .to_string();
    format!("{HEAD}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_send_nothing_take_little_memory() {
    let server = Server::start();
    let held = server.hold("", b"").await;
    server.check(CONNECTIONS, "which send nothing", 100).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_never_end_take_little_memory() {
    let server = Server::start();
    let head = format!("{HEAD}X-Long: {}", "x".repeat(8000));
    let held = server.hold(&head, b"").await;
    server.check(CONNECTIONS, "with 8 kB of a head", 140).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_never_end_stay_within_their_budget() {
    let server = Server::start();
    let head = format!("{HEAD}Content-Length: 9400000\r\n\r\n");
    let held = server.hold(&head, &vec![b' '; MEGABYTE]).await;
    server.check(CONNECTIONS, "with 1 MB of a body of 9.4 MB", 300).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_take_little_memory() {
    let server = Server::start();
    let held = join_all((0..STREAMS).map(|_| async {
        let mut stream = server.connect().await;
        stream.write_all(request("burst").as_bytes()).await.unwrap();
        stream
    }))
    .await;
    server.check(STREAMS, "which do not read their stream", 250).await;
    drop(held);
}
