mod chunks;
mod endings;

use serde_json::{Value, json};

use super::*;
use agui_protocol::{Message, event::RunOutcome};

fn guard(events: Value) -> (Result<(), String>, Vec<Value>) {
    guard_after(&RunAgentInput::new("t", "r", vec![]), events)
}

fn guard_after(input: &RunAgentInput, events: Value) -> (Result<(), String>, Vec<Value>) {
    let mut guard = Guard::new(input);
    let mut out: Vec<Event> = Vec::new();
    let mut result = Ok(());
    for event in serde_json::from_value::<Vec<Event>>(events).unwrap() {
        if let Err(violation) = guard.admit(event, &mut out) {
            result = Err(violation.to_string());
            break;
        }
    }
    if result.is_ok() {
        guard.close_all(&RunClosing::Finished(&RunOutcome::success()), &mut out);
    }
    (result, out.iter().map(|event| serde_json::to_value(event).unwrap()).collect())
}

fn sent(events: Value) -> Value {
    match guard(events) {
        (Ok(()), out) => out.into(),
        (Err(violation), out) => panic!("{violation} after {out:?}"),
    }
}

fn violation(events: Value) -> String {
    match guard(events) {
        (Err(violation), _) => violation,
        (Ok(()), out) => panic!("accepted: {out:?}"),
    }
}

fn text_start(id: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_START", "messageId": id })
}

fn text(id: &str, delta: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta })
}

fn text_end(id: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_END", "messageId": id })
}

fn call_start(id: &str) -> Value {
    json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f" })
}

fn call_end(id: &str) -> Value {
    json!({ "type": "TOOL_CALL_END", "toolCallId": id })
}

fn by(owner: &str, mut event: Value) -> Value {
    event["subagentRunId"] = owner.into();
    event
}

#[test]
fn a_legal_stream_passes_unchanged() {
    let events = json!([
        { "type": "STEP_STARTED", "stepName": "s" },
        text_start("a"), call_start("c"), text("a", "x"),
        { "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}" },
        { "type": "REASONING_START", "messageId": "r" },
        { "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" },
        { "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm" },
        { "type": "REASONING_MESSAGE_END", "messageId": "r" },
        { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "e" },
        { "type": "REASONING_END", "messageId": "r" },
        text_end("a"), call_end("c"),
        { "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "ok" },
        { "type": "STATE_SNAPSHOT", "snapshot": null },
        { "type": "STATE_DELTA", "delta": [{ "op": "add", "path": "/a~1b", "value": null }] },
        { "type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "PLAN", "content": {} },
        { "type": "ACTIVITY_DELTA", "messageId": "p", "activityType": "PLAN", "patch": [] },
        { "type": "CUSTOM", "name": "n", "value": null },
        { "type": "RAW", "event": 1 },
        { "type": "STEP_FINISHED", "stepName": "s" },
        { "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper" },
        by("s", text_start("b")), text("b", "y"), by("s", text_end("b")),
        { "type": "SUBAGENT_FINISHED", "subagentRunId": "s" },
    ]);
    assert_eq!(sent(events.clone()), events);
}

#[test]
fn open_items_are_closed_with_their_owner() {
    let open = json!([
        { "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "outer" },
        { "type": "SUBAGENT_STARTED", "subagentRunId": "t", "name": "inner", "parentSubagentRunId": "s" },
        { "type": "STEP_STARTED", "stepName": "one" }, by("s", json!({ "type": "STEP_STARTED", "stepName": "one" })),
        { "type": "REASONING_START", "messageId": "r" },
        { "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" },
        by("t", text_start("a")), call_start("c"),
    ]);
    let closed = sent(open.clone());
    let closing = &closed.as_array().unwrap()[open.as_array().unwrap().len()..];
    assert_eq!(
        closing,
        [
            json!({ "type": "REASONING_MESSAGE_END", "messageId": "r" }),
            json!({ "type": "REASONING_END", "messageId": "r" }),
            by("t", text_end("a")),
            call_end("c"),
            json!({ "type": "STEP_FINISHED", "stepName": "one" }),
            by("s", json!({ "type": "STEP_FINISHED", "stepName": "one" })),
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "t" }),
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s" }),
        ]
    );
}

#[test]
fn an_event_that_cannot_be_repaired_is_a_violation_with_a_reason() {
    let snapshot = |id: &str| json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "x", "content": {} });
    let result = |id: &str| json!({ "type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": "c", "content": "" });
    let thought = |id: &str| json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" });
    let sub = |id: &str| json!({ "type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n" });
    let sub_end = |id: &str| json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": id });
    for (events, expected) in [
        (json!([text("a", "x")]), "TEXT_MESSAGE_CONTENT: message \"a\" is not open"),
        (
            json!([text_start("a"), text_end("a"), text("a", "x")]),
            "TEXT_MESSAGE_CONTENT: message \"a\" is not open",
        ),
        (
            json!([text_start("a"), text_start("a")]),
            "TEXT_MESSAGE_START: message \"a\" is already open",
        ),
        (
            json!([text_start("a"), text_end("a"), { "type": "TEXT_MESSAGE_START", "messageId": "a", "role": "user" }]),
            "TEXT_MESSAGE_START: message \"a\" is reopened with another role",
        ),
        (
            json!([text_start("a"), text_end("a"), { "type": "TEXT_MESSAGE_START", "messageId": "a", "name": "n" }]),
            "TEXT_MESSAGE_START: message \"a\" is reopened with another name",
        ),
        (
            json!([text_start("a"), text_end("a"), by("s", text_start("a"))]),
            "TEXT_MESSAGE_START: message \"a\" belongs to the parent agent, not to subagent \"s\"",
        ),
        (
            json!([by("s", text_start("a")), by("t", text("a", "x"))]),
            "TEXT_MESSAGE_CONTENT: message \"a\" belongs to subagent \"s\", not to subagent \"t\"",
        ),
        (
            json!([text_start("a"), thought("a")]),
            "REASONING_MESSAGE_START: message id \"a\" already belongs to a message of role assistant",
        ),
        (
            json!([thought("a"), text_start("a")]),
            "TEXT_MESSAGE_START: message id \"a\" already belongs to a message of role reasoning",
        ),
        (
            json!([text_start("a"), snapshot("a")]),
            "ACTIVITY_SNAPSHOT: message id \"a\" already belongs to a message of role assistant",
        ),
        (
            json!([snapshot("a"), text_start("a")]),
            "TEXT_MESSAGE_START: message id \"a\" already belongs to a message of role activity",
        ),
        (
            json!([result("a"), text_start("a")]),
            "TEXT_MESSAGE_START: message id \"a\" already belongs to a message of role tool",
        ),
        (
            json!([result("a"), result("a")]),
            "TOOL_CALL_RESULT: message id \"a\" already belongs to a message of role tool",
        ),
        (
            json!([call_start("c"), call_start("c")]),
            "TOOL_CALL_START: tool call \"c\" is already open",
        ),
        (
            json!([call_start("c"), call_end("c"), { "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "g" }]),
            "TOOL_CALL_START: tool call \"c\" is reopened with another name",
        ),
        (
            json!([{ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "" }]),
            "TOOL_CALL_ARGS: tool call \"c\" is not open",
        ),
        (
            json!([
                by("s", text_start("a")),
                by(
                    "t",
                    json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "a" })
                )
            ]),
            "TOOL_CALL_START: parent message \"a\" belongs to subagent \"s\", not to subagent \"t\"",
        ),
        (
            json!([{ "type": "REASONING_START", "messageId": "r" }, { "type": "REASONING_START", "messageId": "r" }]),
            "REASONING_START: reasoning span \"r\" is already open",
        ),
        (
            json!([{ "type": "REASONING_START", "messageId": "r" }, { "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "x" }]),
            "REASONING_MESSAGE_CONTENT: reasoning message \"r\" is not open",
        ),
        (
            json!([{ "type": "STEP_STARTED", "stepName": "s" }, { "type": "STEP_STARTED", "stepName": "s" }]),
            "STEP_STARTED: step \"s\" is already open",
        ),
        (json!([sub("s"), sub("s")]), "SUBAGENT_STARTED: subagent \"s\" is already active"),
        (
            json!([sub("s"), sub_end("s"), sub("s")]),
            "SUBAGENT_STARTED: subagent \"s\" has ended; its id cannot be used again",
        ),
        (
            json!([by("s", text_start("a")), sub("s")]),
            "SUBAGENT_STARTED: events named subagent \"s\" before it started",
        ),
        (
            json!([{ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "parentSubagentRunId": "p" }]),
            "SUBAGENT_STARTED: its parent, subagent \"p\", has not started",
        ),
        (
            json!([{ "type": "STATE_DELTA", "delta": [{ "op": "move", "from": "a", "path": "/b" }] }]),
            "STATE_DELTA: \"a\" is not a JSON Pointer",
        ),
        (
            json!([{ "type": "TEXT_MESSAGE_CHUNK", "delta": "x" }]),
            "TEXT_MESSAGE_CHUNK: the first chunk of an item needs its messageId",
        ),
        (
            json!([{ "type": "TOOL_CALL_CHUNK", "toolCallId": "c" }]),
            "TOOL_CALL_CHUNK: the first chunk of an item needs its toolCallName",
        ),
        (
            json!([{ "type": "TEXT_MESSAGE_CHUNK", "messageId": "a" }, { "type": "TEXT_MESSAGE_CHUNK", "role": "user" }]),
            "TEXT_MESSAGE_CHUNK: item \"a\" was opened with another role",
        ),
        (
            json!([text_start("a"), { "type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": "x" }]),
            "TEXT_MESSAGE_START: message \"a\" is already open",
        ),
        (json!([{ "type": "RUN_ERROR", "message": "" }]), "RUN_ERROR: only the server sends it"),
    ] {
        assert_eq!(violation(events.clone()), expected, "{events}");
    }
}

#[test]
fn empty_events_are_skipped() {
    let events = json!([
        text_end("never"), call_end("never"), { "type": "STEP_FINISHED", "stepName": "never" },
        { "type": "REASONING_END", "messageId": "never" }, { "type": "REASONING_MESSAGE_END", "messageId": "never" },
        { "type": "SUBAGENT_ERROR", "subagentRunId": "never", "message": "" },
        text_start("a"), text("a", ""),
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "", "metadata": {} },
        text_end("a"), text_end("a"),
    ]);
    let annotated =
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "", "metadata": {} });
    assert_eq!(sent(events), json!([text_start("a"), annotated, text_end("a")]));
}

#[test]
fn deltas_of_unknown_activities_are_skipped() {
    let delta = |id: &str| json!({ "type": "ACTIVITY_DELTA", "messageId": id, "activityType": "x", "patch": [] });
    let events = json!([delta("a"), text_start("m"), delta("m"), text_end("m")]);
    assert_eq!(sent(events), json!([text_start("m"), text_end("m")]));
}

#[test]
fn an_open_call_is_closed_before_its_result() {
    let result =
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [] });
    assert_eq!(
        sent(json!([call_start("c"), result])),
        json!([call_start("c"), call_end("c"), result])
    );
}

#[test]
fn a_parent_that_is_not_an_assistant_message_is_removed_from_a_call() {
    let user = json!({ "type": "TEXT_MESSAGE_START", "messageId": "u", "role": "user" });
    let call = json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "u" });
    let out = sent(json!([user, call]));
    assert_eq!(out[1], call_start("c"));
}

#[test]
fn the_items_of_a_subagent_are_closed_before_the_subagent() {
    let started = json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n" });
    let failed = json!({ "type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "no" });
    assert_eq!(
        sent(json!([started, by("s", text_start("a")), text_start("b"), failed])),
        json!([
            started,
            by("s", text_start("a")),
            text_start("b"),
            by("s", text_end("a")),
            failed,
            text_end("b")
        ])
    );
}

#[test]
fn ids_of_earlier_messages_and_calls_cannot_be_reused() {
    let history = serde_json::from_value::<Vec<Message>>(json!([
        { "id": "u", "role": "user", "content": "hi" },
        { "id": "a", "role": "assistant", "toolCalls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "" } }] },
        { "id": "p", "role": "activity", "activityType": "x", "content": {} },
    ]))
    .unwrap();
    let input = RunAgentInput::new("t", "r", history);
    let violation = |events: Value| guard_after(&input, events).0.unwrap_err();
    assert_eq!(
        violation(json!([text_start("u")])),
        "TEXT_MESSAGE_START: message id \"u\" already belongs to a message of role user"
    );
    assert_eq!(
        violation(json!([call_start("c")])),
        "TOOL_CALL_START: tool call \"c\" was made in an earlier run; only its result can follow"
    );
    let fine = json!([
        text_start("a"), text_end("a"),
        { "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "" },
        { "type": "ACTIVITY_DELTA", "messageId": "p", "activityType": "x", "patch": [] },
    ]);
    assert_eq!(guard_after(&input, fine.clone()), (Ok(()), fine.as_array().unwrap().clone()));
}

#[test]
fn lookups_in_a_long_history_are_fast() {
    let messages: Vec<_> = (0..100).map(|n| Message::user(format!("u{n}"), "x")).collect();
    let mut guard = Guard::new(&RunAgentInput::new("t", "r", messages));
    for n in 0..100 {
        assert_eq!(guard.known(&format!("u{n}")).unwrap().role, agui_protocol::Role::User);
        assert!(guard.known(&format!("x{n}")).is_none());
    }
    let start: Event = serde_json::from_value(text_start("u99")).unwrap();
    guard.admit(start, &mut Vec::new()).unwrap_err();
}

#[test]
fn a_snapshot_sets_the_owners_of_messages() {
    let restated = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [
        { "id": "a", "role": "assistant", "content": "", "subagentRunId": "s" },
        { "id": "u", "role": "user", "content": "" },
    ] });
    let events = json!([
        text_start("a"),
        text_end("a"),
        restated,
        by("s", text_start("a")),
        by("s", text_end("a"))
    ]);
    assert_eq!(sent(events.clone()), events);
    assert_eq!(
        violation(json!([restated, text_start("u")])),
        "TEXT_MESSAGE_START: message id \"u\" already belongs to a message of role user"
    );
}
