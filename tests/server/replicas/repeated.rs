//! Requests that come again after their run had started a call and broke off, or while another server has their run.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    ask,
    client::{Endpoint, Received, Stream},
    continued::{answer_of_calls, answer_of_text, config, continued, folded, half, start},
    postgres::Postgres,
    provider::{Answer, Provider},
    start_all,
};

/// Reads until the agent has said a text.
async fn heard(server: &Endpoint, input: &Value, delta: &str) -> (Stream, Vec<Received>) {
    let mut stream = server.run(input).await;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|last: &Received| last.event["delta"] == delta) {
        seen.push(stream.next().await.unwrap());
    }
    (stream, seen)
}

fn is_restated(events: &[Received]) -> bool {
    events.iter().any(|received| received.event["name"] == "agui-server.restated")
}

/// Lets the model call `send`, and begin a text.
fn sends_and_stalls(provider: &Provider) {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 } });
    provider.answer(Answer::openai(&[answer_of_calls(&["send"]), usage]));
    provider.answer(Answer::new(200, ["sent"]).header("content-type", "text/plain"));
    provider.answer(half("It is se"));
}

#[tokio::test]
async fn a_request_that_comes_again_continues_after_the_call_that_its_run_has_made() {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let config = config(&provider.url());
    let server = start(folder.path(), &config);
    let input = ask("r", "go");
    sends_and_stalls(&provider);
    drop(heard(&server, &input, "It is se").await);
    server.until_status("cancelled").await;

    // The run fails then.
    provider.answer(Answer::new(401, [r#"{"error":{"message":"Incorrect API key provided"}}"#]));
    let failed = server.run(&input).await.rest().await;
    assert_eq!(continued(&failed), [&json!({ "attempt": 1, "cause": "repeated" })]);
    assert_eq!(failed.last().unwrap().name(), "RUN_ERROR");

    // Its server is lost.
    provider.answer(half("It was"));
    let (stream, seen) = heard(&server, &input, "It was").await;
    assert_eq!(continued(&seen), [&json!({ "attempt": 2, "cause": "repeated" })]);
    server.kill();
    drop(stream);
    let server = start(folder.path(), &config);
    server.until_status("failed").await;

    provider.answer(answer_of_text("It is sent."));
    let done = server.run(&input).await.rest().await;
    assert_eq!(done.last().unwrap().name(), "RUN_FINISHED");
    assert_eq!(folded(&done), ["", "It is sent."]);
    let thread = server.until_status("finished").await;
    let messages = thread["messages"].as_array().unwrap();
    let said: Vec<_> = messages.iter().map(|message| &message["content"]).collect();
    assert_eq!(said[2..], ["sent", "It is sent."]);
    let paths: Vec<_> = provider.requests().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths.iter().filter(|path| *path == "/send").count(), 1, "{paths:?}");
    let last = &provider.requests().pop().unwrap().body["messages"];
    assert_eq!(last.as_array().unwrap().len(), 3, "no half answer: {last}");
    let runs = thread["runs"].as_array().unwrap();
    let of = |run: &Value| (run["attempt"].clone(), run["usage"][0]["inputTokens"].clone());
    let attempts: Vec<_> = runs.iter().map(of).collect();
    assert_eq!(attempts[0], (json!(4), json!(10)), "the tokens of earlier attempts count there");
    assert_eq!(attempts[3], (json!(1), json!(7)), "{attempts:?}");

    // What has ended is restated.
    assert!(is_restated(&server.run(&input).await.rest().await));
}

#[tokio::test]
async fn a_run_that_may_not_be_continued_again_is_restated_with_its_error() {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let config = config(&provider.url()) + "[runs]\nmax_continuations = 0\n";
    let server = start(folder.path(), &config);
    sends_and_stalls(&provider);
    let (stream, _) = heard(&server, &ask("r", "go"), "It is se").await;
    server.kill();
    drop(stream);
    let server = start(folder.path(), &config);
    server.until_status("failed").await;
    let again = server.run(&ask("r", "go")).await.rest().await;
    assert!(is_restated(&again));
    assert_eq!(again.last().unwrap().event["code"], "server_lost");
    assert_eq!(provider.requests().len(), 3);
}

#[tokio::test]
async fn the_same_request_at_another_server_is_kept_alive_until_its_run_has_ended() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("repeated").await;
    let [a, b] = start_all(&[
        ("AGUI_STORE__URL", &url),
        ("AGUI_SERVER__KEEP_ALIVE_SECS", "1"),
        ("AGUI_THREADS__QUEUE_TIMEOUT_SECS", "1"),
    ]);
    let input = ask("r", "count to 10000");
    let mut started = a.run(&input).await;
    started.take(5).await;
    let mut same = b.post(&input).await;
    assert_eq!(same.status(), 200);
    let mut silence = String::new();
    while silence.matches('\n').count() < 4 {
        silence += &String::from_utf8_lossy(&same.chunk().await.unwrap().unwrap());
    }
    assert!(silence.starts_with(':') && !silence.contains("data"), "{silence}");
    let document = b.request(Method::POST, "/send-message").header("accept", "application/json");
    let document = tokio::spawn(document.json(&input).send());
    assert_eq!(a.cancel("r").await, 202);
    started.rest().await;
    let seen = Stream::of(same).await.rest().await;
    assert!(is_restated(&seen));
    assert_eq!(seen.last().unwrap().event["outcome"]["type"], "cancelled");
    let document: Value = document.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(document["status"], "cancelled");
    assert_eq!(b.thread().await["runs"].as_array().unwrap().len(), 1);
}
