//! Memory of a server process whose clients do not read, and of one with idle streams.

use std::{fs, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::server::Process;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const MEGABYTE: usize = 1024 * 1024;

const CONFIG: &str = r#"
[server]
drain_secs = 0
# Or the server is never idle, if the streams take longer than the interval to begin.
keep_alive_secs = 600
[runs]
max_concurrent = 20000
[agents.load]
kind = "script"
script = "load.toml"
"#;
const SCRIPT: &str = r#"
[[reply]]
when.user = "burst"
play = [{ count = "1000000", most = 1000000, every_ms = 0 }]
[[reply]]
when.user = "log"
play = [{ count = "200000", most = 200000, every_ms = 0 }]
[[reply]]
when.user = "idle"
play = [{ text = "Just a moment" }, { wait_ms = 600000 }]
[[reply]]
play = [{ text = "Hello" }]
"#;

struct Server {
    process: Process,
    _files: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let files = tempfile::tempdir().unwrap();
        let config = files.path().join("load-config.toml");
        fs::write(&config, CONFIG).unwrap();
        fs::write(files.path().join("load.toml"), SCRIPT).unwrap();
        let process = Process::start(&["--config", config.to_str().unwrap(), "--log", "warn,agui_server=info"], &[]);
        Self { process, _files: files }
    }

    /// Starts a run and reads its response up to the text `until`.
    async fn run(&self, text: &str, until: &str) -> TcpStream {
        // Concurrent runs on the same thread would wait for each other.
        let thread = uuid::Uuid::new_v4().to_string();
        let mut stream = TcpStream::connect(self.process.url.strip_prefix("http://").unwrap()).await.unwrap();
        let body =
            json!({ "threadId": thread, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": text }] })
                .to_string();
        let head = "POST /send-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length";
        stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
        while !String::from_utf8_lossy(&answer).contains(until) {
            let read = timeout(TEST_TIMEOUT, stream.read(&mut piece)).await.expect(until).unwrap();
            assert_ne!(read, 0, "the answer ended before {until}");
            answer.extend_from_slice(&piece[..read]);
        }
        stream
    }

    /// Stores a log of about 25 MB. Returns the path of its run.
    async fn store_long_log(&self) -> String {
        let input = json!({
            "threadId": "long", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "log" }],
            "forwardedProps": { "onDisconnect": "continue" },
        });
        let url = format!("{}/send-message", self.process.url);
        let client = agui_server::internal::direct_client(&Default::default()).unwrap();
        let body = client.post(url).json(&input).send().await.unwrap().text().await.unwrap();
        assert!(body.len() > 20 * MEGABYTE && body.contains("RUN_FINISHED"), "{} bytes", body.len());
        "/threads/long/runs/r".to_owned()
    }

    /// Sends a GET request and reads the beginning of the response. The socket takes little more.
    async fn stalled_get(&self, path: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let address = self.process.url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        let mut head = [0; 1024];
        timeout(TEST_TIMEOUT, stream.read_exact(&mut head)).await.expect(path).unwrap();
        assert!(head.starts_with(b"HTTP/1.1 200"), "{path}");
        stream
    }

    async fn stalled_gets(&self, number: usize, path: &str) -> Vec<TcpStream> {
        let mut stalled = Vec::with_capacity(number);
        for _ in 0..number {
            stalled.push(self.stalled_get(path).await);
        }
        self.wait_until_idle().await;
        stalled
    }

    fn read_proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.child.id())).unwrap()
    }

    /// Returns the resident memory of the server, in bytes.
    fn memory(&self) -> usize {
        let status = self.read_proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
    }

    /// Returns the processor time of the server, in ticks.
    fn cpu_ticks(&self) -> u64 {
        let stat = self.read_proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Waits until the server uses no processor time for 200 ms. An idle server announces no event, so this has to poll.
    async fn wait_until_idle(&self) {
        let mut before = self.cpu_ticks();
        timeout(TEST_TIMEOUT, async {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                let now = self.cpu_ticks();
                if now == before {
                    break;
                }
                before = now;
            }
        })
        .await
        .expect("the server is never idle");
    }
}

#[tokio::test]
async fn bursts_to_clients_that_do_not_read_are_not_buffered() {
    let server = Server::start();
    for _ in 0..4 {
        server.run("hello", "RUN_FINISHED").await;
    }
    let before = server.memory();
    let mut stalled = Vec::new();
    for _ in 0..4 {
        stalled.push(server.run("burst", "TEXT_MESSAGE_START").await);
    }
    server.wait_until_idle().await;
    let grown = server.memory().saturating_sub(before);
    println!("4 stalled clients of a burst of 1,000,000 deltas: the server grew by {} KiB", grown / 1024);
    assert!(grown < 10 * MEGABYTE, "grew by {grown} bytes");
    // Stalled clients do not delay a shutdown.
    server.process.signal("-TERM");
    assert_eq!(server.process.ended().0, Some(0));
}

#[tokio::test]
async fn followers_that_do_not_read_a_long_log_hold_a_part_of_it() {
    const FIRST: usize = 40;
    const FOLLOWERS: usize = 80;
    let server = Server::start();
    let run = server.store_long_log().await;
    let events = format!("{run}/events");
    // The first ones fill the caches of the store and the reserves of the allocator.
    let mut stalled = server.stalled_gets(FIRST, &events).await;
    let before = server.memory();
    stalled.extend(server.stalled_gets(FOLLOWERS, &events).await);
    let each = server.memory().saturating_sub(before) / FOLLOWERS;
    println!("{FOLLOWERS} stalled followers: {} KiB each", each / 1024);
    assert!(each < 256 * 1024, "{each} bytes each");
}

#[tokio::test]
async fn ten_thousand_idle_streams_take_21_kilobytes_each() {
    const STREAMS: usize = 10_000;
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(files > STREAMS as u64 + 1000, "this machine gives a process no more than {files} open files");
    let server = Server::start();
    let mut idle = Vec::with_capacity(STREAMS);
    while idle.len() < STREAMS {
        let batch = (0..100).map(|_| server.run("idle", "TEXT_MESSAGE_CONTENT"));
        idle.extend(futures::future::join_all(batch).await);
    }
    server.wait_until_idle().await;
    let memory = server.memory();
    println!("{STREAMS} idle streams: the server has {} MiB", memory / MEGABYTE);
    // A debug build needs more while it reads a request, and keeps that memory.
    let max_megabytes = if cfg!(debug_assertions) { 270 } else { 210 };
    assert!(memory < max_megabytes * MEGABYTE, "has {memory} bytes");
    // Further runs are served, and all streams get their terminal event at shutdown.
    server.run("hello", "RUN_FINISHED").await;
    server.process.signal("-TERM");
    let mut rest = String::new();
    for mut stream in idle {
        rest.clear();
        timeout(TEST_TIMEOUT, stream.read_to_string(&mut rest)).await.unwrap().unwrap();
        assert!(rest.contains("server_shutdown"), "{rest}");
    }
    assert_eq!(server.process.ended().0, Some(0));
}
