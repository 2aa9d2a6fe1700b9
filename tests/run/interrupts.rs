//! Interrupts: a run that raises one, and the run that answers it.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        emit::{TextMessage, ToolCallEvents, interrupt},
        events as known,
    },
    protocol::{Interrupt, ResumeStatus, RunAgentInput},
    store::{MemoryStore, Store},
};
use serde_json::{Value, json};

use crate::{
    run::{ask, types},
    support::running::{Count, Running},
};

/// An agent that asks before it deletes, and counts its deletions.
fn careful(
    expires_at: Option<&str>,
) -> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Count) {
    let deleted = Count::default();
    let (count, expires_at) = (deleted.clone(), expires_at.map(str::to_owned));
    let agent = move |input: RunAgentInput, cx: RunContext| {
        let call = ToolCallEvents::with_id("call", "delete");
        match input.resume.first() {
            Some(entry) => {
                let approved = entry.status == ResumeStatus::Resolved
                    && entry.payload.as_ref().is_some_and(|payload| payload["approved"] == true);
                if approved {
                    count.add();
                }
                known([call.result(if approved { "deleted" } else { "declined" })])
            }
            None => {
                let schema = json!({ "type": "object", "properties": { "approved": { "type": "boolean" } }, "required": ["approved"] });
                let asked = Interrupt {
                    id: "ask".into(),
                    tool_call_id: Some("call".into()),
                    response_schema: schema.as_object().cloned(),
                    expires_at: expires_at.clone(),
                    ..Interrupt::new("tool_call")
                };
                let mut events = TextMessage::whole("I would delete this.");
                events.extend(call.whole(&json!({ "path": "/" })));
                events.push(interrupt(&cx, vec![asked]));
                known(events)
            }
        }
    };
    (agent, deleted)
}

fn answer(run: &str, entries: Value) -> Value {
    let mut input = ask("t", run, "m", "delete it");
    input["resume"] = entries;
    input
}

fn resolved(payload: Value) -> Value {
    json!([{ "interruptId": "ask", "status": "resolved", "payload": payload }])
}

#[tokio::test]
async fn a_run_with_an_interrupt_sends_snapshots_and_the_interrupt_is_stored() {
    let (agent, _) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent)).await;
    let events = server.events(&ask("t", "r1", "m", "delete it")).await;
    let names = types(&events);
    assert_eq!(names[names.len() - 3..], ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert_eq!(events[names.len() - 2]["messages"].as_array().unwrap().len(), 3);
    assert_eq!(events[names.len() - 1]["outcome"]["interrupts"][0]["id"], "ask");
    let thread = server.thread("t").await;
    assert_eq!(thread["interrupts"][0]["id"], "ask");
    assert_eq!(thread["messages"], events[names.len() - 2]["messages"]);
    assert_eq!(thread["runs"][0]["status"], "interrupted");
}

#[tokio::test]
async fn an_answer_takes_effect_once() {
    let (agent, deleted) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent)).await;
    server.events(&ask("t", "r1", "m", "delete it")).await;
    let events = server.events(&answer("r2", resolved(json!({ "approved": true })))).await;
    assert_eq!(
        types(&events),
        [
            "RUN_STARTED",
            "MESSAGES_SNAPSHOT",
            "MESSAGES_SNAPSHOT",
            "TOOL_CALL_RESULT",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(events[2]["messages"].as_array().unwrap().len(), 3, "the client has left two out");
    assert_eq!(events[3]["toolCallId"], "call");
    assert_eq!(deleted.get(), 1);
    assert_eq!(server.thread("t").await["interrupts"], json!([]));
    // The answer is repeated, because its response was lost: the client gets the state of the
    // thread, and nothing is done.
    let events = server.events(&answer("r2", resolved(json!({ "approved": true })))).await;
    assert_eq!(
        types(&events),
        ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    );
    assert_eq!(events[3]["outcome"]["type"], "success");
    assert_eq!(deleted.get(), 1);
}

/// CopilotKit and TanStack add the reply to their messages, as the result of the call, and CopilotKit resumes under the id of the
/// run that asked.
#[tokio::test]
async fn a_reply_that_a_client_shows_as_the_result_of_the_call_is_left_out() {
    for (run, is_complete) in [("r1", true), ("r2", true), ("r2", false)] {
        let (agent, deleted) = careful(None);
        let server = Running::start(Server::new().agent("careful", agent)).await;
        let first = server.events(&ask("t", "r1", "m", "delete it")).await;
        let shown = first[first.len() - 2]["messages"].clone();
        let reply = json!({ "id": "reply", "role": "tool", "toolCallId": "call", "content": r#"{"approved":true}"# });
        let mut input = answer(
            run,
            resolved(json!({ "approved": if is_complete { json!(true) } else { json!("yes") } })),
        );
        input["messages"] = shown.clone();
        input["messages"].as_array_mut().unwrap().push(reply);
        let events = server.events(&input).await;
        let stored = server.thread("t").await["messages"].clone();
        if !is_complete {
            assert_eq!(
                (stored, events[1]["code"].as_str()),
                (shown, Some("invalid_resume_payload"))
            );
            continue;
        }
        // The client drops its own message, and shows what the call gave.
        assert_eq!(
            types(&events)[1..4],
            ["MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT", "TOOL_CALL_RESULT"]
        );
        assert_eq!((&events[2]["messages"], &events[3]["content"]), (&shown, &json!("deleted")));
        let results: Vec<_> =
            stored.as_array().unwrap().iter().filter(|message| message["role"] == "tool").collect();
        assert_eq!(
            (results.len(), &results[0]["content"], deleted.get()),
            (1, &json!("deleted"), 1)
        );
    }
}

#[tokio::test]
async fn a_run_without_an_answer_reports_the_interrupt_again_and_does_nothing() {
    let (agent, deleted) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent)).await;
    let first = server.events(&ask("t", "r1", "m", "delete it")).await;
    let unknown = json!([{ "interruptId": "another", "status": "resolved", "payload": { "approved": true } }]);
    for input in [ask("t", "r2", "m2", "well?"), answer("r3", unknown)] {
        let events = server.events(&input).await;
        assert_eq!(
            types(&events),
            ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        );
        assert_eq!(events[3]["outcome"], first.last().unwrap()["outcome"]);
    }
    assert_eq!(deleted.get(), 0);
    server.events(&answer("r4", resolved(json!({ "approved": true })))).await;
    assert_eq!(deleted.get(), 1);
}

#[tokio::test]
async fn an_answer_that_violates_the_schema_has_no_effect() {
    let (agent, deleted) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent)).await;
    server.events(&ask("t", "r1", "m", "delete it")).await;
    let events = server.events(&answer("r2", resolved(json!({ "approved": "yes" })))).await;
    assert_eq!(types(&events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(events[1]["code"], "invalid_resume_payload");
    assert_eq!(server.thread("t").await["interrupts"][0]["id"], "ask");
    assert_eq!(deleted.get(), 0);
    let events = server
        .events(&answer("r3", json!([{ "interruptId": "ask", "status": "cancelled" }])))
        .await;
    assert_eq!(events[3]["content"], "declined");
    assert_eq!(server.thread("t").await["interrupts"], json!([]));
}

#[tokio::test]
async fn an_expired_interrupt_can_only_be_cancelled() {
    let (agent, deleted) = careful(Some("2020-01-01T00:00:00Z"));
    let server = Running::start(Server::new().agent("careful", agent)).await;
    server.events(&ask("t", "r1", "m", "delete it")).await;
    let events = server.events(&answer("r2", resolved(json!({ "approved": true })))).await;
    assert_eq!(events[1]["code"], "interrupt_expired");
    let events = server
        .events(&answer("r3", json!([{ "interruptId": "ask", "status": "cancelled" }])))
        .await;
    assert_eq!(events[3]["content"], "declined");
    assert_eq!(deleted.get(), 0);
}

#[tokio::test]
async fn an_interrupt_survives_a_restart() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (agent, _) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent).store(store.clone())).await;
    server.events(&ask("t", "r1", "m", "delete it")).await;
    drop(server);
    let (agent, deleted) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent).store(store)).await;
    server.events(&answer("r2", resolved(json!({ "approved": true })))).await;
    assert_eq!(deleted.get(), 1);
}

/// An agent that asks for an answer of this schema.
fn asking(
    schema: Value,
) -> impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static {
    move |input: RunAgentInput, cx: RunContext| {
        if !input.resume.is_empty() {
            return known(TextMessage::whole("Thank you."));
        }
        let response_schema = schema.as_object().cloned();
        let asked =
            Interrupt { id: "ask".into(), response_schema, ..Interrupt::new("input_required") };
        known([interrupt(&cx, vec![asked])])
    }
}

#[tokio::test]
async fn a_run_cannot_ask_with_a_schema_that_multiplies_its_references() {
    let mut definitions = serde_json::Map::new();
    for level in 0..36 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d36".to_owned(), json!({ "type": "object" }));
    let agent = asking(json!({ "$defs": definitions, "$ref": "#/$defs/d0" }));
    let server = Running::start(Server::new().agent("asking", agent)).await;
    let events = server.events(&ask("t", "r1", "m", "go")).await;
    let end = events.last().unwrap();
    assert_eq!((&end["type"], &end["code"]), (&json!("RUN_ERROR"), &json!("protocol_violation")));
    let message = end["message"].as_str().unwrap();
    assert!(
        message.contains("\"ask\"") && message.contains("more than 100000 values"),
        "{message}"
    );
    assert_eq!(server.thread("t").await["interrupts"], json!([]));
}

#[tokio::test]
async fn answers_that_are_hard_to_check_leave_the_server_responsive() {
    // Each level of the answer is checked twice as often as the one around it.
    let member = json!({ "properties": { "a": { "$ref": "#" } } });
    let agent = asking(json!({ "allOf": [member, member] }));
    let server = Running::start(Server::new().agent("asking", agent)).await;
    let nested = |levels| (0..levels).fold(json!({}), |below: Value, _| json!({ "a": below }));
    let threads: Vec<_> = (0..6).map(|n| format!("t{n}")).collect();
    for thread in &threads {
        server.events(&ask(thread, "r1", "m", "go")).await;
    }
    let answers = threads.iter().map(|thread| {
        let mut input = ask(thread, "r2", "m", "go");
        input["resume"] = resolved(nested(100));
        let server = &server;
        async move { server.events(&input).await }
    });
    let begin = std::time::Instant::now();
    let health = async {
        let response = server.get("/healthz").await;
        (response.status(), begin.elapsed())
    };
    let (refused, (status, time)) = tokio::join!(futures::future::join_all(answers), health);
    assert!(status == 200 && time.as_secs() < 10, "{status} after {time:?}");
    for events in refused {
        let end = events.last().unwrap();
        assert_eq!(end["code"], "invalid_resume_payload", "{end}");
        assert!(end["message"].as_str().unwrap().contains("steps"), "{end}");
    }
    let mut input = ask("t0", "r3", "m", "go");
    input["resume"] = resolved(nested(8));
    assert_eq!(server.events(&input).await.last().unwrap()["type"], "RUN_FINISHED");
}

#[tokio::test]
async fn going_back_before_an_answer_does_not_let_it_take_effect_again() {
    let (agent, deleted) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent)).await;
    let approved = || resolved(json!({ "approved": true }));
    server.events(&ask("t", "r1", "m", "delete it")).await;
    server.events(&answer("r2", approved())).await;
    // The run that answered is replaced by one of the same id.
    server.events(&answer("r2", approved())).await;
    for run in ["r3", "r4"] {
        let mut again = answer(run, approved());
        again["parentRunId"] = json!("r1");
        server.events(&again).await;
        assert_eq!(deleted.get(), 1, "{run}");
    }
}
