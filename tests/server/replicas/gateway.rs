//! A server whose agent is another server, while either of them is killed or stopped.

use std::fs;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{
    ask_detached,
    client::{Received, Replica, Stream},
    continued::{counted, folded, restarted},
    poll::poll_until,
    said,
};
use crate::support::checker;

/// A folder of each server, which outlives it.
struct Folders {
    gateway: TempDir,
    backend: TempDir,
}

impl Folders {
    fn new() -> Self {
        Self { gateway: tempdir().unwrap(), backend: tempdir().unwrap() }
    }

    fn backend_environment(&self) -> [(&str, &str); 2] {
        [
            ("AGUI_SERVER__DATA_DIR", self.backend.path().to_str().unwrap()),
            ("AGUI_SERVER__DRAIN_SECS", "0"),
        ]
    }

    /// Starts both servers, and a run at the gateway, which has said three words.
    async fn begin(&self, text: &str) -> (Replica, Replica, Stream) {
        let backend = Replica::start(&self.backend_environment());
        let gateway = self.gateway_of(&backend);
        let mut stream = gateway.run(&ask_detached("r", text)).await;
        for _ in 0..3 {
            while stream.next().await.unwrap().name() != "TEXT_MESSAGE_CONTENT" {}
        }
        (backend, gateway, stream)
    }

    /// Starts the gateway on its folder, so that it has its threads again.
    fn gateway_of(&self, backend: &Replica) -> Replica {
        let file = self.gateway.path().join("config.toml");
        let url = &backend.url;
        let config = format!(
            "[agents.remote]\nkind = \"remote\"\nurl = \"{url}/agents/demo/send-message\"\nresumable = true\n"
        );
        fs::write(&file, config).unwrap();
        let data = self.gateway.path().to_str().unwrap();
        let environment = [("AGUI_SERVER__DATA_DIR", data), ("AGUI_SERVER__DRAIN_SECS", "0")];
        Replica::start_with(&["--config", file.to_str().unwrap()], &environment)
    }
}

/// Returns the one thread of the backend, whose id is not the one of the gateway.
async fn thread_of_run(backend: &Replica) -> Value {
    let list: Value = backend.get("/threads").await.json().await.unwrap();
    let [thread] = &list["threads"].as_array().unwrap()[..] else { panic!("{list}") };
    let id = thread["threadId"].as_str().unwrap();
    assert_ne!(id, "t");
    backend.get(&format!("/threads/{id}")).await.json().await.unwrap()
}

async fn until_status(backend: &Replica, status: &str) -> Value {
    poll_until(status, async || {
        let thread = thread_of_run(backend).await;
        (thread["runs"][0]["status"] == status).then_some(thread)
    })
    .await
}

/// Checks the run on both servers: the text came once, and the backend ran it once.
async fn check(gateway: &Replica, backend: &Replica, text: &str, answer: &str) -> Vec<Received> {
    let thread = gateway.until_status("finished").await;
    assert_eq!(said(&thread), [format!("user: {text}"), format!("assistant: {answer}")]);
    let log = gateway.follow("r", 0).await.rest().await;
    assert_eq!(folded(&log), [answer]);
    let events: Vec<_> =
        log.iter().map(|it| serde_json::from_value(it.event.clone()).unwrap()).collect();
    let input = serde_json::from_value(ask_detached("r", text)).unwrap();
    assert_eq!(checker::check(&input, &events), Ok(()), "{log:?}");
    let there = until_status(backend, "finished").await;
    assert_eq!(there["runs"].as_array().unwrap().len(), 1);
    log
}

#[tokio::test]
async fn a_gateway_that_is_killed_continues_the_run_that_its_backend_has_kept() {
    let folders = Folders::new();
    let (backend, gateway, stream) = folders.begin("count to 60").await;
    gateway.kill();
    drop(stream);
    let gateway = folders.gateway_of(&backend);
    let log = check(&gateway, &backend, "count to 60", &counted(60)).await;
    let starts: Vec<_> = log.iter().filter(|it| it.name() == "TEXT_MESSAGE_START").collect();
    let [first, again] = &starts[..] else { panic!("{starts:?}") };
    assert_ne!(
        first.event["messageId"], again.event["messageId"],
        "clients would append to a message of the same id"
    );
    let continued: Vec<_> =
        log.iter().filter(|it| it.event["name"] == "agui-server.run_continued").collect();
    assert_eq!(continued.len(), 1);
    assert_eq!(continued[0].event["value"], json!({ "attempt": 1, "cause": "server_lost" }));
}

#[tokio::test]
async fn a_gateway_that_is_stopped_does_not_cancel_the_run_of_its_backend() {
    let folders = Folders::new();
    let (backend, gateway, _stream) = folders.begin("count to 60").await;
    gateway.process.signal("-TERM");
    assert_eq!(gateway.end().0, Some(0));
    let gateway = folders.gateway_of(&backend);
    check(&gateway, &backend, "count to 60", &counted(60)).await;
}

#[tokio::test]
async fn a_gateway_continues_its_run_when_its_backend_comes_back_after_it() {
    let folders = Folders::new();
    let environment = folders.backend_environment();
    let (backend, gateway, _stream) = folders.begin("count to 60").await;
    gateway.process.signal("-TERM");
    assert_eq!(gateway.end().0, Some(0));
    backend.process.signal("-TERM");
    let gateway = folders.gateway_of(&backend);
    let address = backend.url.strip_prefix("http://").unwrap().to_owned();
    assert_eq!(backend.end().0, Some(0));
    poll_until("the run continues", async || {
        gateway.process.has_logged("continues here").then_some(())
    })
    .await;
    let backend = Replica::start_with(&["--listen", &address], &environment);
    check(&gateway, &backend, "count to 60", &counted(60)).await;
}

#[tokio::test]
async fn a_gateway_waits_while_its_backend_is_restarted() {
    let folders = Folders::new();
    let environment = folders.backend_environment();
    let (backend, gateway, stream) = folders.begin("count to 60").await;
    let backend = restarted(backend, &environment).await;
    let events = stream.rest().await;
    assert_eq!(events.last().unwrap().name(), "RUN_FINISHED", "{events:?}");
    check(&gateway, &backend, "count to 60", &counted(60)).await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_at_the_gateway_ends_at_its_backend() {
    let folders = Folders::new();
    let (backend, gateway, _stream) = folders.begin("count to 1000").await;
    assert_eq!(gateway.cancel("r").await, 202);
    gateway.until_status("cancelled").await;
    until_status(&backend, "cancelled").await;
    let status: Value = poll_until("the backend has no run", async || {
        let thread = thread_of_run(&backend).await;
        thread.get("activeRunId").is_none().then(|| thread["runs"][0]["status"].clone())
    })
    .await;
    assert_eq!(status, "cancelled");
}
