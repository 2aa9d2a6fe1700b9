//! OpenAI's API as a door to the agents.

mod answers;
mod keys;
mod models;
mod requests;

use agui_server::{
    Server,
    agent::{EventStream, RunContext, events as known},
    llm::{LlmAgent, ModelOptions, OpenAi, ProviderClient},
    protocol::{Event, RunAgentInput},
};
use reqwest::Response;
use serde_json::{Value, json};

use crate::{
    llm::models::chunk,
    support::{
        provider::{Answer, Provider},
        running::Running,
    },
};

const PATH: &str = "/v1/chat/completions";

/// Returns an agent with a model of the provider.
fn model_agent(provider: &Provider) -> LlmAgent {
    let client = ProviderClient {
        base_url: Some(format!("{}/v1", provider.url())),
        ..ProviderClient::default()
    };
    LlmAgent::new(OpenAi::chat(ModelOptions::new("m", client)).unwrap())
}

/// Returns an agent that emits these events in each run.
fn says(
    events: Value,
) -> impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static {
    let events: Vec<Event> = serde_json::from_value(events).unwrap();
    move |_: RunAgentInput, _: RunContext| known(events.clone())
}

/// Returns a request with one message of a user, and more members.
fn asking(text: &str, more: Value) -> Value {
    let mut body = json!({ "messages": [{ "role": "user", "content": text }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn post(server: &Running, body: &Value) -> Response {
    server.post(PATH).json(body).send().await.unwrap()
}

async fn completion(server: &Running, body: &Value) -> Value {
    let response = post(server, body).await;
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the data of the events of a stream. Panics unless it ends with `[DONE]`.
fn chunks(body: &str) -> Vec<Value> {
    let data = body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    let mut data: Vec<_> = data.map(|frame| frame.strip_prefix("data: ").unwrap()).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{body}");
    data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

async fn streamed(server: &Running, body: &Value) -> Vec<Value> {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let response = post(server, &body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    chunks(&response.text().await.unwrap())
}

/// Returns the text of a stream, and its reason to end.
fn text_and_reason(chunks: &[Value]) -> (String, Value) {
    let choices = chunks.iter().filter_map(|chunk| chunk["choices"].get(0));
    let text = choices.clone().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
    let mut reasons = choices.map(|choice| choice["finish_reason"].clone());
    (text, reasons.rfind(|reason| !reason.is_null()).unwrap_or_default())
}

fn content(completion: &Value) -> &Value {
    &completion["choices"][0]["message"]["content"]
}

/// Lets the provider answer with a text, and this reason to stop.
fn answer(provider: &Provider, text: &str, reason: &str) {
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    provider.answer(Answer::openai(&[chunk(json!({ "content": text })), end]));
}

/// Lets the provider answer with a call.
fn answer_with_call(provider: &Provider, id: &str, name: &str, arguments: &str) {
    let function = json!({ "name": name, "arguments": arguments });
    let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
    provider.answer(Answer::openai(&[chunk(json!({ "tool_calls": [call] }))]));
}

/// A tool of the caller.
fn look_up() -> Value {
    let parameters = json!({ "type": "object", "properties": { "word": { "type": "string" } } });
    json!({ "type": "function", "function": {
        "name": "look_up", "description": "Looks a word up.", "parameters": parameters,
    } })
}
