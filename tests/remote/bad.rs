//! Endpoints that misbehave: the client's stream is legal and says in its last event what went wrong.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    running::input,
    upstream::{Answer, Piece, Upstream, event, finished, run, served, started, text},
};

/// The last event of a run that an answer has failed, which closes what was open.
async fn failure(answer: Answer) -> Value {
    let upstream = Upstream::new([answer]).await;
    let mut options = upstream.options();
    options.max_event_bytes = 10_000;
    options.idle_timeout = Duration::from_millis(300);
    let mut events = run(&served(options).await, &input("Hello")).await;
    let last = events.pop().unwrap();
    assert_eq!(last["type"], "RUN_ERROR", "{last}");
    last
}

fn says(last: &Value) -> (&str, &str) {
    (last["code"].as_str().unwrap(), last["message"].as_str().unwrap())
}

#[tokio::test]
async fn a_stream_that_stops_before_its_run_has_ended_is_incomplete() {
    let begun = [&[started()][..], &text("said", "Hi")[..2]].concat();
    let mut cut: Vec<_> = begun.iter().map(event).collect();
    cut.push(Piece::Text("data: {\"type\":\"TEXT_MES".to_owned()));
    let mut broken = cut.clone();
    broken.push(Piece::Break);
    // An event without its empty line is none, as the format has it.
    let unended = format!("data: {}\n\ndata: {}", started(), finished());
    for answer in [
        Answer::events(&begun),
        Answer::stream(cut),
        Answer::stream(broken),
        Answer::text(unended),
        Answer::text(""),
        Answer::text(": nothing to say\n\n"),
    ] {
        let last = failure(answer).await;
        let expected = "the remote agent's stream stopped before its run ended";
        assert_eq!(says(&last), ("remote_incomplete", expected));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_told_apart_and_gives_nothing_away() {
    let page = || Answer::text("<html>s3cret</html>");
    let stream = || Answer::events(&[started(), finished()]);
    for (answer, code, message) in [
        (
            Answer::status(500, "s3cret"),
            "remote_failed",
            "the remote agent's server failed (500 Internal Server Error)",
        ),
        (Answer::status(503, ""), "remote_failed", "the remote agent's server failed (503 Service Unavailable)"),
        (Answer::status(401, "s3cret"), "remote_rejected", "refused the request (401 Unauthorized)"),
        (Answer::status(422, "{\"detail\":\"s3cret\"}"), "remote_rejected", "refused the request (422 "),
        (Answer::status(429, ""), "remote_rejected", "refused the request (429 "),
        (Answer::status(204, ""), "remote_protocol", "answered with 204 No Content"),
        (page().with("content-type", "text/html"), "remote_protocol", "is no event stream"),
        (stream().with("content-type", "application/json"), "remote_protocol", "is no event stream"),
        (stream().with("content-encoding", "gzip"), "remote_protocol", "is no event stream"),
        (Answer { headers: vec![], ..stream() }, "remote_protocol", "is no event stream"),
    ] {
        let last = failure(answer).await;
        let said = says(&last);
        assert!(said.0 == code && said.1.contains(message) && !said.1.contains("s3cret"), "{said:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Upstream::new([Answer::events(&[started(), finished()])]).await;
    for status in [301, 302, 303, 307, 308] {
        let last = failure(Answer::status(status, "").with("location", &target.url)).await;
        assert_eq!(says(&last).0, "remote_rejected", "{last}");
    }
    assert_eq!(target.asked().len(), 0);
}

#[tokio::test]
async fn an_event_that_is_not_ag_ui_is_named_by_its_number() {
    let begun = format!("data: {}\n\n: comments do not count\n\n", started());
    for (piece, expected) in [
        ("data: garbage\n\n".to_owned(), "event 2: not JSON: expected value at line 1 column 1"),
        ("data: [DONE]\n\n".to_owned(), "event 2: not JSON: "),
        ("data: []\n\n".to_owned(), "event 2: not an object"),
        (
            "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\"}\n\n".to_owned(),
            "event 2 (TEXT_MESSAGE_CONTENT): missing field `delta`",
        ),
        (
            "data: {\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"content\":5}]}\n\n"
                .to_owned(),
            "event 2 (MESSAGES_SNAPSHOT): messages[0].content: ",
        ),
        (format!("data: {}\n\n", "x".repeat(10_000)), "event 2: one event has more than 10000 bytes"),
        (format!("data: {}", "x".repeat(10_000)), "event 2: one event has more than 10000 bytes"),
    ] {
        let last = failure(Answer::stream([Piece::Text(begun.clone()), Piece::Wait(20), Piece::Text(piece)])).await;
        let (code, message) = says(&last);
        assert_eq!(code, "remote_protocol");
        let expected = format!("the remote agent broke the protocol: {expected}");
        assert!(message.starts_with(&expected), "{message}\n{expected}");
    }
}

#[tokio::test]
async fn an_event_without_end_is_refused_long_before_it_fills_the_memory() {
    let endless = Answer::stream([event(&started()), Piece::Endless("data: 0123456789\n".repeat(1000))]);
    let last = failure(endless).await;
    assert_eq!(says(&last).0, "remote_protocol");
}

#[tokio::test]
async fn disorder_that_cannot_be_mended_ends_the_run() {
    let orphan = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "nobody", "delta": "x" });
    let no_start = json!({ "type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "x" });
    let patch = json!({ "type": "STATE_DELTA", "delta": [{ "op": "remove", "path": "nowhere" }] });
    for wrong in [orphan, no_start, patch] {
        let last = failure(Answer::events(&[started(), wrong, finished()])).await;
        assert_eq!(says(&last).0, "protocol_violation");
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up() {
    let begun = Answer::stream([event(&started()), event(&text("said", "")[0]), Piece::Hang]);
    let last = failure(begun).await;
    assert_eq!(says(&last), ("remote_timeout", "the remote agent did not answer in time"));
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_at_all_is_given_up_too() {
    // A listener that nobody accepts from: the connection is made, and nothing comes.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut options = agui_server::agents::RemoteOptions::new(&url);
    options.connect_timeout = Duration::from_millis(100);
    options.idle_timeout = Duration::from_millis(100);
    let events = run(&served(options.clone()).await, &input("Hello")).await;
    assert_eq!(says(events.last().unwrap()).0, "remote_timeout");
    drop(listener);
    let events = run(&served(options).await, &input("Hello")).await;
    assert_eq!(says(events.last().unwrap()), ("remote_unreachable", "the remote agent cannot be reached"));
}
