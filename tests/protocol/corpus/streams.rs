//! Streams that show one rule each for how a client applies events.

use agui_server::protocol::RunAgentInput;
use serde_json::{Value, json};

use super::snapshots;
use crate::support::streams::{Ending, Script};

/// Returns scripts by name.
pub(crate) fn hand_written() -> Named {
    [messages(), metadata(), tool_calls(), reasoning(), subagents(), snapshots::hand_written()]
        .concat()
}

pub(crate) type Named = Vec<(&'static str, Script)>;

pub(crate) fn hello() -> Value {
    json!([{ "role": "user", "id": "u1", "content": "Hello" }])
}

pub(crate) fn after_hello(name: &'static str, events: Value) -> (&'static str, Script) {
    after(name, hello(), Value::Null, events)
}

/// Returns a run on these messages and this state.
pub(crate) fn after(
    name: &'static str,
    messages: Value,
    state: Value,
    events: Value,
) -> (&'static str, Script) {
    let messages: Vec<agui_server::protocol::Message> = serde_json::from_value(messages).unwrap();
    let mut input = RunAgentInput::new("thread-1", "run-1", messages);
    input.state = Some(state).filter(|state| !state.is_null());
    let events = serde_json::from_value(events).unwrap_or_else(|error| panic!("{name}: {error}"));
    (name, Script { input, events, ending: Ending::Quiet })
}

fn metadata() -> Named {
    vec![
        after_hello(
            "metadata merges key by key, not deeper, into a text",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant", "metadata": { "a": { "x": 1 }, "b": 1 } },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hi", "metadata": { "a": { "y": 2 }, "c": null } },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "", "metadata": { "b": [1] } },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1", "metadata": {} },
            ]),
        ),
        after_hello(
            "metadata merges into a reasoning message, not from its span",
            json!([
                { "type": "REASONING_START", "messageId": "r1", "metadata": { "span": true } },
                { "type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning", "metadata": { "a": 1 } },
                { "type": "REASONING_MESSAGE_CONTENT", "messageId": "r1", "delta": "Hm", "metadata": { "b": 2 } },
                { "type": "REASONING_MESSAGE_END", "messageId": "r1", "metadata": { "a": 3 } },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r1", "encryptedValue": "sealed", "metadata": { "no": 1 } },
                { "type": "REASONING_END", "messageId": "r1", "metadata": { "span": false } },
            ]),
        ),
        after_hello(
            "metadata merges into a call and not its message, and into a result",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "metadata": { "of": "message" } },
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1", "metadata": { "a": 1 } },
                { "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}", "metadata": { "b": 2 } },
                { "type": "TOOL_CALL_END", "toolCallId": "c1", "metadata": { "a": 3 } },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
                { "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "content": "ok", "metadata": { "ms": 5 } },
            ]),
        ),
        after_hello(
            "metadata merges into an activity, also over a replacement and a patch that fails",
            json!([
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "search", "content": { "n": 0 }, "metadata": { "a": 1, "b": 1 } },
                { "type": "ACTIVITY_DELTA", "messageId": "w1", "activityType": "search", "patch": [{ "op": "remove", "path": "/missing" }], "metadata": { "b": 2 } },
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "plan", "content": {}, "metadata": { "c": 3 } },
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "other", "content": { "no": 1 }, "replace": false, "metadata": { "d": 4 } },
            ]),
        ),
        after_hello(
            "metadata of events that build nothing goes nowhere",
            json!([
                { "type": "STEP_STARTED", "stepName": "plan", "metadata": { "a": 1 } },
                { "type": "STATE_SNAPSHOT", "snapshot": { "s": 1 }, "metadata": { "a": 1 } },
                { "type": "CUSTOM", "name": "com.example.event", "value": 1, "metadata": { "a": 1 } },
                { "type": "STEP_FINISHED", "stepName": "plan", "metadata": { "a": 1 } },
            ]),
        ),
    ]
}

fn tool_calls() -> Named {
    let call = |id: &str, parent: Option<&str>| {
        let mut start =
            json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "own" });
        if let Some(parent) = parent {
            start["parentMessageId"] = json!(parent);
        }
        vec![
            start,
            json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "{}" }),
            json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
        ]
    };
    let result = |id: &str, call: &str| json!({ "type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": "ok" });
    let text = |id: &str| {
        vec![
            json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }),
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "Text" }),
            json!({ "type": "TEXT_MESSAGE_END", "messageId": id }),
        ]
    };
    let history = json!([
        { "role": "user", "id": "u1", "content": "Hello" },
        { "role": "assistant", "id": "a1", "content": "Hi" },
    ]);
    let asked = json!([
        { "role": "assistant", "id": "a1", "toolCalls": [{ "id": "old", "type": "function", "function": { "name": "own", "arguments": "{}" } }] },
        { "role": "user", "id": "u2", "content": "Well?" },
    ]);
    vec![
        after_hello("a result goes behind the message of its call", json!([text("m1"), call("c1", Some("m1")), text("m2"), vec![result("t1", "c1")]].concat())),
        after_hello("results of one message keep the order they arrive in", json!([
            call("c1", Some("m1")), call("c2", Some("m1")), text("m2"), vec![result("t2", "c2"), result("t1", "c1")],
        ].concat())),
        after_hello("a result of an unknown call comes last", json!([text("m1"), vec![result("t1", "unknown")], text("m2")].concat())),
        after("a result of an earlier run's call", asked, Value::Null, json!([result("t1", "old")])),
        after_hello("a call within a message that is known", json!([text("m1"), call("c1", Some("m1"))].concat())),
        after("a call within a message of the history", history, Value::Null, json!(call("c1", Some("a1")))),
        after_hello("a call within a message that comes later", json!([call("c1", Some("m1")), text("m1")].concat())),
        after_hello("a call without a message", json!([call("c1", None), call("c2", None)].concat())),
        after_hello("a call within the message that another call brought along", json!([call("c1", Some("m1")), call("c2", Some("m1"))].concat())),
        after_hello("an empty parent id counts as absent", json!(call("c1", Some("")))),
        after_hello("a call that is answered before it is made", json!([vec![result("t1", "c1")], call("c1", None)].concat())),
        after_hello("a call whose parent is a user message", json!(call("c1", Some("u1")))),
        after_hello("a call that is reopened", json!([call("c1", None), call("c1", None)].concat())),
        after_hello("a result that is all parts", json!([call("c1", None), vec![json!({
            "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "role": "tool",
            "content": [{ "type": "text", "text": "See" }, { "type": "image", "source": { "type": "file", "value": "f", "provider": "openai" } }],
        })]].concat())),
        after_hello("arguments that are no JSON", json!([
            { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own" },
            { "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"a\": \"é\n" },
            { "type": "TOOL_CALL_END", "toolCallId": "c1" },
        ])),
        after_hello("chunks of two calls and a text", json!([
            { "type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "own", "delta": "{", "metadata": { "a": 1 } },
            { "type": "TOOL_CALL_CHUNK", "delta": "}" },
            { "type": "TOOL_CALL_CHUNK", "metadata": { "finish": "stop" } },
            { "type": "TOOL_CALL_CHUNK", "toolCallId": "c2", "toolCallName": "own", "parentMessageId": "c1" },
            { "type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "Hi" },
            { "type": "RAW", "event": {} },
            { "type": "TEXT_MESSAGE_CHUNK", "delta": "!", "metadata": { "b": 2 } },
        ])),
    ]
}

fn reasoning() -> Named {
    vec![
        after_hello(
            "encrypted values of a reasoning message, a text and a call",
            json!([
                { "type": "REASONING_START", "messageId": "span" },
                { "type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning" },
                { "type": "REASONING_MESSAGE_CONTENT", "messageId": "r1", "delta": "Hm" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r1", "encryptedValue": "first" },
                { "type": "REASONING_MESSAGE_END", "messageId": "r1" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r1", "encryptedValue": "second" },
                { "type": "REASONING_END", "messageId": "span" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m1" },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m1", "encryptedValue": "text" },
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1" },
                { "type": "TOOL_CALL_END", "toolCallId": "c1" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "c1", "encryptedValue": "call" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "u1", "encryptedValue": "history" },
            ]),
        ),
        after_hello(
            "encrypted values that belong to nothing",
            json!([
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "search", "content": {} },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "w1", "encryptedValue": "sealed" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "unknown", "encryptedValue": "sealed" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "u1", "encryptedValue": "sealed" },
                { "type": "REASONING_START", "messageId": "span" },
                { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "span", "encryptedValue": "sealed" },
                { "type": "REASONING_END", "messageId": "span" },
            ]),
        ),
        after_hello(
            "a span and its message share an id, a span holds several messages",
            json!([
                { "type": "REASONING_START", "messageId": "r1" },
                { "type": "REASONING_MESSAGE_CHUNK", "messageId": "r1", "delta": "Hm" },
                { "type": "REASONING_MESSAGE_CHUNK", "delta": "…" },
                { "type": "REASONING_MESSAGE_CHUNK", "messageId": "r2", "delta": "Ah" },
                { "type": "REASONING_END", "messageId": "r1" },
            ]),
        ),
    ]
}

fn messages() -> Named {
    vec![
        after_hello(
            "a message of every role that text can have",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "developer", "name": "Dee" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m2", "role": "system" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m3", "role": "user", "name": "Ann" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m4" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "two" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "one" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "three" },
            ]),
        ),
        after_hello(
            "a message reopened continues where it ended",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "name": "Bot", "metadata": { "a": 1 } },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "One" },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "name": "Bot", "metadata": { "b": 2 } },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": " two" },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
            ]),
        ),
        after(
            "a message of the history reopened",
            json!([{ "role": "assistant", "id": "a1", "content": "One" }]),
            Value::Null,
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "a1", "role": "assistant" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": " two" },
                { "type": "TEXT_MESSAGE_END", "messageId": "a1" },
            ]),
        ),
        after(
            "a message of the history that has parts reopened",
            json!([{ "role": "user", "id": "u1", "content": [{ "type": "text", "text": "One" }] }]),
            Value::Null,
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "u1", "role": "user" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "u1", "delta": "two" },
                { "type": "TEXT_MESSAGE_END", "messageId": "u1" },
            ]),
        ),
        after(
            "a message of the history that has no content reopened",
            json!([{ "role": "assistant", "id": "a1" }]),
            Value::Null,
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "a1", "role": "assistant" },
                { "type": "TEXT_MESSAGE_END", "messageId": "a1" },
                { "type": "TEXT_MESSAGE_START", "messageId": "a1" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": "two" },
            ]),
        ),
        after_hello(
            "an empty id is an id",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "", "delta": "text" },
                { "type": "TEXT_MESSAGE_END", "messageId": "" },
            ]),
        ),
        after_hello(
            "a run that finishes with items open",
            json!([
                { "type": "STEP_STARTED", "stepName": "plan" },
                { "type": "REASONING_START", "messageId": "r1" },
                { "type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m1" },
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1" },
            ]),
        ),
    ]
}

fn subagents() -> Named {
    vec![
        after_hello(
            "messages of subagents are attributed to them",
            json!([
                { "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "researcher" },
                { "type": "SUBAGENT_STARTED", "subagentRunId": "t", "name": "writer", "parentSubagentRunId": "s" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "subagentRunId": "s" },
                { "type": "TEXT_MESSAGE_START", "messageId": "m2", "subagentRunId": "t" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "One", "subagentRunId": "s" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "Two" },
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1" },
                { "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}", "subagentRunId": "s" },
                { "type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "own", "subagentRunId": "t" },
                { "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "content": "ok", "subagentRunId": "t" },
                { "type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning", "subagentRunId": "s" },
                { "type": "SUBAGENT_ERROR", "subagentRunId": "t", "message": "no luck" },
                { "type": "SUBAGENT_FINISHED", "subagentRunId": "s", "result": [1] },
            ]),
        ),
        after_hello(
            "an untagged call within the message that a subagent's call brought along",
            json!([
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1", "subagentRunId": "s" },
                { "type": "TOOL_CALL_END", "toolCallId": "c1" },
                { "type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "own", "parentMessageId": "m1" },
            ]),
        ),
        after_hello(
            "an untagged call within a subagent's message",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "subagentRunId": "s" },
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1" },
                { "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}", "subagentRunId": "s" },
            ]),
        ),
        after_hello(
            "a snapshot gives a message that has a span's id to another owner",
            json!([
                { "type": "REASONING_START", "messageId": "r1", "subagentRunId": "s" },
                { "type": "MESSAGES_SNAPSHOT", "messages": [{ "role": "reasoning", "id": "r1", "content": "Hm" }] },
            ]),
        ),
        after_hello(
            "a snapshot gives a message that is open to another owner",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1", "subagentRunId": "s" },
                { "type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning", "subagentRunId": "s" },
                { "type": "MESSAGES_SNAPSHOT", "messages": [
                    { "role": "assistant", "id": "m1", "content": "", "subagentRunId": "t" },
                    { "role": "reasoning", "id": "r1", "content": "" },
                ] },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hi", "subagentRunId": "t" },
            ]),
        ),
        after_hello(
            "calls of one message that a subagent's call brought along",
            json!([
                { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "own", "parentMessageId": "m1", "subagentRunId": "s" },
                { "type": "TOOL_CALL_END", "toolCallId": "c1", "subagentRunId": "s" },
                { "type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "own", "parentMessageId": "m1", "subagentRunId": "s" },
            ]),
        ),
        after_hello(
            "a subagent that is never announced",
            json!([
                { "type": "STEP_STARTED", "stepName": "plan", "subagentRunId": "s" },
                { "type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "One", "subagentRunId": "s" },
                { "type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "Two", "subagentRunId": "" },
                { "type": "TEXT_MESSAGE_CHUNK", "delta": " three", "subagentRunId": "s" },
            ]),
        ),
    ]
}
