//! Clients from before AG-UI 1.0, which end a run at what they do not know.

use agui_server::{
    Server,
    agent::{EventStream, RunContext, event_stream, events as known},
    options::HttpOptions,
    protocol::{Event, RunAgentInput},
};
use serde_json::{Value, json};

use crate::support::running::{Running, TEST_TIMEOUT, events};

/// An agent that thinks, shows a picture as the result of a tool, and says something.
fn thinking(_: RunAgentInput, _: RunContext) -> EventStream {
    let image =
        json!({ "type": "image", "source": { "type": "url", "value": "https://a.test/b.png" } });
    let said: Vec<Event> = serde_json::from_value(json!([
        { "type": "REASONING_START", "messageId": "r" },
        { "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" },
        { "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm" },
        { "type": "REASONING_MESSAGE_END", "messageId": "r" },
        { "type": "REASONING_END", "messageId": "r" },
        { "type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "PLAN", "content": {} },
        { "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look" },
        { "type": "TOOL_CALL_END", "toolCallId": "c" },
        { "type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": [image] },
        { "type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "Done" },
        { "type": "TEXT_MESSAGE_END", "messageId": "a" },
    ]))
    .unwrap();
    known(said)
}

/// Runs the agent, and connects to the thread. Returns the events of both.
async fn run_and_connect(server: &Running, more: &Value) -> [Vec<Value>; 2] {
    let image =
        json!({ "type": "image", "source": { "type": "url", "value": "https://a.test/a.png" } });
    let asked = json!([{ "type": "text", "text": "Look:" }, image]);
    let mut input = json!({ "threadId": "t", "runId": "r", "messages": [
        { "id": "u", "role": "user", "content": asked },
    ] });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut all = [Vec::new(), Vec::new()];
    let connect = format!("/threads/{}/connect", input["threadId"].as_str().unwrap());
    for (path, seen) in ["/send-message", &connect].iter().zip(&mut all) {
        let request = server.post(path).header("accept", "text/event-stream").json(&input);
        *seen = events(&request.send().await.unwrap().text().await.unwrap());
    }
    all
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn messages(events: &[Value]) -> Vec<&Value> {
    events[1]["messages"].as_array().unwrap().iter().collect()
}

#[tokio::test]
async fn an_old_client_is_recognised_where_it_sends_and_where_it_connects() {
    let server = Running::start(Server::new().agent("thinking", thinking)).await;
    let as_text = json!("![image](https://a.test/b.png)");
    for (more, is_text) in
        [(json!({ "forwardedProps": {} }), true), (json!({ "threadId": "by-hand" }), false)]
    {
        let [sent, connected] = run_and_connect(&server, &more).await;
        let result = sent.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
        assert_eq!(result["content"] == as_text, is_text, "{result}");
        let stored = messages(&connected);
        let result = stored.iter().find(|message| message["role"] == "tool").unwrap();
        assert_eq!(result["content"] == as_text, is_text, "{result}");
    }
}

#[tokio::test]
async fn with_an_older_oldest_client_old_ones_get_thinking_and_only_texts() {
    let mut options = HttpOptions::default();
    options.clients.oldest = "0.0.40".parse().unwrap();
    let server =
        Running::start(Server::new().agent("thinking", thinking).http_options(options)).await;
    let [sent, connected] = run_and_connect(&server, &json!({ "forwardedProps": {} })).await;
    let thinking = [
        "THINKING_START",
        "THINKING_TEXT_MESSAGE_START",
        "THINKING_TEXT_MESSAGE_CONTENT",
        "THINKING_TEXT_MESSAGE_END",
        "THINKING_END",
        "TOOL_CALL_START",
    ];
    assert_eq!(types(&sent)[1..7], thinking);
    let stored = messages(&connected);
    let roles: Vec<_> = stored.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(stored[0]["content"], "Look:\n\n[image]");
    // A client that declares its version is not old.
    let declares = json!({ "threadId": "other", "forwardedProps": {}, "protocolVersion": "1.1" });
    let [sent, connected] = run_and_connect(&server, &declares).await;
    assert!(types(&sent).contains(&"REASONING_START"), "{sent:?}");
    assert!(types(&sent).contains(&"ACTIVITY_SNAPSHOT"), "{sent:?}");
    assert!(messages(&connected)[0]["content"].is_array());
}

/// An agent whose subagent begins to speak, and never ends.
fn team(_: RunAgentInput, _: RunContext) -> EventStream {
    let said: Vec<Event> = serde_json::from_value(json!([
        { "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "writer" },
        { "type": "TEXT_MESSAGE_START", "messageId": "w", "role": "assistant", "subagentRunId": "s" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "w", "delta": "Dear", "subagentRunId": "s" },
    ]))
    .unwrap();
    event_stream(async_stream::try_stream! {
        for event in said {
            yield event;
        }
        std::future::pending::<()>().await;
    })
}

#[tokio::test]
async fn a_client_that_connects_gets_no_subagents_of_an_agent_whose_clients_are_old() {
    let mut options = HttpOptions::default();
    options.without_subagents.insert("team".to_owned());
    let server = Running::start(Server::new().agent("team", team).http_options(options)).await;
    let begin = async |path: &str, more: Value| {
        let mut input = json!({ "threadId": "t", "runId": "r", "messages": [
            { "id": "u", "role": "user", "content": "Write." },
        ] });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut response = server.post(path).json(&input).send().await.unwrap();
        let mut text = String::new();
        while !text.contains("TEXT_MESSAGE_CONTENT") {
            let chunk = tokio::time::timeout(TEST_TIMEOUT, response.chunk()).await.unwrap();
            text.push_str(std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap());
        }
        text.to_lowercase().contains("subagent")
    };
    let detached = json!({ "forwardedProps": { "onDisconnect": "continue" } });
    assert!(!begin("/send-message", detached).await);
    assert!(!begin("/threads/t/connect", json!({})).await);
    assert!(begin("/threads/t/connect", json!({ "protocolVersion": "1.1" })).await);
}
