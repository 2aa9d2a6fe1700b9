//! Examples of every event type: minimal, maximal, and with values that are hard to encode.

use serde_json::{Value, json};

/// Returns the events as JSON, by name.
pub(crate) fn events() -> Vec<(String, Value)> {
    let families = [
        lifecycle(),
        text_messages(),
        tool_calls(),
        reasoning(),
        state(),
        activities(),
        subagents(),
        passthrough(),
        awkward(),
    ];
    families
        .concat()
        .into_iter()
        .map(|(name, json)| (format!("{} {name}", json["type"].as_str().unwrap()), json))
        .collect()
}

type Named = Vec<(String, Value)>;

/// Returns two examples of an event: `small`, and with `more` fields and the base fields.
fn small_and_large(small: Value, more: Value) -> Named {
    vec![
        ("minimal".to_owned(), small.clone()),
        ("maximal".to_owned(), with(&with(&small, more), base())),
    ]
}

/// Does the same for events that can be attributed to a subagent.
fn attributed(small: Value, more: Value) -> Named {
    small_and_large(small, with(&more, json!({ "subagentRunId": "sub-1" })))
}

fn named(name: &str, event: Value) -> (String, Value) {
    (name.to_owned(), event)
}

fn with(event: &Value, more: Value) -> Value {
    let (Value::Object(mut event), Value::Object(more)) = (event.clone(), more) else {
        unreachable!()
    };
    event.extend(more);
    Value::Object(event)
}

fn base() -> Value {
    json!({
        "timestamp": 1_753_900_000_123_i64,
        "rawEvent": { "id": "evt_1", "choices": [{ "delta": { "content": null } }], "usage": [] },
        "metadata": rich(),
    })
}

/// Returns an open object with all types of JSON values. No key is a number, because JavaScript would move it to the front.
fn rich() -> Value {
    json!({
        "zeta": "first, though its name is last",
        "vendor.usage": { "in": 12, "out": 0.5, "ratio": -1.25e-7, "huge": 1.5e300, "nested": { "deep": [[], {}, [null]] } },
        "null": null,
        "flags": [true, false],
        "negative": -42,
        "largest": 9_007_199_254_740_991_i64,
        "smallest": -9_007_199_254_740_991_i64,
        "unicode": "Grüße, 世界, 🦀, \u{0} \u{1f} \u{2028} \" \\ / \t",
        "": "the empty key",
        "alpha": ""
    })
}

fn lifecycle() -> Named {
    let finished = || json!({ "type": "RUN_FINISHED", "threadId": "thread-1", "runId": "run-1" });
    let interrupt = json!({
        "id": "int-1", "reason": "tool_call", "message": "Send the mail?", "toolCallId": "call-1",
        "responseSchema": { "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] },
        "expiresAt": "2030-01-01T00:00:00Z", "metadata": rich(), "subagentRunId": "sub-1",
    });
    [
        small_and_large(
            json!({ "type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1" }),
            json!({ "protocolVersion": "1.0", "parentRunId": "run-0", "input": full_input() }),
        ),
        vec![named("with a small input", json!({
            "type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0",
            "input": { "threadId": "thread-1", "runId": "run-1", "messages": [], "tools": [], "context": [] },
        }))],
        small_and_large(
            finished(),
            json!({
                "result": { "answer": [42, null] },
                "outcome": { "type": "success", "pendingToolCallIds": ["call-1", "", "call-2"] },
                "usage": [full_usage(), { "model": "small" }, {}],
            }),
        ),
        vec![
            named("success", with(&finished(), json!({ "outcome": { "type": "success" } }))),
            named("cancelled", with(&finished(), json!({ "outcome": { "type": "cancelled" } }))),
            named("interrupt", with(&finished(), json!({
                "outcome": { "type": "interrupt", "interrupts": [{ "id": "int-1", "reason": "input_required" }] },
            }))),
            named("interrupts", with(&finished(), json!({
                "outcome": { "type": "interrupt", "interrupts": [
                    interrupt,
                    { "id": "int-2", "reason": "", "responseSchema": {}, "metadata": {} },
                ] },
                "usage": [{ "inputTokens": 0, "outputTokens": 128 }],
            }))),
            named("result text", with(&finished(), json!({ "result": "done" }))),
            named("result false", with(&finished(), json!({ "result": false }))),
        ],
        small_and_large(
            json!({ "type": "RUN_ERROR", "message": "The model is not available" }),
            json!({ "code": "model_unavailable", "usage": [full_usage()] }),
        ),
        attributed(json!({ "type": "STEP_STARTED", "stepName": "plan" }), json!({})),
        attributed(json!({ "type": "STEP_FINISHED", "stepName": "plan" }), json!({})),
    ]
    .concat()
}

fn full_usage() -> Value {
    json!({
        "provider": "openai", "model": "large", "inputTokens": 1000, "outputTokens": 20_000, "totalTokens": 21_000,
        "reasoningTokens": 0, "cachedInputTokens": 900, "cacheWriteInputTokens": 4_294_967_296_i64,
    })
}

fn full_input() -> Value {
    json!({
        "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0", "parentRunId": "run-0",
        "state": rich(),
        "messages": messages(),
        "tools": [
            { "name": "plain", "description": "" },
            { "name": "search", "description": "Searches the web",
              "parameters": { "type": "object", "properties": { "q": { "type": "string" } }, "additionalProperties": false },
              "metadata": { "vendor.cost": 2, "nothing": null } },
        ],
        "context": [{ "description": "Local time", "value": "12:00" }, { "description": "", "value": "" }],
        "forwardedProps": { "temperature": 0.2, "none": null },
        "resume": [
            { "interruptId": "int-0", "status": "resolved", "payload": { "ok": true }, "metadata": { "by": "Ann" } },
            { "interruptId": "int-1", "status": "cancelled" },
            { "interruptId": "int-2", "status": "resolved", "payload": false },
        ],
    })
}

/// Returns minimal and maximal messages of every role.
fn messages() -> Value {
    json!([
        { "role": "developer", "id": "d1", "content": "Be brief." },
        { "role": "developer", "id": "d2", "content": "", "name": "Dee", "encryptedValue": "c2VhbGVk", "metadata": rich(), "subagentRunId": "sub-1" },
        { "role": "system", "id": "s1", "content": "You help." },
        { "role": "system", "id": "s2", "content": "You help.", "name": "Sys", "encryptedValue": "c2VhbGVk", "metadata": {}, "subagentRunId": "sub-1" },
        { "role": "user", "id": "u1", "content": "Hello" },
        { "role": "user", "id": "u2", "content": parts(), "name": "Ann", "encryptedValue": "c2VhbGVk", "metadata": { "client": "web" }, "subagentRunId": "" },
        { "role": "user", "id": "u3", "content": "" },
        { "role": "assistant", "id": "a1" },
        { "role": "assistant", "id": "a2", "content": "" },
        { "role": "assistant", "id": "a3", "content": "Let me see.", "name": "Bot", "toolCalls": [
            { "id": "call-1", "type": "function", "function": { "name": "search", "arguments": "{\"q\":\"rust\"}" } },
            { "id": "call-2", "type": "function", "function": { "name": "search", "arguments": "" },
              "encryptedValue": "c2VhbGVk", "metadata": { "latency": 1.5 } },
        ], "encryptedValue": "c2VhbGVk", "metadata": { "finish": "tool_calls" }, "subagentRunId": "sub-1" },
        { "role": "tool", "id": "t1", "content": "3 results", "toolCallId": "call-1" },
        { "role": "tool", "id": "t2", "content": parts(), "toolCallId": "call-2", "error": "timed out", "encryptedValue": "", "metadata": { "ms": 30_000 }, "subagentRunId": "sub-1" },
        { "role": "activity", "id": "w1", "activityType": "web_search", "content": {} },
        { "role": "activity", "id": "w2", "activityType": "", "content": rich(), "metadata": { "a": 1 }, "subagentRunId": "sub-1" },
        { "role": "reasoning", "id": "r1", "content": "" },
        { "role": "reasoning", "id": "r2", "content": "Hm.", "encryptedValue": "c2VhbGVk", "metadata": { "a": null }, "subagentRunId": "sub-1" },
    ])
}

/// Returns content parts of every type, with every type of source.
fn parts() -> Value {
    json!([
        { "type": "text", "text": "See these:" },
        { "type": "text", "text": "", "id": "part-1", "metadata": { "title": "Nothing" } },
        { "type": "image", "source": { "type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png" } },
        { "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" }, "id": "part-2", "metadata": ["any", { "json": null }] },
        { "type": "image", "source": { "type": "file", "value": "file-1" } },
        { "type": "audio", "source": { "type": "url", "value": "https://example.com/a.mp3", "mimeType": "audio/mpeg" }, "metadata": "text" },
        { "type": "video", "source": { "type": "file", "value": "file-2", "provider": "openai", "mimeType": "video/mp4" }, "metadata": 1.5 },
        { "type": "document", "source": { "type": "data", "value": "", "mimeType": "" }, "metadata": { "filename": "empty.pdf" } },
        { "type": "document", "source": { "type": "file", "value": "file-3", "provider": "anthropic" }, "metadata": false },
    ])
}

fn text_messages() -> Named {
    let start =
        |role: &str| json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": role });
    let roles = ["developer", "system", "assistant", "user"];
    [
        attributed(
            json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1" }),
            json!({ "role": "assistant", "name": "Bot" }),
        ),
        roles.iter().map(|role| named(role, start(role))).collect(),
        attributed(
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hello" }),
            json!({}),
        ),
        attributed(json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }), json!({})),
        attributed(
            json!({ "type": "TEXT_MESSAGE_CHUNK" }),
            json!({ "messageId": "m1", "role": "user", "delta": "Hello", "name": "Ann" }),
        ),
    ]
    .concat()
}

fn tool_calls() -> Named {
    let result = |content: Value| json!({ "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "call-1", "content": content });
    [
        attributed(
            json!({ "type": "TOOL_CALL_START", "toolCallId": "call-1", "toolCallName": "search" }),
            json!({ "parentMessageId": "m1" }),
        ),
        attributed(json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "call-1", "delta": "{\"q\":" }), json!({})),
        attributed(json!({ "type": "TOOL_CALL_END", "toolCallId": "call-1" }), json!({})),
        attributed(
            json!({ "type": "TOOL_CALL_CHUNK" }),
            json!({ "toolCallId": "call-1", "toolCallName": "search", "parentMessageId": "m1", "delta": "{" }),
        ),
        attributed(result(json!("3 results")), json!({ "role": "tool" })),
        vec![
            named("in parts", result(parts())),
            named(
                "in parts, everything",
                with(&with(&result(parts()), json!({ "role": "tool", "subagentRunId": "" })), base()),
            ),
            named("in no parts", result(json!([]))),
            named("empty", result(json!(""))),
        ],
    ]
    .concat()
}

fn reasoning() -> Named {
    let sealed = |subtype: &str| json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": "r1", "encryptedValue": "c2VhbGVk" });
    [
        attributed(json!({ "type": "REASONING_START", "messageId": "r1" }), json!({})),
        attributed(
            json!({ "type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning" }),
            json!({}),
        ),
        attributed(
            json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "r1", "delta": "Hm" }),
            json!({}),
        ),
        attributed(json!({ "type": "REASONING_MESSAGE_END", "messageId": "r1" }), json!({})),
        attributed(
            json!({ "type": "REASONING_MESSAGE_CHUNK" }),
            json!({ "messageId": "r1", "delta": "Hm" }),
        ),
        attributed(json!({ "type": "REASONING_END", "messageId": "r1" }), json!({})),
        attributed(sealed("message"), json!({})),
        vec![named("of a call", sealed("tool-call"))],
    ]
    .concat()
}

/// Returns every operation of a patch, on paths with escapes and on the whole document.
fn patch() -> Value {
    json!([
        { "op": "add", "path": "/list/-", "value": { "a": [null, 1.5] } },
        { "op": "add", "path": "", "value": null },
        { "op": "remove", "path": "/a~1b/m~0n" },
        { "op": "replace", "path": "/", "value": "" },
        { "op": "replace", "path": "/flag", "value": false },
        { "op": "move", "from": "/from", "path": "/to" },
        { "op": "copy", "from": "", "path": "/self" },
        { "op": "test", "path": "/n", "value": 0 },
    ])
}

fn state() -> Named {
    let snapshot = |value: Value| json!({ "type": "STATE_SNAPSHOT", "snapshot": value });
    [
        attributed(snapshot(json!({})), json!({ "snapshot": rich() })),
        vec![
            named("null", snapshot(Value::Null)),
            named("text", snapshot(json!(""))),
            named("list", snapshot(json!([[], {}, null, 0, -0.5]))),
            named("number", snapshot(json!(1e21))),
            named("false", snapshot(json!(false))),
        ],
        attributed(json!({ "type": "STATE_DELTA", "delta": [] }), json!({ "delta": patch() })),
        small_and_large(
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [] }),
            json!({ "messages": messages() }),
        ),
    ]
    .concat()
}

fn activities() -> Named {
    let snapshot = json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "w1", "activityType": "web_search", "content": {} });
    let delta = json!({ "type": "ACTIVITY_DELTA", "messageId": "w1", "activityType": "web_search", "patch": [] });
    [
        attributed(snapshot.clone(), json!({ "content": rich(), "replace": true })),
        vec![named("kept", with(&snapshot, json!({ "replace": false })))],
        attributed(delta, json!({ "patch": patch() })),
    ]
    .concat()
}

fn subagents() -> Named {
    let finished = |outcome: Value| json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "sub-1", "outcome": outcome });
    [
        small_and_large(
            json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "sub-1", "name": "researcher" }),
            json!({ "description": "Reads a lot", "parentSubagentRunId": "sub-0", "parentToolCallId": "call-1", "parentMessageId": "m1" }),
        ),
        small_and_large(
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "sub-1" }),
            json!({ "result": rich(), "outcome": { "type": "suspended", "interruptIds": ["int-1", ""] } }),
        ),
        vec![named("success", finished(json!({ "type": "success" }))), named("suspended", finished(json!({ "type": "suspended" })))],
        small_and_large(
            json!({ "type": "SUBAGENT_ERROR", "subagentRunId": "sub-1", "message": "No luck" }),
            json!({ "code": "no_luck" }),
        ),
    ]
    .concat()
}

fn passthrough() -> Named {
    let raw = |event: Value| json!({ "type": "RAW", "event": event });
    let custom =
        |value: Value| json!({ "type": "CUSTOM", "name": "com.example.event", "value": value });
    [
        attributed(raw(json!({})), json!({ "event": rich(), "source": "openai" })),
        vec![named("null", raw(Value::Null)), named("text", raw(json!("data: [DONE]")))],
        attributed(custom(json!({ "items": 3 })), json!({ "value": rich() })),
        vec![named("null", custom(Value::Null)), named("list", custom(json!([1, [2, [3]]])))],
    ]
    .concat()
}

/// Returns texts and messages whose protobuf lengths take one, two and three bytes, and empty ones.
fn awkward() -> Named {
    let content = |id: &str, delta: String| json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta });
    let mut events = vec![
        named("empty", content("", String::new())),
        named("empty owner", with(&content("", String::new()), json!({ "subagentRunId": "" }))),
        named("empty metadata", with(&content("m", String::new()), json!({ "metadata": {} }))),
        named("timestamp zero", with(&content("m", "x".into()), json!({ "timestamp": 0 }))),
        named("timestamp before 1970", with(&content("m", "x".into()), json!({ "timestamp": -1 }))),
        named(
            "largest timestamp",
            with(&content("m", "x".into()), json!({ "timestamp": 9_007_199_254_740_991_i64 })),
        ),
        named("two-byte letters", content("m", "é".repeat(64))),
        named("line ends", content("m", "a\r\nb\rc\nd\u{85}e\u{2028}f\u{2029}g\u{feff}".into())),
        named("looks like SSE", content("m", "\n\ndata: {}\n\nevent: x\n".into())),
        named(
            "empty names",
            json!({ "type": "TOOL_CALL_START", "toolCallId": "", "toolCallName": "", "parentMessageId": "" }),
        ),
        named(
            "empty texts",
            json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "", "encryptedValue": "" }),
        ),
        named(
            "empty texts",
            json!({ "type": "RUN_STARTED", "threadId": "", "runId": "", "protocolVersion": "", "parentRunId": "" }),
        ),
        named("empty texts", json!({ "type": "RUN_ERROR", "message": "", "code": "" })),
        named(
            "empty texts",
            json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "", "name": "", "description": "", "parentSubagentRunId": "", "parentToolCallId": "", "parentMessageId": "" }),
        ),
        named(
            "empty texts",
            json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "", "delta": "", "name": "" }),
        ),
        named(
            "empty texts",
            json!({ "type": "TOOL_CALL_CHUNK", "toolCallId": "", "toolCallName": "", "parentMessageId": "", "delta": "" }),
        ),
        named(
            "empty texts",
            json!({ "type": "REASONING_MESSAGE_CHUNK", "messageId": "", "delta": "" }),
        ),
        named("empty texts", json!({ "type": "CUSTOM", "name": "", "value": "" })),
        named("empty texts", json!({ "type": "RAW", "event": "", "source": "" })),
        named(
            "empty texts",
            json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "", "activityType": "", "content": { "": {} } }),
        ),
        named("empty texts", json!({ "type": "STEP_STARTED", "stepName": "" })),
    ];
    for length in [63, 121, 122, 126, 127, 128, 129, 16_200, 16_383, 16_384, 20_000] {
        let text = "x".repeat(length);
        events.push(named(&format!("{length} bytes"), content("m", text.clone())));
        events.push(named(&format!("{length} bytes of id"), content(&text, "y".into())));
        events.push(named(
            &format!("{length} bytes"),
            json!({ "type": "CUSTOM", "name": "n", "value": { "text": text, "list": [text] } }),
        ));
        events.push(named(&format!("{length} bytes"), json!({
            "type": "MESSAGES_SNAPSHOT",
            "messages": [{ "role": "user", "id": "u", "content": [{ "type": "text", "text": text }], "metadata": { "text": text } }],
        })));
        events.push(named(
            &format!("{length} bytes"),
            json!({
                "type": "STATE_DELTA", "delta": [{ "op": "add", "path": format!("/{text}"), "value": [text] }],
            }),
        ));
    }
    events
}
