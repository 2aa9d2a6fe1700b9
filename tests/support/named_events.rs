//! The command with its named-event endpoints, and the events that they send.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{
    provider::Provider,
    server::{BINARY, Process},
};

/// The name and the payload of an event.
pub type Frame = (String, Value);

/// The running command, with a client.
pub struct TestServer {
    pub process: Process,
    pub client: reqwest::Client,
    _file: Option<tempfile::NamedTempFile>,
}

impl TestServer {
    /// Starts the command with its default configuration.
    pub fn demo() -> Self {
        Self::new(Process::start(&[], &[]), None)
    }

    pub fn new(process: Process, file: Option<tempfile::NamedTempFile>) -> Self {
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        Self { process, client, _file: file }
    }

    /// Starts the command with two agents on the provider: `chat`, and `worker` with `tools` for `/agent/agent/stream`.
    /// `more` is appended to the configuration.
    pub fn with(provider: &Provider, tools: &str, more: &str) -> Self {
        let agent = |name: &str, tools: &str| {
            format!(
                "[agents.{name}]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n\
                 tools = {tools}\n",
                provider.url()
            )
        };
        let text = format!(
            "default_agent = \"chat\"\n[named_events]\nchat = \"chat\"\nagent = \"worker\"\n{}{}{more}\n{}",
            agent("chat", "[\"calculator\"]"),
            agent("worker", tools),
            provider.calculator()
        );
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        Self::new(Process::start(&["--config", &path], &[]), Some(file))
    }

    /// Starts the command with an agent that plays this script.
    pub fn from_script(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("script.toml"), script).unwrap();
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile_in(folder.keep()).unwrap();
        file.write_all(b"[agents.scripted]\nkind = \"script\"\nscript = \"script.toml\"").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        Self::new(Process::start(&["--config", &path], &[]), Some(file))
    }

    /// A configuration with an agent on the provider that has the sandbox. `more` is appended.
    pub fn worker(provider: &Provider, more: &str) -> String {
        format!(
            "[agents.worker]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n\
             tools = [\"sandbox\"]\n{more}",
            provider.url()
        )
    }

    /// Starts the command as a user who is not root, with an agent that has the sandbox. Needs root.
    pub fn as_nobody(provider: &Provider, more: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        // Other users cannot read root's folders.
        let binary = data.path().join("agui-server");
        std::fs::copy(BINARY, &binary).unwrap();
        let config = data.path().join("server.toml");
        std::fs::write(&config, Self::worker(provider, more)).unwrap();
        for path in [data.path(), &binary, &config] {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        }
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&binary);
        let config = config.to_str().unwrap().to_owned();
        Self::new(Process::launch(command, data, &["--config", &config], &[]), None)
    }

    pub async fn send(&self, path: &str, body: &Value) -> reqwest::Response {
        self.client.post(format!("{}{path}", self.process.url)).json(body).send().await.unwrap()
    }

    /// Returns the events of a successful request.
    pub async fn ask(&self, path: &str, body: &Value) -> Vec<Frame> {
        let response = self.send(path, body).await;
        assert_eq!(response.status(), 200, "{body}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        frames(&response.text().await.unwrap())
    }
}

pub const CHAT: &str = "/agent/chat/stream";
pub const AGENT: &str = "/agent/agent/stream";

pub fn user(content: impl Into<Value>) -> Value {
    json!({ "messages": [{ "role": "user", "content": content.into() }] })
}

pub fn on(thread: &str, content: impl Into<Value>) -> Value {
    let mut body = user(content);
    body["thread_id"] = thread.into();
    body
}

pub fn frames(body: &str) -> Vec<Frame> {
    assert!(body.ends_with("\n\n"), "{body:?}");
    let frames = body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    let frame = |frame: &str| {
        let (name, data) = frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        assert!(!data.contains('\n'), "{frame:?}");
        (name.to_owned(), serde_json::from_str(data).unwrap())
    };
    frames.map(frame).collect()
}

pub fn named<'f>(frames: &'f [Frame], name: &str) -> Vec<&'f Value> {
    frames.iter().filter(|(own, _)| own == name).map(|(_, payload)| payload).collect()
}

pub fn names(frames: &[Frame]) -> Vec<&str> {
    let mut names: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    names
}

pub fn said(frames: &[Frame]) -> String {
    named(frames, "message").iter().map(|payload| payload["content"].as_str().unwrap()).collect()
}

/// Returns the thread id of a stream, which its first event has.
pub fn thread(frames: &[Frame]) -> String {
    assert_eq!(
        (frames[0].0.as_str(), &frames[0].1["type"]),
        ("status", &json!("run_started")),
        "{frames:?}"
    );
    frames[0].1["thread_id"].as_str().unwrap().to_owned()
}

/// A chunk of OpenAI's chat completions.
pub fn chunk(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// A chunk that calls a tool.
pub fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    chunk(json!({ "tool_calls": [{ "index": 0, "id": id, "function": function }] }))
}
