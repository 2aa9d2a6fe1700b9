//! The agent for load measurements:
//! `cargo run --profile dist --features jemalloc --example bench -- 8099 [STORE] [detached] [spans] [record]`
//!
//! `forwardedProps` controls it: `n` text deltas, and `mode`: `burst` sends them at once, `yield` yields to the runtime
//! before each, `sleep` waits `delayUs` microseconds before each. The server has its ordinary limits, except for the
//! number of runs. STORE is `memory`, which is the default, the URL of a Postgres, or the path of a
//! SQLite file.
//! With `detached`, runs continue when their client leaves. With `spans`, the spans of traces are made, and sent nowhere.
//! With `record`, runs are recorded in a new folder of the temporary directory.

use std::{path::Path, time::Duration};

use agui_server::{
    Server,
    agent::{EventStream, RunContext, emit::TextMessage, event_stream},
    options::{OnDisconnect, RecordOptions, TRACE_TARGET, ThreadOptions},
    protocol::RunAgentInput,
    store::{PostgresStore, SqliteStore},
};
use tracing::Level;
use tracing_subscriber::{
    filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// The same allocator as in the `agui-server` command.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let (flags, arguments): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|argument| ["detached", "spans", "record"].contains(&argument.as_str()));
    let has_flag = |name| flags.iter().any(|flag| flag == name);
    // Without a subscriber, the server would log a line for each run.
    let spans = has_flag("spans").then_some((TRACE_TARGET, Level::TRACE));
    tracing_subscriber::registry().with(Targets::from_iter(spans)).init();
    let port = arguments.first().and_then(|port| port.parse().ok()).unwrap_or(8099);
    let mut server = Server::new().agent("bench", bench);
    server = match arguments.get(1).map(String::as_str) {
        None | Some("memory") => server,
        Some(url) if url.starts_with("postgres") => {
            server.store(PostgresStore::open(url).await.map_err(std::io::Error::other)?)
        }
        Some(path) => {
            server.store(SqliteStore::open(Path::new(path)).await.map_err(std::io::Error::other)?)
        }
    };
    let mut options = ThreadOptions::default();
    options.runs.max_concurrent = 20_000;
    if has_flag("detached") {
        options.runs.on_disconnect = OnDisconnect::Continue;
    }
    server = server.thread_options(options);
    if has_flag("record") {
        let folder =
            std::env::temp_dir().join(format!("agui-bench-recordings-{}", std::process::id()));
        server = server.record(RecordOptions::to(folder));
    }
    server.serve(("127.0.0.1", port)).await
}

fn bench(input: RunAgentInput, _: RunContext) -> EventStream {
    let number = |name| input.forwarded_prop(name).and_then(|value| value.as_u64());
    let deltas = number("n").unwrap_or(10);
    let delay = Duration::from_micros(number("delayUs").unwrap_or(0));
    let mode =
        input.forwarded_prop("mode").and_then(|mode| mode.as_str()).unwrap_or("burst").to_owned();
    event_stream(async_stream::try_stream! {
        let message = TextMessage::new();
        yield message.start();
        for i in 0..deltas {
            match mode.as_str() {
                "yield" => tokio::task::yield_now().await,
                "sleep" => tokio::time::sleep(delay).await,
                _ => {}
            }
            yield message.delta(format!("token number {i:06} "));
        }
        yield message.end();
    })
}
