//! A thread that is deleted while others use it.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        emit::{TextMessage, interrupt},
        event_stream,
    },
    protocol::{Interrupt, RunAgentInput},
    store::{MemoryStore, PostgresStore, SqliteStore, Store, ThreadKey},
};
use futures::{StreamExt as _, stream::FuturesUnordered};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    support::{
        postgres::Postgres,
        running::{Running, events},
    },
    threads::{ask, ask_detached, puppet, read_until},
};

/// The number of rounds of a race.
const ROUNDS: usize = 40;

/// An agent that says a few words and then asks a question.
fn curious(_: RunAgentInput, cx: RunContext) -> EventStream {
    event_stream(async_stream::try_stream! {
        let message = TextMessage::new();
        yield message.start();
        for _ in 0..5 {
            yield message.delta("word ");
            tokio::task::yield_now().await;
        }
        yield message.end();
        yield interrupt(&cx, vec![Interrupt { id: "ask".into(), ..Interrupt::new("question") }]);
    })
}

/// The requests of a round.
fn requests() -> Vec<(Method, &'static str, Option<Value>)> {
    let resume = |run: &str| {
        let mut input = ask("t", run, "m", "go");
        input["resume"] = json!([{ "interruptId": "ask", "status": "cancelled" }]);
        input
    };
    vec![
        (Method::POST, "/send-message", Some(ask("t", "a", "m", "go"))),
        (Method::DELETE, "/threads/t", None),
        (Method::POST, "/send-message", Some(ask_detached("t", "b"))),
        (Method::POST, "/threads/t/connect", None),
        (Method::DELETE, "/threads/t", None),
        (Method::GET, "/threads/t/runs/b/events", None),
        (Method::POST, "/send-message", Some(resume("c"))),
        (Method::POST, "/threads/t/runs/a/cancel", None),
        (Method::POST, "/threads/t/runs/b/cancel", None),
        (Method::GET, "/threads/t", None),
        (
            Method::POST,
            "/agent/chat/stream",
            Some(json!({ "thread_id": "t", "messages": [{ "role": "user", "content": "yes" }] })),
        ),
        (Method::DELETE, "/copilotkit/threads/t", None),
        (Method::POST, "/copilotkit/agent/curious/stop/t", None),
        (Method::GET, "/threads/t/runs/b/events", None),
    ]
}

/// Sends the requests of all rounds, many at a time. Each must be answered or refused, and each stream must end.
async fn race(store: Arc<dyn Store>) {
    let server = Running::start(Server::new().agent("curious", curious).store(store)).await;
    let mut sent = FuturesUnordered::new();
    for round in 0..ROUNDS {
        for (method, path, body) in requests() {
            let request = server.client.request(method.clone(), server.url(path));
            let request = match &body {
                Some(body) => request.json(body),
                None => request,
            };
            sent.push(async move {
                let response = request.send().await.unwrap();
                let status = response.status().as_u16();
                let text = response.text().await.unwrap();
                let what = format!("round {round}: {method} {path}: {status} {text}");
                assert!([200, 202, 204, 404, 409, 410].contains(&status), "{what}");
                if status == 404 && method == Method::DELETE {
                    assert!(text.contains("unknown_thread"), "{what}");
                }
                if status == 200 && path == "/send-message" {
                    let events = events(&text);
                    let ends = |event: &&Value| {
                        ["RUN_FINISHED", "RUN_ERROR"].contains(&event["type"].as_str().unwrap())
                    };
                    assert_eq!(events.iter().filter(ends).count(), 1, "{what}");
                    let last = events.last().unwrap();
                    let code = last["code"].as_str();
                    assert!(
                        last["type"] == "RUN_FINISHED"
                            || matches!(code, Some("thread_deleted" | "interrupts_open")),
                        "{what}"
                    );
                }
            });
        }
        while sent.len() > 20 {
            sent.next().await;
        }
    }
    while sent.next().await.is_some() {}
    // The thread can be used again, and nothing of the old one is left.
    server.client.delete(server.url("/threads/t")).send().await.unwrap();
    assert_eq!(server.get("/threads/t").await.status(), 404);
    server.events(&ask("t", "new", "m", "go")).await;
    assert_eq!(server.thread("t").await["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory_no_request_fails_while_its_thread_is_deleted() {
    race(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_no_request_fails_while_its_thread_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    race(Arc::new(SqliteStore::open(&folder.path().join("threads.db")).await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_no_request_fails_while_its_thread_is_deleted() {
    let Some(server) = Postgres::shared() else { return };
    race(Arc::new(PostgresStore::open(&server.database("deleted").await).await.unwrap())).await;
}

/// The store is told to delete the thread, as by another server.
#[tokio::test]
async fn the_run_of_a_thread_that_is_deleted_elsewhere_ends_with_thread_deleted() {
    let (agent, strings, _) = puppet();
    let store = Arc::new(MemoryStore::new());
    let server = Running::start(Server::new().agent("puppet", agent).store(store.clone())).await;
    let mut stream = server.raw_run(&ask("t", "r", "m", "go")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    let key = ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: "t".into() };
    let number = store.thread(&key, Default::default()).await.unwrap().unwrap().thread.number;
    assert!(store.delete(number).await.unwrap());
    strings.send("end".to_owned()).unwrap();
    let end = read_until(&mut stream, |text| text.contains("RUN_")).await;
    assert!(end.contains("RUN_ERROR") && end.contains("thread_deleted"), "{end}");
    assert_eq!(server.get("/threads/t").await.status(), 404);
}

/// The streams have an end, so that no client asks for the rest.
#[tokio::test]
async fn all_streams_of_a_deleted_thread_end_with_thread_deleted() {
    for (input, paths) in [
        (ask("t", "r", "m", "go"), &[][..]),
        (ask_detached("t", "r"), &["/threads/t/runs/r/events", "/send-message?runId=r&offset=-1"]),
    ] {
        let (agent, _strings, dropped) = puppet();
        let server = Running::start(Server::new().agent("puppet", agent)).await;
        let mut stream = server.raw_run(&input).await;
        read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
        let mut followed = vec![server.post("/threads/t/connect").send().await.unwrap()];
        for path in paths {
            followed.push(server.get(path).await);
        }
        // Without a detached run, the answer has ended already.
        let followed = followed.split_off(usize::from(paths.is_empty()));
        let deleted = server.client.delete(server.url("/threads/t")).send().await.unwrap();
        assert_eq!((deleted.status().as_u16(), dropped.get()), (204, 1));
        let end = read_until(&mut stream, |text| text.ends_with("\r\n0\r\n\r\n")).await;
        assert!(end.contains("RUN_ERROR") && end.contains("thread_deleted"), "{end}");
        for response in followed {
            let url = response.url().to_string();
            let last = events(&response.text().await.unwrap()).pop().unwrap();
            assert_eq!(
                (&last["type"], &last["code"]),
                (&json!("RUN_ERROR"), &json!("thread_deleted")),
                "{url}"
            );
        }
    }
}
