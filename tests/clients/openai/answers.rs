//! Answers: streams, documents, calls, ends and errors.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agui_server::{
    agent::builtin::Echo,
    tools::{ApprovalRule, FnTool, tool_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

/// Returns a tool of the server, and the number of its calls.
fn order() -> (FnTool, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let tool = tool_fn("order", "Orders an item.", move |order: Order, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { format!("{} is ordered.", order.item) }
    });
    (tool, calls)
}

#[tokio::test]
async fn a_stream_begins_with_the_role_and_ends_with_the_tokens_and_done() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let body =
        asking("Hi", json!({ "model": "echo", "stream_options": { "include_usage": true } }));
    let chunks = streamed(&server, &body).await;
    let first = &chunks[0];
    assert!(first["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(first["object"], "chat.completion.chunk");
    assert_eq!(first["model"], "echo");
    assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert!(chunks.iter().all(|chunk| chunk["id"] == first["id"]));
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &Value::Null));
    let (text, reason) = text_and_reason(others);
    assert_eq!((text.is_empty(), reason), (false, json!("stop")));
    assert!(others.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[tokio::test]
async fn without_stream_the_answer_is_one_document_and_nothing_is_stored() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let completion = completion(&server, &asking("Hi", json!({}))).await;
    assert_eq!(completion["object"], "chat.completion");
    assert_eq!(completion["model"], "echo", "the default agent");
    let chunks = streamed(&server, &asking("Hi", json!({}))).await;
    assert_eq!(*content(&completion), text_and_reason(&chunks).0);
    assert_eq!(completion["choices"][0]["finish_reason"], "stop");
    assert!(completion.get("usage").is_none(), "no model has reported tokens");
    let threads = server.client.get(server.url("/threads")).send().await.unwrap();
    assert_eq!(threads.json::<Value>().await.unwrap()["threads"], json!([]));
}

#[tokio::test]
async fn only_the_agents_own_texts_are_shown_with_a_blank_line_between_messages() {
    let text = |id: &str, delta: &str| {
        [
            json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }),
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta }),
            json!({ "type": "TEXT_MESSAGE_END", "messageId": id }),
        ]
    };
    let mut events = text("a", "One").to_vec();
    events.extend([
        json!({ "type": "REASONING_START", "messageId": "r" }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm" }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": "r" }),
        json!({ "type": "REASONING_END", "messageId": "r" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "own" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": "x" }),
        json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "writer" }),
    ]);
    events.extend(text("b", "Dear").map(|mut event| {
        event["subagentRunId"] = json!("s");
        event
    }));
    events.push(json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s" }));
    events.extend(text("u", "Said by a user").map(|mut event| {
        if event["type"] == "TEXT_MESSAGE_START" {
            event["role"] = json!("user");
        }
        event
    }));
    events.extend(text("d", "two."));
    let server = Running::start(Server::new().agent("a", says(json!(events)))).await;
    let completion = completion(&server, &asking("Hi", json!({}))).await;
    assert_eq!(*content(&completion), "One\n\ntwo.");
    let chunks = streamed(&server, &asking("Hi", json!({}))).await;
    assert_eq!(text_and_reason(&chunks), ("One\n\ntwo.".to_owned(), json!("stop")));
}

#[tokio::test]
async fn a_call_of_the_callers_tool_ends_the_run_and_its_result_continues_the_conversation() {
    let provider = Provider::start().await;
    let server = Running::start(Server::new().agent("a", model_agent(&provider))).await;
    let body = asking("What is a bee?", json!({ "tools": [look_up()] }));
    let arguments = r#"{"word":"bee"}"#;
    answer_with_call(&provider, "c0", "look_up", arguments);
    let asked = completion(&server, &body).await;
    let choice = &asked["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let call = &choice["message"]["tool_calls"][0];
    let function = json!({ "name": "look_up", "arguments": arguments });
    assert_eq!((&call["type"], &call["function"]), (&json!("function"), &function));

    answer_with_call(&provider, "c0", "look_up", arguments);
    let chunks = streamed(&server, &body).await;
    let calls = &chunks[chunks.len() - 2]["choices"][0]["delta"]["tool_calls"];
    assert_eq!((&calls[0]["index"], &calls[0]["function"]), (&json!(0), &function));
    assert_eq!(text_and_reason(&chunks).1, "tool_calls");

    answer(&provider, "An insect.", "stop");
    let mut next = body.clone();
    let messages = next["messages"].as_array_mut().unwrap();
    messages.push(choice["message"].clone());
    messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "an insect" }));
    let answered = completion(&server, &next).await;
    assert_eq!(*content(&answered), "An insect.");
    let sent = &provider.requests()[2].body["messages"];
    assert_eq!(sent[1]["tool_calls"][0]["function"], function);
    assert_eq!((&sent[2]["role"], &sent[2]["content"]), (&json!("tool"), &json!("an insect")));
}

#[tokio::test]
async fn the_servers_tools_run_and_are_not_shown_as_calls() {
    let provider = Provider::start().await;
    let (tool, calls) = order();
    let agent = model_agent(&provider).tool(tool);
    let server = Running::start(Server::new().agent("a", agent)).await;
    answer_with_call(&provider, "c0", "order", r#"{"item":"A shirt"}"#);
    answer(&provider, "Done.", "stop");
    let completion = completion(&server, &asking("Order", json!({ "tools": [look_up()] }))).await;
    assert_eq!(completion["choices"][0]["finish_reason"], "stop");
    assert_eq!(*content(&completion), "Done.");
    assert!(completion["choices"][0]["message"].get("tool_calls").is_none());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_in_the_history_never_runs() {
    let provider = Provider::start().await;
    let (tool, calls) = order();
    let agent = model_agent(&provider).tool(tool);
    let server = Running::start(Server::new().agent("a", agent)).await;
    answer(&provider, "Nothing was ordered.", "stop");
    let function = json!({ "name": "order", "arguments": "{\"item\":\"A car\"}" });
    let body = json!({ "messages": [
        { "role": "user", "content": "Order" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c0", "type": "function", "function": function },
        ] },
        { "role": "user", "content": "Well?" },
    ] });
    let completion = completion(&server, &body).await;
    assert_eq!(*content(&completion), "Nothing was ordered.");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_call_that_needs_approval_does_not_run_and_the_answer_says_so() {
    let provider = Provider::start().await;
    let (tool, calls) = order();
    let agent = model_agent(&provider).tool(tool.needs_approval(ApprovalRule::Always));
    let server = Running::start(Server::new().agent("a", agent)).await;
    for _ in 0..2 {
        answer_with_call(&provider, "c0", "order", r#"{"item":"A car"}"#);
    }
    let body = asking("Order", json!({}));
    let refused = post(&server, &body).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["x-should-retry"]),
        (422, &"false".parse().unwrap())
    );
    let error = refused.json::<Value>().await.unwrap()["error"].take();
    assert_eq!(error["code"], "person_needed");
    assert!(error["message"].as_str().unwrap().contains("use a client that can ask"), "{error}");
    let chunks = streamed(&server, &body).await;
    assert_eq!(chunks.last().unwrap()["error"]["code"], "person_needed");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_reason_to_end_and_the_tokens_are_those_of_the_model() {
    let provider = Provider::start().await;
    let server = Running::start(Server::new().agent("a", model_agent(&provider))).await;
    for (sent, expected) in
        [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter")]
    {
        let end = json!({
            "choices": [{ "index": 0, "delta": {}, "finish_reason": sent }],
            "usage": { "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9 },
        });
        provider.answer(Answer::openai(&[chunk(json!({ "content": "Well" })), end]));
        let completion = completion(&server, &asking("Hi", json!({}))).await;
        assert_eq!(completion["choices"][0]["finish_reason"], expected);
        assert_eq!(*content(&completion), "Well");
        let usage = &completion["usage"];
        let counts =
            ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| &usage[name]);
        assert_eq!(counts, [7, 2, 9]);
    }
}

#[tokio::test]
async fn a_run_that_fails_is_an_error_that_no_sdk_repeats() {
    let events = json!([
        { "type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "I beg" },
        { "type": "RUN_ERROR", "message": "It broke.", "code": "broken" },
    ]);
    let server = Running::start(Server::new().agent("a", says(events))).await;
    let body = asking("Hi", json!({}));
    let failed = post(&server, &body).await;
    assert_eq!(failed.status(), 502);
    assert_eq!(failed.headers()["x-should-retry"], "false");
    let error = json!({ "error": {
        "message": "It broke.", "type": "server_error", "param": null, "code": "broken",
    } });
    assert_eq!(failed.json::<Value>().await.unwrap(), error);
    let chunks = streamed(&server, &body).await;
    assert_eq!(chunks.last(), Some(&error));
    assert_eq!(text_and_reason(&chunks).0, "I beg");
}

#[tokio::test]
async fn a_value_that_the_agent_rejects_is_not_shown() {
    let provider = Provider::start().await;
    let server = Running::start(Server::new().agent("a", model_agent(&provider))).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "number", "schema": schema } });
    let body = asking("A number", json!({ "response_format": format }));
    for _ in 0..2 {
        answer(&provider, "{\"n\":\"one\"}", "stop");
        answer(&provider, "```json\n{\"n\":1}\n```", "stop");
    }
    assert_eq!(*content(&completion(&server, &body).await), "{\"n\":1}");
    let chunks = streamed(&server, &body).await;
    assert_eq!(text_and_reason(&chunks), ("{\"n\":1}".to_owned(), json!("stop")));
    let sent = &provider.requests()[0].body["response_format"];
    assert_eq!(sent["json_schema"]["schema"]["required"], json!(["n"]));
}
