//! The request to an endpoint ends with its run.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{
    endpoint::{
        FakeEndpoint, Piece, Response, assert_legal, begin_and_end, event, finished, run,
        server_with, started, text,
    },
    running::{events, eventually, input, read_until},
};

/// A stream that hangs after the text "Hi".
fn hanging() -> Response {
    let mut pieces: Vec<_> =
        [&[started()][..], &text("said", "Hi")[..2]].concat().iter().map(event).collect();
    pieces.push(Piece::Hang);
    Response::stream(pieces)
}

/// The time limit of dropping a request after its client left.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn the_request_is_dropped_when_the_client_leaves() {
    let endpoint = FakeEndpoint::new([hanging()]).await;
    let server = endpoint.server().await;
    // A stored run is ended in the store before its agent is dropped; one beside its thread is dropped directly.
    let mut suggest = input("Hello");
    suggest["tools"] =
        json!([{ "name": "copilotkitSuggest", "description": "", "parameters": {} }]);
    suggest["forwardedProps"] = json!({ "toolChoice": { "type": "function", "function": { "name": "copilotkitSuggest" } } });
    for (count, input) in [(1, input("Hello")), (2, suggest)] {
        let mut stream = server.raw_run(&input).await;
        read_until(&mut stream, |text| text.contains("\"Hi\"")).await;
        assert_eq!(endpoint.closed(), count - 1);
        let left = Instant::now();
        drop(stream);
        eventually("the request is dropped", || endpoint.closed() == count).await;
        assert!(left.elapsed() < DROP_TIMEOUT, "{:?}", left.elapsed());
    }
    assert_eq!(endpoint.completed(), 0);
}

#[tokio::test]
async fn the_request_is_dropped_when_the_run_is_cancelled() {
    let endpoint = FakeEndpoint::new([hanging()]).await;
    let server = endpoint.server().await;
    let asked = input("Hello");
    let running = server.post("/send-message").json(&asked).send().await.unwrap();
    eventually("the endpoint gets the request", || endpoint.requests().len() == 1).await;
    let path = format!("/threads/{}/runs/r/cancel", asked["threadId"].as_str().unwrap());
    let cancelled = Instant::now();
    assert_eq!(server.post(&path).send().await.unwrap().status(), 202);
    eventually("the request is dropped", || endpoint.closed() == 1).await;
    assert!(cancelled.elapsed() < DROP_TIMEOUT, "{:?}", cancelled.elapsed());
    let events = events(&running.text().await.unwrap());
    assert_legal(&asked, &events);
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "cancelled" }));
}

#[tokio::test]
async fn a_detached_run_continues_without_its_client() {
    let mut pieces: Vec<_> =
        [&[started()][..], &text("said", "Hi")[..2]].concat().iter().map(event).collect();
    pieces.extend([Piece::Wait(300), event(&text("said", "")[2]), event(&finished())]);
    let endpoint = FakeEndpoint::new([Response::stream(pieces)]).await;
    let server = endpoint.server().await;
    let mut asked = input("Hello");
    asked["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let mut stream = server.raw_run(&asked).await;
    read_until(&mut stream, |text| text.contains("\"Hi\"")).await;
    drop(stream);
    let path = format!("/threads/{}/runs/r/events", asked["threadId"].as_str().unwrap());
    let body = server.client.get(server.url(&path)).send().await.unwrap().text().await.unwrap();
    assert!(
        body.contains("\"Hi\"") && body.contains("\"outcome\":{\"type\":\"success\"}"),
        "{body}"
    );
    assert_eq!(endpoint.completed(), 1);
}

#[tokio::test]
async fn comments_end_the_silence_of_an_endpoint() {
    let mut pieces = vec![event(&started())];
    // The pieces together take longer than the time limit.
    for _ in 0..30 {
        pieces.extend([Piece::Wait(200), Piece::Text(": still here\n\n".to_owned())]);
    }
    pieces.push(event(&finished()));
    let endpoint = FakeEndpoint::new([Response::stream(pieces)]).await;
    let mut options = endpoint.options();
    options.idle_timeout = Duration::from_secs(5);
    let events = run(&server_with(options).await, &input("Hello")).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test]
async fn the_end_of_a_run_does_not_wait_for_the_end_of_the_response() {
    let [started, finished] = begin_and_end("r");
    let ends = [event(&started), event(&finished), Piece::Wait(1_500)];
    let never = [event(&started), event(&finished), Piece::Hang];
    let empty = [event(&started), event(&finished), Piece::Endless("data:\n\n".repeat(100))];
    let endpoint =
        FakeEndpoint::new([ends.to_vec(), never.to_vec(), empty.to_vec()].map(Response::stream))
            .await;
    let server = endpoint.server().await;
    for earlier in 0..3 {
        run(&server, &input("Hello")).await;
        // The response of this run continues: it is given up after two seconds.
        assert!(endpoint.closed() <= earlier, "{earlier}");
    }
    eventually("the response was read to its end", || endpoint.completed() == 1).await;
    eventually("the other responses were given up", || endpoint.closed() == 3).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_endpoint() {
    let say = event(
        &json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "said", "delta": "x".repeat(1000) }),
    );
    let Piece::Text(say) = say else { unreachable!() };
    let pieces = [event(&started()), event(&text("said", "")[0]), Piece::Endless(say.repeat(100))];
    let endpoint = FakeEndpoint::new([Response::stream(pieces)]).await;
    let server = endpoint.server().await;
    let mut stream = server.raw_run(&input("Hello")).await;
    read_until(&mut stream, |text| text.contains("xxx")).await;
    let mut last = (Instant::now(), 0);
    eventually("the endpoint sends no more", || {
        if endpoint.endless_pieces() != last.1 {
            last = (Instant::now(), endpoint.endless_pieces());
        }
        last.0.elapsed() > Duration::from_millis(100)
    })
    .await;
    assert_eq!(endpoint.closed(), 0);
    drop(stream);
    eventually("the request is dropped", || endpoint.closed() == 1).await;
}
