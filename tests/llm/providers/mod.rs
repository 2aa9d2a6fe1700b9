//! The clients of the providers' APIs, against a fake provider over sockets.

mod answers;
mod anthropic;
mod broken;
mod chat;
mod gemini;
mod histories;
mod leaving;
pub mod published;
mod responses;
mod retries;
mod secrets;
mod sweep;

use crate::{llm::KEY, support::provider};

use std::time::Duration;

use agui_server::{
    llm::{
        Anthropic, BlockStart, Model, ModelError, ModelEvent, ModelOptions, ModelRequest,
        ModelStep, OpenAi, ProviderClient, StopReason,
    },
    protocol::ContentPart,
};
use futures::StreamExt;
use serde_json::{Value, json};

/// The limit on silence of `impatient`.
pub const SHORT_SILENCE: Duration = Duration::from_millis(300);

/// A client whose limit on silence is short, for answers that stop.
pub fn impatient(base_url: impl Into<String>) -> ProviderClient {
    ProviderClient { idle_timeout: SHORT_SILENCE, ..client(base_url) }
}

pub fn client(base_url: impl Into<String>) -> ProviderClient {
    ProviderClient {
        base_url: Some(base_url.into()),
        api_key: Some(KEY.into()),
        idle_timeout: Duration::from_secs(2),
        max_event_bytes: Some(64 << 10),
        ..ProviderClient::default()
    }
}

pub fn openai(client: ProviderClient) -> OpenAi {
    OpenAi::chat(ModelOptions::new("m", client)).unwrap()
}

pub fn anthropic(client: ProviderClient) -> Anthropic {
    Anthropic::new(ModelOptions::new("m", client)).unwrap()
}

pub fn hi() -> ModelRequest {
    ModelRequest {
        steps: vec![ModelStep::User(vec![ContentPart::text("hi")])],
        ..ModelRequest::default()
    }
}

/// Returns all events of an answer, and the error if it ends with one.
pub async fn ask(model: &dyn Model) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut stream = model.stream(hi());
    let mut events = Vec::new();
    let all = async {
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => events.push(event),
                Err(error) => {
                    assert!(stream.next().await.is_none(), "an event after the error");
                    return Some(error);
                }
            }
        }
        None
    };
    let error =
        tokio::time::timeout(Duration::from_secs(20), all).await.expect("an answer, or an error");
    (events, error)
}

/// Returns the code of the error that a request fails with.
pub async fn code(model: &dyn Model) -> &'static str {
    let (events, error) = ask(model).await;
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::Stop(_))), "{events:?}");
    error.expect("an error").code()
}

/// Returns the text of a complete answer.
pub async fn text(model: &dyn Model) -> String {
    let (events, error) = ask(model).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::Done)));
    deltas(&events)
}

pub fn deltas(events: &[ModelEvent]) -> String {
    let deltas = events.iter().filter_map(|event| match event {
        ModelEvent::Delta { text, .. } => Some(text.as_str()),
        ModelEvent::Start { block, .. } => {
            assert_eq!(*block, BlockStart::Text);
            None
        }
        _ => None,
    });
    deltas.collect()
}

/// A chunk of chat completions with text.
pub fn chunk(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

/// A complete answer of the Messages API with text.
pub fn events(text: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
}
