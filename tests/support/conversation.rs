//! Requests on stored threads, and an agent that says the texts of a test.

use agui_server::{
    agent::{EventStream, RunContext, emit::TextMessage, event_stream},
    options::ThreadOptions,
    protocol::RunAgentInput,
};
use serde_json::{Value, json};

use tokio::sync::mpsc;

use super::{
    poll,
    running::{Count, OnDrop, Running, events, read_until},
};

/// The default options with a change.
pub fn changed_options(change: impl FnOnce(&mut ThreadOptions)) -> ThreadOptions {
    let mut options = ThreadOptions::default();
    change(&mut options);
    options
}

/// The input of a run on a thread, with a message of a user.
pub fn ask(thread: &str, run: &str, message: &str, text: &str) -> Value {
    json!({ "threadId": thread, "runId": run, "messages": [{ "id": message, "role": "user", "content": text }] })
}

/// The same for a detached run.
pub fn ask_detached(thread: &str, run: &str) -> Value {
    let mut input = ask(thread, run, "m", "go");
    input["forwardedProps"] = json!({ "onDisconnect": "continue" });
    input
}

impl Running {
    /// The events of a whole run.
    pub async fn events(&self, input: &Value) -> Vec<Value> {
        let response = self.run(input).await;
        let status = response.status();
        let body = response.text().await.unwrap();
        assert_eq!(status, 200, "{body}");
        events(&body)
    }

    /// The status and the code of a refusal.
    pub async fn refused(&self, input: &Value) -> (u16, String) {
        refusal(self.run(input).await).await
    }

    pub async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    pub async fn thread(&self, thread: &str) -> Value {
        let response = self.get(&format!("/threads/{thread}")).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// Waits until the newest run of a thread has this status.
    pub async fn until_status(&self, thread: &str, status: &str) -> Value {
        poll::poll_until(status, async || {
            let found: Value = self.get(&format!("/threads/{thread}")).await.json().await.unwrap();
            (found["runs"][0]["status"] == status).then_some(found)
        })
        .await
    }
}

pub async fn refusal(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

/// The texts of a thread's messages with their roles.
pub fn said(thread: &Value) -> Vec<String> {
    let text = |message: &Value| {
        format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
    };
    thread["messages"].as_array().unwrap().iter().map(text).collect()
}

pub fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// An agent that says the texts that it is given, and counts its runs that were dropped early.
pub fn puppet()
-> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Strings, Count) {
    let (strings, pieces) = mpsc::unbounded_channel::<String>();
    let pieces = std::sync::Arc::new(tokio::sync::Mutex::new(pieces));
    let dropped = Count::default();
    let count = dropped.clone();
    let agent = move |_: RunAgentInput, _: RunContext| {
        let (pieces, guard) = (pieces.clone(), OnDrop(count.clone()));
        event_stream(async_stream::try_stream! {
            let _guard = guard;
            let message = TextMessage::new();
            yield message.start();
            while let Some(piece) = pieces.lock().await.recv().await && piece != "end" {
                yield message.delta(piece);
            }
            yield message.end();
        })
    };
    (agent, strings, dropped)
}

/// Sends texts to a [`puppet`]. "end" ends a run.
pub type Strings = mpsc::UnboundedSender<String>;

/// Asks for a run, reads until the agent has begun, and leaves.
pub async fn ask_and_leave(server: &Running, input: &Value) {
    let mut stream = server.raw_run(input).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
}
