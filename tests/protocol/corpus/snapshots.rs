//! Streams with snapshots and changes of the conversation, of activities and of the state.

use serde_json::{Value, json};

use super::streams::{Named, after, after_hello, hello};

pub(crate) fn hand_written() -> Named {
    [messages_snapshots(), activities(), state()].concat()
}

fn messages_snapshots() -> Named {
    let history = json!([
        { "role": "user", "id": "u1", "content": "Hello", "metadata": { "client": 1 } },
        { "role": "assistant", "id": "a1", "content": "Hi" },
        { "role": "activity", "id": "w1", "activityType": "search", "content": { "n": 1 } },
        { "role": "activity", "id": "w2", "activityType": "plan", "content": { "n": 2 } },
        { "role": "reasoning", "id": "r1", "content": "Hm", "encryptedValue": "sealed" },
        { "role": "user", "id": "u2", "content": [{ "type": "text", "text": "And?" }] },
    ]);
    let snapshot = |messages: Value| json!([{ "type": "MESSAGES_SNAPSHOT", "messages": messages }]);
    let declared = |types: Value| {
        json!([{
            "type": "MESSAGES_SNAPSHOT", "messages": [{ "role": "user", "id": "u1", "content": "Hello" }],
            "metadata": { "@ag-ui/client": types },
        }])
    };
    let case = |name, events| after(name, history.clone(), Value::Null, events);
    vec![
        case(
            "a snapshot replaces in place, appends and drops, but keeps activities and reasoning",
            snapshot(json!([
                { "role": "assistant", "id": "a2", "content": "New" },
                { "role": "user", "id": "u1", "content": "Hello!" },
                { "role": "user", "id": "u2", "content": "And?" },
            ])),
        ),
        case(
            "a snapshot with an activity has all activities",
            snapshot(json!([
                { "role": "activity", "id": "w1", "activityType": "done", "content": {} },
                { "role": "user", "id": "u1", "content": "Hello" },
            ])),
        ),
        case(
            "a snapshot with reasoning has all reasoning",
            snapshot(json!([
                { "role": "user", "id": "u1", "content": "Hello" },
                { "role": "reasoning", "id": "r2", "content": "Ah" },
            ])),
        ),
        case("an empty snapshot", snapshot(json!([]))),
        case(
            "a snapshot withdraws an encrypted value and metadata",
            snapshot(json!([
                { "role": "user", "id": "u1", "content": "Hello" },
                { "role": "reasoning", "id": "r1", "content": "Hm" },
            ])),
        ),
        case(
            "a snapshot that lists its activity types: none",
            declared(json!({ "authoritativeActivityTypes": [] })),
        ),
        case(
            "a snapshot that lists its activity types: searches",
            declared(json!({ "authoritativeActivityTypes": ["search"] })),
        ),
        case(
            "a snapshot that lists its activity types: all",
            declared(json!({ "authoritativeActivityTypes": null })),
        ),
        case(
            "a snapshot with an invalid list of activity types",
            declared(json!({ "authoritativeActivityTypes": [1] })),
        ),
        case("a snapshot with other metadata", declared(json!({ "other": true }))),
        case("a snapshot with text as metadata", declared(json!("text"))),
        case(
            "a snapshot in the middle of a message",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1" },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "One" },
                { "type": "MESSAGES_SNAPSHOT", "messages": [{ "role": "assistant", "id": "m1", "content": "Eins", "name": "Bot" }] },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": " two" },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
            ]),
        ),
        case(
            "a snapshot drops the message that is being streamed",
            json!([
                { "type": "TEXT_MESSAGE_START", "messageId": "m1" },
                { "type": "MESSAGES_SNAPSHOT", "messages": [] },
                { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "lost" },
                { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
            ]),
        ),
        case(
            "a snapshot with calls, one of them answered later",
            json!([
                { "type": "MESSAGES_SNAPSHOT", "messages": [
                    { "role": "assistant", "id": "a1", "toolCalls": [{ "id": "c1", "type": "function", "function": { "name": "own", "arguments": "{}" } }] },
                    { "role": "user", "id": "u2", "content": "And?" },
                ] },
                { "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "content": "" },
            ]),
        ),
    ]
}

fn activities() -> Named {
    let set = |content: Value| json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "search", "content": content });
    let amend = |patch: Value| json!({ "type": "ACTIVITY_DELTA", "messageId": "w1", "activityType": "plan", "patch": patch });
    let kept = |content: Value| {
        let mut event = set(content);
        event["replace"] = json!(false);
        event["activityType"] = json!("other");
        event
    };
    let history = json!([{ "role": "activity", "id": "w1", "activityType": "search", "content": { "n": 1 } }]);
    vec![
        after_hello(
            "an activity is replaced",
            json!([set(json!({ "a": 1 })), set(json!({ "b": 2 }))]),
        ),
        after_hello(
            "an activity is kept",
            json!([set(json!({ "a": 1 })), kept(json!({ "b": 2 }))]),
        ),
        after_hello(
            "an activity is made by a snapshot that would keep it",
            json!([kept(json!({ "b": 2 }))]),
        ),
        after_hello(
            "an activity is amended and changes its type",
            json!([
                set(json!({ "n": 0, "list": [] })),
                amend(
                    json!([{ "op": "replace", "path": "/n", "value": 1 }, { "op": "add", "path": "/list/-", "value": { "x": null } }])
                ),
            ]),
        ),
        after_hello(
            "an activity's patch that fails half-way leaves content and type alone",
            json!([
                set(json!({ "n": 0 })),
                amend(
                    json!([{ "op": "replace", "path": "/n", "value": 1 }, { "op": "remove", "path": "/missing" }])
                ),
            ]),
        ),
        after_hello(
            "an empty patch changes an activity's type",
            json!([set(json!({})), amend(json!([]))]),
        ),
        after_hello(
            "an activity's content is replaced whole by a patch",
            json!([
                set(json!({ "n": 0 })),
                amend(json!([{ "op": "replace", "path": "", "value": { "m": 1 } }])),
            ]),
        ),
        after(
            "an activity of an earlier run is amended",
            history,
            Value::Null,
            json!([amend(json!([{ "op": "replace", "path": "/n", "value": 2 }]))]),
        ),
        after_hello(
            "a replacement takes an activity over",
            json!([
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "search", "content": {}, "subagentRunId": "s" },
                { "type": "ACTIVITY_DELTA", "messageId": "w1", "activityType": "search", "patch": [{ "op": "add", "path": "/n", "value": 1 }], "subagentRunId": "s" },
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "search", "content": {} },
                { "type": "ACTIVITY_SNAPSHOT", "messageId": "w2", "activityType": "search", "content": {}, "subagentRunId": "s" },
            ]),
        ),
    ]
}

fn state() -> Named {
    let start =
        json!({ "a": { "b": [1, 2, 3] }, "n": 1, "text": "t", "null": null, "x/y": { "m~n": 1 } });
    let case = |name, patch: Value| {
        after(name, hello(), start.clone(), json!([{ "type": "STATE_DELTA", "delta": patch }]))
    };
    vec![
        after_hello(
            "a delta of a state that was not set",
            json!([{ "type": "STATE_DELTA", "delta": [{ "op": "add", "path": "/a", "value": 1 }] }]),
        ),
        after(
            "a snapshot replaces the state",
            hello(),
            start.clone(),
            json!([{ "type": "STATE_SNAPSHOT", "snapshot": { "only": [] } }]),
        ),
        after(
            "a snapshot of null, and a delta that has nothing to amend",
            hello(),
            start.clone(),
            json!([
                { "type": "STATE_SNAPSHOT", "snapshot": null },
                { "type": "STATE_DELTA", "delta": [{ "op": "add", "path": "/a", "value": 1 }] },
            ]),
        ),
        after(
            "a snapshot of a number, replaced by a delta",
            hello(),
            start.clone(),
            json!([
                { "type": "STATE_SNAPSHOT", "snapshot": 7 },
                { "type": "STATE_DELTA", "delta": [{ "op": "test", "path": "", "value": 7 }, { "op": "replace", "path": "", "value": [8] }] },
            ]),
        ),
        after(
            "a snapshot that a subagent sends is the run's",
            hello(),
            start.clone(),
            json!([{ "type": "STATE_SNAPSHOT", "snapshot": false, "subagentRunId": "s" }]),
        ),
        case(
            "every operation",
            json!([
                { "op": "test", "path": "/a/b/1", "value": 2 },
                { "op": "add", "path": "/a/b/0", "value": 0 },
                { "op": "add", "path": "/a/b/-", "value": 4 },
                { "op": "remove", "path": "/a/b/2" },
                { "op": "replace", "path": "/null", "value": "no more" },
                { "op": "move", "from": "/n", "path": "/a/n" },
                { "op": "copy", "from": "/a", "path": "/copy" },
                { "op": "replace", "path": "/x~1y/m~0n", "value": null },
            ]),
        ),
        case(
            "a test that fails undoes what went before",
            json!([
                { "op": "replace", "path": "/n", "value": 2 }, { "op": "test", "path": "/n", "value": 1 },
            ]),
        ),
        case(
            "a test on what is not there",
            json!([{ "op": "test", "path": "/missing", "value": null }]),
        ),
        case(
            "a test of null",
            json!([{ "op": "test", "path": "/null", "value": null }, { "op": "remove", "path": "/null" }]),
        ),
        case(
            "numbers are equal by value",
            json!([{ "op": "test", "path": "/n", "value": 1.0 }, { "op": "remove", "path": "/n" }]),
        ),
        case(
            "objects are equal in any order",
            json!([
                { "op": "add", "path": "/o", "value": { "a": 1, "b": [2] } }, { "op": "test", "path": "/o", "value": { "b": [2], "a": 1 } },
            ]),
        ),
        case(
            "adding below what is not there",
            json!([{ "op": "add", "path": "/missing/a", "value": 1 }]),
        ),
        case("adding below null", json!([{ "op": "add", "path": "/null/a", "value": 1 }])),
        case(
            "adding behind the end of a list",
            json!([{ "op": "add", "path": "/a/b/9", "value": 1 }]),
        ),
        case("adding at the end of a list", json!([{ "op": "add", "path": "/a/b/3", "value": 4 }])),
        case(
            "adding to a list by a name",
            json!([{ "op": "add", "path": "/a/b/first", "value": 1 }]),
        ),
        case(
            "adding what is there replaces it",
            json!([{ "op": "add", "path": "/n", "value": [] }]),
        ),
        case(
            "replacing what is not there",
            json!([{ "op": "replace", "path": "/missing", "value": 1 }]),
        ),
        case(
            "replacing in a list behind its end",
            json!([{ "op": "replace", "path": "/a/b/3", "value": 1 }]),
        ),
        case(
            "removing what is not there",
            json!([{ "op": "replace", "path": "/n", "value": 2 }, { "op": "remove", "path": "/missing" }]),
        ),
        case(
            "removing the last of a list by a dash",
            json!([{ "op": "remove", "path": "/a/b/-" }]),
        ),
        case(
            "moving what is not there",
            json!([{ "op": "move", "from": "/missing", "path": "/n" }]),
        ),
        case("moving onto itself", json!([{ "op": "move", "from": "/n", "path": "/n" }])),
        case("moving within a list", json!([{ "op": "move", "from": "/a/b/0", "path": "/a/b/2" }])),
        case(
            "copying what is not there",
            json!([{ "op": "copy", "from": "/missing", "path": "/n" }]),
        ),
        case("copying into itself", json!([{ "op": "copy", "from": "/a", "path": "/a/self" }])),
        case("copying the whole", json!([{ "op": "copy", "from": "", "path": "/self" }])),
        case(
            "an empty key",
            json!([{ "op": "add", "path": "/", "value": 1 }, { "op": "add", "path": "/a/", "value": 2 }]),
        ),
        case("no operation", json!([])),
        case(
            "adding into a text",
            json!([{ "op": "add", "path": "/text/0", "value": 9 }, { "op": "replace", "path": "/n", "value": 5 }]),
        ),
        case(
            "adding into a number",
            json!([{ "op": "add", "path": "/n/x", "value": 9 }, { "op": "replace", "path": "/text", "value": 5 }]),
        ),
        case(
            "a letter is no member of its text",
            json!([{ "op": "copy", "from": "/text/0", "path": "/c" }]),
        ),
        case(
            "nothing is behind the end of a list",
            json!([{ "op": "copy", "from": "/a/b/-", "path": "/c" }]),
        ),
        case("an index below zero", json!([{ "op": "replace", "path": "/a/b/-1", "value": 1 }])),
        case(
            "moving a list's first to its end",
            json!([{ "op": "move", "from": "/a/b/0", "path": "/a/b/-" }]),
        ),
        case(
            "moving a part in its whole's place",
            json!([{ "op": "move", "from": "/a/b", "path": "/a" }]),
        ),
        case(
            "moving a part in its whole's place, undone",
            json!([
                { "op": "move", "from": "/a/b", "path": "/a" }, { "op": "remove", "path": "/missing" },
            ]),
        ),
        case(
            "moving to where nothing can be",
            json!([{ "op": "move", "from": "/n", "path": "/missing/n" }]),
        ),
        case("moving to the whole", json!([{ "op": "move", "from": "/a", "path": "" }])),
        case("copying a null", json!([{ "op": "copy", "from": "/null", "path": "/new" }])),
        case("moving a null", json!([{ "op": "move", "from": "/null", "path": "/new" }])),
        case(
            "replacing a null that was just added",
            json!([{ "op": "add", "path": "/new", "value": null }, { "op": "replace", "path": "/new", "value": 1 }]),
        ),
        case(
            "numbers within a list are equal by value",
            json!([
                { "op": "test", "path": "/a/b", "value": [1.0, 2, 3] }, { "op": "replace", "path": "/n", "value": 5 },
            ]),
        ),
        case("removing the whole", json!([{ "op": "remove", "path": "" }])),
        case(
            "removing the whole and adding another",
            json!([{ "op": "remove", "path": "" }, { "op": "add", "path": "", "value": [] }]),
        ),
        case(
            "replacing the whole",
            json!([{ "op": "replace", "path": "", "value": { "new": true } }]),
        ),
        case(
            "adding the whole and going on",
            json!([{ "op": "add", "path": "", "value": {} }, { "op": "add", "path": "/a", "value": 1 }]),
        ),
    ]
}
