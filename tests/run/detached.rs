//! Runs that outlive their connection.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::{
    Server,
    agent::{
        self, Emitter, RunContext, agent_fn,
        emit::{TextMessage, ToolCallEvents},
        event_stream,
    },
    options::OnDisconnect,
    protocol::RunAgentInput,
    store::{RunStatus, SqliteStore, Store as _, ThreadPage},
};
use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{
    run::{
        ask, ask_and_leave, ask_detached, changed_options, puppet, read_until, refusal, said, types,
    },
    support::running::{Running, endless, events, eventually, eventually_async},
};

/// The events of a followed run, with their numbers.
fn numbered(body: &str) -> Vec<(u64, Value)> {
    let frames = body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| {
            let (id, data) = frame.split_once('\n').unwrap();
            let event = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            (id.strip_prefix("id: ").unwrap().parse().unwrap(), event)
        })
        .collect()
}

async fn follow(server: &Running, after: u64) -> Vec<(u64, Value)> {
    let response = server.get(&format!("/threads/t/runs/r/events?after={after}")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    numbered(&response.text().await.unwrap())
}

#[tokio::test]
async fn a_detached_run_continues_without_its_client_and_can_be_followed() {
    let (agent, strings, dropped) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    strings.send("a".to_owned()).unwrap();
    let url = server.url("/threads/t/runs/r/events");
    let (client, whole) = (server.client.clone(), url.clone());
    let whole =
        tokio::spawn(async move { client.get(whole).send().await.unwrap().text().await.unwrap() });
    strings.send("b".to_owned()).unwrap();
    // A client that returns later, like a browser.
    let late =
        server.client.get(url + "?after=1").header("last-event-id", "3").send().await.unwrap();
    strings.send("end".to_owned()).unwrap();
    let whole = numbered(&whole.await.unwrap());
    let numbers: Vec<_> = whole.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let all: Vec<Value> = whole.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(types(&all)[..2], ["RUN_STARTED", "TEXT_MESSAGE_START"]);
    assert_eq!((&all[2]["delta"], &all[3]["delta"]), (&json!("a"), &json!("b")));
    assert_eq!(numbered(&late.text().await.unwrap()), whole[3..]);
    assert_eq!(dropped.get(), 1);
    // After the end of the run, the log is still there.
    assert_eq!(follow(&server, 0).await, whole);
    assert_eq!(follow(&server, 5).await, whole[5..]);
    let thread = server.thread("t").await;
    assert_eq!(said(&thread), ["user: go", "assistant: ab"]);
    assert_eq!(
        (&thread["runs"][0]["status"], &thread["runs"][0]["events"]),
        (&json!("finished"), &json!(6))
    );
    // A browser that has everything is told to stay away.
    for after in ["6", "7", "18446744073709551615"] {
        let response = server.get(&format!("/threads/t/runs/r/events?after={after}")).await;
        assert_eq!(response.status(), 204, "{after}");
    }
}

#[tokio::test]
async fn the_client_that_starts_a_detached_run_gets_the_usual_stream() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let mut foreground = ask("f", "r", "m", "go");
    let detached = server.events(&ask_detached("t", "r")).await;
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    foreground["threadId"] = "t2".into();
    assert_eq!(types(&detached), types(&server.events(&foreground).await));
}

#[tokio::test]
async fn a_repeated_request_follows_the_running_run() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    strings.send("a".to_owned()).unwrap();
    let again = server.run(&ask_detached("t", "r")).await;
    strings.send("end".to_owned()).unwrap();
    let body = again.text().await.unwrap();
    let expected = [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ];
    assert_eq!(types(&events(&body)), expected);
    assert_eq!(server.thread("t").await["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn request_agent_and_server_decide_in_this_order_if_a_run_is_detached() {
    let (agent, _strings, dropped) = puppet();
    let mut options =
        changed_options(|options| options.runs.on_disconnect = OnDisconnect::Continue);
    options.on_disconnect_of.insert("stopping".to_owned(), OnDisconnect::Cancel);
    let agent = std::sync::Arc::new(agent);
    let other = agent.clone();
    let server = Server::new()
        .agent("going", move |i, c| agent(i, c))
        .agent("stopping", move |i, c| other(i, c));
    let server = Running::start(server.thread_options(options)).await;
    ask_and_leave(&server, &ask("t1", "r", "m", "go")).await;
    let mut asked = ask("t2", "r", "m", "go");
    asked["forwardedProps"] = json!({ "onDisconnect": "cancel" });
    ask_and_leave(&server, &asked).await;
    eventually("the second is dropped", || dropped.get() == 1).await;
    let mut third = server
        .post("/agents/stopping/send-message")
        .json(&ask("t3", "r", "m", "go"))
        .send()
        .await
        .unwrap();
    third.chunk().await.unwrap();
    drop(third);
    eventually("the third is dropped", || dropped.get() == 2).await;
    assert_eq!(server.thread("t1").await["activeRunId"], "r");
    asked["forwardedProps"] = json!({ "onDisconnect": "linger" });
    let response = server.run(&asked).await;
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["path"], "forwardedProps.onDisconnect");
}

#[tokio::test]
async fn a_detached_run_can_be_cancelled_by_any_client() {
    let (agent, _strings, dropped) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let cancel = async |run: &str| {
        server.post(&format!("/threads/t/runs/{run}/cancel")).send().await.unwrap()
    };
    for input in [ask_detached("t", "r1"), ask("t", "r2", "m", "go")] {
        let run = input["runId"].as_str().unwrap();
        let mut stream = server.raw_run(&input).await;
        read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
        let response = cancel(run).await;
        assert_eq!(response.status(), 202);
        let ended = read_until(&mut stream, |text| text.contains("RUN_FINISHED")).await;
        assert!(ended.contains(r#""outcome":{"type":"cancelled"}"#), "{ended}");
        let response = cancel(run).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.json::<Value>().await.unwrap()["status"], "cancelled");
    }
    assert_eq!(dropped.get(), 2);
    assert_eq!(refusal(cancel("none").await).await, (404, "unknown_run".to_owned()));
}

#[tokio::test]
async fn a_thread_can_be_deleted_while_it_runs() {
    let (agent, _strings, dropped) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut stream = server.raw_run(&ask_detached("t", "r")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    let response = server.client.delete(server.url("/threads/t")).send().await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(dropped.get(), 1, "the deletion waits for the agent");
    let end = read_until(&mut stream, |text| text.ends_with("\r\n0\r\n\r\n")).await;
    assert!(end.contains("thread_deleted"), "{end}");
    assert_eq!(server.get("/threads/t").await.status(), 404);
    let response = server.client.delete(server.url("/threads/t")).send().await.unwrap();
    assert_eq!(refusal(response).await, (404, "unknown_thread".to_owned()));
}

#[tokio::test]
async fn detached_runs_are_limited() {
    let (agent, strings, _) = puppet();
    let options = changed_options(|options| options.runs.max_detached = Some(1));
    let server = Running::start(Server::new().agent("puppet", agent).thread_options(options)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    let response = server.run(&ask_detached("t2", "r")).await;
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(refusal(response).await, (503, "too_many_detached_runs".to_owned()));
    strings.send("end".to_owned()).unwrap();
    server.until_status("t", "finished").await;
    ask_and_leave(&server, &ask_detached("t2", "r")).await;
}

#[tokio::test]
async fn a_run_with_too_many_bytes_fails() {
    let (agent, _, stopped) = endless();
    let options = changed_options(|options| options.runs.max_run_bytes = 100_000);
    let server =
        Running::start(Server::new().agent("endless", agent).thread_options(options)).await;
    for input in [ask_detached("t", "r"), ask("t", "r2", "m", "go")] {
        let events = server.events(&input).await;
        let (last, before) = events.split_last().unwrap();
        assert_eq!(last["code"], "run_too_long");
        assert!(before.len() < 3_000, "{} events", before.len());
    }
    assert_eq!(stopped.get(), 2);
    assert_eq!(server.thread("t").await["runs"][0]["error"]["code"], "run_too_long");
}

#[tokio::test]
async fn a_detached_run_has_its_own_time_limit() {
    let (agent, _strings, dropped) = puppet();
    let options =
        changed_options(|options| options.runs.detached_max = Some(Duration::from_millis(100)));
    let server = Running::start(Server::new().agent("puppet", agent).thread_options(options)).await;
    let events = server.events(&ask_detached("t", "r")).await;
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "cancelled" }));
    assert_eq!(dropped.get(), 1);
}

#[tokio::test]
async fn a_follower_that_does_not_read_does_not_slow_the_run() {
    let (agent, said, stopped) = endless();
    let options = changed_options(|options| options.runs.max_run_bytes = 20_000_000);
    let server =
        Running::start(Server::new().agent("endless", agent).thread_options(options)).await;
    let stalled = server.run(&ask_detached("t", "r")).await;
    server.until_status("t", "failed").await;
    assert_eq!(stopped.get(), 1);
    assert!(said.get() > 100_000, "{} events", said.get());
    // The client that reads at last gets every event.
    let all = numbered(&stalled.text().await.unwrap());
    assert!(all.iter().map(|(number, _)| *number).eq(1..=all.len() as u64));
    assert_eq!(all.last().unwrap().1["code"], "run_too_long");
    assert!(follow(&server, 0).await == all, "the log has other events");
}

#[tokio::test]
async fn following_a_run_without_a_log_is_refused_with_a_reason() {
    let (agent, strings, _) = puppet();
    let options = changed_options(|options| options.retention.logs = Some(0));
    let server = Running::start(Server::new().agent("puppet", agent).thread_options(options)).await;
    strings.send("end".to_owned()).unwrap();
    server.events(&ask("t", "r", "m", "go")).await;
    let follow =
        async |path: &str| refusal(server.get(&format!("/threads/t/runs/{path}")).await).await;
    assert_eq!(follow("r/events").await, (404, "run_has_no_log".to_owned()));
    assert_eq!(follow("none/events").await, (404, "unknown_run".to_owned()));
    for wrong in ["r/events?after=x", "r/events?after=-1"] {
        assert_eq!(follow(wrong).await, (400, "invalid_parameter".to_owned()), "{wrong}");
    }
}

#[tokio::test]
async fn events_that_an_older_client_does_not_get_are_in_the_log() {
    let calling =
        |_: RunAgentInput, _: RunContext| agent::events(ToolCallEvents::new("f").whole(&json!({})));
    let server = Running::start(Server::new().agent("a", calling)).await;
    let mut input = ask_detached("older", "r");
    input["state"] = json!({});
    let response = server
        .post("/send-message")
        .header("accept", "text/event-stream")
        .json(&input)
        .send()
        .await
        .unwrap();
    let told = events(&response.text().await.unwrap());
    let finished = told.last().unwrap();
    assert_eq!((&finished["type"], &finished["outcome"]), (&json!("RUN_FINISHED"), &Value::Null));
    let log = server.get("/threads/older/runs/r/events").await.text().await.unwrap();
    assert!(log.contains("\"pendingToolCallIds\":[\"call_"), "{log}");
}

/// The writer of logs and the run work at the same time. Pauses keep the run below the limit of events that wait for the
/// writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_that_comes_while_the_log_is_written() {
    const DELTAS: usize = 20_000;
    let agent = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            let message = TextMessage::new();
            yield message.start();
            for number in 0..DELTAS {
                yield message.delta(format!("{number} "));
                match number % 16 {
                    0 => tokio::time::sleep(Duration::from_millis(1)).await,
                    _ => tokio::task::yield_now().await,
                }
            }
        })
    };
    let server = Running::start(Server::new().agent("counter", agent)).await;
    server.run(&ask_detached("t", "r")).await.text().await.unwrap();
    let log = follow(&server, 0).await;
    assert!((1..).zip(&log).all(|(number, (stored, _))| number == *stored));
    let deltas: Vec<_> = log.iter().filter_map(|(_, event)| event["delta"].as_str()).collect();
    let missing = (0..DELTAS).zip(&deltas).find(|(number, delta)| format!("{number} ") != **delta);
    assert_eq!((missing, deltas.len()), (None, DELTAS));
    assert_eq!(log.last().unwrap().1["outcome"]["type"], "success");
}

#[tokio::test]
async fn an_agent_that_waits_for_its_events_does_not_wait_for_those_of_other_runs() {
    const WAITS: u32 = 20;
    let agent = agent_fn(async |_: RunAgentInput, out: Emitter| {
        let begin = Instant::now();
        for wait in 0..WAITS {
            out.context().mark(wait);
            out.context().written().await;
        }
        out.custom("waited", begin.elapsed().as_millis() as u64).await
    });
    // Only the runs of a store that outlives its server have marks.
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("store.sqlite")).await.unwrap();
    let server =
        Running::start(Server::new().agent("careful", agent.can_continue()).store(store)).await;
    let all = events(&server.run(&ask_detached("t", "r")).await.text().await.unwrap());
    let waited =
        all.iter().find(|event| event["name"] == "waited").unwrap()["value"].as_u64().unwrap();
    // Writes that gather events are 40 ms apart.
    assert!(waited < u64::from(WAITS) * 30, "{waited} ms");
}

#[tokio::test]
async fn the_first_event_does_not_wait_for_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let store = SqliteStore::open(&path).await.unwrap();
    // Appended events are not stored.
    let fail = "CREATE TRIGGER fail BEFORE INSERT ON agui_events WHEN NEW.last > 1 BEGIN SELECT RAISE(ABORT, 'no'); END";
    rusqlite::Connection::open(&path).unwrap().execute_batch(fail).unwrap();
    let server =
        Running::start(Server::new().agent("echo", agui_server::agent::builtin::Echo).store(store))
            .await;
    let mut response = server.run(&ask_detached("t", "r")).await;
    let first = response.chunk().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert!(first.contains("RUN_STARTED") && !first.contains("TEXT_MESSAGE"), "{first}");
}

/// Each client leaves at another point. A client that leaves before the begin has no stored run.
#[tokio::test]
async fn a_detached_run_continues_whose_client_leaves_while_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("store.sqlite")).await.unwrap());
    let server =
        Server::new().agent("echo", agui_server::agent::builtin::Echo).store(store.clone());
    let (router, _handle) = server.into_router().unwrap();
    for polls in 1..100 {
        let body = Body::from(ask_detached(&format!("t{polls}"), "r").to_string());
        let request = Request::post("/send-message").header("host", "localhost");
        let request = request.header("content-type", "application/json").body(body).unwrap();
        let mut response = Box::pin(router.clone().oneshot(request));
        for _ in 0..polls {
            if futures::poll!(&mut response).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let statuses = async || {
        let threads = store.threads("none", &ThreadPage::first(100)).await.unwrap();
        let mut statuses = Vec::new();
        for thread in threads {
            let run = store.run("none", thread.number, &"r".into()).await.unwrap();
            statuses.push(run.unwrap().status);
        }
        statuses
    };
    // Runs may begin after their clients have left, so there may be none at first.
    eventually_async("the runs have ended", async || {
        let statuses = statuses().await;
        assert!(
            statuses
                .iter()
                .all(|status| matches!(status, RunStatus::Running | RunStatus::Finished)),
            "{statuses:?}"
        );
        !statuses.is_empty() && !statuses.contains(&RunStatus::Running)
    })
    .await;
}
