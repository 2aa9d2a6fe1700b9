//! Retries: the failures that lead to one, and the waits.

use std::time::Duration;

use agui_server::llm::{Model, ProviderClient};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    anthropic, chunk, client, code, events, openai,
    provider::{Answer, Provider, Step},
    text,
};

/// A failure that asks for a retry after 10 ms.
fn failure(status: u16) -> Answer {
    Answer::new(status, [json!({"error": {"message": "no"}}).to_string()])
        .header("retry-after-ms", "10")
}

fn success() -> Answer {
    Answer::openai(&[chunk("a")])
}

#[tokio::test]
async fn a_temporary_failure_is_retried() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    for status in [408, 409, 429, 500, 502, 503, 529] {
        let before = provider.requests().len();
        provider.answer(failure(status));
        provider.answer(failure(status));
        provider.answer(success());
        assert_eq!(text(&chat).await, "a", "{status}");
        let requests = provider.requests();
        assert_eq!(requests.len(), before + 3, "{status}");
        assert_eq!(requests[before].body, requests[before + 2].body, "the request is the same");
    }
}

#[tokio::test]
async fn retries_have_a_limit() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    for (status, expected) in
        [(429, "model_rate_limited"), (503, "model_unavailable"), (408, "model_unavailable")]
    {
        let before = provider.requests().len();
        (0..3).for_each(|_| provider.answer(failure(status)));
        assert_eq!(code(&chat).await, expected);
        assert_eq!(provider.requests().len(), before + 3);
    }
    let once = openai(ProviderClient { max_retries: 0, ..client(provider.url()) });
    provider.answer(failure(500));
    assert_eq!(code(&once).await, "model_unavailable");
    assert_eq!(provider.requests().len(), 10);
}

#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    for (status, expected) in [
        (400, "model_rejected"),
        (401, "model_unauthorized"),
        (403, "model_unauthorized"),
        (404, "model_rejected"),
        (422, "model_rejected"),
        (301, "model_rejected"),
    ] {
        let before = provider.requests().len();
        provider.answer(failure(status));
        assert_eq!(code(&chat).await, expected, "{status}");
        assert_eq!(provider.requests().len(), before + 1, "{status}");
    }
}

#[tokio::test]
async fn waits_grow_if_the_provider_asks_for_none() {
    let provider = Provider::start().await;
    provider.answer(Answer::new(500, [""]));
    provider.answer(Answer::new(500, [""]));
    provider.answer(success());
    assert_eq!(text(&openai(client(provider.url()))).await, "a");
    let at: Vec<_> = provider.requests().into_iter().map(|request| request.at).collect();
    let (first, second) = (at[1] - at[0], at[2] - at[1]);
    assert!(first >= Duration::from_millis(250) && first < Duration::from_secs(10), "{first:?}");
    assert!(second >= Duration::from_millis(500) && second < Duration::from_secs(10), "{second:?}");
}

#[tokio::test]
async fn an_error_in_the_stream_before_the_answer_is_retried() {
    let provider = Provider::start().await;
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let begun = events("a")[0].clone();
    let messages = anthropic(client(provider.url()));
    provider.answer(Answer::anthropic(std::slice::from_ref(&overloaded)));
    // Usage is not a part of an answer.
    provider.answer(Answer::anthropic(&[begun, overloaded.clone()]));
    provider.answer(Answer::anthropic(&events("a")));
    assert_eq!(text(&messages).await, "a");
    assert_eq!(provider.requests().len(), 3);
    let once = anthropic(ProviderClient { max_retries: 0, ..client(provider.url()) });
    provider.answer(Answer::anthropic(std::slice::from_ref(&overloaded)));
    assert_eq!(code(&once).await, "model_unavailable");
    let chat = openai(client(provider.url()));
    provider.answer(Answer::openai(&[json!({"error": {"code": 429, "message": "slow down"}})]));
    provider.answer(success());
    assert_eq!(text(&chat).await, "a");
    // A permanent error is not retried.
    let before = provider.requests().len();
    provider.answer(Answer::openai(&[json!({"error": {"code": 400, "message": "bad words"}})]));
    assert_eq!(code(&chat).await, "model_failed");
    assert_eq!(provider.requests().len(), before + 1);
}

#[tokio::test]
async fn a_stream_that_breaks_before_the_answer_is_retried() {
    let provider = Provider::start().await;
    provider.answer(Answer::stream([": thinking\n\n"]).then(Step::Abort));
    provider.answer(Answer::stream([": thinking\n\n"]));
    provider.answer(success());
    assert_eq!(text(&openai(client(provider.url()))).await, "a");
    assert_eq!(provider.requests().len(), 3);
    let once = openai(ProviderClient { max_retries: 0, ..client(provider.url()) });
    provider.answer(Answer::stream([": thinking\n\n"]).then(Step::Abort));
    assert_eq!(code(&once).await, "model_interrupted");
    assert_eq!(provider.requests().len(), 4);
}

#[tokio::test]
async fn a_connection_that_closes_without_a_response_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 1024]).await;
        }
    });
    let chat = openai(ProviderClient { max_retries: 1, ..client(format!("http://{address}")) });
    assert_eq!(code(&chat as &dyn Model).await, "model_unreachable");
    tokio::time::timeout(Duration::from_secs(10), closing).await.expect("two connections").unwrap();
}

/// llama.cpp closes a connection after a stream, although it announces that it keeps it.
#[tokio::test]
async fn a_kept_connection_that_the_server_closes_costs_no_retry() {
    async fn read_request(socket: &mut TcpStream) {
        let mut request = Vec::new();
        while !request.windows(4).any(|bytes| bytes == b"\"hi\"") {
            assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0);
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let data = format!("data: {}\n\ndata: [DONE]\n\n", chunk("a"));
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\nKeep-Alive: timeout=5, max=100\r\n\r\n{data}",
        data.len()
    );
    let server = tokio::spawn(async move {
        let (mut kept, _) = listener.accept().await.unwrap();
        read_request(&mut kept).await;
        kept.write_all(answer.as_bytes()).await.unwrap();
        read_request(&mut kept).await;
        drop(kept);
        let (mut new, _) = listener.accept().await.unwrap();
        read_request(&mut new).await;
        new.write_all(answer.as_bytes()).await.unwrap();
    });
    let chat = openai(ProviderClient { max_retries: 0, ..client(url) });
    assert_eq!((text(&chat).await, text(&chat).await), ("a".to_owned(), "a".to_owned()));
    server.await.unwrap();
}
