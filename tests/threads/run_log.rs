//! The log of a run as a durable stream. `tests/js/durable-streams.test.mjs` runs the protocol's own tests; these are about
//! what the protocol leaves open.

use std::{sync::Arc, time::Duration};

use agui_server::{
    Server,
    agent::{RunContext, emit::TextMessage, event_stream},
    agents::Echo,
    protocol::RunAgentInput,
    store::{MemoryStore, Retention, Store as _, now},
};
use axum::{
    body::{Body, to_bytes},
    http::Request,
};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tower::ServiceExt as _;

use crate::{
    ask, ask_and_leave, ask_detached,
    poll::poll_until,
    puppet, refusal,
    support::{Running, numbered_events},
    types,
};

const LOG: &str = "/threads/t/runs/r/log";

fn offset(number: u64) -> String {
    format!("{number:020}")
}

fn header<'r>(response: &'r reqwest::Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

async fn values(response: reqwest::Response) -> Vec<Value> {
    let status = response.status();
    let body = response.text().await.unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn the_log_of_a_running_run_is_read_while_it_grows_and_is_closed_at_its_end() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    let first = server.get(LOG).await;
    assert_eq!((header(&first, "stream-up-to-date"), header(&first, "stream-closed")), ("true", ""));
    assert_eq!(header(&first, "stream-next-offset"), offset(2));
    let etag = header(&first, "etag").to_owned();
    assert_eq!(types(&values(first).await), ["RUN_STARTED", "TEXT_MESSAGE_START"]);
    let again = server.client.get(server.url(LOG)).header("if-none-match", &etag).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);

    let (client, url) = (server.client.clone(), server.url(&format!("{LOG}?offset={}&live=long-poll", offset(2))));
    let polling = tokio::spawn(async move { client.get(url).send().await.unwrap() });
    let mut live = server.get(&format!("{LOG}?offset=now&live=sse")).await;
    let control = String::from_utf8(live.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(control.starts_with("event: control\n") && control.contains("\"upToDate\":true"), "{control}");
    strings.send("a".to_owned()).unwrap();
    let polled = polling.await.unwrap();
    assert_eq!(header(&polled, "stream-next-offset"), offset(3));
    assert_eq!(values(polled).await[0]["delta"], "a");
    strings.send("end".to_owned()).unwrap();
    let rest = live.text().await.unwrap();
    let last = rest.rsplit("event: control\ndata:").next().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last, serde_json::json!({ "streamNextOffset": offset(5), "upToDate": true, "streamClosed": true }));
    assert!(rest.contains("RUN_FINISHED"), "{rest}");

    let whole = server.client.get(server.url(LOG)).header("if-none-match", &etag).send().await.unwrap();
    assert_eq!((header(&whole, "stream-closed"), header(&whole, "stream-next-offset")), ("true", &*offset(5)));
    let followed = server.get("/threads/t/runs/r/events").await.text().await.unwrap();
    let followed: Vec<Value> = numbered_events(&followed).into_iter().map(|(_, event)| event).collect();
    assert_eq!(values(whole).await, followed);
    let head = server.client.head(server.url(LOG)).send().await.unwrap();
    assert_eq!((header(&head, "stream-closed"), header(&head, "stream-next-offset")), ("true", &*offset(5)));
}

#[tokio::test]
async fn a_long_log_is_read_in_parts() {
    let agent = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            let message = TextMessage::new();
            yield message.start();
            for _ in 0..40 {
                yield message.delta("x".repeat(20_000));
            }
            yield message.end();
        })
    };
    let server = Running::start(Server::new().agent("long", agent)).await;
    let whole = server.events(&ask_detached("t", "r")).await;
    let (mut read, mut parts, mut next) = (Vec::new(), 0, "-1".to_owned());
    loop {
        let part = server.get(&format!("{LOG}?offset={next}")).await;
        let is_closed = header(&part, "stream-closed") == "true";
        assert_eq!(header(&part, "stream-up-to-date") == "true", is_closed);
        header(&part, "stream-next-offset").clone_into(&mut next);
        let part = part.text().await.unwrap();
        assert!(part.len() < 100_000, "{}", part.len());
        read.extend(serde_json::from_str::<Vec<Value>>(&part).unwrap());
        parts += 1;
        if is_closed {
            break;
        }
    }
    assert_eq!(read, whole);
    assert!(parts >= 10, "{parts}");
}

#[tokio::test]
async fn a_log_that_was_removed_or_replaced_is_not_read_as_another() {
    let store = Arc::new(MemoryStore::new());
    let server = Running::start(Server::new().agent("echo", Echo).store(store.clone())).await;
    server.events(&ask_detached("t", "r")).await;
    let first = server.get(LOG).await;
    let etag = header(&first, "etag").to_owned();
    let end = header(&first, "stream-next-offset").to_owned();
    // Otherwise both runs could begin in the same millisecond.
    tokio::time::sleep(Duration::from_millis(2)).await;
    server.events(&ask_detached("t", "r")).await;
    let replaced = server.client.get(server.url(LOG)).header("if-none-match", &etag).send().await.unwrap();
    assert_eq!(replaced.status(), 200);
    let beyond = server.get(&format!("{LOG}?offset={}", offset(end.parse::<u64>().unwrap() + 1))).await;
    assert_eq!(refusal(beyond).await, (400, "invalid_parameter".to_owned()));

    let mut retention = Retention::default();
    retention.logs = Some(0);
    store.sweep(&retention, now()).await.unwrap();
    for query in ["", "?offset=-1&live=sse", "?offset=-1&live=long-poll", "?offset=now", "?offset=now&live=sse"] {
        let removed = server.get(&format!("{LOG}{query}")).await;
        assert_eq!(header(&removed, "x-content-type-options"), "nosniff", "{query}");
        assert_eq!(refusal(removed).await, (410, "log_removed".to_owned()), "{query}");
    }
    assert_eq!(server.client.head(server.url(LOG)).send().await.unwrap().status(), 410);
}

#[tokio::test]
async fn the_end_of_a_run_is_delivered_when_the_connection_has_taken_it() {
    let (agent, strings, _) = puppet();
    let (router, _handle) = Server::new().agent("puppet", agent).into_router().unwrap();
    let send = async |method: Method, path: &str, body: String| {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("content-type", "application/json").body(Body::from(body)).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let get = async |path: &str| send(Method::GET, path, String::new()).await;
    let is_delivered = async || {
        let export = to_bytes(get("/threads/t/export").await.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice::<Value>(&export).unwrap()["runs"][0]["delivered"].as_bool().unwrap()
    };
    drop(send(Method::POST, "/send-message", ask_detached("t", "r").to_string()).await);
    strings.send("end".to_owned()).unwrap();
    let whole = poll_until("the end of the run", async || {
        let response = get(LOG).await;
        response.headers().contains_key("stream-closed").then_some(response)
    });
    // The connection breaks before the body is read.
    drop(whole.await);
    assert!(!is_delivered().await);
    to_bytes(get(LOG).await.into_body(), usize::MAX).await.unwrap();
    assert!(is_delivered().await);
}

#[tokio::test]
async fn a_log_cannot_be_written_and_only_detached_runs_have_one() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    server.events(&ask_detached("t", "r")).await;
    for method in [Method::PUT, Method::POST, Method::DELETE] {
        let request = server.client.request(method.clone(), server.url(LOG)).header("content-type", "application/json");
        assert_eq!(request.body("{}").send().await.unwrap().status(), 405, "{method}");
    }
    server.events(&ask("u", "r", "m", "hi")).await;
    let refused = async |path: &str| refusal(server.get(path).await).await;
    assert_eq!(refused("/threads/u/runs/r/log").await, (404, "run_has_no_log".to_owned()));
    assert_eq!(refused("/threads/t/runs/s/log").await, (404, "unknown_run".to_owned()));
    for query in ["live=sse", "live=long-poll", "live=x&offset=-1", "offset=1", "offset=", "offset=-1&offset=-1"] {
        assert_eq!(server.get(&format!("{LOG}?{query}")).await.status(), 400, "{query}");
    }
}
