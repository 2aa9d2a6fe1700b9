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
    ask,
    support::{Count, Running},
    types,
};

/// An agent that asks before it deletes, and counts what it deletes.
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
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    );
    assert_eq!(events[2]["messages"].as_array().unwrap().len(), 3, "the client has left two out");
    assert_eq!(events[3]["toolCallId"], "call");
    assert_eq!(deleted.get(), 1);
    assert_eq!(server.thread("t").await["interrupts"], json!([]));
    // The same answer again, as its response was lost: the client is told how things stand, and nothing is done.
    let events = server.events(&answer("r2", resolved(json!({ "approved": true })))).await;
    assert_eq!(types(&events), ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert_eq!(events[3]["outcome"]["type"], "success");
    assert_eq!(deleted.get(), 1);
}

#[tokio::test]
async fn a_run_without_an_answer_reports_the_interrupt_again_and_does_nothing() {
    let (agent, deleted) = careful(None);
    let server = Running::start(Server::new().agent("careful", agent)).await;
    let first = server.events(&ask("t", "r1", "m", "delete it")).await;
    let unknown = json!([{ "interruptId": "another", "status": "resolved", "payload": { "approved": true } }]);
    for input in [ask("t", "r2", "m2", "well?"), answer("r3", unknown)] {
        let events = server.events(&input).await;
        assert_eq!(types(&events), ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
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
    let events = server.events(&answer("r3", json!([{ "interruptId": "ask", "status": "cancelled" }]))).await;
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
    let events = server.events(&answer("r3", json!([{ "interruptId": "ask", "status": "cancelled" }]))).await;
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
