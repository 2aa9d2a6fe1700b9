//! Endpoints that misbehave: the client gets a legal stream whose last event names the error.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    endpoint::{FakeEndpoint, Piece, Response, event, finished, run, server_with, started, text},
    running::input,
};

/// Returns the last event of a run with this response, which is a RUN_ERROR.
async fn failure(answer: Response) -> Value {
    let endpoint = FakeEndpoint::new([answer]).await;
    let mut options = endpoint.options();
    options.max_event_bytes = 10_000;
    options.idle_timeout = Duration::from_secs(1);
    let mut events = run(&server_with(options).await, &input("Hello")).await;
    let last = events.pop().unwrap();
    assert_eq!(last["type"], "RUN_ERROR", "{last}");
    last
}

fn code_and_message(last: &Value) -> (&str, &str) {
    (last["code"].as_str().unwrap(), last["message"].as_str().unwrap())
}

#[tokio::test]
async fn a_stream_that_ends_before_its_run_is_incomplete() {
    let begun = [&[started()][..], &text("said", "Hi")[..2]].concat();
    let mut cut: Vec<_> = begun.iter().map(event).collect();
    cut.push(Piece::Text("data: {\"type\":\"TEXT_MES".to_owned()));
    let mut broken = cut.clone();
    broken.push(Piece::Break);
    // An event without its empty line is ignored, as the format demands.
    let unended = format!("data: {}\n\ndata: {}", started(), finished());
    for answer in [
        Response::events(&begun),
        Response::stream(cut),
        Response::stream(broken),
        Response::text(unended),
        Response::text(""),
        Response::text(": nothing to say\n\n"),
    ] {
        let last = failure(answer).await;
        let expected = "the remote agent's stream stopped before its run ended";
        assert_eq!(code_and_message(&last), ("remote_incomplete", expected));
    }
}

#[tokio::test]
async fn responses_that_are_not_streams_have_their_codes_and_leak_no_body() {
    let page = || Response::text("<html>s3cret</html>");
    let stream = || Response::events(&[started(), finished()]);
    for (answer, code, message) in [
        (
            Response::status(500, "s3cret"),
            "remote_failed",
            "the remote agent's server failed (500 Internal Server Error)",
        ),
        (
            Response::status(503, ""),
            "remote_failed",
            "the remote agent's server failed (503 Service Unavailable)",
        ),
        (
            Response::status(401, "s3cret"),
            "remote_rejected",
            "refused the request (401 Unauthorized)",
        ),
        (
            Response::status(422, "{\"detail\":\"s3cret\"}"),
            "remote_rejected",
            "refused the request (422 ",
        ),
        (Response::status(429, ""), "remote_rejected", "refused the request (429 "),
        (Response::status(204, ""), "remote_protocol", "answered with 204 No Content"),
        (
            page().with("content-type", "text/html"),
            "remote_protocol",
            "is not an uncompressed event stream",
        ),
        (
            Response::text("{\"detail\":\"s3cret\"}").with("content-type", "application/json"),
            "remote_protocol",
            "is not an uncompressed event stream",
        ),
        (
            stream().with("content-encoding", "gzip"),
            "remote_protocol",
            "is not an uncompressed event stream",
        ),
    ] {
        let last = failure(answer).await;
        let found = code_and_message(&last);
        assert!(
            found.0 == code && found.1.contains(message) && !found.1.contains("s3cret"),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = FakeEndpoint::new([Response::events(&[started(), finished()])]).await;
    for status in [301, 302, 303, 307, 308] {
        let last = failure(Response::status(status, "").with("location", &target.url)).await;
        assert_eq!(code_and_message(&last).0, "remote_rejected", "{last}");
    }
    assert_eq!(target.requests().len(), 0);
}

#[tokio::test]
async fn an_invalid_event_is_named_by_its_number() {
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
        let last = failure(Response::stream([Piece::Text(begun.clone()), Piece::Wait(20), Piece::Text(piece)])).await;
        let (code, message) = code_and_message(&last);
        assert_eq!(code, "remote_protocol");
        let expected = format!("the remote agent broke the protocol: {expected}");
        assert!(message.starts_with(&expected), "{message}\n{expected}");
    }
}

#[tokio::test]
async fn an_endless_event_is_refused_at_the_size_limit() {
    let endless =
        Response::stream([event(&started()), Piece::Endless("data: 0123456789\n".repeat(1000))]);
    let last = failure(endless).await;
    assert_eq!(code_and_message(&last).0, "remote_protocol");
}

#[tokio::test]
async fn an_order_that_cannot_be_corrected_is_a_protocol_violation() {
    let chunk = |role: &str| json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": role, "delta": "x" });
    let patch = json!({ "type": "STATE_DELTA", "delta": [{ "op": "remove", "path": "nowhere" }] });
    for wrong in [vec![chunk("assistant"), chunk("user")], vec![patch]] {
        let stream = [vec![started()], wrong, vec![finished()]].concat();
        let last = failure(Response::events(&stream)).await;
        assert_eq!(code_and_message(&last).0, "protocol_violation");
    }
}

#[tokio::test]
async fn an_endpoint_that_stops_sending_times_out() {
    let begun = Response::stream([event(&started()), event(&text("said", "")[0]), Piece::Hang]);
    let last = failure(begun).await;
    assert_eq!(
        code_and_message(&last),
        ("remote_timeout", "the remote agent did not answer in time")
    );
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_times_out() {
    // The kernel accepts connections for this listener, and no response comes.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut options = agui_server::agent::builtin::RemoteOptions::new(&url);
    options.connect_timeout = Duration::from_millis(100);
    options.idle_timeout = Duration::from_millis(100);
    let events = run(&server_with(options.clone()).await, &input("Hello")).await;
    assert_eq!(code_and_message(events.last().unwrap()).0, "remote_timeout");
    drop(listener);
    let events = run(&server_with(options).await, &input("Hello")).await;
    assert_eq!(
        code_and_message(events.last().unwrap()),
        ("remote_unreachable", "the remote agent cannot be reached")
    );
}
