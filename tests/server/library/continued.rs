//! A Rust agent that continues from its last mark on another server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agui_server::{
    Server,
    agent::{AgentError, Emitter, agent_fn},
    protocol::RunAgentInput,
    store::SqliteStore,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
};

use crate::support::running::{Running, events, eventually, reopened};

#[derive(Default)]
struct Desk {
    calls: AtomicUsize,
    attempts: AtomicUsize,
    pages: Notify,
}

async fn write_book(desk: Arc<Desk>, out: Emitter) -> Result<(), AgentError> {
    desk.calls.fetch_add(1, Ordering::Relaxed);
    let earlier = out.context().continuation().cloned().unwrap_or_default();
    desk.attempts.store(earlier.attempt as usize, Ordering::Relaxed);
    for chapter in earlier.marks.len() + 1..=3 {
        out.text(format!("Chapter {chapter}")).await?;
        if chapter == 2 && earlier.attempt == 0 {
            // This chapter is not marked yet.
            desk.pages.notify_one();
            std::future::pending::<()>().await;
        }
        out.context().mark(chapter);
    }
    out.context().written().await;
    Ok(())
}

fn server(desk: &Arc<Desk>, store: Arc<SqliteStore>) -> Server {
    let desk = desk.clone();
    let author = agent_fn(move |_: RunAgentInput, out: Emitter| write_book(desk.clone(), out));
    Server::new().agent("author", author.can_continue()).drain(Duration::ZERO).store(store)
}

/// Returns the events of a run whose server is stopped while the agent writes, and that another
/// server continues.
async fn continued_run(forwarded_props: Value) -> Vec<Value> {
    let (folder, desk) = (tempfile::tempdir().unwrap(), Arc::new(Desk::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/send-message", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move { stopped.await.unwrap() };
    let served =
        tokio::spawn(server(&desk, reopened(folder.path()).await).serve_on(listener, shutdown));
    let input = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "Go" }],
                        "forwardedProps": forwarded_props });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let response = client.post(url).json(&input).send().await.unwrap();
    desk.pages.notified().await;
    stop.send(()).unwrap();
    assert!(response.text().await.is_err(), "the client has to reconnect");
    served.await.unwrap().unwrap();

    let second = Running::start(server(&desk, reopened(folder.path()).await)).await;
    // The same request would begin the run again if it has ended.
    let response = client.get(second.url("/threads/t/runs/r/events")).send().await.unwrap();
    let all = events(&response.text().await.unwrap());
    eventually("the agent is called again", || desk.calls.load(Ordering::Relaxed) == 2).await;
    assert_eq!(desk.attempts.load(Ordering::Relaxed), 1);
    all
}

fn chapters(events: &[Value]) -> Vec<&str> {
    let deltas = events.iter().filter_map(|event| event["delta"].as_str());
    deltas.filter(|delta| delta.starts_with("Chapter")).collect()
}

fn kept(events: &[Value]) -> Vec<&Value> {
    let snapshot = events.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    snapshot["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect()
}

#[tokio::test]
async fn an_agent_continues_from_its_last_mark_when_its_server_is_stopped() {
    let all = continued_run(json!({ "onDisconnect": "continue" })).await;
    assert_eq!(chapters(&all), ["Chapter 1", "Chapter 2", "Chapter 2", "Chapter 3"]);
    assert_eq!(kept(&all), [&Value::from("Go"), &"Chapter 1".into()]);
}

/// The events of a run that began with a click: the click is kept once, and is no mark of the agent.
#[tokio::test]
async fn continues_from_a_click() {
    let action = json!({ "name": "write", "surfaceId": "s", "context": {} });
    let click = json!({ "userAction": action });
    let props =
        json!({ "onDisconnect": "continue", "a2uiCatalogAvailable": true, "a2uiAction": click });
    let all = continued_run(props).await;
    assert_eq!(chapters(&all), ["Chapter 1", "Chapter 2", "Chapter 2", "Chapter 3"]);
    let click = json!("User performed action \"write\" on surface \"s\". Context: {}");
    assert_eq!(all.iter().filter(|event| event["content"] == click).count(), 1);
    assert_eq!(kept(&all), [&json!("Go"), &Value::Null, &click, &json!("Chapter 1")]);
}
