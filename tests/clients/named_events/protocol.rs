//! The guide's integration tests, under their names there, and tests of threads, errors and detached runs.

use serde_json::{Value, json};

use super::{
    AGENT, CHAT, TestServer, call, chunk, named, names, on,
    process::Process,
    provider::{Answer, Provider},
    said, thread, user,
};

/// The model calls a tool, with its arguments in two chunks, and then answers.
async fn check_tool_calls(path: &str) {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, "[\"calculator\"]", "");
    let arguments_chunk = |call: &str, arguments: &str| {
        let mut function = json!({ "arguments": arguments });
        if !call.is_empty() {
            function["name"] = "calculator".into();
        }
        let id = if call.is_empty() { Value::Null } else { call.into() };
        chunk(json!({ "tool_calls": [{ "index": 0, "id": id, "function": function }] }))
    };
    provider.answer(Answer::openai(&[
        arguments_chunk("call_abc123", "{\"expression\": \"6"),
        arguments_chunk("", " * 7\"}"),
    ]));
    provider.answer(Answer::openai(&[
        chunk(json!({ "content": "It is " })),
        chunk(json!({ "content": "42." })),
    ]));
    let frames = server.ask(path, &on("thread_1", "what is 6 * 7")).await;
    let mut events = names(&frames);
    // Each of the two requests to the model is a step, with status events.
    events.retain(|name| *name != "status");
    assert_eq!(
        events,
        ["tool_call_start", "tool_call_args", "tool_call_end", "tool_result", "message"]
    );
    let start = json!({ "toolCallId": "call_abc123", "toolCallName": "calculator", "thread_id": "thread_1" });
    assert_eq!(named(&frames, "tool_call_start"), [&start]);
    let args: String = named(&frames, "tool_call_args")
        .iter()
        .map(|payload| payload["delta"].as_str().unwrap())
        .collect();
    assert_eq!(serde_json::from_str::<Value>(&args).unwrap(), json!({ "expression": "6 * 7" }));
    assert!(
        named(&frames, "tool_call_args")
            .iter()
            .all(|payload| payload["toolCallId"] == "call_abc123")
    );
    assert_eq!(named(&frames, "tool_call_end"), [&json!({ "toolCallId": "call_abc123" })]);
    let result = json!({ "toolCallId": "call_abc123", "content": "42", "role": "tool" });
    assert_eq!(named(&frames, "tool_result"), [&result]);
    let agent = if path == CHAT { "chat" } else { "worker" };
    let message = json!({ "content": "It is ", "thread_id": "thread_1", "agent": agent });
    assert_eq!(named(&frames, "message")[0], &message);
    assert_eq!(said(&frames), "It is 42.");
    assert_eq!(frames.last().unwrap().1["type"], "run_finished");
}

async fn check_reasoning(path: &str) {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, "[]", "");
    let think = |text: &str| chunk(json!({ "reasoning_content": text }));
    provider.answer(Answer::openai(&[
        think("Let me think about this..."),
        think(" First, I need to consider..."),
        chunk(json!({ "content": "Done." })),
    ]));
    let mut body = user("Solve this step by step...");
    body["enable_deep_thinking"] = true.into();
    let frames = server.ask(path, &body).await;
    let expected = [
        "status",
        "reasoning_start",
        "reasoning_message_start",
        "reasoning_message_content",
        "reasoning_message_end",
        "reasoning_end",
        "message",
        "status",
    ];
    assert_eq!(names(&frames), expected);
    let id = &named(&frames, "reasoning_start")[0]["messageId"];
    assert!(id.is_string());
    for (name, payload) in frames.iter().filter(|(name, _)| name.starts_with("reasoning")) {
        assert_eq!(payload["messageId"], *id, "{name}: clients group a session by one id");
    }
    assert_eq!(
        named(&frames, "reasoning_message_start"),
        [&json!({ "messageId": id, "role": "assistant" })]
    );
    let deltas = named(&frames, "reasoning_message_content");
    let text: String = deltas.iter().map(|payload| payload["delta"].as_str().unwrap()).collect();
    assert_eq!(text, "Let me think about this... First, I need to consider...");
    // Without `enable_deep_thinking`, the model gets no reasoning effort.
    provider.answer(Answer::openai(&[chunk(json!({ "content": "2" }))]));
    server.ask(path, &user("1 + 1?")).await;
    let efforts: Vec<_> = provider
        .requests()
        .iter()
        .map(|request| request.body["reasoning_effort"].is_string())
        .collect();
    assert_eq!(efforts, [true, false]);
}

/// Returns the part of the provider's request that an image block becomes.
async fn provider_image(path: &str, image: Value) -> Value {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, "[]", "");
    provider.answer(Answer::openai(&[chunk(json!({ "content": "A pixel." }))]));
    let body = user(json!([{ "type": "text", "text": "What do you see in this image?" }, image]));
    assert_eq!(said(&server.ask(path, &body).await), "A pixel.");
    let messages = provider.requests()[0].body["messages"].clone();
    let content = messages.as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(content[0], json!({ "type": "text", "text": "What do you see in this image?" }));
    content[1].clone()
}

#[tokio::test]
async fn test_chat_tool_calls() {
    check_tool_calls(CHAT).await;
}

#[tokio::test]
async fn test_agent_tool_calls() {
    check_tool_calls(AGENT).await;
}

#[tokio::test]
async fn test_chat_reasoning() {
    check_reasoning(CHAT).await;
}

#[tokio::test]
async fn test_agent_reasoning() {
    check_reasoning(AGENT).await;
}

#[tokio::test]
async fn test_chat_multimodal_url() {
    let part =
        provider_image(CHAT, json!({ "type": "image", "url": "https://example.com/photo.jpg" }))
            .await;
    assert_eq!(part["image_url"]["url"], "https://example.com/photo.jpg");
}

#[tokio::test]
async fn test_chat_multimodal_base64() {
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
    let part =
        provider_image(CHAT, json!({ "type": "image", "data": data, "mime_type": "image/png" }))
            .await;
    assert_eq!(part["image_url"]["url"], format!("data:image/png;base64,{data}"));
}

#[tokio::test]
async fn the_server_stores_the_history_of_a_thread() {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, "[\"calculator\"]", "");
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Hello, Ada." }))]));
    let first = server.ask(CHAT, &user("I am Ada.")).await;
    // The request named no thread.
    let id = thread(&first);
    assert!(id.starts_with("thread-"), "{id}");
    assert_eq!(named(&first, "message")[0]["thread_id"], id);
    provider.answer(Answer::openai(&[call("c", "calculator", &json!({ "expression": "1+1" }))]));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "2, Ada." }))]));
    server.ask(CHAT, &on(&id, "1+1?")).await;
    provider.answer(Answer::openai(&[chunk(json!({ "content": "You are Ada." }))]));
    server.ask(CHAT, &on(&id, "Who am I?")).await;
    let requests = provider.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]);
    // AG-UI clients read the same thread.
    let url = format!("{}/threads/{id}", server.process.url);
    let stored: Value = server.client.get(url).send().await.unwrap().json().await.unwrap();
    let texts: Vec<_> =
        stored["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    let said = json!([
        "I am Ada.",
        "Hello, Ada.",
        "1+1?",
        null,
        "2",
        "2, Ada.",
        "Who am I?",
        "You are Ada."
    ]);
    assert_eq!(json!(texts), said);
}

#[tokio::test]
async fn a_failed_run_ends_with_an_error_event() {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, "[]", "");
    provider.answer(Answer::new(401, ["no"]));
    let frames = server.ask(CHAT, &on("t", "hi")).await;
    assert_eq!(names(&frames), ["status", "error"]);
    let error = &frames[1].1;
    assert!(
        error["type"].is_string() && error["message"].is_string() && error["thread_id"] == "t",
        "{error}"
    );
}

#[tokio::test]
async fn steps_are_status_events_and_state_is_left_out() {
    let server = TestServer::demo();
    let frames = server.ask(CHAT, &user("plan a trip")).await;
    let kinds: Vec<_> =
        named(&frames, "status").iter().map(|status| status["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("run_started", "run_finished"));
    let known =
        ["status", "message", "tool_call_start", "tool_call_args", "tool_call_end", "tool_result"];
    assert!(names(&frames).iter().all(|name| known.contains(name)), "{:?}", names(&frames));
}

#[tokio::test]
async fn detached_runs_have_the_same_events() {
    let foreground = TestServer::demo();
    let detached =
        TestServer::new(Process::start(&[], &[("AGUI_RUNS__ON_DISCONNECT", "continue")]), None);
    for text in ["count to 5", "parallel", "approve", "think about lunch"] {
        let frames =
            [foreground.ask(CHAT, &user(text)).await, detached.ask(CHAT, &user(text)).await];
        let [expected, events] = frames.map(|frames| (said(&frames), names(&frames).join(" ")));
        assert_eq!(events, expected);
    }
}
