//! `Idempotency-Key`: a request that comes again is answered once.

use std::sync::Arc;

use agui_server::{
    agent::{emit::TextMessage, event_stream, events},
    auth::ApiKey,
};
use tokio::sync::Semaphore;

use super::*;
use crate::support::running::{Count, eventually};

/// Returns an agent that waits for a permit before it says its number, and counts its runs.
fn waiting() -> (
    impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static,
    Count,
    Arc<Semaphore>,
) {
    let (runs, gate) = (Count::default(), Arc::new(Semaphore::new(0)));
    let (counter, waits) = (runs.clone(), gate.clone());
    let agent = move |_: RunAgentInput, _: RunContext| {
        counter.add();
        let (number, waits) = (counter.get(), waits.clone());
        event_stream(async_stream::try_stream! {
            let message = TextMessage::new();
            yield message.start();
            yield message.delta("Run ");
            waits.acquire().await.unwrap().forget();
            yield message.delta(number.to_string());
            yield message.end();
        })
    };
    (agent, runs, gate)
}

async fn post_with_key(server: &Running, key: &str, body: &Value) -> Response {
    server.post(PATH).header("idempotency-key", key).json(body).send().await.unwrap()
}

#[tokio::test]
async fn a_key_gets_the_same_answer_and_another_body_is_refused() {
    let (agent, runs, gate) = waiting();
    gate.add_permits(10);
    let server = Running::start(Server::new().agent("a", agent)).await;
    let body = asking("Hi", json!({}));
    let first = post_with_key(&server, "k", &body).await.json::<Value>().await.unwrap();
    assert_eq!(*content(&first), "Run 1");
    let again = post_with_key(&server, "k", &body).await.json::<Value>().await.unwrap();
    assert_eq!((&again, runs.get()), (&first, 1));
    let other = post_with_key(&server, "k", &asking("Ho", json!({}))).await;
    assert_eq!(other.status(), 422);
    let error = other.json::<Value>().await.unwrap();
    assert_eq!(error["error"]["code"], "idempotency_key_reused");
    post_with_key(&server, "other", &body).await.text().await.unwrap();
    assert_eq!(runs.get(), 2);
    let streamed = asking("Hi", json!({ "stream": true }));
    let once = post_with_key(&server, "s", &streamed).await.text().await.unwrap();
    let twice = post_with_key(&server, "s", &streamed).await.text().await.unwrap();
    let (once, twice) = (chunks(&once), chunks(&twice));
    assert_eq!(text_and_reason(&once), ("Run 3".to_owned(), json!("stop")));
    assert_eq!((text_and_reason(&twice), runs.get()), (text_and_reason(&once), 3));
    assert_eq!(once[0]["id"], twice[0]["id"]);
    for key in ["", &"k".repeat(256)] {
        assert_eq!(post_with_key(&server, key, &body).await.status(), 400, "{key}");
    }
}

#[tokio::test]
async fn a_request_that_comes_again_while_the_first_one_runs_shares_its_run() {
    let (agent, runs, gate) = waiting();
    let server = Running::start(Server::new().agent("a", agent)).await;
    let body = asking("Hi", json!({ "stream": true }));
    let first = post_with_key(&server, "k", &body).await;
    let second = post_with_key(&server, "k", &body).await;
    gate.add_permits(10);
    for response in [first, second] {
        let chunks = chunks(&response.text().await.unwrap());
        assert_eq!(text_and_reason(&chunks), ("Run 1".to_owned(), json!("stop")));
    }
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn a_run_with_a_key_continues_without_its_client() {
    let (agent, runs, gate) = waiting();
    let server = Running::start(Server::new().agent("a", agent)).await;
    let body = asking("Hi", json!({}));
    let lost = tokio::spawn({
        let request = server.post(PATH).header("idempotency-key", "k").json(&body);
        async move { request.send().await }
    });
    eventually("the run begins", || runs.get() == 1).await;
    lost.abort();
    assert!(lost.await.unwrap_err().is_cancelled());
    gate.add_permits(1);
    let again = post_with_key(&server, "k", &body).await.json::<Value>().await.unwrap();
    assert_eq!((content(&again), runs.get()), (&json!("Run 1"), 1));
}

#[tokio::test]
async fn a_key_belongs_to_its_owner() {
    let (agent, runs, gate) = waiting();
    gate.add_permits(10);
    let keys = [ApiKey::from_secret("ann", "of-ann"), ApiKey::from_secret("bob", "of-bob")];
    let server = Running::start(Server::new().agent("a", agent).api_keys(keys)).await;
    for (secret, text) in [("of-ann", "Run 1"), ("of-bob", "Run 2"), ("of-ann", "Run 1")] {
        let request = server.post(PATH).bearer_auth(secret).header("idempotency-key", "k");
        let response = request.json(&asking("Hi", json!({}))).send().await.unwrap();
        assert_eq!(*content(&response.json::<Value>().await.unwrap()), text);
    }
    assert_eq!(runs.get(), 2);
}

#[tokio::test]
async fn failures_hold_for_their_key_and_large_answers_are_not_kept() {
    let runs = Count::default();
    let counter = runs.clone();
    let agent = move |input: RunAgentInput, _: RunContext| {
        counter.add();
        match input.last_user_text().as_deref() {
            Some("long") => events(TextMessage::whole("x".repeat(100_000))),
            _ => event_stream(futures::stream::iter([Err(agui_server::agent::AgentError::new(
                "broken",
                "It broke.",
            ))])),
        }
    };
    let server = Running::start(Server::new().agent("a", agent)).await;
    for _ in 0..2 {
        let failed = post_with_key(&server, "f", &asking("fail", json!({}))).await;
        assert_eq!((failed.status().as_u16(), runs.get()), (502, 1));
        assert_eq!(failed.headers()["x-should-retry"], "false");
    }
    let long = asking("long", json!({}));
    let whole = post_with_key(&server, "l", &long).await.json::<Value>().await.unwrap();
    assert_eq!(content(&whole).as_str().unwrap().len(), 100_000);
    let again = post_with_key(&server, "l", &long).await;
    assert_eq!((again.status().as_u16(), runs.get()), (409, 2));
    assert_eq!(again.headers()["x-should-retry"], "false");
    let error = again.json::<Value>().await.unwrap();
    assert_eq!(error["error"]["code"], "answer_not_kept");
}
