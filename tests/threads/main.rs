//! Stored threads over HTTP, as clients see them. The store is the one in memory; `tests/store` checks all stores
//! against one contract, and `tests/replicas` tests several servers on one store.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod branches;
mod copies;
mod deleted;
mod detached;
mod edits;
mod ending;
mod events;
mod feedback;
mod followers;
mod history;
mod interrupts;
mod limits;
mod lost;
mod owners;
#[path = "../support/poll.rs"]
mod poll;
#[path = "../support/postgres.rs"]
mod postgres;
mod queue;
mod recording;
mod resume;
mod run_log;
mod search;
#[path = "../support/running.rs"]
mod support;
mod sync;
mod titles;
mod view;

use agui_server::{
    agent::{EventStream, RunContext, emit::TextMessage, event_stream},
    protocol::RunAgentInput,
    run::ThreadOptions,
};
use serde_json::{Value, json};
use support::{Count, OnDrop, Running, events, read_until};
use tokio::sync::mpsc;

/// The default options with a change.
fn changed_options(change: impl FnOnce(&mut ThreadOptions)) -> ThreadOptions {
    let mut options = ThreadOptions::default();
    change(&mut options);
    options
}

/// The input of a run on a thread, with a message of a user.
fn ask(thread: &str, run: &str, message: &str, text: &str) -> Value {
    json!({ "threadId": thread, "runId": run, "messages": [{ "id": message, "role": "user", "content": text }] })
}

/// The same for a detached run.
fn ask_detached(thread: &str, run: &str) -> Value {
    let mut input = ask(thread, run, "m", "go");
    input["forwardedProps"] = json!({ "onDisconnect": "continue" });
    input
}

impl Running {
    /// The events of a whole run.
    async fn events(&self, input: &Value) -> Vec<Value> {
        let response = self.run(input).await;
        let status = response.status();
        let body = response.text().await.unwrap();
        assert_eq!(status, 200, "{body}");
        events(&body)
    }

    /// The status and the code of a refusal.
    async fn refused(&self, input: &Value) -> (u16, String) {
        refusal(self.run(input).await).await
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    async fn thread(&self, thread: &str) -> Value {
        let response = self.get(&format!("/threads/{thread}")).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// Waits until the newest run of a thread has this status.
    async fn until_status(&self, thread: &str, status: &str) -> Value {
        poll::poll_until(status, async || {
            let found: Value = self.get(&format!("/threads/{thread}")).await.json().await.unwrap();
            (found["runs"][0]["status"] == status).then_some(found)
        })
        .await
    }
}

async fn refusal(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

/// The texts of a thread's messages with their roles.
fn said(thread: &Value) -> Vec<String> {
    let text =
        |message: &Value| format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap());
    thread["messages"].as_array().unwrap().iter().map(text).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// An agent that says what it is given, a piece at a time, and counts how many of its runs were dropped early.
fn puppet() -> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Strings, Count) {
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
type Strings = mpsc::UnboundedSender<String>;

/// Asks for a run, reads until the agent has begun, and leaves.
async fn ask_and_leave(server: &Running, input: &Value) {
    let mut stream = server.raw_run(input).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
}
