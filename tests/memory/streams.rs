//! Memory of a server process whose clients do not read, and of one with idle streams.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::load_server::{LoadServer, MEGABYTE, TEST_TIMEOUT};

impl LoadServer {
    /// Stores a log of about 25 MB. Returns the path of its run.
    async fn store_long_log(&self) -> String {
        let input = json!({
            "threadId": "long", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "log" }],
            "forwardedProps": { "onDisconnect": "continue" },
        });
        let url = format!("{}/send-message", self.process.url);
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        let body = client.post(url).json(&input).send().await.unwrap().text().await.unwrap();
        assert!(
            body.len() > 20 * MEGABYTE && body.contains("RUN_FINISHED"),
            "{} bytes",
            body.len()
        );
        "/threads/long/runs/r".to_owned()
    }

    /// Sends a GET request and reads the beginning of the response. The socket takes little more.
    async fn stalled_get(&self, path: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
            .await
            .unwrap();
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
}

#[tokio::test]
async fn bursts_to_clients_that_do_not_read_are_not_buffered() {
    let server = LoadServer::start(4);
    for _ in 0..4 {
        server.run("hello", "RUN_FINISHED").await;
    }
    let before = server.memory("VmRSS");
    let mut stalled = Vec::new();
    for _ in 0..4 {
        stalled.push(server.run("burst", "TEXT_MESSAGE_START").await);
    }
    server.wait_until_idle().await;
    let grown = server.memory("VmRSS").saturating_sub(before);
    println!(
        "4 stalled clients of a burst of 1,000,000 deltas: the server grew by {} KiB",
        grown / 1024
    );
    assert!(grown < 10 * MEGABYTE, "grew by {grown} bytes");
    // Stalled clients do not delay a shutdown.
    server.process.signal("-TERM");
    assert_eq!(server.process.ended().0, Some(0));
}

#[tokio::test]
async fn followers_that_do_not_read_a_long_log_hold_a_part_of_it() {
    const FIRST: usize = 40;
    const FOLLOWERS: usize = 80;
    let server = LoadServer::start(FIRST + FOLLOWERS);
    let run = server.store_long_log().await;
    let events = format!("{run}/events");
    // The first ones fill the caches of the store and the reserves of the allocator.
    let mut stalled = server.stalled_gets(FIRST, &events).await;
    let before = server.memory("VmRSS");
    stalled.extend(server.stalled_gets(FOLLOWERS, &events).await);
    let each = server.memory("VmRSS").saturating_sub(before) / FOLLOWERS;
    println!("{FOLLOWERS} stalled followers: {} KiB each", each / 1024);
    assert!(each < 256 * 1024, "{each} bytes each");
}

#[tokio::test]
async fn ten_thousand_idle_streams_take_21_kilobytes_each() {
    const STREAMS: usize = 10_000;
    let server = LoadServer::start(STREAMS);
    let mut idle = Vec::with_capacity(STREAMS);
    while idle.len() < STREAMS {
        let batch = (0..100).map(|_| server.run("idle", "TEXT_MESSAGE_CONTENT"));
        idle.extend(futures::future::join_all(batch).await);
    }
    server.wait_until_idle().await;
    let memory = server.memory("VmRSS");
    println!("{STREAMS} idle streams: the server has {} MiB", memory / MEGABYTE);
    // A debug build needs more while it reads a request, and keeps that memory: 286 (2026-12-01).
    let max_megabytes = if cfg!(debug_assertions) { 295 } else { 210 };
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
