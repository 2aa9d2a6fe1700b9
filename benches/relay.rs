//! CPU time and latency that this server adds between a provider and a client, compared with a minimal relay:
//! `cargo bench --profile dist --features jemalloc --bench relay -- [COMMAND…]`
//!
//! Processes on one machine: a provider of OpenAI chat completions, a relay (`reqwest` and `sse-stream`; it sends one
//! frame for each that it receives and does not parse them), the `agui-server` command with a model agent, with threads in
//! memory and in SQLite, and this client. Each COMMAND is another build of `agui-server` to measure beside it. Relay and
//! servers run on core 0, the others on core 1. Each round measures all of them in turn, so that all see the same load of
//! the machine. The CPU time is that of the relay's or the server's process, from /proc.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::{
    convert::Infallible,
    fs::File,
    path::Path,
    process::{Child, Command},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
    routing::post,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use sse_stream::SseStream;
use tokio::net::TcpListener;

/// The same allocator as in the `agui-server` command.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 5;

/// Runs of `tokens` tokens each, with a pause between two tokens. All streams begin at once.
struct Load {
    name: &'static str,
    streams: usize,
    runs: usize,
    tokens: usize,
    pause: Duration,
}

const TOKEN_PAUSE: Duration = Duration::from_millis(10);
const LOADS: [Load; 4] = [
    Load { name: "paced", streams: 300, runs: 300, tokens: 300, pause: TOKEN_PAUSE },
    Load { name: "burst", streams: 20, runs: 20, tokens: 10_000, pause: Duration::ZERO },
    Load { name: "short", streams: 32, runs: 3_000, tokens: 20, pause: Duration::ZERO },
    Load { name: "begin 10", streams: 10, runs: 10, tokens: 10, pause: TOKEN_PAUSE },
];

fn main() {
    let arguments: Vec<_> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["provider"] => runtime.block_on(provider()),
        ["relay", upstream] => runtime.block_on(relay((*upstream).to_owned())),
        commands => runtime.block_on(measure(commands)),
    }
}

// --- Processes ----------------------------------------------------------------------------------

async fn listen(router: Router) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    axum::serve(listener, router).await.unwrap();
}

fn events(stream: impl futures::Stream<Item = Bytes> + Send + 'static) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream.map(Ok::<_, Infallible>)))
        .into_response()
}

/// Serves chat completions. The request's last message is `TOKENS PAUSE`: the number of tokens, and the pause between
/// two in microseconds.
async fn provider() {
    async fn answer(body: Bytes) -> Response {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let text = request["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned();
        let (tokens, micros) = text.split_once(' ').unwrap();
        let (tokens, pause): (usize, _) =
            (tokens.parse().unwrap(), Duration::from_micros(micros.parse().unwrap()));
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
    async fn answer(
        State((client, upstream)): State<(reqwest::Client, String)>,
        body: Bytes,
    ) -> Response {
        let input: Value = serde_json::from_slice(&body).unwrap();
        let request = json!({ "model": "m", "stream": true, "messages": [
            { "role": "user", "content": input["messages"][0]["content"] },
        ] });
        let answer = client
            .post(format!("{upstream}/v1/chat/completions"))
            .json(&request)
            .send()
            .await
            .unwrap();
        let frames = SseStream::from_bytes_stream(answer.bytes_stream());
        events(frames.filter_map(async |frame| {
            Some(Bytes::from(format!("data: {}\n\n", frame.unwrap().data?)))
        }))
    }
    listen(
        Router::new()
            .route("/send-message", post(answer))
            .with_state((agui_base::upstream::client(&Default::default()).unwrap(), upstream)),
    )
    .await;
}

// --- Measurement ------------------------------------------------------------------------------

/// A process on core 0 or 1, which is killed on drop.
struct Process {
    name: String,
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Process {
    fn start(name: String, core: &str, program: &Path, arguments: &[&str], config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [config_file, log_file] = ["config.toml", "log"].map(|name| folder.path().join(name));
        std::fs::write(&config_file, config).unwrap();
        let log = File::create(&log_file).unwrap();
        let mut command = Command::new("taskset");
        command.args(["-c", core]).arg(program).args(arguments).env_remove("RUST_LOG");
        if !config.is_empty() {
            command.arg("--config").arg(config_file).env("AGUI_SERVER__DATA_DIR", folder.path());
        }
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let url = loop {
            let log = std::fs::read_to_string(&log_file).unwrap();
            if let Some((_, line)) = log.split_once("listening on ")
                && let Some(end) = line.find([' ', '\n'])
            {
                break line[..end].to_owned();
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        Self { name, child, url, _folder: folder }
    }

    fn of_this_program(name: &str, core: &str, arguments: &[&str]) -> Self {
        Self::start(name.to_owned(), core, &std::env::current_exe().unwrap(), arguments, "")
    }

    /// Starts a server with a model, with threads in memory and in SQLite.
    fn servers(program: &str, upstream: &str) -> [Self; 2] {
        ["memory:", "sqlite:threads.sqlite"].map(|store| {
            let config = format!(
                "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"{store}\"\n[agents.model]\nkind = \"llm\"\n\
                 provider = \"openai\"\nmodel = \"m\"\nbase_url = \"{upstream}/v1\"\n"
            );
            let name = format!("{}, {store}", Path::new(program).file_name().unwrap().display());
            Self::start(name, "0", Path::new(program), &[], &config)
        })
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

/// What the client sees of a run.
struct Answer {
    first_byte: Duration,
    first_token: Duration,
    frames: usize,
    /// The number of chunks of the response: a write of the server has one, or several if they are ready at once.
    chunks: usize,
}

/// Requests tokens.
async fn ask(client: &reqwest::Client, url: &str, tokens: usize, pause: Duration) -> Answer {
    let (content, id) =
        (format!("{tokens} {}", pause.as_micros()), uuid::Uuid::new_v4().to_string());
    let body = json!({
        "threadId": id, "runId": id, "tools": [], "context": [],
        "messages": [{ "id": id, "role": "user", "content": content }],
    });
    let begin = Instant::now();
    let answer = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    let mut pieces = answer.bytes_stream();
    let (mut first_byte, mut first_token, mut frames, mut chunks, mut last) = (None, None, 0, 0, 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece.unwrap();
        chunks += 1;
        first_byte.get_or_insert_with(|| begin.elapsed());
        if first_token.is_none() && piece.windows(6).any(|window| window == b" word0") {
            first_token = Some(begin.elapsed());
        }
        for byte in piece {
            frames += usize::from(byte == b'\n' && last == b'\n');
            last = byte;
        }
    }
    let first_token = first_token.expect("a first token");
    Answer { first_byte: first_byte.unwrap(), first_token, frames, chunks }
}

/// The figures of one process under one load. Times of the first byte and token are medians.
struct Figures {
    cpu_per_token: f64,
    chunks_per_token: f64,
    first_byte: f64,
    first_token: f64,
}

async fn run(client: &reqwest::Client, process: &Process, load: &Load) -> Figures {
    let url = format!("{}/send-message", process.url);
    let before = process.cpu();
    let runs = (0..load.runs).map(|_| ask(client, &url, load.tokens, load.pause));
    let answers: Vec<_> = stream::iter(runs).buffer_unordered(load.streams).collect().await;
    let tokens = (load.runs * load.tokens) as f64;
    assert!(
        answers.iter().all(|answer| answer.frames >= load.tokens),
        "{}: an answer is incomplete",
        process.name
    );
    let millis = |time: fn(&Answer) -> Duration| {
        median(answers.iter().map(|it| time(it).as_secs_f64() * 1e3).collect())
    };
    Figures {
        cpu_per_token: (process.cpu() - before).as_secs_f64() * 1e6 / tokens,
        chunks_per_token: answers.iter().map(|answer| answer.chunks).sum::<usize>() as f64 / tokens,
        first_byte: millis(|answer| answer.first_byte),
        first_token: millis(|answer| answer.first_token),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn measure(commands: &[&str]) {
    let provider = Process::of_this_program("provider", "1", &["provider"]);
    let mut processes = vec![Process::of_this_program("relay", "0", &["relay", &provider.url])];
    for command in commands.iter().chain([&env!("CARGO_BIN_EXE_agui-server")]) {
        processes.extend(Process::servers(command, &provider.url));
    }
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    println!(
        "| load | process | µs of CPU a token | × relay | chunks a token | first byte, ms | first token, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    for load in &LOADS {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let mut round = Vec::new();
            for process in &processes {
                round.push(run(&client, process, load).await);
            }
            rounds.push(round);
        }
        for (at, process) in processes.iter().enumerate() {
            let of = |value: &dyn Fn(&[Figures]) -> f64| {
                median(rounds.iter().map(|round| value(round)).collect())
            };
            println!(
                "| {} | {} | {:.2} | {:.2} | {:.3} | {:.2} | {:.2} |",
                load.name,
                process.name,
                of(&|round| round[at].cpu_per_token),
                of(&|round| round[at].cpu_per_token / round[0].cpu_per_token),
                of(&|round| round[at].chunks_per_token),
                of(&|round| round[at].first_byte),
                of(&|round| round[at].first_token),
            );
        }
    }
}
