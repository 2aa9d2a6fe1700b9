//! `GET /threads/{thread}/runs/{run}/recording`: runs with and without a recording.
//! `tests/server/recordings/exported.rs` compares recordings with those of `[record]`.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::builtin::Echo,
    store::{MemoryStore, Retention, Store as _},
};
use agui_store::model::now;
use serde_json::{Value, json};

use crate::{
    support::running::Running,
    threads::{ask, ask_and_leave, ask_detached, changed_options, puppet, refusal},
};

const RECORDING: &str = "/threads/t/runs/r/recording";

async fn lines(server: &Running, path: &str) -> Vec<Value> {
    let response = server.get(path).await;
    let status = response.status();
    let body = response.text().await.unwrap();
    assert_eq!(status, 200, "{body}");
    body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_detached_run_has_a_recording_when_it_has_ended() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    assert_eq!(refusal(server.get(RECORDING).await).await, (409, "run_is_running".to_owned()));
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    server.until_status("t", "finished").await;
    let response = server.get(RECORDING).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap();
    assert_eq!(header("content-type"), "application/jsonl");
    let disposition = header("content-disposition");
    assert!(
        disposition.starts_with("attachment; filename=\"20") && disposition.contains("-t-r-"),
        "{disposition}"
    );
    let recording = lines(&server, RECORDING).await;
    let head = &recording[0];
    assert_eq!((&head["recording"], &head["agent"]), (&json!(1), &json!("puppet")));
    assert_eq!(head["request"]["messages"], ask_detached("t", "r")["messages"]);
    let types: Vec<_> =
        recording[1..].iter().filter_map(|line| line["event"]["type"].as_str()).collect();
    let expected = [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ];
    assert_eq!(types, expected);
    assert_eq!(recording[recording.len() - 1]["end"], json!({ "outcome": "finished" }));
}

#[tokio::test]
async fn a_recording_has_the_messages_and_the_state_before_its_run() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let mut first = ask_detached("t", "r");
    first["state"] = json!({ "n": 1 });
    server.events(&first).await;
    let mut second = ask("t", "s", "m2", "more");
    second["state"] = json!({ "n": 2 });
    server.events(&second).await;
    let request = &lines(&server, RECORDING).await[0]["request"];
    assert_eq!((&request["messages"], &request["state"]), (&first["messages"], &json!({ "n": 1 })));
    assert_eq!(request["forwardedProps"], json!({ "onDisconnect": "continue" }));
}

#[tokio::test]
async fn runs_without_a_log_have_no_recording() {
    let store = Arc::new(MemoryStore::new());
    let server = Running::start(Server::new().agent("echo", Echo).store(store.clone())).await;
    server.events(&ask("u", "r", "m", "go")).await;
    server.events(&ask_detached("t", "r")).await;
    let refused = async |path: &str| refusal(server.get(path).await).await;
    let code = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(refused("/threads/u/runs/r/recording").await, code(404, "run_has_no_log"));
    assert_eq!(refused("/threads/t/runs/none/recording").await, code(404, "unknown_run"));
    assert_eq!(refused("/threads/none/runs/r/recording").await, code(404, "unknown_thread"));
    assert_eq!(server.get(RECORDING).await.status(), 200);
    let mut retention = Retention::default();
    retention.logs = Some(0);
    assert_eq!(store.sweep(&retention, now()).await.unwrap().logs, 1);
    assert_eq!(refused(RECORDING).await, code(410, "log_removed"));
}

#[tokio::test]
async fn a_large_request_counts_for_the_bytes_of_its_run() {
    let options = changed_options(|options| options.runs.max_run_bytes = 50_000);
    let server = Running::start(Server::new().agent("echo", Echo).thread_options(options)).await;
    let mut large = ask_detached("t", "r");
    large["tools"] = json!([{ "name": "a", "description": "x".repeat(60_000) }]);
    let events = server.events(&large).await;
    assert_eq!(events[events.len() - 1]["code"], "run_too_long", "{events:?}");
    large["tools"][0]["description"] = "x".repeat(40_000).into();
    large["runId"] = "s".into();
    let events = server.events(&large).await;
    assert_eq!(events[events.len() - 1]["type"], "RUN_FINISHED", "{events:?}");
}
