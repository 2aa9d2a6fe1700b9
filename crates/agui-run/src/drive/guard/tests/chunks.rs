//! Chunks become start, content and end events.

use super::*;

#[test]
fn chunks_become_start_content_and_end_events() {
    let events = json!([
        { "type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": "He", "metadata": { "k": 1 }, "rawEvent": { "x": 1 } },
        { "type": "TEXT_MESSAGE_CHUNK", "delta": "llo" },
        { "type": "RAW", "event": 1 },
        { "type": "TEXT_MESSAGE_CHUNK", "metadata": { "k": 2 } },
        { "type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "a", "delta": "{" },
        { "type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": "}" },
        { "type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "hm" },
        { "type": "REASONING_MESSAGE_CHUNK", "messageId": "q", "delta": "" },
        { "type": "STEP_STARTED", "stepName": "s" },
    ]);
    assert_eq!(
        sent(events),
        json!([
            { "type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant", "metadata": { "k": 1 } },
            { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "He", "metadata": { "k": 1 }, "rawEvent": { "x": 1 } },
            text("a", "llo"),
            { "type": "RAW", "event": 1 },
            { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "", "metadata": { "k": 2 } },
            text_end("a"),
            { "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "a" },
            { "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{" },
            { "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "}" },
            call_end("c"),
            { "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" },
            { "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm" },
            { "type": "REASONING_MESSAGE_END", "messageId": "r" },
            { "type": "REASONING_MESSAGE_START", "messageId": "q", "role": "reasoning" },
            { "type": "REASONING_MESSAGE_END", "messageId": "q" },
            { "type": "STEP_STARTED", "stepName": "s" },
            { "type": "STEP_FINISHED", "stepName": "s" },
        ])
    );
}

#[test]
fn chunks_of_several_owners_are_independent() {
    let chunk = |id: Option<&str>, owner: Option<&str>, delta: &str| {
        let mut chunk = json!({ "type": "TEXT_MESSAGE_CHUNK", "delta": delta });
        if let Some(id) = id {
            chunk["messageId"] = id.into();
        }
        if let Some(owner) = owner {
            chunk["subagentRunId"] = owner.into();
        }
        chunk
    };
    let start =
        |id: &str| json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" });
    assert_eq!(
        sent(json!([
            chunk(Some("a"), Some("s"), "1"),
            chunk(Some("b"), None, "2"),
            chunk(Some("c"), Some("t"), "3"),
            chunk(None, Some("s"), "4"),
            chunk(None, None, "5"),
            chunk(Some("a"), None, "6"),
            text_start("d"),
            chunk(None, Some("t"), "7"),
        ])),
        json!([
            by("s", start("a")),
            by("s", text("a", "1")),
            start("b"),
            text("b", "2"),
            by("t", start("c")),
            by("t", text("c", "3")),
            by("s", text("a", "4")),
            text("b", "5"),
            by("s", text("a", "6")),
            text_end("b"),
            text_start("d"),
            by("t", text("c", "7")),
            by("s", text_end("a")),
            by("t", text_end("c")),
            text_end("d"),
        ])
    );
    assert_eq!(
        violation(json!([
            chunk(Some("a"), Some("s"), "1"),
            chunk(Some("c"), Some("t"), "3"),
            chunk(None, None, "?")
        ])),
        "TEXT_MESSAGE_CHUNK: it names neither an item nor a subagent, and several items are open"
    );
}
