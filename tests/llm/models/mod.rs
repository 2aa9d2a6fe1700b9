//! Agents with a model over HTTP, against a fake provider: as the command with a configuration, and with tools
//! written in Rust. Clients always get a legal stream.

mod broken;
mod callers;
mod calls;
mod context;
mod decided;
mod endings;
mod fallback;
mod forged_calls;
mod gemini;
mod instructions;
mod mcp_questions;
mod options;
mod questions;
mod rust_tools;

use crate::{
    llm::KEY,
    support::{self, provider, running, server, tokens},
};

use agui_server::{
    llm::{ModelOptions, OpenAi, ProviderClient},
    protocol::{Event, RunAgentInput},
};
use provider::{Answer, Provider};
use serde_json::{Value, json};
use server::Process;
use support::checker;

/// The command with a configuration.
struct Models {
    process: Process,
    _folder: tempfile::TempDir,
}

impl Models {
    /// Starts an agent on the provider, with a limit of 1 s on silence. `more` is added to its configuration.
    fn start(provider: &Provider, more: &str) -> Self {
        Self::start_with_files(provider, more, &[])
    }

    /// Starts the agent with files beside its configuration, by name and text.
    fn start_with_files(provider: &Provider, more: &str, files: &[(&str, &str)]) -> Self {
        let base = provider.url();
        Self::launch(
            &format!("provider = \"openai\"\nmodel = \"m\"\nbase_url = \"{base}/v1\"\n{more}"),
            files,
        )
    }

    /// Starts an agent with these options of its model, and with the same limits.
    fn start_with(options: &str) -> Self {
        Self::launch(options, &[])
    }

    fn launch(options: &str, files: &[(&str, &str)]) -> Self {
        let text = format!(
            "default_agent = \"assistant\"\n[agents.assistant]\nkind = \"llm\"\napi_key_env = \"TEST_KEY\"\nidle_timeout_secs = 1\nmax_retries = 1\n\
             {options}"
        );
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files.iter().copied().chain([("my.toml", &*text)]) {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let path = folder.path().join("my.toml");
        let process = Process::start(&["--config", path.to_str().unwrap()], &[("TEST_KEY", KEY)]);
        Self { process, _folder: folder }
    }

    async fn ask(&self, text: &str) -> Vec<Value> {
        ask(&self.process.url, input(text)).await
    }
}

pub(crate) fn input(text: &str) -> Value {
    let thread = uuid::Uuid::new_v4().to_string();
    json!({ "threadId": thread, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": text }] })
}

/// Returns the events of a run. Panics unless they are a legal stream.
pub(crate) async fn ask(url: &str, input: Value) -> Vec<Value> {
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    let response = client.post(format!("{url}/send-message")).json(&input).send().await.unwrap();
    read_events(input, &response.text().await.unwrap())
}

/// Returns the events of a response's body. Panics unless they are a legal stream.
fn read_events(input: Value, body: &str) -> Vec<Value> {
    assert!(body.ends_with("\n\n"), "{body:?}");
    let frames = body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    let events: Vec<Value> = frames
        .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let typed: Vec<Event> =
        events.iter().map(|event| serde_json::from_value(event.clone()).unwrap()).collect();
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    checker::check(&input, &typed).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
    events
}

/// Returns the text of a run, and the code of the error that ended it.
pub(crate) fn text_and_error(events: &[Value]) -> (String, Option<String>) {
    let deltas = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    let text = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
    let last = events.last().unwrap();
    (text, last["code"].as_str().map(str::to_owned))
}

fn chat_model(provider: &Provider) -> OpenAi {
    let client = ProviderClient {
        base_url: Some(format!("{}/v1", provider.url())),
        ..ProviderClient::default()
    };
    OpenAi::chat(ModelOptions::new("m", client)).unwrap()
}

/// Lets the provider answer with a text.
fn says(provider: &Provider, text: &str) {
    provider.answer(Answer::openai(&[chunk(json!({ "content": text }))]));
}

/// Returns the only interrupt of a run.
fn only_interrupt(events: &[Value]) -> Value {
    let interrupts = events.last().unwrap()["outcome"]["interrupts"].as_array().unwrap();
    assert_eq!(interrupts.len(), 1, "{interrupts:?}");
    interrupts[0].clone()
}

/// Returns the first result of a call in a run.
fn result(events: &[Value]) -> &str {
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    result["content"].as_str().unwrap()
}

/// A chunk of chat completions.
pub(crate) fn chunk(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// A chunk of chat completions with the reason of the end.
fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// A chunk of chat completions with a call of a tool.
fn call(index: usize, name: &str, arguments: &str) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    chunk(
        json!({ "tool_calls": [{ "index": index, "id": format!("c{index}"), "function": function }] }),
    )
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}
