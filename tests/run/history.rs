//! The stored conversation and state that an agent gets.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::builtin::Echo,
    agent::{
        RunContext,
        emit::{TextMessage, state},
        events as known,
    },
    protocol::{RunAgentInput, event::ActivitySnapshot},
    store::{MemoryStore, Store},
};
use serde_json::json;

use crate::{
    run::{ask, changed_options, said},
    support::running::Running,
};

/// An agent that says how many messages it sees, and the state.
fn counting(input: RunAgentInput, _: RunContext) -> agui_server::agent::EventStream {
    let state = input.state_or_empty();
    known(TextMessage::whole(format!("{} messages, state {state}", input.messages.len())))
}

#[tokio::test]
async fn a_client_that_sends_only_the_newest_message_gets_the_whole_conversation() {
    let server = Running::start(Server::new().agent("counting", counting)).await;
    server.events(&ask("t", "r1", "m1", "one")).await;
    server.events(&ask("t", "r2", "m2", "two")).await;
    let newest = server.thread("t").await;
    assert_eq!(
        said(&newest),
        [
            "user: one",
            "assistant: 1 messages, state {}",
            "user: two",
            "assistant: 3 messages, state {}"
        ]
    );
    // A client that sends everything gets the same result.
    let mut full = ask("t", "r3", "m3", "three");
    let mut messages = newest["messages"].as_array().unwrap().clone();
    messages.push(full["messages"][0].clone());
    full["messages"] = messages.into();
    server.events(&full).await;
    assert_eq!(said(&server.thread("t").await)[5], "assistant: 5 messages, state {}");
}

#[tokio::test]
async fn a_request_can_be_repeated() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    for _ in 0..3 {
        server.events(&ask("t", "r", "m", "hi")).await;
        let thread = server.thread("t").await;
        assert_eq!(said(&thread), ["user: hi", "assistant: hi"]);
        assert_eq!(thread["runs"].as_array().unwrap().len(), 1, "the run is replaced");
    }
}

#[tokio::test]
async fn a_missing_state_is_the_stored_one_and_is_sent_to_the_client() {
    let agent = |input: RunAgentInput, _: RunContext| {
        let seen = input.state_or_empty()["seen"].as_i64().unwrap_or(0);
        known([state::snapshot(json!({ "seen": seen + 1 }))])
    };
    let server = Running::start(Server::new().agent("state", agent)).await;
    let first = server.events(&ask("t", "r1", "m1", "a")).await;
    assert_eq!(first[1]["snapshot"], json!({ "seen": 1 }));
    let second = server.events(&ask("t", "r2", "m2", "b")).await;
    assert_eq!(second[1]["snapshot"], json!({ "seen": 1 }), "what the run starts from");
    assert_eq!(second[3]["type"], "MESSAGES_SNAPSHOT");
    assert_eq!(second[4]["snapshot"], json!({ "seen": 2 }));
    // A state that is sent replaces the stored one.
    let mut third = ask("t", "r3", "m3", "c");
    third["state"] = json!({ "seen": 10 });
    assert_eq!(server.events(&third).await[3]["snapshot"], json!({ "seen": 11 }));
    assert_eq!(server.thread("t").await["state"], json!({ "seen": 11 }));
}

#[tokio::test]
async fn a_server_can_refuse_instructions_from_clients() {
    let options = changed_options(|options| options.accept_instructions = false);
    let server = Running::start(Server::new().agent("echo", Echo).thread_options(options)).await;
    for role in ["system", "developer"] {
        let mut input = ask("t", "r", "m", "hi");
        input["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "id": "s", "role": role, "content": "obey" }));
        let response = server.run(&input).await;
        assert_eq!(response.status(), 400);
        let body: serde_json::Value = response.json().await.unwrap();
        assert_eq!(
            (&body["error"]["code"], &body["error"]["path"]),
            (&json!("role_not_accepted"), &json!("messages[1].role"))
        );
    }
    assert_eq!(server.get("/threads/t").await.status(), 404, "nothing has happened");
    server.events(&ask("t", "r", "m", "hi")).await;
}

#[tokio::test]
async fn instructions_that_a_thread_already_has_reach_no_agent_when_they_are_refused() {
    let store = Arc::new(MemoryStore::new());
    let mut first = ask("t", "r1", "m1", "hi");
    first["messages"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({ "id": "s", "role": "system", "content": "obey" }));
    let shared: Arc<dyn Store> = store.clone();
    let server =
        Running::start(Server::new().agent("counting", counting).store(shared.clone())).await;
    let counted = |events: &[serde_json::Value]| {
        events.iter().find_map(|event| event["delta"].as_str().map(str::to_owned)).unwrap()
    };
    assert_eq!(counted(&server.events(&first).await), "2 messages, state {}");
    let options = changed_options(|options| options.accept_instructions = false);
    let server = Running::start(
        Server::new().agent("counting", counting).store(shared).thread_options(options),
    )
    .await;
    let events = server.events(&ask("t", "r2", "m2", "again")).await;
    assert_eq!(counted(&events), "3 messages, state {}", "the user's, the answer, and the user's");
}

#[tokio::test]
async fn the_events_that_a_client_received_of_an_abandoned_run_are_stored() {
    let (agent, strings, dropped) = crate::run::puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut stream = server.raw_run(&ask("t", "r", "m", "hi")).await;
    strings.send("half a sen".to_owned()).unwrap();
    crate::run::read_until(&mut stream, |text| text.contains("half a sen")).await;
    drop(stream);
    let thread = server.until_status("t", "cancelled").await;
    assert_eq!(said(&thread), ["user: hi", "assistant: half a sen"]);
    assert_eq!(dropped.get(), 1);
    assert_eq!(thread.get("activeRunId"), None);
}

/// Its connection broke, so it has no other way to learn the rest.
#[tokio::test]
async fn a_client_that_shows_the_begin_of_a_stored_answer_gets_a_snapshot_with_its_next_message() {
    let (agent, strings, _) = crate::run::puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    for (thread, shown, has_snapshot) in [
        ("t1", "half a sentence", false),
        ("t2", "half", true),
        ("t3", "", true),
        ("t4", "another", false),
    ] {
        let mut stream = server.raw_run(&ask(thread, "r", "m", "hi")).await;
        strings.send("half a sentence".to_owned()).unwrap();
        crate::run::read_until(&mut stream, |text| text.contains("half a sentence")).await;
        drop(stream);
        let stored = server.until_status(thread, "cancelled").await["messages"].clone();
        let mut input = ask(thread, "r2", "new", "go on");
        let mut messages = stored.as_array().unwrap().clone();
        messages[1]["content"] = json!(shown);
        messages.extend(input["messages"].as_array().unwrap().clone());
        input["messages"] = json!(messages);
        strings.send("end".to_owned()).unwrap();
        let events = server.events(&input).await;
        let mut snapshots = events.iter().filter(|event| event["type"] == "MESSAGES_SNAPSHOT");
        let last = snapshots.next_back().map(|snapshot| &snapshot["messages"][1]);
        assert_eq!(last, has_snapshot.then_some(&stored[1]), "{shown:?}");
    }
}

/// A picture that is the whole answer of a model, for example.
#[tokio::test]
async fn an_activity_that_is_a_whole_answer_stays_although_a_page_does_not_send_it() {
    let agent = |input: RunAgentInput, _: RunContext| {
        let is_first = input.messages.len() == 1;
        let picture = ActivitySnapshot::new("picture", "picture", serde_json::Map::new());
        known(if is_first { vec![picture.into()] } else { TextMessage::whole("It is a cat.") })
    };
    let server = Running::start(Server::new().agent("painter", agent)).await;
    let mut input = ask("t", "r1", "m1", "Paint!");
    server.events(&input).await;
    let question = json!({ "id": "m2", "role": "user", "content": "What is it?" });
    input["messages"].as_array_mut().unwrap().push(question);
    input["runId"] = json!("r2");
    let events = server.events(&input).await;
    assert!(
        events.iter().all(|event| event["type"] != "MESSAGES_SNAPSHOT"),
        "the page has the picture"
    );
    let thread = server.thread("t").await;
    let roles: Vec<_> =
        thread["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "activity", "user", "assistant"]);
}
