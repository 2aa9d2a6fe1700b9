//! Whoever drops the stream drops the request, at once and wherever it is.

use std::time::{Duration, Instant};

use agui_server::llm::{Connection, Model, ModelEvent};
use futures::StreamExt;

use crate::{
    anthropic, chunk, connection, events, hi, openai,
    provider::{Answer, Provider, Step},
};

/// Patient, so that nothing but leaving ends a request.
fn patient(provider: &Provider) -> Connection {
    Connection { idle_timeout: Duration::from_secs(60), ..connection(provider.url()) }
}

async fn left_at_once(provider: &Provider, dropped: Instant) {
    let hung_up = tokio::time::timeout(Duration::from_secs(2), provider.hung_up()).await.expect("a hang-up");
    let took = hung_up.duration_since(dropped);
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test]
async fn in_the_middle_of_an_answer() {
    let provider = Provider::start().await;
    provider.answer(Answer::stream([format!("data: {}\n\n", chunk("a"))]).then(Step::Stall));
    let mut stream = openai(patient(&provider)).stream(hi());
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::Delta { .. }) {}
    assert_eq!(provider.hang_ups(), 0);
    let dropped = Instant::now();
    drop(stream);
    left_at_once(&provider, dropped).await;
    let provider = Provider::start().await;
    provider.answer(Answer::anthropic(&events("a")[..3]).then(Step::Stall));
    let mut stream = anthropic(patient(&provider)).stream(hi());
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::Delta { .. }) {}
    let dropped = Instant::now();
    drop(stream);
    left_at_once(&provider, dropped).await;
}

#[tokio::test]
async fn before_the_head_and_before_the_first_token() {
    for answer in [Answer::openai(&[]).delayed(Duration::from_secs(60)), Answer::stream([": hi\n\n"]).then(Step::Stall)]
    {
        let provider = Provider::start().await;
        provider.answer(answer);
        let mut stream = openai(patient(&provider)).stream(hi());
        assert!(tokio::time::timeout(Duration::from_millis(200), stream.next()).await.is_err());
        assert_eq!(provider.requests().len(), 1);
        let dropped = Instant::now();
        drop(stream);
        left_at_once(&provider, dropped).await;
    }
}

#[tokio::test]
async fn between_two_attempts() {
    let provider = Provider::start().await;
    provider.answer(Answer::new(429, [""]).header("retry-after-ms", "300"));
    let mut stream = openai(patient(&provider)).stream(hi());
    assert!(tokio::time::timeout(Duration::from_millis(100), stream.next()).await.is_err());
    drop(stream);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(provider.requests().len(), 1, "nobody is there to ask again");
}

#[tokio::test]
async fn a_reader_who_stops_reading_stops_the_provider() {
    // More than the buffers on the way hold: whoever reads on without being asked would get to the end.
    let provider = Provider::start().await;
    let piece = format!("data: {}\n\n", chunk(&"x".repeat(32 << 10)));
    let pieces = std::iter::repeat_n(Step::from(piece), 2000);
    provider.answer(Answer::stream(pieces));
    let mut stream = openai(patient(&provider)).stream(hi());
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::Delta { .. }) {}
    tokio::time::sleep(Duration::from_millis(300)).await;
    let dropped = Instant::now();
    drop(stream);
    left_at_once(&provider, dropped).await;
}
