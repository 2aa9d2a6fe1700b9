//! CPU time and latency that this server adds between a provider and a client, compared with a minimal relay:
//! `cargo bench --bench relay`
//!
//! Four processes on one machine: a provider of OpenAI chat completions, a relay (`reqwest` and `sse-stream`; it sends
//! one frame for each that it receives and does not parse them), this server with a model agent, and the clients.
//! Rounds alternate between relay and server, so that both see the same load of the machine. The CPU time is that of
//! the relay's or the server's process, from /proc. The added latency is the time to the first token minus the
//! provider's own.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::{
    convert::Infallible,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use agui_server::{
    Server,
    llm::{Connection, LlmAgent, ModelOptions, OpenAiChat},
    options::RunLimits,
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
    routing::post,
};
use futures::{StreamExt as _, future::join_all};
use serde_json::{Value, json};
use sse_stream::SseStream;
use tokio::net::TcpListener;

const ROUNDS: usize = 5;
const FIRST_TOKENS: usize = 300;

/// Concurrent streams of `tokens` tokens each, with a pause between two tokens.
struct Load {
    name: &'static str,
    streams: usize,
    tokens: usize,
    pause: Duration,
}

const LOADS: [Load; 2] = [
    Load { name: "paced", streams: 200, tokens: 300, pause: Duration::from_millis(10) },
    Load { name: "burst", streams: 8, tokens: 20_000, pause: Duration::ZERO },
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("provider"), _) => runtime.block_on(provider()),
        (Some("relay"), Some(upstream)) => runtime.block_on(relay(upstream)),
        (Some("server"), Some(upstream)) => runtime.block_on(server(&upstream)),
        _ => runtime.block_on(measure()),
    }
}

// --- Processes ----------------------------------------------------------------------------------

async fn listen(router: Router) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    axum::serve(listener, router).await.unwrap();
}

fn events(stream: impl futures::Stream<Item = Bytes> + Send + 'static) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream.map(Ok::<_, Infallible>))).into_response()
}

/// Serves chat completions. The request's last message is `TOKENS PAUSE`: the number of tokens, and the pause between
/// two in microseconds.
async fn provider() {
    async fn answer(body: Bytes) -> Response {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let text = request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let (tokens, micros) = text.split_once(' ').unwrap();
        let (tokens, pause): (usize, _) = (tokens.parse().unwrap(), Duration::from_micros(micros.parse().unwrap()));
        events(async_stream::stream! {
            for number in 0..tokens {
                let chunk = json!({
                    "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
                    "choices": [{ "index": 0, "delta": { "content": format!(" word{number}") }, "finish_reason": null }],
                });
                yield Bytes::from(format!("data: {chunk}\n\n"));
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            let end = json!({ "id": "chatcmpl-1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
            yield Bytes::from(format!("data: {end}\n\ndata: [DONE]\n\n"));
        })
    }
    listen(Router::new().route("/v1/chat/completions", post(answer))).await;
}

/// Sends the provider's frames to the client.
async fn relay(upstream: String) {
    async fn answer(State((client, upstream)): State<(reqwest::Client, String)>, body: Bytes) -> Response {
        let input: Value = serde_json::from_slice(&body).unwrap();
        let request = json!({ "model": "m", "stream": true, "messages": [
            { "role": "user", "content": input["messages"][0]["content"] },
        ] });
        let answer = client.post(format!("{upstream}/v1/chat/completions")).json(&request).send().await.unwrap();
        let frames = SseStream::from_bytes_stream(answer.bytes_stream());
        events(frames.filter_map(async |frame| Some(Bytes::from(format!("data: {}\n\n", frame.unwrap().data?)))))
    }
    listen(
        Router::new()
            .route("/send-message", post(answer))
            .with_state((agui_server::internal::client(&Default::default()).unwrap(), upstream)),
    )
    .await;
}

async fn server(upstream: &str) {
    let connection = Connection { base_url: Some(format!("{upstream}/v1")), ..Connection::default() };
    let model = OpenAiChat::new(ModelOptions::new("m", connection)).unwrap();
    let mut limits = RunLimits::default();
    limits.heartbeat = None;
    let server = Server::new().agent("model", LlmAgent::new(model)).run_limits(limits).stateless();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    server.serve_on(listener, std::future::pending()).await.unwrap();
}

// --- Measurement ------------------------------------------------------------------------------

struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }

    /// Returns the CPU time of the process, with a resolution of 10 ms.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests tokens. Returns the time to the first token and the number of frames.
async fn ask(client: &reqwest::Client, url: &str, tokens: usize, pause: Duration) -> (Duration, usize) {
    let content = format!("{tokens} {}", pause.as_micros());
    // Valid both as a request for a completion and as a request for a run.
    let body = json!({
        "threadId": "t", "runId": "r", "tools": [], "context": [],
        "messages": [{ "id": "1", "role": "user", "content": content }],
    });
    let begin = Instant::now();
    let answer = client.post(url).header(CONTENT_TYPE, "application/json").body(body.to_string()).send().await.unwrap();
    let mut pieces = answer.bytes_stream();
    let (mut first, mut frames, mut last) = (None, 0, 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece.unwrap();
        if first.is_none() && piece.windows(6).any(|window| window == b" word0") {
            first = Some(begin.elapsed());
        }
        for byte in piece {
            frames += usize::from(byte == b'\n' && last == b'\n');
            last = byte;
        }
    }
    (first.expect("a first token"), frames)
}

/// Returns the CPU time of the process in microseconds per token.
async fn cpu_per_token(client: &reqwest::Client, process: &Process, load: &Load) -> f64 {
    let url = format!("{}/send-message", process.url);
    let before = process.cpu();
    let streams = (0..load.streams).map(|_| ask(client, &url, load.tokens, load.pause));
    for (_, frames) in join_all(streams).await {
        assert!(frames >= load.tokens, "{frames} frames of {}", load.tokens);
    }
    let tokens = (load.streams * load.tokens) as f64;
    (process.cpu() - before).as_secs_f64() * 1e6 / tokens
}

async fn first_token(client: &reqwest::Client, url: &str) -> Duration {
    ask(client, url, 1, Duration::ZERO).await.0
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}

async fn measure() {
    let provider = Process::start(&["provider"]);
    let relay = Process::start(&["relay", &provider.url]);
    let server = Process::start(&["server", &provider.url]);
    let client = agui_server::internal::client(&Default::default()).unwrap();

    println!("| load | relay, µs of CPU per token | agui-server | ratio |\n|---|---|---|---|");
    for load in &LOADS {
        let mut costs = Vec::new();
        for _ in 0..ROUNDS {
            costs.push((cpu_per_token(&client, &relay, load).await, cpu_per_token(&client, &server, load).await));
        }
        let relay = median(costs.iter().map(|(relay, _)| *relay).collect());
        let server = median(costs.iter().map(|(_, server)| *server).collect());
        let ratio = median(costs.iter().map(|(relay, server)| server / relay).collect());
        println!("| {} | {relay:.2} | {server:.2} | {ratio:.2} |", load.name);
    }

    let direct = format!("{}/v1/chat/completions", provider.url);
    let [through_relay, through_server] = [&relay, &server].map(|process| format!("{}/send-message", process.url));
    let mut waits = Vec::new();
    for _ in 0..FIRST_TOKENS {
        let direct = first_token(&client, &direct).await;
        let relay = first_token(&client, &through_relay).await;
        let server = first_token(&client, &through_server).await;
        waits.push([direct, relay, server].map(|wait| wait.as_secs_f64() * 1e3));
    }
    let [direct, relay, server] = [0, 1, 2].map(|column| median(waits.iter().map(|wait| wait[column]).collect()));
    println!("\n| first token, median of {FIRST_TOKENS} | ms | added, ms |\n|---|---|---|");
    for (name, wait) in [("provider", direct), ("relay", relay), ("agui-server", server)] {
        println!("| {name} | {wait:.2} | {:.2} |", wait - direct);
    }
}
