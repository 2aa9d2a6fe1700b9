//! How long the request to an endpoint lives: as long as the run, and not a moment longer.

use std::time::Duration;

use agui_server::{Server, agents::Remote};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    running::{Running, events, eventually, input, read_until},
    upstream::{Answer, Piece, Upstream, event, finished, judge, run, served, started, text},
};

/// Says "Hi", and then nothing more.
fn hanging() -> Answer {
    let mut pieces: Vec<_> = [&[started()][..], &text("said", "Hi")[..2]].concat().iter().map(event).collect();
    pieces.push(Piece::Hang);
    Answer::stream(pieces)
}

/// What goes with a client goes at once.
const AT_ONCE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_client_that_leaves_takes_the_request_with_it() {
    let upstream = Upstream::new([hanging()]).await;
    // A stored run is ended in the store before its agent goes; one that is not stored just goes.
    let stateless = Server::new().agent("remote", Remote::new(upstream.options()).unwrap()).stateless();
    for (count, server) in [(1, upstream.server().await), (2, Running::start(stateless).await)] {
        let mut stream = server.raw_run(&input("Hello")).await;
        read_until(&mut stream, |text| text.contains("\"Hi\"")).await;
        assert_eq!(upstream.gone(), count - 1);
        let left = Instant::now();
        drop(stream);
        eventually("the request is gone", || upstream.gone() == count).await;
        assert!(left.elapsed() < AT_ONCE, "{:?}", left.elapsed());
    }
    assert_eq!(upstream.told(), 0);
}

#[tokio::test]
async fn a_run_that_is_cancelled_takes_the_request_with_it() {
    let upstream = Upstream::new([hanging()]).await;
    let server = upstream.server().await;
    let asked = input("Hello");
    let running = server.post("/send-message").json(&asked).send().await.unwrap();
    eventually("it was asked", || upstream.asked().len() == 1).await;
    let path = format!("/threads/{}/runs/r/cancel", asked["threadId"].as_str().unwrap());
    let cancelled = Instant::now();
    assert_eq!(server.post(&path).send().await.unwrap().status(), 202);
    eventually("the request is gone", || upstream.gone() == 1).await;
    assert!(cancelled.elapsed() < AT_ONCE, "{:?}", cancelled.elapsed());
    let events = events(&running.text().await.unwrap());
    judge(&asked, &events);
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "cancelled" }));
}

#[tokio::test]
async fn a_detached_run_goes_on_without_its_client() {
    let mut pieces: Vec<_> = [&[started()][..], &text("said", "Hi")[..2]].concat().iter().map(event).collect();
    pieces.extend([Piece::Wait(300), event(&text("said", "")[2]), event(&finished())]);
    let upstream = Upstream::new([Answer::stream(pieces)]).await;
    let server = upstream.server().await;
    let mut asked = input("Hello");
    asked["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let mut stream = server.raw_run(&asked).await;
    read_until(&mut stream, |text| text.contains("\"Hi\"")).await;
    drop(stream);
    let path = format!("/threads/{}/runs/r/events", asked["threadId"].as_str().unwrap());
    let body = server.client.get(server.url(&path)).send().await.unwrap().text().await.unwrap();
    assert!(body.contains("\"Hi\"") && body.contains("\"outcome\":{\"type\":\"success\"}"), "{body}");
    assert_eq!(upstream.told(), 1);
}

#[tokio::test]
async fn comments_are_signs_of_life() {
    let mut pieces = vec![event(&started())];
    for _ in 0..8 {
        pieces.extend([Piece::Wait(100), Piece::Text(": still here\n\n".to_owned())]);
    }
    pieces.push(event(&finished()));
    let upstream = Upstream::new([Answer::stream(pieces)]).await;
    let mut options = upstream.options();
    options.idle_timeout = Duration::from_millis(400);
    let events = run(&served(options).await, &input("Hello")).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test]
async fn the_end_is_passed_on_at_once_and_the_endpoint_may_take_its_time_to_close() {
    let ends = [event(&started()), event(&finished()), Piece::Wait(400)];
    let never = [event(&started()), event(&finished()), Piece::Hang];
    let upstream = Upstream::new([Answer::stream(ends), Answer::stream(never)]).await;
    let server = upstream.server().await;
    for _ in 0..2 {
        let asked = Instant::now();
        run(&server, &input("Hello")).await;
        assert!(asked.elapsed() < Duration::from_millis(350), "{:?}", asked.elapsed());
    }
    eventually("it was told to its end", || upstream.told() == 1).await;
    eventually("nobody waits for ever", || upstream.gone() == 2).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_endpoint_too() {
    let say = event(&json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "said", "delta": "x".repeat(1000) }));
    let Piece::Text(say) = say else { unreachable!() };
    let pieces = [event(&started()), event(&text("said", "")[0]), Piece::Endless(say.repeat(100))];
    let upstream = Upstream::new([Answer::stream(pieces)]).await;
    let server = upstream.server().await;
    let mut stream = server.raw_run(&input("Hello")).await;
    read_until(&mut stream, |text| text.contains("xxx")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(upstream.gone(), 0);
    drop(stream);
    eventually("the request is gone", || upstream.gone() == 1).await;
}
