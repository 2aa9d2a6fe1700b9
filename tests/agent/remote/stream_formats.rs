//! Unusual and old forms of event streams, which are all read.

use serde_json::{Value, json};

use super::{
    endpoint::{FakeEndpoint, Piece, Response, agent_events, finished, run, started, text},
    running::input,
    server::Process,
};

/// The body of a run with the text "Hi", with each event in a frame made by `frame`.
fn framed(frame: impl Fn(&Value) -> String) -> String {
    let events = [&[started()][..], &text("said", "Hi"), &[finished()]].concat();
    events.iter().map(frame).collect()
}

#[tokio::test]
async fn all_forms_of_server_sent_events_are_read() {
    let pretty = |event: &Value| {
        let text = serde_json::to_string_pretty(event).unwrap();
        text.lines().map(|line| format!("data: {line}\n")).collect::<String>() + "\n"
    };
    let answers = [
        ("LF", Response::text(framed(|event| format!("data: {event}\n\n")))),
        ("CRLF", Response::text(framed(|event| format!("data: {event}\r\n\r\n")))),
        ("CR", Response::text(framed(|event| format!("data: {event}\r\r")))),
        ("no space", Response::text(framed(|event| format!("data:{event}\n\n")))),
        (
            "a byte order mark",
            Response::text("\u{FEFF}".to_owned() + &framed(|event| format!("data: {event}\n\n"))),
        ),
        (
            "other fields",
            Response::text(framed(|event| format!("id: 7\nevent: x\nretry: 5\ndata: {event}\n\n"))),
        ),
        ("several lines", Response::text(framed(pretty))),
        (
            "comments",
            Response::text(framed(|event| format!(": hello\n\n:\ndata: {event}\n: bye\n\n\n"))),
        ),
        (
            "empty events",
            Response::text(framed(|event| format!("data:\n\nevent: ping\n\ndata: {event}\n\n"))),
        ),
        (
            "a character set",
            Response::text(framed(|event| format!("data: {event}\n\n")))
                .with("content-type", "Text/Event-Stream; charset=utf-8"),
        ),
        (
            "another type",
            Response::text(framed(|event| format!("data: {event}\n\n")))
                .with("content-type", "application/json"),
        ),
        (
            "no type",
            Response {
                headers: vec![],
                ..Response::text(framed(|event| format!("\n: hello\n\ndata: {event}\n\n")))
            },
        ),
        (
            "single bytes without a type",
            Response {
                headers: vec![],
                ..Response::stream(
                    framed(|event| format!("data: {event}\n\n"))
                        .chars()
                        .map(|c| Piece::Text(c.into())),
                )
            },
        ),
        (
            "single bytes",
            Response::stream(
                framed(|event| format!("data: {event}\r\n\r\n"))
                    .chars()
                    .map(|c| Piece::Text(c.into())),
            ),
        ),
    ];
    for (form, answer) in answers {
        let endpoint = FakeEndpoint::new([answer]).await;
        let events = run(&endpoint.server().await, &input("Hello")).await;
        assert_eq!(agent_events(&events), text("said", "Hi"), "{form}");
        assert_eq!(events[4]["outcome"]["type"], "success", "{form}");
    }
}

#[tokio::test]
async fn events_of_older_versions_are_converted() {
    let stream = [
        started(),
        json!({ "type": "THINKING_START", "title": "Let me see", "timestamp": null, "rawEvent": null }),
        json!({ "type": "THINKING_TEXT_MESSAGE_START", "timestamp": 1.0 }),
        json!({ "type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "So" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_END" }),
        json!({ "type": "THINKING_END" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": null }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": "5", "role": null }),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "said", "delta": "Hi", "role": null, "name": null }),
        json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": null, "outcome": null, "usage": null }),
    ];
    let endpoint = FakeEndpoint::new([Response::events(&stream)]).await;
    let events = run(&endpoint.server().await, &input("Hello")).await;
    let types: Vec<_> =
        agent_events(&events).iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TOOL_CALL_START",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END"
        ]
    );
    assert_eq!(events[2]["timestamp"], 1);
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    assert!(!events.iter().any(|event| event.as_object().unwrap().values().any(Value::is_null)));
}

#[tokio::test]
async fn unknown_events_and_members_of_newer_versions_are_left_out() {
    let mut content = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "said", "delta": "Hi" });
    content["mood"] = "good".into();
    let stream = [
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.7" }),
        json!({ "type": "HOLOGRAM_START", "hologramId": 5 }),
        text("said", "")[0].clone(),
        content,
        text("said", "")[2].clone(),
        json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": { "type": "paused" } }),
    ];
    let endpoint = FakeEndpoint::new([Response::events(&stream)]).await;
    let events = run(&endpoint.server().await, &input("Hello")).await;
    assert_eq!(agent_events(&events), text("said", "Hi"));
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test]
async fn late_events_and_missing_or_repeated_starts_change_nothing() {
    let late = [
        &[started()][..],
        &text("said", "Hi"),
        &[finished()],
        &text("late", "late"),
        &[finished()],
    ]
    .concat();
    let no_start = [&text("said", "Hi")[..], &[finished()]].concat();
    let twice = [&[started(), started()][..], &text("said", "Hi"), &[finished()]].concat();
    for stream in [late, no_start, twice] {
        let endpoint = FakeEndpoint::new([Response::events(&stream)]).await;
        let events = run(&endpoint.server().await, &input("Hello")).await;
        assert_eq!(agent_events(&events), text("said", "Hi"));
        assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    }
}

#[tokio::test]
async fn an_order_that_can_be_corrected_is_corrected() {
    let [open, say, _] = text("said", "Hi");
    let call = json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f" });
    let result =
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": "5" });
    let stream = [started(), open, say, call, result, text("never", "")[2].clone(), finished()];
    let endpoint = FakeEndpoint::new([Response::events(&stream)]).await;
    let events = run(&endpoint.server().await, &input("Hello")).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    let types: Vec<_> =
        agent_events(&events).iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types[2..],
        ["TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_END"]
    );
}

#[tokio::test]
async fn the_log_names_everything_that_was_left_out_once() {
    let strange = json!({ "type": "HOLOGRAM\n", "hologramId": 5 });
    let mut stream = vec![started(), strange.clone(), strange, finished(), finished()];
    stream.extend(text("late", "late"));
    let endpoint = FakeEndpoint::new([
        Response::events(&stream),
        Response::status(422, "no \n such \u{1b}[31m field"),
    ])
    .await;
    let environment =
        [("AGUI_AGENTS__FAR__KIND", "remote"), ("AGUI_AGENTS__FAR__URL", &*endpoint.url)];
    let process =
        Process::start(&["--log", "info"], &[&environment[..], &[("NO_COLOR", "1")]].concat());
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    for last in ["RUN_FINISHED", "RUN_ERROR"] {
        let url = format!("{}/agents/far/send-message", process.url);
        let body =
            client.post(url).json(&input("Hello")).send().await.unwrap().text().await.unwrap();
        assert!(body.contains(last), "{body}");
    }
    process.signal("-TERM");
    let (_, log) = process.ended();
    for (expected, times) in [
        ("RUN_STARTED has other ids than this run", 1),
        ("an event of a type that AG-UI does not know was left out", 1),
        (r#"which="HOLOGRAM\n""#, 1),
        ("the remote agent sent events after the last one ignored=4", 1),
        (r#"its response begins with "no \n such \u{1b}[31m field""#, 1),
    ] {
        assert_eq!(log.matches(expected).count(), times, "{expected}: {log}");
    }
}

#[tokio::test]
async fn half_an_emoji_is_joined_over_the_events_of_a_message() {
    let content = |delta: &str| json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "said", "delta": delta });
    let [start, _, end] = text("said", "");
    let events = [
        started(),
        start,
        content("Hi HIGH"),
        content("LOW!"),
        content("cut HIGH"),
        end,
        finished(),
    ];
    let events = events
        .iter()
        .map(|event| event.to_string().replace("HIGH", "\\ud83d").replace("LOW", "\\ude00"));
    let stream: String = events.map(|event| format!("data: {event}\n\n")).collect();
    let endpoint = FakeEndpoint::new([Response::text(stream)]).await;
    let events = run(&endpoint.server().await, &input("Hello")).await;
    let deltas: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(deltas, "Hi 😀!cut \u{fffd}");
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success", "{events:?}");
}
