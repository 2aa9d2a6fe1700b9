//! Two runs on one thread.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use agui_server::{
    Server,
    options::{ConcurrentRuns, ThreadOptions},
};
use futures::future::select;
use serde_json::json;

use crate::{
    run::{ask, changed_options, puppet, read_until, said},
    support::{poll::poll_until, running::Running},
};

fn options(concurrent_runs: ConcurrentRuns) -> ThreadOptions {
    changed_options(|options| options.concurrent_runs = concurrent_runs)
}

#[tokio::test]
async fn runs_of_a_thread_wait_for_each_other_in_order() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut second = server.raw_run(&ask("t", "r2", "m2", "two")).await;
    // A queued run has no response yet, only a connection.
    let mut nothing = [0; 1];
    let wait = tokio::io::AsyncReadExt::read(&mut second, &mut nothing);
    assert!(tokio::time::timeout(Duration::from_millis(100), wait).await.is_err());
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    read_until(&mut second, |text| text.contains("TEXT_MESSAGE_START")).await;
    strings.send("b".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    read_until(&mut second, |text| text.contains("RUN_FINISHED")).await;
    assert_eq!(
        said(&server.thread("t").await),
        ["user: one", "assistant: a", "user: two", "assistant: b"]
    );
}

#[tokio::test]
async fn a_queue_has_a_maximum_length_and_a_timeout() {
    const QUEUE_TIMEOUT: Duration = Duration::from_secs(3);
    let (agent, _strings, _) = puppet();
    let options = changed_options(|options| {
        options.max_queued = 1;
        options.queue_timeout = QUEUE_TIMEOUT;
    });
    let server = Running::start(Server::new().agent("puppet", agent).thread_options(options)).await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let begin = Instant::now();
    let refused = async |run| (server.refused(&ask("t", run, run, "more")).await, begin.elapsed());
    // One of them is queued, so the other one is refused at once.
    let (second, third) = (pin!(refused("r2")), pin!(refused("r3")));
    let ((at_once, early), queued) = select(second, third).await.factor_first();
    let (too_late, late) = queued.await;
    assert_eq!(at_once, (409, "too_many_queued".to_owned()));
    assert_eq!(too_late, at_once);
    assert!(early < QUEUE_TIMEOUT && late >= QUEUE_TIMEOUT, "{early:?} {late:?}");
    // Other threads do not wait.
    let mut other = server.raw_run(&ask("other", "r", "m", "hi")).await;
    assert!(
        read_until(&mut other, |text| text.contains("TEXT_MESSAGE_START")).await.contains("200 OK")
    );
}

#[tokio::test]
async fn a_run_that_leaves_the_queue_does_not_block_it() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    drop(server.raw_run(&ask("t", "r2", "m2", "two")).await);
    let mut third = server.raw_run(&ask("t", "r3", "m3", "three")).await;
    strings.send("end".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    read_until(&mut third, |text| text.contains("TEXT_MESSAGE_START")).await;
}

#[tokio::test]
async fn a_run_that_waits_for_its_turn_can_be_cancelled() {
    let (agent, strings, dropped) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let (request, input) = (server.post("/send-message"), ask("t", "r2", "m2", "two"));
    let second =
        tokio::spawn(
            async move { request.json(&input).send().await.unwrap().text().await.unwrap() },
        );
    poll_until("the second run waits and can be cancelled", async || {
        let response = server.post("/threads/t/runs/r2/cancel").send().await.unwrap();
        (response.status() == 202).then_some(())
    })
    .await;
    // The second run ends at once, although the first one continues.
    let second = crate::support::running::events(&second.await.unwrap());
    assert_eq!(second[0]["type"], "RUN_STARTED");
    assert_eq!(second[1]["outcome"]["type"], "cancelled");
    strings.send("end".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    assert_eq!(said(&server.thread("t").await)[0], "user: one");
    assert_eq!(server.thread("t").await["runs"].as_array().unwrap().len(), 1);
    assert_eq!(dropped.get(), 1);
}

#[tokio::test]
async fn a_second_run_can_be_refused() {
    let (agent, strings, _) = puppet();
    let server = Running::start(
        Server::new().agent("puppet", agent).thread_options(options(ConcurrentRuns::Reject)),
    )
    .await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    assert_eq!(
        server.refused(&ask("t", "r2", "m2", "two")).await,
        (409, "thread_is_busy".to_owned())
    );
    strings.send("end".to_owned()).unwrap();
    read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    // A client that has received the end can start the next run at once.
    for n in 0..20 {
        strings.send("end".to_owned()).unwrap();
        server.events(&ask("t", &format!("again{n}"), "m2", "two")).await;
    }
}

#[tokio::test]
async fn a_second_run_can_supersede_the_first() {
    let (agent, strings, dropped) = puppet();
    let server = Running::start(
        Server::new().agent("puppet", agent).thread_options(options(ConcurrentRuns::Supersede)),
    )
    .await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut second = server.raw_run(&ask("t", "r2", "m2", "two")).await;
    let ended = read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    assert!(ended.contains(r#""outcome":{"type":"cancelled"}"#), "{ended}");
    read_until(&mut second, |text| text.contains("TEXT_MESSAGE_START")).await;
    assert_eq!(dropped.get(), 1);
    strings.send("end".to_owned()).unwrap();
    read_until(&mut second, |text| text.contains("RUN_FINISHED")).await;
}

#[tokio::test]
async fn an_answer_supersedes_no_run() {
    let (agent, strings, _) = puppet();
    let server = Running::start(
        Server::new().agent("puppet", agent).thread_options(options(ConcurrentRuns::Supersede)),
    )
    .await;
    let mut first = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let resume =
        json!([{ "interruptId": "x", "status": "resolved", "payload": { "approved": true } }]);
    let late = json!({ "threadId": "t", "runId": "r2", "messages": [], "resume": resume });
    let mut late = server.raw_run(&late).await;
    // The answer waits: a run that it superseded would end, and the answer would get its turn.
    let waits = tokio::time::timeout(
        Duration::from_millis(300),
        read_until(&mut late, |text| text.contains("RUN")),
    )
    .await;
    assert!(waits.is_err(), "{waits:?}");
    strings.send("end".to_owned()).unwrap();
    let ended = read_until(&mut first, |text| text.contains("RUN_FINISHED")).await;
    assert!(ended.contains(r#""outcome":{"type":"success"}"#), "{ended}");
    read_until(&mut late, |text| text.contains("RUN_FINISHED")).await;
    assert_eq!(server.thread("t").await["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_newest_of_several_runs_supersedes_all() {
    let (agent, strings, _) = puppet();
    let server = Running::start(
        Server::new().agent("puppet", agent).thread_options(options(ConcurrentRuns::Supersede)),
    )
    .await;
    let mut first = server.raw_run(&ask("t", "r0", "m0", "zero")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let mut others = Vec::new();
    for n in 1..=4 {
        others.push(server.raw_run(&ask("t", &format!("r{n}"), &format!("m{n}"), "again")).await);
    }
    // The run that came last is left, although no run ends by itself.
    poll_until("four of five runs are cancelled", async || {
        let thread = server.thread("t").await;
        let runs = thread["runs"].as_array().unwrap();
        let cancelled = runs.iter().filter(|run| run["status"] == "cancelled").count();
        (cancelled == 4 && runs.len() == 5).then_some(())
    })
    .await;
    strings.send("end".to_owned()).unwrap();
    server.until_status("t", "finished").await;
}

#[tokio::test]
async fn many_clients_on_one_thread_lose_no_message() {
    let options = changed_options(|options| options.max_queued = 100);
    let server = Running::start(
        Server::new().agent("echo", agui_server::agent::builtin::Echo).thread_options(options),
    )
    .await;
    let runs = (0..40).map(|n| {
        let (request, input) = (
            server.post("/send-message"),
            ask("t", &format!("r{n}"), &format!("m{n}"), &n.to_string()),
        );
        tokio::spawn(
            async move { request.json(&input).send().await.unwrap().text().await.unwrap() },
        )
    });
    for run in runs.collect::<Vec<_>>() {
        assert!(run.await.unwrap().contains("RUN_FINISHED"));
    }
    let messages: serde_json::Value =
        server.get("/threads/t/messages?limit=200").await.json().await.unwrap();
    let said = said(&messages);
    assert_eq!(said.len(), 80);
    for turn in said.chunks(2) {
        assert!(turn[0].starts_with("user: ") && turn[1].starts_with("assistant: "), "{turn:?}");
    }
}
