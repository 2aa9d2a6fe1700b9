//! Traces: the headers that are passed on, and with the feature `otel` the spans that the command
//! sends to a collector.

#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
mod exported;
mod passed_on;
#[cfg(feature = "otel")]
mod slow_collector;
#[cfg(feature = "otel")]
mod variables;

use crate::support::{provider, running, server};

use serde_json::{Value, json};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The command with a configuration, whose folder lives as long as the value.
struct Command {
    process: server::Process,
    client: reqwest::Client,
    folder: tempfile::TempDir,
}

impl Command {
    /// `{folder}` in the configuration is the folder of its file.
    fn start(config: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.toml");
        std::fs::write(&file, config.replace("{folder}", folder.path().to_str().unwrap())).unwrap();
        let process = server::Process::start(&["--config", file.to_str().unwrap()], environment);
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        Self { process, client, folder }
    }

    /// Sends a request for a run, and returns the events of the response.
    async fn run(&self, input: &Value, headers: &[(&str, &str)]) -> Vec<Value> {
        let mut request =
            self.client.post(format!("{}/send-message", self.process.url)).json(input);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        running::events(&request.send().await.unwrap().text().await.unwrap())
    }

    /// Stops the command, and returns its log as JSON. The servers of the test still respond.
    async fn stop(self) -> Vec<Value> {
        self.process.signal("-TERM");
        let (code, log) = tokio::task::spawn_blocking(|| self.process.ended()).await.unwrap();
        assert_eq!(code, Some(0), "{log}");
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn chunk(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// An answer that is one call.
fn call(id: &str, name: &str, arguments: &Value) -> provider::Answer {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    answer(&json!({ "tool_calls": [{ "index": 0, "id": id, "function": function }] }), "tool_calls")
}

fn text(text: &str) -> provider::Answer {
    answer(&json!({ "content": text }), "stop")
}

fn answer(delta: &Value, reason: &str) -> provider::Answer {
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 7 } });
    provider::Answer::openai(&[chunk(delta), end, usage]).header("x-request-id", "req-of-provider")
}
