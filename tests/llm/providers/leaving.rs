//! Dropping the stream of an answer ends its request at once, in any state.

use std::time::{Duration, Instant};

use agui_server::llm::{Model, ModelEvent, ModelStream, ProviderClient};
use futures::StreamExt;

use super::{
    anthropic, chunk, client, events, hi, openai,
    provider::{Answer, Provider, Step},
    text,
};

/// A client with a long limit on silence, so that only dropping ends a request within a minute.
fn patient(provider: &Provider) -> ProviderClient {
    ProviderClient { idle_timeout: Duration::from_secs(60), ..client(provider.url()) }
}

/// Polls a stream that has no event yet until its request has arrived, and then a little longer.
async fn wait_for_request(provider: &Provider, stream: &mut ModelStream) {
    let arrived = async {
        while provider.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        event = stream.next() => panic!("{event:?}"),
        () = arrived => {}
    }
    assert!(tokio::time::timeout(Duration::from_millis(200), stream.next()).await.is_err());
}

async fn assert_ended_at_once(provider: &Provider, dropped: Instant) {
    let took = provider.until_hang_ups(1).await.duration_since(dropped);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn dropping_ends_a_request_in_the_middle_of_an_answer() {
    let provider = Provider::start().await;
    provider.answer(Answer::stream([format!("data: {}\n\n", chunk("a"))]).then(Step::Stall));
    let mut stream = openai(patient(&provider)).stream(hi());
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::Delta { .. }) {}
    assert_eq!(provider.hang_ups(), 0);
    let dropped = Instant::now();
    drop(stream);
    assert_ended_at_once(&provider, dropped).await;
    let provider = Provider::start().await;
    provider.answer(Answer::anthropic(&events("a")[..3]).then(Step::Stall));
    let mut stream = anthropic(patient(&provider)).stream(hi());
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::Delta { .. }) {}
    let dropped = Instant::now();
    drop(stream);
    assert_ended_at_once(&provider, dropped).await;
}

#[tokio::test]
async fn dropping_ends_a_request_before_the_head_and_before_the_first_token() {
    for answer in [
        Answer::openai(&[]).delayed(Duration::from_secs(60)),
        Answer::stream([": hi\n\n"]).then(Step::Stall),
    ] {
        let provider = Provider::start().await;
        provider.answer(answer);
        let mut stream = openai(patient(&provider)).stream(hi());
        wait_for_request(&provider, &mut stream).await;
        let dropped = Instant::now();
        drop(stream);
        assert_ended_at_once(&provider, dropped).await;
    }
}

#[tokio::test]
async fn dropping_between_two_attempts_prevents_the_second() {
    let provider = Provider::start().await;
    provider.answer(Answer::new(429, [""]).header("retry-after", "2"));
    let mut stream = openai(patient(&provider)).stream(hi());
    wait_for_request(&provider, &mut stream).await;
    drop(stream);
    // The retry would come after 2 s. The request after it is the second one that the provider gets.
    provider.answer(Answer::openai(&[chunk("a")]).delayed(Duration::from_millis(2500)));
    assert_eq!(text(&openai(patient(&provider))).await, "a");
    assert_eq!(provider.requests().len(), 2, "the dropped request was retried");
}

#[tokio::test]
async fn a_reader_that_pauses_stops_the_provider() {
    // More than all buffers hold: a client that reads without being polled would read to the end, and not hang up.
    let provider = Provider::start().await;
    let piece = format!("data: {}\n\n", chunk(&"x".repeat(32 << 10)));
    let pieces = std::iter::repeat_n(Step::from(piece), 2000);
    provider.answer(Answer::stream(pieces));
    let mut stream = openai(patient(&provider)).stream(hi());
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::Delta { .. }) {}
    tokio::time::sleep(Duration::from_millis(300)).await;
    let dropped = Instant::now();
    drop(stream);
    assert_ended_at_once(&provider, dropped).await;
}
