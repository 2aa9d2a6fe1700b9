//! A request that comes again: from a proxy that retries, a phone that lost its connection, a page that mounts twice, a line of `curl`
//! that is pasted again.

use std::path::Path;

use agui_server::{
    Server,
    agent::{Agent, AgentError, Emitter, agent_fn, builtin::Echo},
    options::MetricsOptions,
    protocol::{Message, RunAgentInput},
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, sync::watch};

use crate::{
    run::{ask, puppet, read_until, said, types},
    support::running::{Count, Running, events, eventually_async, numbered_events, reopened},
};

/// An agent that pays, and then talks until it may end. Counts its payments.
fn payer() -> (impl Agent, Count, watch::Sender<bool>) {
    let (may_end, ends) = watch::channel(false);
    let paid = Count::default();
    let count = paid.clone();
    let pay = move |_: RunAgentInput, out: Emitter| {
        let (count, mut ends) = (count.clone(), ends.clone());
        async move {
            let call = out.call("pay", json!({ "to": "Ann" })).await?;
            count.add();
            call.result("paid").await?;
            let _ = ends.wait_for(|ends| *ends).await;
            out.text("It is paid").await
        }
    };
    (agent_fn(pay), paid, may_end)
}

fn attempts(thread: &Value) -> Vec<(i64, String)> {
    let of = |run: &Value| {
        (run["attempt"].as_i64().unwrap(), run["status"].as_str().unwrap().to_owned())
    };
    thread["runs"].as_array().unwrap().iter().map(of).collect()
}

fn restated(events: &[Value]) -> bool {
    events.iter().any(|event| event["name"] == "agui-server.restated")
}

#[tokio::test]
async fn a_run_in_a_response_is_shared_with_the_same_request_and_ends_with_its_last_client() {
    let (agent, strings, dropped) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r", "m", "go")).await;
    strings.send("a".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("\"a\"")).await;
    let again = server.run(&ask("t", "r", "m", "go")).await;
    strings.send("b".to_owned()).unwrap();
    let rest = read_until(&mut first, |text| text.contains("\"b\"")).await;
    assert!(!rest.contains("RUN_STARTED"), "the first response continues where it was: {rest}");
    // The connection that began the run does not end it.
    drop(first);
    strings.send("c".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let seen = numbered_events(&again.text().await.unwrap());
    let said_again: String = seen.iter().filter_map(|(_, event)| event["delta"].as_str()).collect();
    assert_eq!(said_again, "abc");
    assert!(seen.iter().all(|(number, _)| number.is_some()), "each event has its number");
    let thread = server.until_status("t", "finished").await;
    assert_eq!(said(&thread), ["user: go", "assistant: abc"]);
    assert_eq!((attempts(&thread).len(), dropped.get()), (1, 1));

    let mut first = server.raw_run(&ask("t", "s", "n", "go on")).await;
    strings.send("a".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("\"a\"")).await;
    let mut second = server.raw_run(&ask("t", "s", "n", "go on")).await;
    read_until(&mut second, |text| text.contains("\"a\"")).await;
    drop((first, second));
    let thread = server.until_status("t", "cancelled").await;
    assert_eq!(thread["runs"][0]["endReason"], "left");
}

#[tokio::test]
async fn a_request_that_waits_shares_its_place_with_the_same_one() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut other = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut other, |text| text.contains("TEXT_MESSAGE_START")).await;
    let [mut second, mut same] = [
        server.raw_run(&ask("t", "r2", "m2", "two")).await,
        server.raw_run(&ask("t", "r2", "m2", "two")).await,
    ];
    strings.send("end".to_owned()).unwrap();
    for text in ["x", "end"] {
        strings.send(text.to_owned()).unwrap();
        let end = if text == "end" { "RUN_FINISHED" } else { "\"x\"" };
        read_until(&mut second, |seen| seen.contains(end)).await;
        read_until(&mut same, |seen| seen.contains(end)).await;
    }
    assert_eq!(attempts(&server.thread("t").await).len(), 2, "one for each message");
}

#[tokio::test]
async fn a_run_whose_client_left_before_it_changed_anything_runs_again() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r", "m", "go")).await;
    strings.send("a".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("\"a\"")).await;
    drop(first);
    // At once, as React's double mount does.
    let again = server.post("/send-message").json(&ask("t", "r", "m", "go"));
    let again = tokio::spawn(async move { again.send().await.unwrap().text().await.unwrap() });
    server.until_status("t", "running").await;
    strings.send("b".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let seen = events(&again.await.unwrap());
    assert_eq!(seen.last().unwrap()["type"], "RUN_FINISHED", "{seen:?}");
    let thread = server.until_status("t", "finished").await;
    let newest = attempts(&thread).remove(0);
    assert!(newest.0 <= 2, "{newest:?}");
}

#[tokio::test]
async fn a_call_is_made_once_however_often_its_request_comes() {
    let (agent, paid, may_end) = payer();
    let server = Running::start(Server::new().agent("payer", agent)).await;
    let request = ask("t", "r", "m", "Pay");
    let mut first = server.raw_run(&request).await;
    read_until(&mut first, |text| text.contains("TOOL_CALL_RESULT")).await;
    let second = server.run(&request).await;
    may_end.send(true).unwrap();
    let second = events(&second.text().await.unwrap());
    assert_eq!(second.last().unwrap()["type"], "RUN_FINISHED");
    drop(first);
    server.until_status("t", "finished").await;
    let third = server.events(&request).await;
    assert!(restated(&third), "{third:?}");
    let types = types(&third);
    assert_eq!(types.first(), Some(&"RUN_STARTED"));
    assert_eq!(types.last(), Some(&"RUN_FINISHED"));
    for event in ["TOOL_CALL_START", "TOOL_CALL_RESULT", "TEXT_MESSAGE_CONTENT"] {
        assert!(types.contains(&event), "a client that shows nothing gets it whole: {types:?}");
    }
    // A client that shows a part of it gets a snapshot.
    let thread = server.thread("t").await;
    let mut shown = request.clone();
    let messages = thread["messages"].as_array().unwrap();
    shown["messages"] = messages[..2].to_vec().into();
    let fourth = server.events(&shown).await;
    let snapshot = fourth.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    assert_eq!(snapshot["messages"], thread["messages"]);
    // A document, too.
    let document = server.post("/send-message").header("accept", "application/json").json(&request);
    let document: Value = document.send().await.unwrap().json().await.unwrap();
    assert_eq!(document["messages"].as_array().unwrap().last().unwrap()["content"], "It is paid");
    let after = server.thread("t").await;
    assert_eq!((paid.get(), attempts(&after).len()), (1, 1));
    assert_eq!(after["version"], thread["version"], "nothing has changed");
}

#[tokio::test]
async fn a_call_is_not_made_again_after_its_client_left() {
    let (agent, paid, _may_end) = payer();
    let server = Running::start(Server::new().agent("payer", agent)).await;
    let request = ask("t", "r", "m", "Pay");
    let mut first = server.raw_run(&request).await;
    read_until(&mut first, |text| text.contains("TOOL_CALL_RESULT")).await;
    drop(first);
    let thread = server.until_status("t", "cancelled").await;
    assert_eq!(
        (&thread["runs"][0]["endReason"], &thread["runs"][0]["attempt"]),
        (&json!("left"), &json!(1))
    );
    let again = server.events(&request).await;
    assert!(restated(&again), "{again:?}");
    assert_eq!(again.last().unwrap()["outcome"]["type"], "cancelled");
    assert_eq!(paid.get(), 1);
}

#[tokio::test]
async fn a_run_that_a_person_stopped_is_restated_and_a_new_id_runs_it_anew() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let request = ask("t", "r", "m", "go");
    let mut first = server.raw_run(&request).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    server.post("/threads/t/runs/r/cancel").send().await.unwrap();
    let thread = server.until_status("t", "cancelled").await;
    assert_eq!(thread["runs"][0]["endReason"], "stopped");
    assert!(restated(&server.events(&request).await));
    strings.send("new".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let anew = server.events(&ask("t", "r2", "m", "go")).await;
    assert!(!restated(&anew) && anew.iter().any(|event| event["delta"] == "new"), "{anew:?}");
}

#[tokio::test]
async fn the_same_line_pasted_again_streams_again_and_other_messages_of_one_id_are_answered() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let line = json!({ "threadId": "t", "runId": "run_1", "messages": [{ "id": "", "role": "user", "content": "Hello" }] });
    for _ in 0..3 {
        let seen = server.events(&line).await;
        let said: String = seen.iter().filter_map(|event| event["delta"].as_str()).collect();
        assert!(said == "Hello" && !restated(&seen), "{seen:?}");
    }
    assert_eq!(attempts(&server.thread("t").await)[0].0, 3);
    // A page with a constant run id and a growing list.
    for count in 1..4 {
        let said = |number| json!({ "id": "", "role": "user", "content": format!("{number}") });
        let answer =
            |number| json!({ "id": "", "role": "assistant", "content": format!("{number}") });
        let mut messages: Vec<_> = (0..count).flat_map(|n| [said(n), answer(n)]).collect();
        messages.push(said(count));
        let list = json!({ "threadId": "u", "runId": "run_1", "messages": messages });
        let seen = server.events(&list).await;
        let text: String = seen.iter().filter_map(|event| event["delta"].as_str()).collect();
        assert_eq!(text, count.to_string());
    }
}

#[tokio::test]
async fn two_visitors_of_one_thread_and_run_id_do_not_get_each_others_answers() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "run_1", "m", "My secret")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let refused = server.run(&ask("t", "run_1", "n", "Hello")).await;
    assert_eq!(refused.status(), 409);
    assert!(refused.headers().contains_key("retry-after"));
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["error"]["code"], "run_is_running");
    strings.send("secret".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    server.until_status("t", "finished").await;
    strings.send("hi".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let second = server.events(&ask("t", "run_1", "n", "Hello")).await;
    let said = |events: &[Value]| -> String {
        events.iter().filter_map(|event| event["delta"].as_str()).collect()
    };
    assert_eq!(said(&second), "hi");
    let first = server.events(&ask("t", "run_1", "m", "My secret")).await;
    assert_eq!((said(&first).as_str(), restated(&first)), ("secret", true));
}

#[tokio::test]
async fn a_run_continues_without_clients_if_one_of_its_requests_says_so() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r", "m", "go")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut continuing = ask("t", "r", "m", "go");
    continuing["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let mut second = server.raw_run(&continuing).await;
    read_until(&mut second, |text| text.contains("TEXT_MESSAGE_START")).await;
    drop((first, second));
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let thread = server.until_status("t", "finished").await;
    assert_eq!(crate::run::said(&thread), ["user: go", "assistant: a"]);
}

/// The other id is stored with the run: a page that asks again under it must not pay twice.
#[tokio::test]
async fn the_other_id_of_a_run_names_it_after_its_end_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (agent, paid, may_end) = payer();
    let (runtime, server) = doomed(folder.path(), agent).await;
    let mut vanished = server.raw_run(&ask("t", "r1", "m", "Pay")).await;
    read_until(&mut vanished, |text| text.contains("TOOL_CALL_RESULT")).await;
    let request = ask("t", "r2", "m", "Pay");
    let page = server.run(&request).await;
    may_end.send(true).unwrap();
    page.text().await.unwrap();
    server.until_status("t", "finished").await;
    runtime.shutdown_background();
    drop((vanished, server));

    let (agent, paid_again, _may_end) = payer();
    let server = Server::new().agent("payer", agent).store(reopened(folder.path()).await);
    let server = Running::start(server).await;
    let again = server.events(&request).await;
    assert!(restated(&again), "{again:?}");
    assert_eq!((paid.get(), paid_again.get()), (1, 0));
    let log = server.get("/threads/t/runs/r2/events").await.text().await.unwrap();
    for events in [again, events(&log)] {
        assert_eq!(
            (&events[0]["runId"], events.last().unwrap()["runId"].as_str()),
            (&json!("r2"), Some("r2"))
        );
    }
    let cancelled = server.post("/threads/t/runs/r2/cancel").send().await.unwrap();
    assert_eq!(cancelled.status(), 200, "it has ended");
    assert_eq!(server.get("/threads/t/runs/r3/events").await.status(), 404);
}

#[tokio::test]
async fn a_lost_run_whose_log_cannot_be_read_may_have_made_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let request = ask("t", "r", "m", "Pay");
    let (agent, _, _may_end) = payer();
    let (runtime, server) = doomed(folder.path(), agent).await;
    let mut first = server.raw_run(&request).await;
    read_until(&mut first, |text| text.contains("TOOL_CALL_RESULT")).await;
    runtime.shutdown_background();
    drop((first, server));
    drop(reopened(folder.path()).await);
    let file = rusqlite::Connection::open(folder.path().join("threads.db")).unwrap();
    assert!(file.execute("UPDATE agui_events SET body = x'ff00'", []).unwrap() > 0);
    drop(file);

    let (agent, paid_again, _may_end) = payer();
    let server = Server::new().agent("payer", agent).store(reopened(folder.path()).await);
    let server = Running::start(server).await;
    server.until_status("t", "failed").await;
    assert!(restated(&server.events(&request).await));
    assert_eq!(paid_again.get(), 0);
}

#[tokio::test]
async fn a_page_that_lost_its_connection_finds_its_run_under_a_new_id() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    // A phone vanishes without closing its connection.
    let mut vanished = server.raw_run(&ask("t", "r1", "m", "go")).await;
    strings.send("a".to_owned()).unwrap();
    read_until(&mut vanished, |text| text.contains("\"a\"")).await;
    let page = server.run(&ask("t", "r2", "m", "go")).await;
    strings.send("b".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let seen = events(&page.text().await.unwrap());
    let said: String = seen.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(said, "ab");
    for event in [&seen[0], seen.last().unwrap()] {
        assert_eq!(event["runId"], "r2", "the page knows its own id");
    }
    let thread = server.until_status("t", "finished").await;
    assert_eq!((attempts(&thread).len(), &thread["runs"][0]["runId"]), (1, &json!("r1")));
}

/// A server in a runtime of its own, which can end at once, as in a crash.
async fn doomed(folder: &Path, agent: impl Agent) -> (Runtime, Running) {
    let runtime = Runtime::new().unwrap();
    let store = reopened(folder).await;
    let server = Server::new().agent("payer", agent).store(store);
    let running = runtime.spawn(Running::start(server)).await.unwrap();
    (runtime, running)
}

#[tokio::test]
async fn a_call_of_a_response_whose_server_died_is_known_and_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let request = ask("t", "r", "m", "Pay");
    let (agent, paid, _may_end) = payer();
    let (runtime, server) = doomed(folder.path(), agent).await;
    let mut first = server.raw_run(&request).await;
    read_until(&mut first, |text| text.contains("TOOL_CALL_RESULT")).await;
    // The log began with the call, although nobody follows it.
    let log = server.get("/threads/t/runs/r/events").await;
    assert_eq!(log.status(), 200);
    let mut log = log.bytes_stream();
    let mut stored = String::new();
    while !stored.contains("TOOL_CALL_RESULT") {
        stored += &String::from_utf8_lossy(&log.next().await.unwrap().unwrap());
    }
    drop(log);
    runtime.shutdown_background();
    drop((first, server));

    let (agent, paid_again, _may_end) = payer();
    let server = Server::new().agent("payer", agent).store(reopened(folder.path()).await);
    let server = Running::start(server).await;
    let thread = server.until_status("t", "failed").await;
    let run = &thread["runs"][0];
    assert_eq!((&run["endReason"], &run["error"]["code"]), (&json!("lost"), &json!("server_lost")));
    let roles: Vec<_> =
        thread["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool"], "what was paid is known");
    let again = server.events(&request).await;
    assert!(restated(&again), "{again:?}");
    assert_eq!(again.last().unwrap()["code"], "server_lost");
    assert_eq!((paid.get(), paid_again.get()), (1, 0));
}

#[tokio::test]
async fn a_message_that_waits_gets_503_at_a_shutdown() {
    let (agent, strings, _) = puppet();
    let server = Server::new().agent("puppet", agent).metrics(MetricsOptions::on_main_listener());
    let mut server = Running::start(server).await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut second = server.raw_run(&ask("t", "r2", "m2", "two")).await;
    // The same request waits, too.
    let mut same = server.raw_run(&ask("t", "r2", "m2", "two")).await;
    eventually_async("both wait", async || {
        let metrics = server.get("/metrics").await.text().await.unwrap();
        metrics.contains("agui_runs_queued 1") && metrics.contains("agui_runs_active 2")
    })
    .await;
    server.shut_down();
    for waiting in [&mut second, &mut same] {
        let head = read_until(waiting, |text| text.contains("\r\n\r\n")).await.to_lowercase();
        assert!(head.starts_with("http/1.1 503") && head.contains("retry-after"), "{head}");
    }
    strings.send("end".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
}

#[tokio::test]
async fn a_page_that_regenerates_gets_an_answer_of_its_own() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r1", "m", "go")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut again = ask("t", "r2", "m", "go");
    again["forwardedProps"] = json!({ "trigger": "regenerate-message" });
    let again = server.post("/send-message").json(&again);
    let again = tokio::spawn(async move { again.send().await.unwrap().text().await.unwrap() });
    for text in ["end", "new", "end"] {
        strings.send(text.to_owned()).unwrap();
    }
    assert!(events(&again.await.unwrap()).iter().any(|event| event["delta"] == "new"));
    assert_eq!(attempts(&server.thread("t").await).len(), 2);
}

#[tokio::test]
async fn messages_that_are_sent_while_a_run_goes_on_are_answered_in_turn_on_one_branch() {
    let (agent, strings, _) = puppet();
    let server = Server::new().agent("puppet", agent).metrics(MetricsOptions::on_main_listener());
    let server = Running::start(server).await;
    let list = |run: &str, messages: &[&str]| {
        let user = |id: &&str| json!({ "id": id, "role": "user", "content": id });
        let messages: Vec<_> = messages.iter().map(user).collect();
        json!({ "threadId": "t", "runId": run, "messages": messages })
    };
    let mut first = server.raw_run(&list("r1", &["one"])).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut others = Vec::new();
    // The last one is of a tab that does not show the message before.
    let lists: [&[&str]; 3] = [&["one", "two"], &["one", "two", "three"], &["one", "four"]];
    for (queued, messages) in (1..).zip(lists) {
        let sent = server.post("/send-message").json(&list(&format!("r{}", queued + 1), messages));
        others.push(tokio::spawn(async move { sent.send().await.unwrap().text().await.unwrap() }));
        eventually_async("it is queued", async || {
            let metrics = server.get("/metrics").await.text().await.unwrap();
            metrics.contains(&format!("agui_runs_queued {queued}"))
        })
        .await;
    }
    for answer in ["a", "b", "c", "d"] {
        strings.send(answer.to_owned()).unwrap();
        strings.send("end".to_owned()).unwrap();
    }
    let mut snapshots = Vec::new();
    for other in others {
        let seen = events(&other.await.unwrap());
        let snapshot = seen.iter().rfind(|event| event["type"] == "MESSAGES_SNAPSHOT");
        let snapshot = snapshot.expect("the client lacks an answer");
        snapshots.push(snapshot["messages"].as_array().unwrap().len());
    }
    assert_eq!(snapshots, [3, 5, 7]);
    let expected = "user: one, assistant: a, user: two, assistant: b, user: three, assistant: c, user: four, assistant: d";
    assert_eq!(said(&server.thread("t").await).join(", "), expected);
}

#[tokio::test]
async fn a_list_that_is_sent_again_after_an_error_keeps_what_the_run_had_done() {
    let paid = Count::default();
    let count = paid.clone();
    let pay = move |input: RunAgentInput, out: Emitter| {
        let count = count.clone();
        async move {
            if input.messages.iter().any(|message| matches!(message, Message::Tool(_))) {
                return out.text("It is paid").await;
            }
            let call = out.call("pay", json!({})).await?;
            count.add();
            call.result("paid").await?;
            out.text("I have").await?;
            Err(AgentError::new("model_unavailable", "please try again"))
        }
    };
    let server = Running::start(Server::new().agent("payer", agent_fn(pay))).await;
    for (thread, detached) in [("t", false), ("u", true)] {
        let mut request = ask(thread, "r1", "m", "Pay");
        if detached {
            request["forwardedProps"] = json!({ "onDisconnect": "continue" });
        }
        let failed = server.events(&request).await;
        assert_eq!(failed.last().unwrap()["type"], "RUN_ERROR");
        let again = server.events(&ask(thread, "r2", "m", "Pay")).await;
        assert_eq!(again[1]["type"], "MESSAGES_SNAPSHOT", "{again:?}");
        let thread = server.thread(thread).await;
        let messages = thread["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "{thread}");
        assert_eq!(messages[3]["content"], "It is paid");
    }
    assert_eq!(paid.get(), 2, "once on each thread");
}
