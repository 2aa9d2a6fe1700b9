//! Answers that break off, stall, or are invalid. `sweep.rs` has the faults that are tested at every API.

use std::time::{Duration, Instant};

use agui_server::llm::{ModelEvent, ProviderClient};
use tokio::net::TcpListener;

use super::{
    SHORT_SILENCE, anthropic, ask, chunk, client, code, deltas, impatient, openai,
    provider::{Answer, Provider, Step},
};

/// The bytes of a chunk.
fn data(text: &str) -> String {
    format!("data: {}\n\n", chunk(text))
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_an_error() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    let whole = data("lost");
    for answer in [
        // Aborts within a token, between two tokens, and within a character.
        Answer::stream([data("a"), whole[..whole.len() - 9].to_owned()]).then(Step::Abort),
        Answer::stream([data("a")]).then(Step::Abort),
        Answer::stream([data("a")])
            .then(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f".to_vec())
            .then(Step::Abort),
        // The same, with a regular end of the body.
        Answer::stream([data("a"), whole[..whole.len() - 9].to_owned()]),
        Answer::stream([data("a")]),
        Answer::stream([data("a"), ": bye".to_owned()]),
    ] {
        let shown = format!("{answer:?}");
        provider.answer(answer);
        let (events, error) = ask(&chat).await;
        assert_eq!(error.expect("an error").code(), "model_interrupted", "{shown}");
        assert_eq!(deltas(&events), "a");
        assert!(!events.iter().any(|event| matches!(event, ModelEvent::End { .. })), "{shown}");
    }
    assert_eq!(
        provider.requests().len(),
        6,
        "a request is not repeated after its answer has begun"
    );
}

#[tokio::test]
async fn silence_is_an_error_and_closes_the_connection() {
    let provider = Provider::start().await;
    let chat = openai(impatient(provider.url()));
    for answer in [
        Answer::stream([data("a")]).then(Step::Stall),
        Answer::stream(["data: {\"cho"]).then(Step::Stall),
        Answer::stream([Step::Stall]),
        Answer::openai(&[]).delayed(Duration::from_secs(60)),
    ] {
        let (shown, hang_ups) = (format!("{answer:?}"), provider.hang_ups());
        provider.answer(answer);
        let begun = Instant::now();
        assert_eq!(code(&chat).await, "model_timeout", "{shown}");
        let waited = begun.elapsed();
        assert!(waited >= SHORT_SILENCE && waited < Duration::from_secs(20), "{waited:?} {shown}");
        provider.until_hang_ups(hang_ups + 1).await;
    }
    assert_eq!(provider.requests().len(), 4);
}

#[tokio::test]
async fn a_response_that_is_not_a_stream_of_chunks_is_an_error() {
    let provider = Provider::start().await;
    let chat = openai(ProviderClient { max_retries: 0, ..client(provider.url()) });
    let messages = anthropic(ProviderClient { max_retries: 0, ..client(provider.url()) });
    let whole = data("a") + "data: [DONE]\n\n";
    // A stream is known by its bytes, whatever its content type says.
    for named in ["application/json", "text/event-stream-not", "Text/Event-Stream; charset=utf-8"] {
        provider.answer(Answer::new(200, [whole.clone()]).header("content-type", named));
        assert_eq!(super::text(&chat).await, "a", "{named}");
    }
    provider.answer(Answer::new(200, [whole]));
    assert_eq!(super::text(&chat).await, "a");
    for answer in [
        Answer::new(200, ["<html>"]).header("content-type", "text/html; charset=utf-8"),
        Answer::stream(["data: {\"choices\": [}\n\n"]),
        Answer::stream(["data: 7\n\n"]),
        Answer::stream(["data: hello\n\n"]),
        Answer::stream(["data: {\"a\"\n", "data: 1}\n\n"]),
        Answer::stream([b"data: \xff\xfe\n\n".to_vec()]),
    ] {
        let shown = format!("{answer:?}");
        provider.answer(answer.clone());
        assert_eq!(code(&chat).await, "model_protocol", "{shown}");
        provider.answer(answer.clone());
        let code = code(&messages).await;
        let is_expected = shown.contains("charset") || code == "model_protocol";
        assert!(is_expected, "{code} {shown}");
    }
    // Bytes without an event are ignored; then the stream ends too early.
    provider.answer(Answer::stream([vec![0_u8, 1, 2, b'\n', 0xff, b'\n', b'\n']]));
    assert_eq!(code(&chat).await, "model_interrupted");
}

#[tokio::test]
async fn an_endless_event_is_not_read_to_its_end() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    for piece in ["x", "data: x\n", ": x\n"] {
        // Five times the limit, and then silence: a client that reads all of it gets a timeout.
        let start = Step::from("data: {\"choices\":[{\"delta\":{\"content\":\"");
        let pieces = std::iter::repeat_n(Step::from(piece.repeat((8 << 10) / piece.len())), 40);
        provider.answer(Answer::stream([start].into_iter().chain(pieces)).then(Step::Stall));
        let error = ask(&chat).await.1.unwrap();
        assert_eq!(error.code(), "model_protocol", "{piece}");
        assert!(error.message().contains("an event that is too large"), "{error:?}");
        // The error does not call the address wrong.
        let log = format!("{error:?}");
        assert!(log.contains("65536 bytes") && !log.contains("base_url"), "{log}");
    }
    // The limit is on one event, not on the answer.
    let pieces = vec![chunk(&"x".repeat(16 << 10)); 20];
    provider.answer(Answer::openai(&pieces));
    assert_eq!(super::text(&chat).await.len(), 20 * (16 << 10));
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = ProviderClient { max_retries: 1, ..client(format!("http://{address}")) };
    let begun = Instant::now();
    let (_, error) = ask(&openai(client.clone())).await;
    let error = error.unwrap();
    assert_eq!(error.code(), "model_unreachable");
    assert!(!error.message().contains(&address.to_string()), "{error:?}");
    assert!(begun.elapsed() >= Duration::from_millis(250), "there was no retry after a wait");
    assert_eq!(code(&anthropic(client)).await, "model_unreachable");
    let nowhere = ProviderClient {
        base_url: Some("http://host.invalid".to_owned()),
        max_retries: 0,
        ..super::client("")
    };
    assert_eq!(code(&openai(nowhere)).await, "model_unreachable");
}
