//! Delay between an agent's event and its arrival at the client, for plain and detached runs:
//! `cargo bench --bench latency`
//!
//! 300 streams send an event every 10 ms. Each event carries the time at which the agent made it. The server runs in
//! another process: this program with the arguments `serve PORT STORE`.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agui_server::{
    Server,
    agent::{EventStream, RunContext, emit::TextMessage, event_stream},
    options::{OnDisconnect, ThreadOptions},
    protocol::RunAgentInput,
    store::SqliteStore,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, sleep_until},
};

const STREAMS: u32 = 300;
const EVENTS: u32 = 500;
const EVENT_INTERVAL: Duration = Duration::from_millis(10);
const ROUNDS: usize = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, serve, port, store] = &*arguments
        && serve == "serve"
    {
        return server(port.parse().unwrap(), store).await;
    }
    let folder = tempfile::tempdir_in(".").unwrap();
    for round in 0..ROUNDS {
        for (name, store) in [
            ("plain, memory", "plain"),
            ("detached, memory", "memory"),
            ("detached, SQLite", "bench.db"),
        ] {
            let store = if store == "bench.db" {
                format!("{}", folder.path().join(store).display())
            } else {
                store.into()
            };
            let delays = measure(&store).await;
            let at = |share: f64| delays[(delays.len() as f64 * share) as usize] as f64 / 1000.0;
            println!(
                "{round} {name:18} median {:7.2} ms   p99 {:7.2} ms   {} events",
                at(0.5),
                at(0.99),
                delays.len()
            );
        }
    }
}

async fn server(port: u16, store: &str) {
    let mut server = Server::new().agent("bench", bench);
    server = match store {
        "plain" | "memory" => server,
        path => server.store(Arc::new(SqliteStore::open(Path::new(path)).await.unwrap())),
    };
    if store != "plain" {
        let mut options = ThreadOptions::default();
        options.runs.on_disconnect = OnDisconnect::Continue;
        server = server.thread_options(options);
    }
    server.serve((Ipv4Addr::LOCALHOST, port)).await.unwrap();
}

fn bench(_: RunAgentInput, _: RunContext) -> EventStream {
    event_stream(async_stream::try_stream! {
        let message = TextMessage::new();
        yield message.start();
        let mut due = Instant::now();
        for _ in 0..EVENTS {
            due += EVENT_INTERVAL;
            sleep_until(due).await;
            yield message.delta(format!("@{:020}@", micros()));
        }
        yield message.end();
    })
}

fn micros() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// Returns the delays of all events in microseconds, sorted.
async fn measure(store: &str) -> Vec<u64> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let program = std::env::current_exe().unwrap();
    let mut server =
        Command::new(program).args(["serve", &port.to_string(), store]).spawn().unwrap();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(tokio::spawn(stream(port)));
        // Streams that start together stay synchronous: each event would wait for the other 299.
        sleep(EVENT_INTERVAL / STREAMS * 7).await;
    }
    let mut delays = Vec::new();
    for stream in streams {
        delays.extend(stream.await.unwrap());
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(delays.len(), (STREAMS * EVENTS) as usize);
    delays.sort_unstable();
    delays
}

async fn stream(port: u16) -> Vec<u64> {
    let id = uuid::Uuid::new_v4();
    let body = format!(
        r#"{{"threadId":"{id}","runId":"r-{id}","messages":[],"tools":[],"context":[],"state":{{}},"forwardedProps":{{}}}}"#
    );
    let head = format!(
        "POST /send-message HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    connection.write_all((head + &body).as_bytes()).await.unwrap();
    let (mut delays, mut text) = (Vec::new(), Vec::new());
    loop {
        if connection.read_buf(&mut text).await.unwrap() == 0 {
            return delays;
        }
        let (now, mut done) = (micros(), 0);
        while let Some(at) = text[done..].iter().position(|byte| *byte == b'@') {
            let Some(number) = text.get(done + at + 1..done + at + 22) else { break };
            let made: u64 = str::from_utf8(&number[..20]).unwrap().parse().unwrap();
            delays.push(now.saturating_sub(made));
            done += at + 22;
        }
        text.drain(..done);
    }
}
