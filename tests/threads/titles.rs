//! Titles by an agent. `edits.rs` tests titles that are made from messages.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::{Agent, AgentError, Emitter, agent_fn, builtin::Echo},
    options::MetricsOptions,
    protocol::RunAgentInput,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    support::{
        poll::poll_until,
        running::{Count, Running, TEST_TIMEOUT},
    },
    threads::{ask, changed_options},
};

async fn titles(input: RunAgentInput, out: Emitter, calls: Count) -> Result<(), AgentError> {
    calls.add();
    let task = input.last_user_text().unwrap_or_default().into_owned();
    assert!(task.contains("User: hello") && task.contains("Assistant: hello"), "{task}");
    out.text("\"A greeting.\"").await
}

/// A server with an agent, and one that makes titles.
async fn start(agent: impl Agent, titles: impl Agent) -> Running {
    let options = changed_options(|options| options.title_agent = Some("titles".to_owned()));
    let server =
        Server::new().agent("agent", agent).agent("titles", titles).thread_options(options);
    Running::start(server.metrics(MetricsOptions::on_main_listener())).await
}

/// Returns whether an agent is making a title.
async fn is_titling(server: &Running) -> bool {
    let metrics = server.get("/metrics").await.text().await.unwrap();
    !metrics.lines().any(|line| line == "agui_title_runs_active 0")
}

#[tokio::test]
async fn an_agent_makes_the_title_after_the_first_run() {
    let calls = Count::default();
    let counter = calls.clone();
    let server = start(Echo, agent_fn(move |input, out| titles(input, out, counter.clone()))).await;
    server.events(&ask("t", "r", "m", "hello there")).await;
    let titled = poll_until("the title of the agent", async || {
        let thread = server.thread("t").await;
        (thread["title"] == "A greeting").then_some(thread)
    });
    assert_eq!(
        titled.await["runs"].as_array().unwrap().len(),
        1,
        "making the title is no run of the thread"
    );
    let list: serde_json::Value = server.get("/threads?archived=all").await.json().await.unwrap();
    assert_eq!(list["threads"].as_array().unwrap().len(), 1, "nor of another thread");
    server
        .client
        .patch(server.url("/threads/t"))
        .json(&json!({ "title": "Mine" }))
        .send()
        .await
        .unwrap();
    server.events(&ask("t", "s", "n", "hello again")).await;
    assert_eq!(server.thread("t").await["title"], "Mine", "only the first run makes a title");
    server.events(&ask("u", "r", "m", "hello there")).await;
    poll_until("the title of the other thread", async || {
        (server.thread("u").await["title"] == "A greeting").then_some(())
    })
    .await;
    assert_eq!(calls.get(), 2, "one for the first run of each thread");
}

#[tokio::test]
async fn a_run_does_not_wait_for_its_title() {
    let server = start(Echo, agent_fn(|_, _| std::future::pending())).await;
    let asked = ask("t", "r", "m", "hello there");
    let events = tokio::time::timeout(TEST_TIMEOUT, server.events(&asked)).await.unwrap();
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
}

#[tokio::test]
async fn a_run_that_begins_with_a_call_gets_a_title() {
    let calling = |_: RunAgentInput, out: Emitter| async move {
        out.call("look_up", json!({})).await?.result("5").await?;
        out.text("hello, it is 5").await
    };
    let server =
        start(agent_fn(calling), agent_fn(|input, out| titles(input, out, Count::default()))).await;
    server.events(&ask("t", "r", "m", "hello there")).await;
    let is_titled = async || (server.thread("t").await["title"] == "A greeting").then_some(());
    poll_until("the title of the agent", is_titled).await;
}

#[tokio::test]
async fn a_title_that_its_owner_sets_while_the_agent_writes_one_is_kept() {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = gate.clone();
    let slow = move |_: RunAgentInput, out: Emitter| {
        let gate = waiting.clone();
        async move {
            drop(gate.acquire().await);
            out.text("Too late").await
        }
    };
    let server = start(Echo, agent_fn(slow)).await;
    server.events(&ask("t", "r", "m", "hello")).await;
    assert!(is_titling(&server).await);
    server
        .client
        .patch(server.url("/threads/t"))
        .json(&json!({ "title": "Mine" }))
        .send()
        .await
        .unwrap();
    gate.add_permits(1);
    poll_until("the agent has ended", async || (!is_titling(&server).await).then_some(())).await;
    assert_eq!(server.thread("t").await["title"], "Mine");
}

#[tokio::test]
async fn an_agent_makes_no_title_after_a_first_run_that_failed() {
    let failing = |_: RunAgentInput, out: Emitter| async move {
        out.text("hello").await?;
        Err(AgentError::new("broken", "it failed"))
    };
    let endless = |_: RunAgentInput, _: Emitter| std::future::pending::<Result<(), AgentError>>();
    let server = start(agent_fn(failing), agent_fn(endless)).await;
    let events = server.events(&ask("t", "r", "m", "hello")).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_ERROR");
    assert!(!is_titling(&server).await);
    assert_eq!(server.thread("t").await["title"], "hello");
}
