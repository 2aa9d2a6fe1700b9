//! Runs whose server was lost.

use std::{sync::Arc, time::Duration};

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        builtin::Echo,
        emit::{TextMessage, ToolCallEvents},
        events,
    },
    protocol::{Event, Message, RunAgentInput, event::RunStarted},
    store::{BeginOutcome, EventBatch, Lease, MemoryStore, NewRun, Store, ThreadKey},
};
use agui_store::model::now;
use serde_json::Value;

use crate::{
    run::{ask, changed_options, puppet, read_until, said, types},
    support::running::Running,
};

/// An agent that cannot continue.
fn brief(_: RunAgentInput, _: RunContext) -> EventStream {
    events(TextMessage::whole("Done"))
}

/// Returns a store in which another server has begun a run with these events.
async fn left_behind(detached: bool, events: &[Event]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let lease = begin(&store, "t", "another server", detached).await;
    append(&store, &lease, events).await;
    store
}

async fn begin(store: &MemoryStore, thread: &str, holder: &str, detached: bool) -> Lease {
    let message = Message::user("m", "go");
    let key = ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: thread.into() };
    let (run_id, holder) = ("r".into(), holder.into());
    let mut run = NewRun::new(&key, &run_id, "echo", &holder);
    (run.detached, run.lease_until) = (detached, now() + 15_000);
    run.branch.new = vec![(&message, None)];
    run.request = detached.then_some(r#"{"tools":[{"name":"a","description":"b"}]}"#);
    let BeginOutcome::Begun { lease, .. } = store.begin(&run).await.unwrap() else {
        panic!("it is new")
    };
    lease
}

async fn append(store: &MemoryStore, lease: &Lease, events: &[Event]) {
    let events: Vec<_> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let times = vec![0; events.len()];
    let written = store
        .append(&[EventBatch { lease: lease.clone(), first: 1, events, times }])
        .await
        .unwrap();
    assert_eq!(written, [true]);
}

/// Returns the events in the log of the run.
async fn log(server: &Running) -> Vec<Value> {
    let body = server.get("/threads/t/runs/r/events").await.text().await.unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|json| serde_json::from_str(json).unwrap()).collect()
}

#[tokio::test]
async fn a_lost_run_is_closed_with_its_logged_messages() {
    let message = TextMessage::new();
    let events =
        [RunStarted::new("t".into(), "r".into()).into(), message.start(), message.delta("half")];
    let store = left_behind(true, &events).await;
    let server = Running::start(Server::new().agent("echo", brief).store(store)).await;
    let thread = server.until_status("t", "failed").await;
    assert_eq!(thread["runs"][0]["error"]["code"], "server_lost");
    assert_eq!(said(&thread), ["user: go", "assistant: half"]);
    let all = log(&server).await;
    assert_eq!(
        types(&all),
        ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "RUN_ERROR"]
    );
    assert_eq!(all[3]["code"], "server_lost");
    let recording = server.get("/threads/t/runs/r/recording").await.text().await.unwrap();
    let lines: Vec<Value> =
        recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["request"]["tools"][0]["name"], "a");
    assert_eq!(
        lines[1..5].iter().map(|line| &line["event"]).collect::<Vec<_>>(),
        all.iter().collect::<Vec<_>>()
    );
    assert_eq!(lines[5]["end"]["outcome"], "finished");
    server.events(&ask("t", "r2", "m2", "again")).await;
}

/// The page was shown the beginning of an answer, and has not read on in the log.
#[tokio::test]
async fn what_a_continued_run_has_taken_back_is_no_message_of_the_client() {
    for (is_delivered, has_id_of_call) in [(false, false), (true, false), (false, true)] {
        let (message, call) = (TextMessage::new(), ToolCallEvents::new("find"));
        let mut events = vec![
            RunStarted::new("t".into(), "r".into()).into(),
            message.start(),
            message.delta("half"),
        ];
        let mut cut =
            vec![serde_json::json!({ "id": message.id(), "role": "assistant", "content": "half" })];
        if has_id_of_call {
            events.extend([message.end(), call.start()]);
            let function = serde_json::json!({ "name": "find", "arguments": "" });
            let made =
                serde_json::json!({ "id": call.id(), "type": "function", "function": function });
            cut.push(
                serde_json::json!({ "id": call.id(), "role": "assistant", "toolCalls": [made] }),
            );
        }
        let store = left_behind(true, &events).await;
        let server = Running::start(Server::new().agent("echo", Echo).store(store)).await;
        let thread = server.until_status("t", "finished").await;
        assert_eq!(said(&thread), ["user: go", "assistant: go"]);
        if is_delivered {
            log(&server).await;
        }
        let mut request = ask("t", "r2", "m2", "again");
        let (go, again) = (thread["messages"][0].clone(), request["messages"][0].clone());
        request["messages"] = [vec![go], cut, vec![again]].concat().into();
        let events = server.events(&request).await;
        let thread = server.thread("t").await;
        assert_eq!(
            said(&thread),
            ["user: go", "assistant: go", "user: again", "assistant: again"],
            "{is_delivered}"
        );
        assert!(
            types(&events).contains(&"MESSAGES_SNAPSHOT"),
            "the client gets what it has not seen: {events:?}"
        );
        // A client that keeps the message all the same makes no branch by it.
        request["messages"].as_array_mut().unwrap().insert(1, thread["messages"][1].clone());
        let answer = thread["messages"][3].clone();
        let next = ask("t", "r3", "m3", "more")["messages"][0].clone();
        request["messages"].as_array_mut().unwrap().extend([answer, next]);
        request["runId"] = "r3".into();
        server.events(&request).await;
        let all = [
            "user: go",
            "assistant: go",
            "user: again",
            "assistant: again",
            "user: more",
            "assistant: more",
        ];
        assert_eq!(said(&server.thread("t").await), all);
    }
}

#[tokio::test]
async fn a_run_that_was_lost_before_its_first_event_has_a_log_that_begins_and_ends() {
    let store = left_behind(true, &[]).await;
    let server = Running::start(Server::new().agent("echo", brief).store(store)).await;
    let thread = server.until_status("t", "failed").await;
    let all = log(&server).await;
    assert_eq!(types(&all), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!((&all[0]["threadId"], &all[0]["runId"]), (&"t".into(), &"r".into()));
    assert_eq!(thread["runs"][0]["events"], 2);
}

#[tokio::test]
async fn the_thread_of_a_lost_run_can_be_used_at_once() {
    let store = left_behind(false, &[]).await;
    let server = Running::start(Server::new().agent("echo", Echo).store(store)).await;
    server.events(&ask("t", "r2", "m2", "again")).await;
    let thread = server.thread("t").await;
    assert_eq!(thread["runs"][1]["error"]["code"], "server_lost");
    assert_eq!(said(&thread), ["user: go", "user: again", "assistant: again"]);
}

/// The end of the run on the thread "stuck" was not stored, because the store failed.
#[tokio::test]
async fn a_run_of_this_process_whose_end_was_not_stored_is_closed_and_running_ones_are_not() {
    let store = Arc::new(MemoryStore::new());
    let (agent, strings, _) = puppet();
    let options = changed_options(|options| options.lease = Duration::from_millis(300));
    let server = Server::new().agent("puppet", agent).thread_options(options).store(store.clone());
    let server = Running::start(server).await;
    let mut running = server.raw_run(&ask("running", "r", "m", "go")).await;
    read_until(&mut running, |text| text.contains("TEXT_MESSAGE_START")).await;
    let holder = store.lost_runs("", now(), 1).await.unwrap().remove(0).lease.holder;
    begin(&store, "stuck", &holder, false).await;

    let stuck = server.until_status("stuck", "failed").await;
    assert_eq!(stuck["runs"][0]["error"]["code"], "server_lost");
    strings.send("end".to_owned()).unwrap();
    let end = read_until(&mut running, |text| text.contains("RUN_")).await;
    assert!(end.contains("RUN_FINISHED"), "{end}");
    strings.send("end".to_owned()).unwrap();
    server.events(&ask("stuck", "r2", "m2", "again")).await;
}

#[tokio::test]
async fn more_runs_than_a_page_of_the_store_are_closed_at_once() {
    let store = Arc::new(MemoryStore::new());
    for thread in 0..120 {
        begin(&store, &thread.to_string(), "another server", false).await;
    }
    let server = Running::start(Server::new().agent("echo", brief).store(store)).await;
    // The next look for lost runs would be after five seconds.
    let begin = std::time::Instant::now();
    for thread in 0..120 {
        server.until_status(&thread.to_string(), "failed").await;
    }
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

/// The client must not take the part for the whole: it gets no end and no last chunk.
#[tokio::test]
async fn a_stream_breaks_whose_lease_another_server_has() {
    let (agent, strings, _) = puppet();
    let store = Arc::new(MemoryStore::new());
    let server = Running::start(Server::new().agent("puppet", agent).store(store.clone())).await;
    let mut stream = server.raw_run(&ask("t", "r", "m", "go")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    let lost = store.lost_runs("another", now(), 10).await.unwrap().remove(0);
    store.take_over(&lost.lease, "another", now(), now() + 15_000).await.unwrap().unwrap();
    strings.send("end".to_owned()).unwrap();
    let rest = read_until(&mut stream, |_| false).await;
    assert!(!rest.contains("\"RUN_") && !rest.ends_with("0\r\n\r\n"), "{rest}");
}
