//! Secrets appear neither in errors for the client, nor in the log, nor in `Debug`.

use std::error::Error as _;

use agui_server::{
    agent::AgentError,
    llm::{ModelError, ModelOptions, ProviderClient},
};
use serde_json::json;

use super::{
    KEY, anthropic, ask, client, openai,
    provider::{Answer, Provider},
};

/// Returns all texts of an error.
fn all_texts(error: ModelError) -> String {
    let (message, debug) = (error.message().to_owned(), format!("{error:?} {error:#?}"));
    let error = AgentError::from(error);
    let source = error
        .source()
        .and_then(|shown| shown.source())
        .map(ToString::to_string)
        .unwrap_or_default();
    format!("{message} {debug} {error:?} {source}")
}

#[track_caller]
fn assert_no_secret(text: &str) {
    for secret in
        [KEY, &KEY[..10], "hidden-header", "sk-ant", "passw0rd", "query-secret", "other-token"]
    {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
}

#[tokio::test]
async fn a_provider_that_repeats_the_key_does_not_reveal_it() {
    let provider = Provider::start().await;
    let message = format!(
        "Incorrect API key provided: {KEY}, in short {}***; also sk-ant-api03-abcdef and Authorization: Bearer \
         other-token-1; x-secret: hidden-header-value",
        &KEY[..12],
    );
    let with_secrets = |url: String| {
        let headers = vec![("x-secret".to_owned(), "hidden-header-value".into())];
        ProviderClient { headers, max_retries: 0, ..client(url) }
    };
    let models: [Box<dyn agui_server::llm::Model>; 2] = [
        Box::new(openai(with_secrets(provider.url()))),
        Box::new(anthropic(with_secrets(provider.url()))),
    ];
    for model in &models {
        for status in [400, 401, 403, 404, 429, 500] {
            provider
                .answer(Answer::new(status, [json!({"error": {"message": message}}).to_string()]));
            let error = ask(&**model).await.1.unwrap();
            let texts = all_texts(error);
            assert_no_secret(&texts);
            assert!(
                texts.contains("Incorrect API key provided"),
                "the log lacks the rest: {texts}"
            );
        }
        let stream_error = json!({"type": "error", "error": {"type": "x", "message": message}});
        provider.answer(Answer::anthropic(&[stream_error]));
        assert_no_secret(&all_texts(ask(&**model).await.1.unwrap()));
        provider.answer(Answer::new(200, [message.clone()]).header("content-type", "text/plain"));
        assert_no_secret(&all_texts(ask(&**model).await.1.unwrap()));
    }
}

#[tokio::test]
async fn headers_that_are_not_secret_change_no_message() {
    let provider = Provider::start().await;
    let plain_headers = [("x-env", "test"), ("anthropic-beta", "thinking-binding")]
        .map(|(name, value)| (name.into(), value.into()));
    let chat =
        openai(ProviderClient { plain_headers: plain_headers.into(), ..client(provider.url()) });
    let body = json!({"error": {"message": "the latest thinking is not a test"}}).to_string();
    provider.answer(Answer::new(400, [body]));
    let rejected = ask(&chat).await.1.unwrap();
    assert_eq!(
        rejected.message(),
        "The model provider refused the request (400): the latest thinking is not a test"
    );
    let request = provider.requests().pop().unwrap();
    assert_eq!(
        (&request.headers["x-env"], &request.headers["anthropic-beta"]),
        (&"test".parse().unwrap(), &"thinking-binding".parse().unwrap())
    );
}

#[tokio::test]
async fn messages_say_what_to_do_and_a_rejection_has_the_providers_reason() {
    let provider = Provider::start().await;
    let chat = openai(client(provider.url()));
    provider.answer(Answer::new(401, ["{}"]));
    let unauthorized = ask(&chat).await.1.unwrap();
    assert_eq!(unauthorized.message(), "The model provider does not accept the key of this server");
    assert!(
        all_texts(unauthorized).contains("check the configured key"),
        "the log does not say what to do"
    );
    provider.answer(Answer::new(
        400,
        [json!({"error": {"message": "the moon is too far"}}).to_string()],
    ));
    let rejected = ask(&chat).await.1.unwrap();
    assert_eq!(
        rejected.message(),
        "The model provider refused the request (400): the moon is too far"
    );
}

#[tokio::test]
async fn secrets_in_a_base_url_are_not_shown() {
    let url = "http://user:passw0rd@127.0.0.1:1/v1?key=query-secret";
    let client = ProviderClient { max_retries: 0, ..client(url) };
    assert_no_secret(&format!("{client:?} {client:#?}"));
    let options = ModelOptions::new("", client.clone());
    assert_no_secret(&format!("{options:?}"));
    assert_no_secret(&format!("{:?}", ModelOptions::new("", client.clone())));
    let error = ask(&openai(client)).await.1.unwrap();
    assert!(!error.message().contains("127.0.0.1"), "{error:?}");
    assert!(format!("{error:?}").contains("127.0.0.1:1"), "{error:?}");
    assert_no_secret(&all_texts(error));
}

#[tokio::test]
async fn the_log_has_the_providers_host_request_id_status_and_body() {
    let provider = Provider::start().await;
    let chat = openai(ProviderClient { max_retries: 0, ..client(provider.url()) });
    let host = provider.url().replace("http://", "");
    let refused = Answer::new(
        400,
        [json!({"error": {"message": format!("not at http://{host}/v1"), "param": "x"}})
            .to_string()],
    );
    let broken =
        Answer::openai(&[json!({"error": {"message": "the GPU is on fire", "code": 400}})]);
    for (answer, said) in [(refused, "\"param\":\"x\""), (broken, "the GPU is on fire")] {
        provider.answer(answer.header("x-request-id", "req_123"));
        let error = ask(&chat).await.1.unwrap();
        assert!(
            !error.message().contains(&host) && !error.message().contains("req_123"),
            "{}",
            error.message()
        );
        let log = all_texts(error);
        for text in [host.as_str(), "(request id req_123)", said] {
            assert!(log.contains(text), "{text} is not in {log}");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_long_error_is_not_read() {
    let provider = Provider::start().await;
    let endless = std::iter::repeat_n("x ".repeat(1024), 20_000);
    provider.answer(Answer::new(400, endless));
    let error = ask(&openai(client(provider.url()))).await.1.unwrap();
    assert_eq!(error.code(), "model_rejected");
    assert!(all_texts(error).len() < 16 << 10);
    provider.until_hang_ups(1).await;
}
