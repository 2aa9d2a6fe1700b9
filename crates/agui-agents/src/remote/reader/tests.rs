use serde_json::{Value, json};

use super::*;

fn read(events: &[Value]) -> Result<Vec<Value>, String> {
    let mut reader = Reader::default();
    let mut all = Vec::new();
    for event in events {
        let event = reader.read(&event.to_string())?;
        all.extend(
            reader
                .take_rests()
                .into_iter()
                .chain(event)
                .map(|event| serde_json::to_value(event).unwrap()),
        );
    }
    Ok(all)
}

fn one(event: Value) -> Value {
    let mut all = read(&[event]).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn error_of(event: Value) -> String {
    read(&[event]).unwrap_err()
}

#[test]
fn valid_events_are_not_changed() {
    // The other variants are in tests/protocol/corpus.
    for event in [
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m", "role": "user", "timestamp": 5, "rawEvent": { "a": null } }),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [{ "type": "text", "text": "x" }], "metadata": { "k": null } }),
        json!({ "type": "STATE_SNAPSHOT", "snapshot": null }),
        json!({ "type": "STATE_DELTA", "delta": [{ "op": "add", "path": "/a", "value": null }] }),
        json!({ "type": "STATE_DELTA", "delta": [{ "op": "remove", "path": "/a", "value": "left over", "note": null }] }),
        json!({ "type": "CUSTOM", "name": "x", "value": null }),
        json!({ "type": "RAW", "event": null }),
        json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "role": "user", "id": "u", "content": "hi" }] }),
        json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": { "n": null } }),
        json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": { "type": "suspended", "interruptIds": ["i"] } }),
        json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": { "n": null }, "outcome": { "type": "cancelled" } }),
        json!({ "type": "RUN_ERROR", "message": "no", "usage": [{ "model": "m", "inputTokens": 1 }] }),
    ] {
        assert_eq!(one(event.clone()), event);
    }
}

#[test]
fn a_wrong_value_is_an_error_with_its_place() {
    for (event, expected) in [
        (json!([]), "event 1: not an object"),
        (json!({ "delta": "x" }), "event 1: type: missing"),
        (json!({ "type": 5 }), "event 1: type: expected a string"),
        (
            json!({ "type": "TEXT_MESSAGE_END" }),
            "event 1 (TEXT_MESSAGE_END): missing field `messageId`",
        ),
        (
            json!({ "type": "TEXT_MESSAGE_END", "messageId": 5 }),
            "event 1 (TEXT_MESSAGE_END): invalid type: integer `5`, expected",
        ),
        (json!({ "type": "STATE_SNAPSHOT" }), "event 1 (STATE_SNAPSHOT): missing field `snapshot`"),
        (
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "id": "m", "role": "tool", "content": "" }] }),
            "event 1 (MESSAGES_SNAPSHOT): messages[0].toolCallId: missing",
        ),
        (json!({ "type": "MESSAGES_SNAPSHOT" }), "event 1 (MESSAGES_SNAPSHOT): messages: missing"),
        (
            json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [{ "type": "text" }] }),
            "event 1 (TOOL_CALL_RESULT): content[0].text: missing",
        ),
        (
            json!({ "type": "STATE_DELTA", "delta": [{ "path": "" }] }),
            "event 1 (STATE_DELTA): missing field `op`",
        ),
        (
            json!({ "type": "STATE_DELTA", "delta": [{ "op": 5, "path": "" }] }),
            "event 1 (STATE_DELTA): invalid type: ",
        ),
        (
            json!({ "type": "STATE_DELTA", "delta": [{ "op": "add", "path": "/a" }] }),
            "event 1 (STATE_DELTA): missing field `value`",
        ),
        (
            json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": 5, "entityId": "m", "encryptedValue": "x" }),
            "event 1 (REASONING_ENCRYPTED_VALUE): inv",
        ),
        (
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "interrupt" } }),
            "event 1 (RUN_FINISHED): missing field `interrupts`",
        ),
        (
            json!({ "type": "TEXT_MESSAGE_START", "messageId": "m", "timestamp": 1.5 }),
            "event 1 (TEXT_MESSAGE_START): inv",
        ),
    ] {
        let found = error_of(event);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
    let mut reader = Reader::default();
    assert!(reader.read("[DONE]").unwrap_err().starts_with("event 1: not JSON: "));
    assert!(
        reader.read(&"[".repeat(100_000)).unwrap_err().starts_with("event 2: not JSON: recursion")
    );
    let long =
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m", "role": "x".repeat(10_000) });
    assert!(error_of(long).len() < 400);
}

#[test]
fn unknown_types_members_and_outcomes_are_left_out() {
    assert_eq!(
        read(&[json!({ "type": "HOLOGRAM_START", "messageId": 5 })]).unwrap(),
        Vec::<Value>::new()
    );
    let strange = json!({ "type": "TEXT_MESSAGE_END", "messageId": "m", "mood": "good" });
    assert_eq!(one(strange), json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" }));
    let finished = json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "paused" } });
    assert_eq!(one(finished), json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" }));
    let messages = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [
        { "id": "a", "role": "narrator", "content": 5 }, { "id": "b", "role": "user", "content": [{ "type": "smell" }] },
    ] });
    let left = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "role": "user", "id": "b", "content": [] }] });
    assert_eq!(one(messages), left);
    let operations =
        json!([{ "op": "increment", "path": "/n" }, { "op": "add", "path": "/n", "value": 1 }]);
    let state = json!({ "type": "STATE_DELTA", "delta": operations });
    assert_eq!(one(state), json!({ "type": "STATE_DELTA", "delta": [operations[1]] }));
    let activity = |patch: Value| json!({ "type": "ACTIVITY_DELTA", "messageId": "m", "activityType": "a", "patch": patch });
    assert_eq!(one(activity(operations.clone())), activity(json!([operations[1]])));
    let sealed = json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": "tune", "entityId": "m", "encryptedValue": "x" });
    assert_eq!(read(&[sealed]).unwrap(), Vec::<Value>::new());
    let started =
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": { "messages": 5 } });
    assert_eq!(one(started), json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r" }));
}

#[test]
fn unknown_members_of_the_first_event_of_a_type_are_logged() {
    let mut reader = Reader::default();
    for mood in ["good", "better"] {
        let event =
            json!({ "type": "TEXT_MESSAGE_END", "messageId": "m", "mood": mood, "metadata": null });
        reader.read(&event.to_string()).unwrap();
    }
    let warning =
        "a member that AG-UI does not describe was left outTEXT_MESSAGE_END.mood".to_owned();
    assert_eq!(reader.warned.into_iter().collect::<Vec<_>>(), [warning]);
}

#[test]
fn nulls_in_optional_members_read_as_absent() {
    for (event, expected) in [
        (
            json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": null, "timestamp": null, "rawEvent": null, "metadata": null, "subagentRunId": null }),
            json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f" }),
        ),
        (
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": null, "outcome": null, "usage": null }),
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" }),
        ),
        (
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "success", "pendingToolCallIds": null } }),
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "success" } }),
        ),
        (
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "interrupt", "interrupts": [{ "id": "i", "reason": "x", "message": null, "responseSchema": null, "metadata": null }] } }),
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "interrupt", "interrupts": [{ "id": "i", "reason": "x" }] } }),
        ),
        (
            json!({ "type": "RUN_ERROR", "message": "no", "code": null, "usage": [{ "model": null, "inputTokens": null }] }),
            json!({ "type": "RUN_ERROR", "message": "no", "usage": [{}] }),
        ),
        (
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s", "result": null, "outcome": { "type": "suspended", "interruptIds": null } }),
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": { "type": "suspended" } }),
        ),
        (
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "id": "a", "role": "assistant", "content": null, "toolCalls": null, "name": null }] }),
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "role": "assistant", "id": "a" }] }),
        ),
        (
            json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": {}, "replace": null }),
            json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": {} }),
        ),
    ] {
        assert_eq!(one(event), expected);
    }
}

#[test]
fn events_before_version_1_are_converted() {
    let events = read(&[
        json!({ "type": "THINKING_START", "title": "Hm", "timestamp": 1.0 }),
        json!({ "type": "THINKING_TEXT_MESSAGE_START" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "so" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_END" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_START" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_END" }),
        json!({ "type": "THINKING_END", "rawEvent": { "a": 1 } }),
    ])
    .unwrap();
    let id = |index: usize| events[index]["messageId"].clone();
    let expected = [
        json!({ "type": "REASONING_START", "messageId": id(0), "timestamp": 1 }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": id(1), "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": id(1), "delta": "so" }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": id(1) }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": id(4), "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": id(4) }),
        json!({ "type": "REASONING_END", "messageId": id(0), "rawEvent": { "a": 1 } }),
    ];
    assert_eq!(events, expected);
    assert_ne!(id(1), id(4));
    assert!(
        error_of(json!({ "type": "THINKING_TEXT_MESSAGE_CONTENT" }))
            .contains("missing field `delta`")
    );

    let early = json!({ "type": "REASONING_MESSAGE_START", "messageId": "m", "role": "assistant" });
    assert_eq!(one(early.clone())["role"], "reasoning");
    let started = |version| json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": version });
    for version in ["0.9", "draft"] {
        assert_eq!(read(&[started(version), early.clone()]).unwrap()[1]["role"], "reasoning");
    }
    for version in ["1.0", "1.1", "2"] {
        let error = read(&[started(version), early.clone()]).unwrap_err();
        assert!(
            error.starts_with("event 2 (REASONING_MESSAGE_START): unknown variant `assistant`"),
            "{error}"
        );
    }
    let binary = json!({ "type": "binary", "mimeType": "image/png", "data": "AA==" });
    let image = json!({ "type": "image", "source": { "type": "data", "value": "AA==", "mimeType": "image/png" } });
    let result = |part: Value| json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [part] });
    assert_eq!(one(result(binary)), result(image));
}

#[test]
fn null_in_place_of_a_list_or_a_text_says_nothing() {
    for event in [
        json!({ "type": "MESSAGES_SNAPSHOT", "messages": null }),
        json!({ "type": "STATE_DELTA", "delta": null }),
        json!({ "type": "ACTIVITY_DELTA", "messageId": "m", "activityType": "a", "patch": null }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": null }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": null }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": null }),
    ] {
        assert_eq!(read(std::slice::from_ref(&event)).unwrap(), Vec::<Value>::new(), "{event}");
    }
    let result = |content: Value| json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": content });
    assert_eq!(one(result(Value::Null)), result(json!("")));
}

/// Reads events as they are written. Returns the deltas by item, and the number of events.
fn deltas(events: &[&str]) -> (String, usize) {
    let mut reader = Reader::default();
    let mut all = Vec::new();
    for event in events {
        let event = reader.read(event).unwrap();
        all.extend(reader.take_rests());
        all.extend(event.filter(|event| !matches!(event, Event::RunFinished(_))));
    }
    let all: Vec<_> = all.into_iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let texts = all.iter().filter_map(|event| {
        let id = event["messageId"]
            .as_str()
            .or_else(|| event["toolCallId"].as_str())
            .unwrap_or_default();
        Some(format!("{id}:{}|", event["delta"].as_str()?))
    });
    (texts.collect(), all.len())
}

#[test]
fn halves_of_pairs_are_joined_over_the_pieces_of_an_item() {
    for (kind, id) in [
        ("TEXT_MESSAGE_CONTENT", "messageId"),
        ("REASONING_MESSAGE_CONTENT", "messageId"),
        ("TOOL_CALL_ARGS", "toolCallId"),
        ("TEXT_MESSAGE_CHUNK", "messageId"),
        ("REASONING_MESSAGE_CHUNK", "messageId"),
        ("TOOL_CALL_CHUNK", "toolCallId"),
    ] {
        let piece = |item: &str, delta: &str| {
            format!(r#"{{"type":"{kind}","{id}":"{item}","delta":"{delta}"}}"#)
        };
        let read =
            |pieces: &[String]| deltas(&pieces.iter().map(String::as_str).collect::<Vec<_>>()).0;
        assert_eq!(
            read(&[piece("a", r"Hi \ud83d"), piece("a", r"\ude00!")]),
            "a:Hi |a:😀!|",
            "{kind}"
        );
        // A half of another item does not complete the pair.
        let interleaved = [piece("a", r"1\ud83d"), piece("b", r"2\ude00"), piece("a", r"\ude00")];
        let joined = match kind.ends_with("CHUNK") {
            false => "a:1|b:2\u{fffd}|a:😀|",
            true => "a:1|a:\u{fffd}|b:2\u{fffd}|a:\u{fffd}|",
        };
        assert_eq!(read(&interleaved), joined, "{kind}");
        let end = kind.replace("CONTENT", "END").replace("ARGS", "END");
        if end != kind {
            let end = format!(r#"{{"type":"{end}","{id}":"a"}}"#);
            assert_eq!(read(&[piece("a", r"1\ud83d"), end]), "a:1|a:\u{fffd}|", "{kind}");
        }
        let over = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#.to_owned();
        assert_eq!(read(&[piece("a", r"\ud83d"), over]), "a:\u{fffd}|", "{kind}");
    }
    // A chunk without an id continues the one before. The first begins its message even without
    // text.
    let chunks = [
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"a","delta":"\ud83d"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"\ude00"}"#,
    ];
    assert_eq!(deltas(&chunks), (":😀|".to_owned(), 2));
    let elsewhere = r#"{"type":"STATE_SNAPSHOT","snapshot":{"a":"\ud83d","n":NaN}}"#;
    assert_eq!(deltas(&["\u{feff}{\"type\":\"RAW\",\"event\":1}", elsewhere]).1, 2);
}
