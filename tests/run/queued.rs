//! Queued runs: messages whose own runs continue without their pages, behind another run of the thread.

use agui_server::{Server, agent::builtin::Echo, options::MetricsOptions, store::SqliteStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::{
    run::{ask, puppet, read_until, said, types},
    support::{
        conversation::Strings,
        poll::poll_until,
        running::{Running, events, reopened},
    },
};

fn detached(run: &str, text: &str) -> Value {
    let mut input = ask("t", run, &format!("m-{run}"), text);
    input["forwardedProps"] = json!({ "onDisconnect": "continue" });
    input
}

/// The ids of the queued runs of a thread.
async fn queued(server: &Running) -> Vec<String> {
    let thread = server.thread("t").await;
    let queued = thread["queued"].as_array().unwrap().iter();
    queued.map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

/// A server with a run that waits for a text, and a page that reads it.
async fn busy(server: Server) -> (Running, TcpStream, Strings) {
    let (agent, strings, _) = puppet();
    let server = Running::start(server.agent("puppet", agent)).await;
    let mut first = server.raw_run(&detached("r1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    (server, first, strings)
}

/// Sends a message, and reads the head of the response.
async fn acknowledged(server: &Running, input: &Value) -> TcpStream {
    let mut page = server.raw_run(input).await;
    let head = read_until(&mut page, |text| text.contains("\r\n\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    page
}

#[tokio::test]
async fn a_message_of_a_detached_run_is_stored_before_its_200_and_answered_without_its_page() {
    let (server, mut first, strings) = busy(Server::new()).await;
    drop(acknowledged(&server, &detached("r2", "two")).await);
    drop(acknowledged(&server, &detached("r3", "three")).await);
    assert_eq!(queued(&server).await, ["r2", "r3"]);
    assert_eq!(said(&server.thread("t").await), ["user: one"], "they have no place yet");
    for text in ["a", "end", "b", "end", "c", "end"] {
        strings.send(text.to_owned()).unwrap();
    }
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    poll_until("all messages are answered", async || {
        let thread = server.thread("t").await;
        let said = said(&thread);
        let all = ["user: one", "assistant: a", "user: two", "assistant: b", "user: three"];
        (said.len() == 6 && thread["runs"][0]["status"] == "finished").then(|| {
            assert_eq!((&said[..5], &*said[5]), (&all.map(str::to_owned)[..], "assistant: c"));
        })
    })
    .await;
    assert_eq!(queued(&server).await, [""; 0]);
}

#[tokio::test]
async fn a_page_that_waits_for_its_queued_run_gets_its_events_and_so_does_the_same_request() {
    let (server, mut first, strings) = busy(Server::new()).await;
    let input = detached("r2", "two");
    let pages = [server.run(&input).await, server.run(&input).await];
    assert_eq!(queued(&server).await, ["r2"]);
    for text in ["end", "b", "end"] {
        strings.send(text.to_owned()).unwrap();
    }
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    for page in pages {
        assert_eq!(page.status(), 200);
        let events = events(&page.text().await.unwrap());
        let events: Vec<_> =
            events.into_iter().filter(|event| event["type"] != "MESSAGES_SNAPSHOT").collect();
        assert_eq!(types(&events)[..2], ["RUN_STARTED", "TEXT_MESSAGE_START"]);
        assert_eq!((&events[0]["runId"], &events[2]["delta"]), (&json!("r2"), &json!("b")));
        assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    }
    assert_eq!(server.thread("t").await["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_queued_run_is_found_by_its_id() {
    let (server, _first, strings) = busy(Server::new()).await;
    let queued = server.post("/send-message").header("prefer", "respond-async");
    let accepted = queued.json(&ask("t", "r2", "m2", "two")).send().await.unwrap();
    assert_eq!(accepted.status(), 202);
    let path = accepted.headers()["location"].to_str().unwrap().to_owned();
    let read = async || {
        let response = server.get(&path).await;
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, document) = read().await;
    assert_eq!((status, &document["status"]), (202, &json!("running")));
    let events = server.get("/threads/t/runs/r2/events").await;
    for text in ["end", "two", "end"] {
        strings.send(text.to_owned()).unwrap();
    }
    let text = events.text().await.unwrap();
    assert!(text.contains("RUN_STARTED") && text.contains("RUN_FINISHED"), "{text}");
    let (status, document) = read().await;
    assert_eq!((status, &document["messages"][0]["content"]), (200, &json!("two")));
    assert_eq!(server.get("/threads/t/runs/unknown").await.status(), 404);
}

#[tokio::test]
async fn a_queued_run_is_ended_by_its_cancel() {
    let (server, mut first, strings) = busy(Server::new()).await;
    let page = server.run(&detached("r2", "two")).await;
    let again = server.run(&detached("r2", "two")).await;
    let follower = server.get("/threads/t/runs/r2/events").await;
    let cancelled = server.post("/threads/t/runs/r2/cancel").send().await.unwrap();
    assert_eq!(cancelled.status(), 202);
    for response in [page, again, follower] {
        let events = events(&response.text().await.unwrap());
        assert_eq!(events.last().unwrap()["outcome"]["type"], "cancelled");
    }
    assert_eq!(queued(&server).await, [""; 0]);
    strings.send("end".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    let thread = server.thread("t").await;
    assert_eq!(said(&thread)[0], "user: one");
    assert_eq!(thread["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_deletion_ends_queued_runs_and_requests_that_wait() {
    let metrics = MetricsOptions::on_main_listener();
    let (server, _first, _strings) = busy(Server::new().metrics(metrics)).await;
    let page = server.run(&detached("r2", "two")).await;
    let input = ask("t", "r3", "m3", "three");
    let waiting = server.refused(&input);
    let delete = async {
        poll_until("the request waits", async || {
            let metrics = server.get("/metrics").await.text().await.unwrap();
            metrics.contains("agui_runs_queued 2").then_some(())
        })
        .await;
        server.client.delete(server.url("/threads/t")).send().await.unwrap().status()
    };
    let (refused, deleted) = tokio::join!(waiting, delete);
    assert_eq!((refused, deleted.as_u16()), ((410, "thread_deleted".to_owned()), 204));
    let events = events(&page.text().await.unwrap());
    assert_eq!(events.last().unwrap()["code"], "thread_deleted");
    assert_eq!(server.get("/threads/t").await.status(), 404);
}

/// Returns the thread after its server was stopped with two queued runs, and another one has begun them.
async fn restarted(agent: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("threads.db")).await.unwrap();
    let (mut server, first, strings) = busy(Server::new().store(store)).await;
    drop(acknowledged(&server, &detached("r2", "two")).await);
    let page = server.run(&detached("r3", "three")).await;
    drop(first);
    server.shut_down();
    // The page can tell that its run has not ended.
    assert!(page.text().await.is_err());
    strings.send("end".to_owned()).unwrap();
    drop(server);
    let store = reopened(folder.path()).await;
    let server = Running::start(Server::new().agent(agent, Echo).store(store)).await;
    let thread = poll_until("the queued runs have ended", async || {
        let thread = server.thread("t").await;
        let runs = thread["runs"].as_array().unwrap();
        (runs.len() == 3 && runs[0]["status"] != "running").then(|| thread.clone())
    })
    .await;
    assert_eq!(queued(&server).await, [""; 0]);
    thread
}

#[tokio::test]
async fn queued_runs_begin_on_the_next_server() {
    let thread = restarted("puppet").await;
    let said = said(&thread);
    let last = &said[said.len() - 4..];
    assert_eq!(last, ["user: two", "assistant: two", "user: three", "assistant: three"]);
}

#[tokio::test]
async fn a_queued_run_whose_agent_is_unknown_keeps_its_message_and_ends_with_an_error() {
    let thread = restarted("other").await;
    let said = said(&thread);
    assert_eq!(said[said.len() - 2..], ["user: two", "user: three"]);
    assert_eq!(thread["runs"][0]["error"]["code"], "server_lost");
}
