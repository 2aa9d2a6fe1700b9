use serde_json::{Value, json};

use super::{error::MAX_OPEN_VALUES, *};
use crate::{ContentPart, Message, MessageContent, PartSource};

fn input_with(member: &str, value: Value) -> Value {
    let mut input = json!({ "threadId": "t", "runId": "r", "messages": [] });
    input[member] = value;
    input
}

fn decoded(value: &Value) -> Decoded {
    decode(value.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn refused(value: &Value) -> String {
    match decode(value.to_string().as_bytes()) {
        Ok(_) => panic!("accepted: {value}"),
        Err(error) => error.to_string(),
    }
}

fn refused_message(message: Value) -> String {
    refused(&input_with("messages", json!([message])))
}

fn message(message: Value) -> (Message, Ignored) {
    let decoded = decoded(&input_with("messages", json!([message])));
    (decoded.input.messages[0].clone(), decoded.ignored)
}

#[test]
fn only_thread_id_run_id_and_messages_are_required() {
    let whole = json!({ "threadId": "t", "runId": "r", "messages": [] });
    let input = decoded(&whole).input;
    assert_eq!((input.thread_id.as_str(), input.run_id.as_str()), ("t", "r"));
    assert!(input.tools.is_empty() && input.context.is_empty() && input.resume.is_empty());
    assert_eq!(input.state, None);
    for member in ["threadId", "runId", "messages"] {
        let mut input = whole.clone();
        input.as_object_mut().unwrap().remove(member);
        assert_eq!(refused(&input), format!("{member}: missing"));
        input[member] = Value::Null;
        assert_eq!(refused(&input), format!("{member}: missing"));
    }
}

#[test]
fn a_maximal_input_is_decoded_as_serde_decodes_it() {
    let read = decoded(&json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0", "parentRunId": "p", "state": { "a": [1, null, "x"] },
        "messages": [
            { "id": "1", "role": "developer", "content": "d", "name": "n", "metadata": { "k": null } },
            { "id": "2", "role": "system", "content": "s", "encryptedValue": "e", "encryptedValueType": "a.b" },
            { "id": "3", "role": "user", "content": [
                { "type": "text", "text": "look", "id": "p1", "metadata": [1] },
                { "type": "image", "source": { "type": "data", "value": "AA==", "mimeType": "image/png" } },
                { "type": "audio", "source": { "type": "url", "value": "https://a", "mimeType": "audio/wav" } },
                { "type": "video", "source": { "type": "url", "value": "https://v" } },
                { "type": "document", "source": { "type": "file", "value": "f", "provider": "openai" }, "metadata": { "n": 1 } },
            ] },
            { "id": "4", "role": "assistant", "toolCalls": [
                { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{" }, "encryptedValue": "e", "encryptedValueType": "a.call", "metadata": {} },
            ] },
            { "id": "5", "role": "tool", "toolCallId": "c", "content": [{ "type": "text", "text": "r" }], "error": "no" },
            { "id": "6", "role": "reasoning", "content": "hm", "encryptedValue": "x", "encryptedValueType": "a.b", "subagentRunId": "s" },
            { "id": "7", "role": "activity", "activityType": "PLAN", "content": { "done": false } },
            { "id": "8", "role": "assistant", "content": "" },
        ],
        "tools": [{ "name": "f", "description": "d", "parameters": { "type": "object" }, "metadata": { "m": 1 } }, { "name": "g", "description": "" }],
        "context": [{ "description": "d", "value": "v" }],
        "forwardedProps": { "x": null },
        "resume": [{ "interruptId": "i", "status": "resolved", "payload": false }, { "interruptId": "j", "status": "cancelled", "metadata": {} }],
    }));
    assert!(read.ignored.is_empty(), "{}", read.ignored);
    assert_eq!(read.input.messages.len(), 8);
    let written = serde_json::to_string(&read.input).unwrap();
    assert_eq!(serde_json::from_str::<RunAgentInput>(&written).unwrap(), read.input);
    assert_eq!(decode(written.as_bytes()).unwrap().input, read.input);
}

#[test]
fn a_malformed_member_is_refused_with_its_path() {
    for (message, expected) in [
        (json!({ "id": "m", "role": "tool", "content": "" }), "messages[0].toolCallId: missing"),
        (
            json!({ "id": 7, "role": "user", "content": "" }),
            "messages[0].id: expected a string, found a number",
        ),
        (json!({ "role": "user", "content": "" }), "messages[0].id: missing"),
        (json!({ "id": "m", "content": "" }), "messages[0].role: missing"),
        (json!({ "id": "m", "role": null, "content": "" }), "messages[0].role: missing"),
        (
            json!({ "id": "m", "role": ["user"] }),
            "messages[0].role: expected a string, found an array",
        ),
        (json!({ "id": "m", "role": "user" }), "messages[0].content: missing"),
        (json!({ "id": "m", "role": "user", "content": null }), "messages[0].content: missing"),
        (
            json!({ "id": "m", "role": "user", "content": { "decisions": [] } }),
            "messages[0].content: expected a string or an array of parts, found an object",
        ),
        (
            json!({ "id": "m", "role": "assistant", "content": ["x"] }),
            "messages[0].content: expected a string, found an array",
        ),
        (
            json!({ "id": "m", "role": "activity", "activityType": "x", "content": "" }),
            "messages[0].content: expected an object, found a string",
        ),
        (
            json!({ "id": "m", "role": "activity", "content": {} }),
            "messages[0].activityType: missing",
        ),
        (
            json!({ "id": "m", "role": "user", "content": "", "metadata": true }),
            "messages[0].metadata: expected an object, found a boolean",
        ),
        (
            json!({ "id": "m", "role": "user", "content": "", "subagentRunId": 1 }),
            "messages[0].subagentRunId: expected a string, found a number",
        ),
        (
            json!({ "id": "m", "role": "user", "content": [{ "type": "text" }] }),
            "messages[0].content[0].text: missing",
        ),
        (
            json!({ "id": "m", "role": "user", "content": ["x"] }),
            "messages[0].content[0]: expected an object, found a string",
        ),
        (
            json!({ "id": "m", "role": "user", "content": [{ "type": "image" }] }),
            "messages[0].content[0].source: missing",
        ),
        (
            json!({ "id": "m", "role": "user", "content": [{ "type": "image", "source": "https://x" }] }),
            "messages[0].content[0].source: expected an object, found a string",
        ),
        (
            json!({ "id": "m", "role": "user", "content": [{ "type": "image", "source": { "type": "data", "value": "" } }] }),
            "messages[0].content[0].source.mimeType: missing",
        ),
        (
            json!({ "id": "m", "role": "user", "content": [{ "type": "binary", "mimeType": "image/png" }] }),
            "messages[0].content[0]: a binary part needs data, url or id",
        ),
        (
            json!({ "id": "m", "role": "assistant", "toolCalls": [{ "id": "c", "function": { "name": "", "arguments": "" } }] }),
            "messages[0].toolCalls[0].type: missing",
        ),
        (
            json!({ "id": "m", "role": "assistant", "toolCalls": [{ "id": "c", "type": "other", "function": {} }] }),
            "messages[0].toolCalls[0].type: expected \"function\"",
        ),
        (
            json!({ "id": "m", "role": "assistant", "toolCalls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": {} } }] }),
            "messages[0].toolCalls[0].function.arguments: expected a string, found an object",
        ),
        (json!("hello"), "messages[0]: expected an object, found a string"),
        (Value::Null, "messages[0]: expected an object, found null"),
    ] {
        assert_eq!(refused_message(message.clone()), expected, "{message}");
    }
    for (member, value, expected) in [
        ("threadId", json!(7), "threadId: expected a string, found a number"),
        ("messages", json!({}), "messages: expected an array, found an object"),
        ("tools", json!([{ "description": "f" }]), "tools[0].name: missing"),
        (
            "tools",
            json!([{ "name": "f", "description": 5 }]),
            "tools[0].description: expected a string, found a number",
        ),
        ("context", json!([{ "description": "" }, {}]), "context[0].value: missing"),
        (
            "resume",
            json!([{ "interruptId": "i", "status": "done" }]),
            "resume[0].status: expected \"resolved\" or \"cancelled\"",
        ),
        ("parentRunId", json!(1.5), "parentRunId: expected a string, found a number"),
    ] {
        assert_eq!(refused(&input_with(member, value)), expected);
    }
    assert_eq!(refused(&json!([])), "the request body: expected an object, found an array");
    assert_eq!(refused(&json!(null)), "the request body: expected an object, found null");
}

#[test]
fn the_role_may_come_last() {
    let text = r#"{"threadId":"t","runId":"r","messages":[
        {"content":[{"text":"hi","type":"text"}],"id":"m","role":"user"},
        {"toolCalls":[],"content":"x","role":"assistant","id":"n"},
        {"content":5,"id":{},"role":"alien"}]}"#;
    let decoded = decode(text.as_bytes()).unwrap();
    assert_eq!(decoded.input.messages.len(), 2);
    assert_eq!(decoded.input.messages[0], Message::user("m", vec![ContentPart::text("hi")]));
    assert_eq!(decoded.ignored.messages, 1);
    let fault = decode(
        br#"{"threadId":"t","runId":"r","messages":[{"content":[{"text":5,"type":"text"}],"id":"m","role":"user"}]}"#,
    );
    assert_eq!(fault.unwrap_err().path(), Some("messages[0].content[0].text"));
}

#[test]
fn null_in_an_optional_position_reads_as_absent_and_nulls_inside_open_objects_stay() {
    let nulls = json!({
        "threadId": "t", "runId": "r", "messages": [
            { "id": "1", "role": "assistant", "content": null, "name": null, "toolCalls": null, "metadata": null, "encryptedValue": null, "subagentRunId": null },
            { "id": "2", "role": "user", "content": [{ "type": "text", "text": "", "metadata": null, "id": null }] },
        ],
        "tools": null, "context": null, "state": null, "forwardedProps": null, "resume": null, "protocolVersion": null, "parentRunId": null,
    });
    let read = decoded(&nulls);
    assert!(read.ignored.is_empty());
    let expected = json!({ "threadId": "t", "runId": "r", "messages": [
        { "id": "1", "role": "assistant" },
        { "id": "2", "role": "user", "content": [{ "type": "text", "text": "" }] },
    ], "tools": [], "context": [] });
    assert_eq!(serde_json::to_value(&read.input).unwrap(), expected);
    for member in ["state", "forwardedProps"] {
        let open = json!({ "a": null, "b": [null] });
        let written =
            serde_json::to_value(decoded(&input_with(member, open.clone())).input).unwrap();
        assert_eq!(written[member], open);
    }
}

#[test]
fn unknown_members_roles_and_types_are_ignored_and_counted() {
    let read = decoded(&json!({
        "threadId": "t", "runId": "r", "mood": "good", "messages": [
            { "id": "1", "role": "user", "content": [{ "type": "hologram", "data": {} }, { "type": "text", "text": "a", "bold": true }], "toolCallId": 5 },
            { "id": "2", "role": "narrator", "content": { "deep": [1, 2, { "x": "y" }] } },
            { "id": "3", "role": "user", "content": [{ "type": "image", "source": { "type": "satellite", "value": 5 } }] },
        ],
        "tools": [{ "name": "f", "description": "d", "strict": true }],
    }));
    assert_eq!(read.input.messages.len(), 2);
    assert_eq!(read.input.messages[0], Message::user("1", vec![ContentPart::text("a")]));
    assert_eq!(read.input.messages[1], Message::user("3", MessageContent::Parts(vec![])));
    assert_eq!((read.ignored.members, read.ignored.messages, read.ignored.parts), (4, 1, 2));
    let line = read.ignored.to_string();
    assert!(
        line.starts_with(
            "4 members, 1 message, 2 content parts (\"mood\", messages[0].content[0] of type \"hologram\""
        ),
        "{line}"
    );
    assert!(line.ends_with(", …)"), "{line}");
}

#[test]
fn client_text_in_log_lines_is_escaped_and_truncated() {
    let name = format!("\n\u{1b}[31m{}", "x".repeat(10_000));
    let line = decoded(&input_with(&name, json!(1))).ignored.to_string();
    assert!(line.len() < 200 && !line.contains('\n') && !line.contains('\u{1b}'), "{line}");
}

#[test]
fn a_binary_part_is_decoded_as_a_media_part() {
    let part = |part: Value| match message(json!({ "id": "m", "role": "user", "content": [part] }))
    {
        (Message::User(user), ignored) if ignored.is_empty() => match user.content {
            MessageContent::Parts(mut parts) => parts.remove(0),
            MessageContent::Text(_) => panic!("no parts"),
        },
        other => panic!("{other:?}"),
    };
    let image = part(
        json!({ "type": "binary", "mimeType": "image/png", "data": "AA==", "url": "https://x", "filename": "a.png" }),
    );
    assert_eq!(
        serde_json::to_value(image).unwrap(),
        json!({ "type": "image", "source": { "type": "data", "value": "AA==", "mimeType": "image/png" }, "metadata": { "filename": "a.png" } })
    );
    let audio =
        part(json!({ "type": "binary", "mimeType": "audio/wav", "url": "https://x", "id": "f" }));
    assert!(
        matches!(&audio, ContentPart::Audio(media) if matches!(&media.source, PartSource::Url { value, .. } if value == "https://x"))
    );
    let video = part(json!({ "type": "binary", "mimeType": "video/mp4", "id": "f1" }));
    assert!(
        matches!(&video, ContentPart::Video(media) if matches!(&media.source, PartSource::File { value, .. } if value == "f1"))
    );
    assert!(matches!(
        part(json!({ "type": "binary", "mimeType": "text/csv", "data": "x" })),
        ContentPart::Document(_)
    ));
}

#[test]
fn invalid_json_is_refused() {
    for (body, expected) in [
        (&b""[..], "not valid JSON: EOF while parsing a value at line 1 column 0"),
        (b"{", "not valid JSON: EOF while parsing an object at line 1 column 1"),
        (b"{\"threadId\":\"\xff\"}", "not valid JSON: invalid UTF-8 at byte 13"),
    ] {
        let error = decode(body).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.path(), None);
    }
    let trailing = br#"{"threadId":"t","runId":"r","messages":[]} x"#;
    assert!(
        decode(trailing)
            .unwrap_err()
            .to_string()
            .starts_with("not valid JSON: trailing characters")
    );
}

#[test]
fn depth_is_bounded_in_all_places() {
    let deep = "[".repeat(100_000);
    for body in [
        format!(r#"{{"threadId":"t","runId":"r","messages":[],"state":{deep}"#),
        format!(r#"{{"threadId":"t","runId":"r","messages":[{{"id":"m","content":{deep}"#),
        format!(
            r#"{{"threadId":"t","runId":"r","messages":[{{"id":"m","role":"user","metadata":{{"a":{deep}"#
        ),
        format!(
            r#"{{"threadId":"t","runId":"r","messages":[{{"id":"m","role":"user","content":{deep}"#
        ),
        format!(r#"{{"unknown":{deep}"#),
        deep.clone(),
    ] {
        decode(body.as_bytes()).unwrap_err();
    }
    // Ignored values are not built, so their depth has no limit.
    let ignored_values = format!(
        r#"{{"threadId":"t","runId":"r","messages":[{{"id":"m","role":"narrator","content":{deep}{0}}}],"unknown":{deep}{0}}}"#,
        "]".repeat(100_000)
    );
    let decoded = decode(ignored_values.as_bytes()).unwrap();
    assert!(decoded.input.messages.is_empty() && !decoded.ignored.is_empty());
    let nested = |levels: usize| {
        format!(
            r#"{{"threadId":"t","runId":"r","messages":[],"state":{}{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(decode(nested(100).as_bytes()).is_ok());
    assert!(matches!(decode(nested(200).as_bytes()), Err(DecodeError::TooDeep(_))));
    let late = format!(
        r#"{{"threadId":"t","runId":"r","messages":[{{"id":"m","content":[{{"type":"text","text":"","metadata":{}{}}}],"role":"user"}}]}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    assert!(matches!(decode(late.as_bytes()), Err(DecodeError::TooDeep(_))));
}

#[test]
fn open_payloads_hold_a_bounded_number_of_values() {
    let state = format!("[{}0]", "0,".repeat(MAX_OPEN_VALUES));
    let body = format!(r#"{{"threadId":"t","runId":"r","messages":[],"state":{state}}}"#);
    let error = decode(body.as_bytes()).unwrap_err();
    assert_eq!(
        error,
        DecodeError::TooManyValues { path: "state".to_owned(), limit: MAX_OPEN_VALUES }
    );
    // The values of all payloads count together.
    let metadata = format!("{{\"a\":[{}0]}}", "0,".repeat(MAX_OPEN_VALUES / 100));
    let message = format!(r#"{{"id":"m","role":"user","content":"","metadata":{metadata}}}"#);
    let body =
        format!(r#"{{"threadId":"t","runId":"r","messages":[{}]}}"#, vec![message; 101].join(","));
    assert!(matches!(decode(body.as_bytes()), Err(DecodeError::TooManyValues { .. })));
}

#[test]
fn the_last_of_two_members_with_one_name_counts() {
    let text = br#"{"threadId":"a","threadId":"b","runId":"r","messages":[{"id":"1","id":"2","role":"user","content":"x","content":"y"}]}"#;
    let input = decode(text).unwrap().input;
    assert_eq!(input.thread_id, "b");
    assert_eq!(input.messages[0], Message::user("2", "y"));
}

#[test]
fn a_second_role_or_type_is_refused() {
    for (message, path) in [
        (r#"{"role":"system","id":"m","content":"x","role":"user"}"#, "messages[0].role"),
        (
            r#"{"id":"m","role":"user","content":[{"type":"text","text":"x","type":"image"}]}"#,
            "messages[0].content[0].type",
        ),
    ] {
        let body = format!(r#"{{"threadId":"t","runId":"r","messages":[{message}]}}"#);
        assert_eq!(
            decode(body.as_bytes()).unwrap_err().to_string(),
            format!("{path}: given twice")
        );
    }
}

#[test]
fn the_number_of_members_before_the_role_is_bounded() {
    let message = |members: usize| {
        let early: String = (0..members).map(|n| format!("\"x{n}\":0,")).collect();
        format!(
            r#"{{"threadId":"t","runId":"r","messages":[{{"id":"m",{early}"role":"user","content":""}}]}}"#
        )
    };
    assert_eq!(decode(message(1000).as_bytes()).unwrap().ignored.members, 1000);
    let error = decode(message(1001).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "messages[0]: more than 1000 members before \"role\"");
}

#[test]
fn other_formats_have_the_same_limits() {
    assert_eq!(decode_value(br#"{"a":[1,null]}"#).unwrap(), json!({ "a": [1, null] }));
    assert_eq!(decode_value(b"null").unwrap(), Value::Null);
    let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
    let error = decode_value(many.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "the request body: more than 500000 JSON values");
    let deep = "[".repeat(100_000);
    assert!(matches!(decode_value(deep.as_bytes()), Err(DecodeError::TooDeep(_))));

    #[derive(Debug, serde::Deserialize)]
    struct Members {
        name: String,
    }
    let more = format!(r#"{{"more":{many},"name":"x"}}"#);
    assert_eq!(decode_members::<Members>(more.as_bytes()).unwrap().name, "x");
    let long = format!("\"{}\"", "x".repeat(10_000));
    let error = decode_members::<Members>(long.as_bytes()).unwrap_err();
    assert!(error.to_string().len() < 400 && error.path().is_none(), "{error}");
}

#[test]
fn members_in_snake_case_are_read() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" }, "encrypted_value": "e" });
    let input = json!({
        "thread_id": "t", "run_id": "r", "parent_run_id": "p", "forwarded_props": { "some_key": 1 }, "protocol_version": "1.0",
        "messages": [
            { "id": "a", "role": "assistant", "tool_calls": [call] },
            { "id": "b", "tool_call_id": "c", "role": "tool", "content": "3" },
            { "id": "d", "role": "user", "content": [{ "type": "image", "source": { "type": "url", "value": "u", "mime_type": "image/png" } }] },
        ],
        "resume": [{ "interrupt_id": "i", "status": "cancelled" }],
    });
    let Decoded { input, ignored, snake_case, open_values } = decoded(&input);
    assert!(ignored.is_empty(), "{ignored}");
    assert_eq!((snake_case, open_values), (10, 2));
    let Value::Object(mut read) = serde_json::to_value(&input).unwrap() else { unreachable!() };
    assert_eq!(read["threadId"], "t");
    assert_eq!(read["forwardedProps"], json!({ "some_key": 1 }));
    assert_eq!(read["messages"][0]["toolCalls"][0]["encryptedValue"], "e");
    assert_eq!(read["messages"][1]["toolCallId"], "c");
    assert_eq!(read["messages"][2]["content"][0]["source"]["mimeType"], "image/png");
    assert_eq!(read.remove("resume"), Some(json!([{ "interruptId": "i", "status": "cancelled" }])));
}

#[test]
fn the_protocols_spelling_wins_over_snake_case() {
    for json in [
        r#"{"threadId":"t","thread_id":"other","runId":"r","messages":[]}"#,
        r#"{"thread_id":"other","threadId":"t","runId":"r","messages":[]}"#,
    ] {
        assert_eq!(decode(json.as_bytes()).unwrap().input.thread_id.as_ref(), "t");
    }
    let odd = decoded(
        &json!({ "threadId": "t", "runId": "r", "messages": [], "thread__id": 1, "_thread_id": 1, "thread_ID": 1 }),
    );
    assert_eq!((odd.ignored.members, odd.snake_case), (3, 0));
}

#[test]
fn half_of_a_surrogate_pair_becomes_a_replacement_character() {
    let input = r#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"cut \ud83d, 😀 \ud83d\ude00"}]}"#;
    let Decoded { input, .. } = decode(input.as_bytes()).unwrap();
    let message = serde_json::to_value(&input.messages[0]).unwrap();
    assert_eq!(message["content"], "cut \u{fffd}, 😀 😀");
    assert!(decode(br#"{"threadId":"\ud83d","#).is_err());
}

#[test]
fn what_pages_leave_out_of_tools_and_results_is_empty() {
    let input = json!({
        "threadId": "t", "runId": "r",
        "messages": [
            { "id": "1", "role": "tool", "toolCallId": "c", "error": "no" },
            { "id": "2", "role": "tool", "toolCallId": "c", "content": null, "error": "no" },
            { "id": "3", "role": "tool", "toolCallId": "c" },
        ],
        "tools": [
            { "name": "a" },
            { "name": "b", "description": null, "parameters": null },
            { "name": "c", "parameters": { "required": null, "properties": null } },
        ],
    });
    let read = decoded(&input).input;
    assert!(
        read.messages
            .iter()
            .all(|message| matches!(message, Message::Tool(tool) if tool.content == "".into()))
    );
    assert!(read.tools.iter().all(|tool| tool.description.is_empty()));
    assert_eq!(read.tools[1].parameters, None);
    let text = r#"{"threadId":"t","runId":"r","messages":[],"state":{"a":NaN,"b":"\ud83d"}}"#;
    let read = decode(format!("\u{feff}{text}").as_bytes()).unwrap();
    assert_eq!(read.input.state, Some(json!({ "a": null, "b": "\u{fffd}" })));
}
