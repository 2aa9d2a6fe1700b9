//! What must not be said is not said: not to the client, not to the log, and not by `Debug`.

use agui_server::{
    agent::AgentError,
    llm::{AnthropicOptions, Connection, ModelError, OpenAiOptions},
};
use serde_json::json;

use crate::{
    KEY, anthropic, ask, connection, openai,
    provider::{Answer, Provider},
};

/// Everything that anybody is told about a failure.
fn told(error: ModelError) -> String {
    let (message, debug) = (error.message().to_owned(), format!("{error:?} {error:#?}"));
    let error = AgentError::from(error);
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{message} {debug} {error:?} {source}")
}

#[track_caller]
fn nothing_leaks(told: &str) {
    for secret in [KEY, &KEY[..10], "hidden-header", "sk-ant", "passw0rd", "query-secret", "other-token"] {
        assert!(!told.contains(secret), "{secret} is in {told}");
    }
}

#[tokio::test]
async fn a_provider_that_repeats_the_key_does_not_make_it_known() {
    let provider = Provider::start().await;
    let message = format!(
        "Incorrect API key provided: {KEY}, in short {}***; also sk-ant-api03-abcdef and Authorization: Bearer \
         other-token-1; x-secret: hidden-header-value",
        &KEY[..12],
    );
    let with_secrets = |url: String| {
        let headers = vec![("x-secret".to_owned(), "hidden-header-value".into())];
        Connection { headers, max_retries: 0, ..connection(url) }
    };
    let models: [Box<dyn agui_server::llm::Model>; 2] =
        [Box::new(openai(with_secrets(provider.url()))), Box::new(anthropic(with_secrets(provider.url())))];
    for model in &models {
        for status in [400, 401, 403, 404, 429, 500] {
            provider.answer(Answer::new(status, [json!({"error": {"message": message}}).to_string()]));
            let error = ask(&**model).await.1.unwrap();
            let told = told(error);
            nothing_leaks(&told);
            assert!(told.contains("Incorrect API key provided"), "the log is told the rest: {told}");
        }
        let stream_error = json!({"type": "error", "error": {"type": "x", "message": message}});
        provider.answer(Answer::anthropic(&[stream_error]));
        nothing_leaks(&told(ask(&**model).await.1.unwrap()));
        provider.answer(Answer::new(200, [message.clone()]).header("content-type", "text/plain"));
        nothing_leaks(&told(ask(&**model).await.1.unwrap()));
    }
}

#[tokio::test]
async fn messages_say_what_can_be_done_and_a_refusal_says_why() {
    let provider = Provider::start().await;
    let chat = openai(connection(provider.url()));
    provider.answer(Answer::new(401, ["{}"]));
    let unauthorized = ask(&chat).await.1.unwrap();
    let host = provider.url().replace("http://", "");
    let expected =
        format!("The model provider at {host} does not accept the API key; check the key that the server is given");
    assert_eq!(unauthorized.message(), expected);
    provider.answer(Answer::new(400, [json!({"error": {"message": "the context is too long"}}).to_string()]));
    let rejected = ask(&chat).await.1.unwrap();
    let expected = format!("The model provider at {host} refused the request (400): the context is too long");
    assert_eq!(rejected.message(), expected);
}

#[tokio::test]
async fn what_is_in_a_base_url_is_not_said_either() {
    let url = "http://user:passw0rd@127.0.0.1:1/v1?key=query-secret";
    let connection = Connection { max_retries: 0, ..connection(url) };
    nothing_leaks(&format!("{connection:?} {connection:#?}"));
    let options = OpenAiOptions { connection: connection.clone(), ..OpenAiOptions::default() };
    nothing_leaks(&format!("{options:?}"));
    nothing_leaks(&format!("{:?}", AnthropicOptions { connection: connection.clone(), ..AnthropicOptions::default() }));
    let error = ask(&openai(connection)).await.1.unwrap();
    assert!(error.message().contains("127.0.0.1:1"), "{error:?}");
    nothing_leaks(&told(error));
}

#[tokio::test]
async fn a_long_error_is_not_read_to_its_end() {
    let provider = Provider::start().await;
    let endless = std::iter::repeat_n("x ".repeat(1024), 20_000);
    provider.answer(Answer::new(400, endless));
    let error = ask(&openai(connection(provider.url()))).await.1.unwrap();
    assert_eq!(error.code(), "model_rejected");
    assert!(told(error).len() < 16 << 10);
    let left = tokio::time::timeout(std::time::Duration::from_secs(2), provider.hung_up()).await;
    left.expect("the rest is not waited for");
}
