//! A server that is killed at any point of a run with a model and tools of each kind.

use std::{
    collections::HashMap,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::support::checker;
use agui_server::protocol::{Event, RunAgentInput};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::HeaderMap,
    response::{IntoResponse as _, Response},
    routing::{any, post},
};
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::{net::TcpListener, time::sleep};

use super::{
    ask_detached,
    client::Replica,
    continued::{answer_of_calls, config, counted, folded},
    poll::poll_until,
    postgres::Postgres,
};

const TOOLS: [&str; 3] = ["read", "set", "send"];
/// The threads of other runs.
const LOAD: [&str; 4] = ["a", "b", "c", "d"];

/// A model and its tools, which take a few milliseconds for each piece.
#[derive(Clone)]
struct World {
    /// The keys of the calls, by tool.
    calls: Arc<Mutex<HashMap<String, Vec<String>>>>,
    answers: Arc<AtomicUsize>,
    /// The tools that the model calls.
    tools: &'static [&'static str],
}

impl World {
    async fn start(tools: &'static [&'static str]) -> (Self, String) {
        let world = Self { calls: Arc::default(), answers: Arc::default(), tools };
        let app = Router::new()
            .route("/chat/completions", post(complete))
            .route("/{tool}", any(call))
            .with_state(world.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (world, url)
    }

    /// Returns the number of calls of a tool, and of their keys.
    fn calls(&self, tool: &str) -> (usize, usize) {
        let calls = self.calls.lock().unwrap();
        let keys = calls.get(tool).map(Vec::as_slice).unwrap_or_default();
        (keys.len(), keys.iter().collect::<std::collections::HashSet<_>>().len())
    }
}

async fn call(
    State(world): State<World>,
    Path(tool): Path<String>,
    headers: HeaderMap,
) -> &'static str {
    let key = headers.get("idempotency-key").map_or("", |key| key.to_str().unwrap()).to_owned();
    world.calls.lock().unwrap().entry(tool).or_default().push(key);
    sleep(Duration::from_millis(30)).await;
    "done"
}

/// The model calls all tools, and speaks when it has their results.
///
/// Each answer has calls with new ids, as those of a provider.
async fn complete(State(world): State<World>, Json(request): Json<Value>) -> Response {
    let messages = request["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    let mut pieces: Vec<String> = match results {
        0 => {
            let answer = world.answers.fetch_add(1, Ordering::Relaxed);
            vec![
                answer_of_calls(world.tools)
                    .to_string()
                    .replace("call_", &format!("call_{answer}_")),
            ]
        }
        // Providers refuse a call without a result.
        results if results == world.tools.len() => "All of it is done."
            .split_inclusive(' ')
            .map(|word| {
                json!({ "choices": [{ "index": 0, "delta": { "content": word } }] }).to_string()
            })
            .collect(),
        _ => return (axum::http::StatusCode::BAD_REQUEST, "a call has no result").into_response(),
    };
    pieces.push(
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string(),
    );
    pieces.push("[DONE]".to_owned());
    let body = async_stream::stream! {
        for piece in pieces {
            sleep(Duration::from_millis(10)).await;
            yield Ok::<_, std::convert::Infallible>(format!("data: {piece}\n\n"));
        }
    };
    ([("content-type", "text/event-stream")], axum::body::Body::from_stream(body)).into_response()
}

/// Each second run calls no tool that must not be repeated.
fn tools(kill: u64) -> &'static [&'static str] {
    if kill.is_multiple_of(2) { &TOOLS } else { &TOOLS[..2] }
}

/// Starts other detached runs, which are running when the server is killed.
async fn start_load(server: &Replica) {
    for thread in LOAD {
        let mut input = ask_detached("r", "count to 20");
        input["threadId"] = thread.into();
        drop(server.post_to("/agents/demo/send-message", &input).await);
    }
}

/// Waits until the other runs have ended.
async fn check_load(server: &Replica) {
    for thread in LOAD {
        let path = format!("/threads/{thread}");
        let status = poll_until("another run has finished", async || {
            let thread: Value = server.get(&path).await.json().await.unwrap();
            (thread["runs"][0]["status"] != "running").then(|| thread["runs"][0]["status"].clone())
        });
        assert_eq!(status.await, "finished");
        let thread: Value = server.get(&path).await.json().await.unwrap();
        assert_eq!(super::said(&thread)[1], format!("assistant: {}", counted(20)));
    }
}

/// The number of kills: 8, or AGUI_TEST_KILLS.
fn kills() -> u64 {
    std::env::var("AGUI_TEST_KILLS").map_or(8, |text| text.parse().unwrap())
}

/// The configuration with the demo agent beside the one with a model.
fn config_with_demo(url: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/config/scripts/demo.toml");
    let config = config(url);
    format!(
        "default_agent = \"clerk\"\n{config}[agents.demo]\nkind = \"script\"\nscript = \"{script}\"\n"
    )
}

/// Checks a run that was killed, whose thread is `t` on the server.
async fn check(server: &Replica, world: &World, run: &str) -> usize {
    let thread = server.until_status("finished").await;
    let log = server.follow(run, 0).await.rest().await;
    assert_eq!(log.iter().filter(|it| it.name() == "RUN_STARTED").count(), 1);
    assert_eq!(log.last().unwrap().name(), "RUN_FINISHED", "{log:?}");
    let events: Vec<Event> =
        log.iter().map(|it| serde_json::from_value(it.event.clone()).unwrap()).collect();
    let input: RunAgentInput = serde_json::from_value(ask_detached(run, "go")).unwrap();
    assert_eq!(checker::check(&input, &events), Ok(()), "{log:?}");
    let stored =
        thread["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "assistant");
    let stored: Vec<_> = stored.map(|it| it["content"].as_str().unwrap_or("").to_owned()).collect();
    assert_eq!(folded(&log), stored);
    assert_eq!(stored.last().unwrap(), "All of it is done.");
    let (set, send) = (world.calls("set"), world.calls("send"));
    assert!(set.0 >= 1 && set.1 == 1, "one effect by its key: {set:?}");
    assert!(send.0 <= 1, "at most one effect: {send:?}");
    log.iter().filter(|it| it.event["name"] == "agui-server.run_continued").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_takes_effect_twice_when_the_only_server_is_killed_at_any_point() {
    let mut continued = 0;
    for kill in 0..kills() {
        let (folder, (world, url)) = (tempdir().unwrap(), World::start(tools(kill)).await);
        let file = folder.path().join("config.toml");
        fs::write(&file, config_with_demo(&url)).unwrap();
        let (data, file) = (folder.path().to_str().unwrap(), file.to_str().unwrap());
        let environment = [("AGUI_SERVER__DATA_DIR", data), ("AGUI_KEY_CLERK", "key")];
        let server = Replica::start_with(&["--config", file], &environment);
        start_load(&server).await;
        let response = server.post(&ask_detached("r", "go")).await;
        sleep(Duration::from_millis(kill * 100 / kills())).await;
        server.kill();
        drop(response);
        let server = Replica::start_with(&["--config", file], &environment);
        continued += check(&server, &world, "r").await;
        check_load(&server).await;
    }
    println!("SQLite: {} kills, {continued} runs continued", kills());
    assert!(continued > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_takes_effect_twice_when_one_of_two_servers_is_killed_at_any_point() {
    let Some(postgres) = Postgres::shared() else { return };
    let mut continued = 0;
    for kill in 0..kills() / 2 {
        let (folder, (world, url)) = (tempdir().unwrap(), World::start(tools(kill)).await);
        let file = folder.path().join("config.toml");
        fs::write(&file, config_with_demo(&url)).unwrap();
        let (database, file) =
            (postgres.database(&format!("anywhere_{kill}")).await, file.to_str().unwrap());
        let environment = [
            ("AGUI_STORE__URL", &*database),
            ("AGUI_KEY_CLERK", "key"),
            ("AGUI_THREADS__LEASE_SECS", "2"),
        ];
        let [a, b] = [(); 2].map(|()| Replica::start_with(&["--config", file], &environment));
        // Its background tasks begin with the first request.
        b.get("/threads/t").await;
        start_load(&a).await;
        let response = a.post(&ask_detached("r", "go")).await;
        sleep(Duration::from_millis(kill * 200 / kills())).await;
        a.kill();
        drop(response);
        continued += check(&b, &world, "r").await;
        check_load(&b).await;
    }
    println!("Postgres: {} kills, {continued} runs continued", kills() / 2);
    assert!(continued > 0);
}

/// The slow server resumes after another server has continued and ended its run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_only_slow_changes_nothing_of_the_run_that_another_one_ended() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, (world, url)) = (tempdir().unwrap(), World::start(&TOOLS).await);
    let file = folder.path().join("config.toml");
    fs::write(&file, config(&url)).unwrap();
    let (database, file) = (postgres.database("slow").await, file.to_str().unwrap());
    let environment = [
        ("AGUI_STORE__URL", &*database),
        ("AGUI_KEY_CLERK", "key"),
        ("AGUI_THREADS__LEASE_SECS", "2"),
    ];
    let [a, b] = [(); 2].map(|()| Replica::start_with(&["--config", file], &environment));
    let _response = a.post(&ask_detached("r", "go")).await;
    poll_until("the tools are called", async || (world.calls("send").0 == 1).then_some(())).await;
    a.process.signal("-STOP");
    assert_eq!(b.get("/threads/t").await.status(), 200);
    assert_eq!(check(&b, &world, "r").await, 1);
    let before = b.thread().await;
    a.process.signal("-CONT");
    poll_until("the slow server has noticed", async || {
        a.process.has_logged("run ended").then_some(())
    })
    .await;
    assert_eq!(check(&b, &world, "r").await, 1);
    let after = b.thread().await;
    assert_eq!((&after["messages"], &after["runs"]), (&before["messages"], &before["runs"]));
}
