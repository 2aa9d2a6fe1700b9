//! Streams with more than one run: endpoints that replay earlier runs before the requested one, whose id is `r`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    endpoint::{
        FakeEndpoint, Piece, Response, agent_events, begin_and_end, event, run, server_with, text,
    },
    running::input,
};

fn failed(message: &str) -> Value {
    json!({ "type": "RUN_ERROR", "message": message })
}

async fn events_of(stream: &[&[Value]]) -> Vec<Value> {
    let endpoint = FakeEndpoint::new([Response::events(&stream.concat())]).await;
    run(&endpoint.server().await, &input("Hello")).await
}

#[tokio::test]
async fn the_requested_run_is_read_after_replayed_ones() {
    let ([first, first_end], [begin, end]) = (begin_and_end("earlier"), begin_and_end("r"));
    let (earlier, answer) = (text("m1", "Earlier"), text("m2", "Now"));
    for replay_end in [first_end, failed("it failed then")] {
        let stream: [&[Value]; 5] = [
            std::slice::from_ref(&first),
            &earlier,
            &[replay_end, begin.clone()],
            &answer,
            std::slice::from_ref(&end),
        ];
        let events = events_of(&stream).await;
        assert_eq!(agent_events(&events), [earlier.clone(), answer.clone()].concat());
        assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    }
}

#[tokio::test]
async fn the_ending_of_the_requested_run_is_the_ending() {
    let ([first, mut first_end], [begin, _]) = (begin_and_end("earlier"), begin_and_end("r"));
    first_end["outcome"] =
        json!({ "type": "interrupt", "interrupts": [{ "id": "old", "reason": "x" }] });
    first_end["usage"] = json!([{ "model": "m", "inputTokens": 100 }]);
    let usage = json!([{ "model": "m", "inputTokens": 1 }]);
    let mut error = failed("No tea");
    error["usage"] = usage.clone();
    let events = events_of(&[&[first.clone(), first_end.clone(), begin, error]]).await;
    let expected =
        json!({ "type": "RUN_ERROR", "message": "No tea", "code": "remote_error", "usage": usage });
    assert_eq!(events.last(), Some(&expected), "the usage of the earlier run is not counted again");

    // The requested run began and was cut off.
    let events = events_of(&[&[first, first_end, begin_and_end("r")[0].clone()]]).await;
    assert_eq!(events.last().unwrap()["code"], "remote_incomplete");
}

#[tokio::test]
async fn the_last_run_counts_if_no_run_has_the_requested_id() {
    let ([first, first_end], [second, second_end]) = (begin_and_end("a"), begin_and_end("b"));
    let (one, two) = (text("m1", "One"), text("m2", "Two"));
    let events = events_of(&[
        std::slice::from_ref(&first),
        &one,
        &[first_end.clone(), second],
        &two,
        &[second_end],
    ])
    .await;
    assert_eq!(agent_events(&events), [one.clone(), two].concat());
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");

    // Something that is not AG-UI after the end, and a connection that stays open.
    let done =
        [event(&first), event(&first_end), Piece::Text("data: [DONE]\n\n".to_owned()), Piece::Hang];
    let endpoint = FakeEndpoint::new([Response::stream(done)]).await;
    let mut options = endpoint.options();
    options.idle_timeout = Duration::from_secs(1);
    let asked = Instant::now();
    let events = run(&server_with(options).await, &input("Hello")).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_failure_after_the_end_of_a_run_fails_it() {
    let answer = text("m1", "Hi");
    for id in ["r", "other"] {
        let [begin, mut end] = begin_and_end(id);
        end["usage"] = json!([{ "model": "m", "inputTokens": 7 }]);
        let events =
            events_of(&[std::slice::from_ref(&begin), &answer, &[end.clone(), failed("Lost it")]])
                .await;
        assert_eq!(agent_events(&events), answer, "what was delivered stays delivered");
        let expected = json!({ "type": "RUN_ERROR", "message": "Lost it", "code": "remote_error", "usage": end["usage"] });
        assert_eq!(events.last(), Some(&expected));

        // The failure of a later run is not the requested run's failure.
        let next = begin_and_end("next")[0].clone();
        let events =
            events_of(&[&[begin], &answer, &[end, next, failed("It is another run's")]]).await;
        let outcome = &events.last().unwrap()["outcome"]["type"];
        assert!(
            if id == "r" { outcome == "success" } else { outcome.is_null() },
            "{id}: {events:#?}"
        );
    }
}

#[tokio::test]
async fn a_run_within_a_run_is_read_as_one_run() {
    let [begin, end] = begin_and_end("r");
    let answer = text("m1", "Hi");
    for nested in ["r", "other"] {
        let inner = begin_and_end(nested)[0].clone();
        let events =
            events_of(&[&[begin.clone(), inner], &answer, std::slice::from_ref(&end)]).await;
        assert_eq!(agent_events(&events), answer);
        assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    }
}

#[tokio::test]
async fn a_step_that_a_replayed_run_left_open_is_closed_before_the_requested_run() {
    let ([first, _], [begin, end]) = (begin_and_end("earlier"), begin_and_end("r"));
    let [started, finished] =
        ["STEP_STARTED", "STEP_FINISHED"].map(|kind| json!({ "type": kind, "stepName": "plan" }));
    let stream = [
        first,
        started.clone(),
        failed("it failed then"),
        begin,
        started.clone(),
        finished.clone(),
        end,
    ];
    let events = events_of(&[&stream]).await;
    assert_eq!(agent_events(&events), [started.clone(), finished.clone(), started, finished]);
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
}
