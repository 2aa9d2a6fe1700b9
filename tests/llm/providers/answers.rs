//! Complete answers, split in any way, and the requests that the provider gets.

use agui_server::{
    llm::{
        Anthropic, Model, ModelEvent, ModelOptions, ModelRequest, ModelStep, OpenAi, ProviderClient,
    },
    protocol::{ContentPart, PartSource},
};
use futures::StreamExt;
use serde_json::json;

use super::{
    KEY, anthropic, ask, chunk, client, deltas, events, hi, openai,
    provider::{Answer, Provider, Step},
    text,
};

/// The same bytes, one at a time.
fn single(text: &str) -> Answer {
    Answer::stream(text.as_bytes().iter().map(|byte| Step::Send(vec![*byte].into())))
}

#[tokio::test]
async fn an_answer_is_the_same_in_single_bytes_with_any_line_end_and_a_bom() {
    let provider = Provider::start().await;
    let (chat, messages) = (openai(client(provider.url())), anthropic(client(provider.url())));
    let chat_text = format!(
        "{}|{}|data: [DONE]||",
        format_args!("data: {}|", chunk("grüß ")),
        format_args!("data: {}|", chunk("🙂日本"))
    );
    let events_text: String = events("grüß 🙂日本")
        .iter()
        .map(|event| format!("event: {}|data: {event}||", event["type"].as_str().unwrap()))
        .collect();
    for line_end in ["\n", "\r\n", "\r"] {
        for start in ["", "\u{feff}", ": hello\n\n"] {
            provider.answer(single(&format!("{start}{}", chat_text.replace('|', line_end))));
            assert_eq!(text(&chat).await, "grüß 🙂日本", "{line_end:?}");
            provider.answer(single(&format!("{start}{}", events_text.replace('|', line_end))));
            assert_eq!(text(&messages).await, "grüß 🙂日本", "{line_end:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_is_complete_with_a_stop_reason_or_an_end_mark() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    let reason = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let word = chunk("a");
    let data = |text: &dyn std::fmt::Display| format!("data: {text}\n\n");
    provider.answer(Answer::stream([data(&word), data(&reason)]));
    provider.answer(Answer::stream([data(&word), data(&"[DONE]")]));
    provider.answer(Answer::stream([data(&word), "data: [DONE]\n".to_owned()]));
    provider.answer(Answer::stream([data(&word), "data: [DONE]".to_owned()]));
    // The connection may break or stall after that.
    provider.answer(Answer::stream([data(&word), data(&reason)]).then(Step::Abort));
    provider.answer(Answer::stream([data(&word), data(&reason)]).then(Step::Stall));
    provider.answer(Answer::stream([data(&word), data(&"[DONE]")]).then(Step::Stall));
    for _ in 0..7 {
        assert_eq!(text(&chat).await, "a");
    }
    let messages = anthropic(client(provider.url()));
    provider.answer(Answer::anthropic(&events("a")[..5]).then(Step::Abort));
    assert_eq!(text(&messages).await, "a");
}

#[tokio::test]
async fn tokens_are_passed_on_at_once() {
    let provider = Provider::start().await;
    provider.answer(Answer::stream([format!("data: {}\n\n", chunk("a"))]).then(Step::Stall));
    let mut stream = openai(client(provider.url())).stream(hi());
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Start { .. }))));
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Delta { .. }))));
    assert_eq!(provider.hang_ups(), 0);
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    let stream = chat.stream(hi());
    provider.answer(Answer::openai(&[chunk("a")]));
    assert_eq!(text(&chat).await, "a");
    drop(stream);
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn a_connection_is_used_for_several_requests() {
    let provider = Provider::start().await;
    let models: [Box<dyn Model>; 2] =
        [Box::new(openai(client(provider.url()))), Box::new(anthropic(client(provider.url())))];
    let answers = [Answer::openai(&[chunk("a")]), Answer::anthropic(&events("a"))];
    for (model, answer) in models.iter().zip(answers) {
        // The end of the body usually comes after the last event.
        let answer = answer.then(Step::Pause(std::time::Duration::from_millis(10)));
        let mut connections = Vec::new();
        // A connection can be used again a moment after its answer, so the next request may come too early.
        while !connections.windows(2).any(|pair| pair[0] == pair[1]) {
            assert!(connections.len() < 20, "no connection was used twice: {connections:?}");
            provider.answer(answer.clone());
            text(&**model).await;
            connections.push(provider.requests().last().unwrap().from);
        }
    }
    assert_eq!(provider.hang_ups(), 0, "an answer was not read to its end");
}

#[tokio::test]
async fn openai_gets_requests_at_its_path_with_its_headers() {
    let provider = Provider::start().await;
    for (base, path) in [
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/openai/v1?api-version=preview", "/openai/v1/chat/completions?api-version=preview"),
    ] {
        let headers = vec![("x-title".to_owned(), "test".into())];
        let model =
            openai(ProviderClient { headers, ..client(format!("{}{base}", provider.url())) });
        provider.answer(Answer::openai(&[chunk("a")]));
        text(&model).await;
        let request = provider.requests().pop().unwrap();
        assert_eq!(request.path, path);
        assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(request.headers["x-title"], "test");
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["accept"], "text/event-stream");
        assert!(!request.headers.contains_key("api-key"));
        assert_eq!(request.body["messages"], json!([{"role": "user", "content": "hi"}]));
        assert_eq!(request.body["stream_options"], json!({"include_usage": true}));
    }
    for api_key in [None, Some("".into())] {
        let keyless = openai(ProviderClient { api_key, ..client(provider.url()) });
        provider.answer(Answer::openai(&[chunk("a")]));
        text(&keyless).await;
        assert!(!provider.requests().pop().unwrap().headers.contains_key("authorization"));
        assert_eq!((keyless.provider(), keyless.name()), ("openai", "m"));
    }
}

#[tokio::test]
async fn anthropic_gets_requests_at_its_path_with_its_headers() {
    let provider = Provider::start().await;
    for (base, path) in [
        ("", "/v1/messages"),
        ("/", "/v1/messages"),
        ("/v1", "/v1/messages"),
        ("/v1/", "/v1/messages"),
        ("/proxy?a=b", "/proxy/v1/messages?a=b"),
    ] {
        let model = anthropic(client(format!("{}{base}", provider.url())));
        provider.answer(Answer::anthropic(&events("a")));
        text(&model).await;
        let request = provider.requests().pop().unwrap();
        assert_eq!(request.path, path);
        assert_eq!(request.headers["x-api-key"], KEY);
        assert_eq!(request.headers["anthropic-version"], "2023-06-01");
        assert!(
            !request.headers.contains_key("anthropic-beta")
                && !request.headers.contains_key("authorization")
        );
    }
    // A file at the provider needs a beta feature, in addition to the configured ones.
    let headers = vec![("anthropic-beta".to_owned(), "other".into())];
    let model = anthropic(ProviderClient { headers, ..client(provider.url()) });
    let source = PartSource::File {
        value: "f".to_owned(),
        provider: Some("anthropic".to_owned()),
        mime_type: None,
    };
    let steps = vec![ModelStep::User(vec![ContentPart::image(source)])];
    provider.answer(Answer::anthropic(&events("a")));
    let _all: Vec<_> =
        model.stream(ModelRequest { steps, ..ModelRequest::default() }).collect().await;
    let request = provider.requests().pop().unwrap();
    let betas: Vec<_> = request.headers.get_all("anthropic-beta").iter().collect();
    assert_eq!(betas, ["other,files-api-2025-04-14"]);
    assert_eq!((model.provider(), model.name()), ("anthropic", "m"));
}

#[tokio::test]
async fn usage_is_reported() {
    let provider = Provider::start().await;
    provider.answer(Answer::anthropic(&events("a")));
    let (events, error) = ask(&anthropic(client(provider.url()))).await;
    assert!(error.is_none());
    let usages: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Usage(usage) => {
                Some((usage.input_tokens, usage.output_tokens, usage.total_tokens))
            }
            _ => None,
        })
        .collect();
    assert_eq!(usages, [(Some(3), Some(1), Some(4)), (Some(3), Some(5), Some(8))]);
    assert_eq!(deltas(&events), "a");
}

#[test]
fn invalid_options_are_errors_when_the_model_is_made() {
    for url in ["", "no url", "ftp://host", "file:///etc", "data:,"] {
        let client = client(url);
        assert!(OpenAi::chat(ModelOptions::new("", client.clone())).is_err(), "{url}");
        assert!(Anthropic::new(ModelOptions::new("", client)).is_err(), "{url}");
    }
    let key = ProviderClient { api_key: Some("a\nb".into()), ..ProviderClient::default() };
    let error = OpenAi::chat(ModelOptions::new("", key)).err().unwrap();
    assert!(error.to_string().contains("API key"), "{error}");
    for (name, value) in [("a b", "c"), ("a", "b\n")] {
        let headers = vec![(name.to_owned(), value.into())];
        let client = ProviderClient { headers, ..ProviderClient::default() };
        assert!(OpenAi::chat(ModelOptions::new("", client)).is_err(), "{name}");
    }
}
