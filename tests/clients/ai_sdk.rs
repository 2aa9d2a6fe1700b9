//! The routes for the AI SDK: the bytes of their streams, and requests that the SDK's own chat does not send;
//! `tests/js/ai-sdk.test.mjs` tests the server with that chat.

use agui_server::{
    Server,
    agent::{EventStream, RunContext, event_stream},
    auth::ApiKey,
    options::HttpOptions,
    protocol::{Event, Message, RunAgentInput},
};
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::running::{Running, eventually_async};

fn text(id: &str, text: &str) -> Vec<Value> {
    vec![
        json!({ "type": "TEXT_MESSAGE_START", "messageId": id }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": id }),
    ]
}

fn call(id: &str, tool: &str, message: Option<&str>) -> Vec<Value> {
    let mut start = json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": tool });
    if let Some(message) = message {
        start["parentMessageId"] = message.into();
    }
    vec![
        start,
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "{\"n\":1}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
    ]
}

fn result(call: &str, content: &str) -> Value {
    json!({ "type": "TOOL_CALL_RESULT", "messageId": format!("{call}-m"), "toolCallId": call, "content": content })
}

fn step(name: &str, events: Vec<Value>) -> Vec<Value> {
    let begin = json!({ "type": "STEP_STARTED", "stepName": name });
    let end = json!({ "type": "STEP_FINISHED", "stepName": name });
    [vec![begin], events, vec![end]].concat()
}

fn asks(interrupt: &Value) -> Value {
    let outcome = json!({ "type": "interrupt", "interrupts": [interrupt] });
    json!({ "type": "RUN_FINISHED", "threadId": "", "runId": "", "outcome": outcome })
}

/// Answers by the last text of the user, and what follows it.
fn answer(input: &RunAgentInput) -> Vec<Value> {
    let is_result = matches!(input.messages.last(), Some(Message::Tool(_)));
    let approved = input.resume.first().map(|reply| reply.payload.clone().unwrap_or_default());
    match (input.last_user_text().as_deref(), is_result, approved) {
        (Some("hello"), ..) => text("m1", "Hi \"you\""),
        (Some("think"), ..) => {
            let mut events = vec![
                json!({ "type": "REASONING_START", "messageId": "r" }),
                json!({ "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" }),
                json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm" }),
                json!({ "type": "REASONING_MESSAGE_END", "messageId": "r" }),
                json!({ "type": "REASONING_END", "messageId": "r" }),
            ];
            events.extend(text("m1", "So"));
            let sources = json!([
                { "type": "url_citation", "url_citation": { "url": "https://a.example", "title": "A" } },
                { "url": "https://a.example" }, { "web": { "uri": "https://b.example" } }, {},
            ]);
            events[7]["metadata"] = json!({ "agui-server.citations": sources });
            events
        }
        (Some("look"), ..) => {
            let (mut first, mut failed) = (text("m1", "Wait"), result("c2", "no such city"));
            failed["metadata"] = json!({ "agui-server.failed": true });
            first.extend(call("c1", "look_up", Some("m1")));
            first.extend(call("c2", "look_up", Some("m1")));
            first.extend([result("c1", "[1]"), failed]);
            [step("1", first), step("2", text("m2", "One"))].concat()
        }
        (Some("pick"), false, _) => call("c1", "pick", None),
        (Some("pick"), true, _) => text("m2", "Picked"),
        (Some("pay"), _, None) => {
            let schema =
                json!({ "type": "object", "properties": { "approved": { "type": "boolean" } } });
            let interrupt = json!({
                "id": "i1", "reason": "tool_call", "message": "Pay?", "toolCallId": "c1", "responseSchema": schema,
            });
            [call("c1", "pay", None), vec![asks(&interrupt)]].concat()
        }
        (Some("pay"), _, Some(payload)) => {
            let done = result("c1", &payload.to_string());
            [vec![done], text("m2", "Done")].concat()
        }
        (Some("file"), ..) => {
            let content =
                json!({ "id": "f", "url": "https://x.example/a.png", "mimeType": "image/png" });
            let file = json!({
                "type": "ACTIVITY_SNAPSHOT", "messageId": "a1", "activityType": "agui-server.file", "content": content,
            });
            let plan = json!({
                "type": "ACTIVITY_SNAPSHOT", "messageId": "a2", "activityType": "PLAN", "content": { "done": 0 },
            });
            let patch = json!([{ "op": "replace", "path": "/done", "value": 1 }]);
            let delta = json!({ "type": "ACTIVITY_DELTA", "messageId": "a2", "activityType": "PLAN", "patch": patch });
            vec![file, plan, delta]
        }
        _ => Vec::new(),
    }
}

fn agent(input: RunAgentInput, _: RunContext) -> EventStream {
    let is_endless = input.last_user_text().is_some_and(|text| text == "endless");
    event_stream(async_stream::try_stream! {
        for event in answer(&input) {
            yield serde_json::from_value::<Event>(event).unwrap();
        }
        if is_endless {
            for event in &text("m1", "and so on")[..2] {
                yield serde_json::from_value::<Event>(event.clone()).unwrap();
            }
            std::future::pending::<()>().await;
        }
        if input.last_user_text().is_some_and(|text| text == "fail") {
            Err(agui_server::agent::AgentError::new("broken", "It broke."))?;
        }
    })
}

async fn start() -> Running {
    Running::start(Server::new().agent("a", agent)).await
}

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

impl Running {
    async fn post_chat(&self, body: &Value) -> Response {
        self.post("/ai-sdk/a").json(body).send().await.unwrap()
    }

    /// Returns the chunks of a chat with these messages.
    async fn chat(&self, chat: &str, messages: &[Value]) -> Vec<Value> {
        let response = self.post_chat(&json!({ "id": chat, "messages": messages })).await;
        chunks(&response.text().await.unwrap())
    }

    async fn read_chat(&self, chat: &str) -> Vec<Value> {
        let response = self.client.get(self.url(&format!("/ai-sdk/a/{chat}"))).send().await;
        response.unwrap().json().await.unwrap()
    }

    async fn runs_of(&self, chat: &str) -> Vec<Value> {
        let response = self.client.get(self.url(&format!("/threads/{chat}"))).send().await.unwrap();
        let mut thread: Value = response.json().await.unwrap();
        thread["runs"].take().as_array().unwrap().clone()
    }
}

fn chunks(body: &str) -> Vec<Value> {
    let frames = body.strip_suffix("data: [DONE]\n\n").expect("the stream ends");
    let frames = frames.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

/// Returns the type of each chunk, with the member that tells most.
fn brief(chunks: &[Value]) -> Vec<String> {
    let told = [
        "delta",
        "inputTextDelta",
        "output",
        "errorText",
        "finishReason",
        "input",
        "data",
        "messageId",
        "url",
    ];
    let brief = chunks.iter().map(|chunk| {
        let value = told.iter().find_map(|name| chunk.get(name));
        let value = value.map(|value| format!(" {value}")).unwrap_or_default();
        format!("{}{value}", chunk["type"].as_str().unwrap())
    });
    brief.filter(|brief| !brief.starts_with("message-metadata")).collect()
}

#[tokio::test]
async fn a_text_is_a_step_of_one_part() {
    let server = start().await;
    let response = server.post_chat(&json!({ "id": "t", "messages": [user("u1", "hello")] })).await;
    assert_eq!(response.headers()["x-vercel-ai-ui-message-stream"], "v1");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let run = server.runs_of("t").await[0]["runId"].as_str().unwrap().to_owned();
    let expected = [
        r#"{"type":"start","messageId":"m1"}"#,
        r#"{"type":"start-step"}"#,
        r#"{"type":"text-start","id":"m1","providerMetadata":{"agui":{"messageId":"m1"}}}"#,
        r#"{"type":"text-delta","id":"m1","delta":"Hi \"you\""}"#,
        r#"{"type":"text-end","id":"m1"}"#,
        r#"{"type":"finish-step"}"#,
        &format!(
            r#"{{"type":"message-metadata","messageMetadata":{{"usage":[],"runId":"{run}"}}}}"#
        ),
        r#"{"type":"finish","finishReason":"stop"}"#,
        "[DONE]",
    ];
    let expected: String = expected.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    assert_eq!(response.text().await.unwrap(), expected);
    let part = json!({ "type": "text", "text": "Hi \"you\"", "state": "done", "providerMetadata": { "agui": { "messageId": "m1" } } });
    assert_eq!(
        server.read_chat("t").await,
        [
            user("u1", "hello"),
            json!({ "id": "m1", "role": "assistant", "parts": [{ "type": "step-start" }, part] })
        ]
    );
}

#[tokio::test]
async fn reasoning_sources_files_and_activities_are_parts() {
    let server = start().await;
    assert_eq!(
        brief(&server.chat("t", &[user("u1", "think")]).await),
        [
            "start \"r\"",
            "start-step",
            "reasoning-start",
            "reasoning-delta \"Hm\"",
            "reasoning-end",
            "text-start",
            "text-delta \"So\"",
            "text-end",
            "source-url \"https://a.example\"",
            "source-url \"https://b.example\"",
            "finish-step",
            "finish \"stop\"",
        ]
    );
    assert_eq!(
        brief(&server.chat("f", &[user("u1", "file")]).await),
        [
            "start \"a1\"",
            "start-step",
            "file \"https://x.example/a.png\"",
            "data-PLAN {\"done\":0}",
            "data-PLAN {\"done\":1}",
            "finish-step",
            "finish \"stop\"",
        ]
    );
    let parts = server.read_chat("f").await[1]["parts"].clone();
    assert_eq!(parts[2], json!({ "type": "data-PLAN", "id": "a2", "data": { "done": 1 } }));
}

#[tokio::test]
async fn each_request_to_a_model_is_a_step_and_a_failed_call_an_error() {
    let server = start().await;
    let call = [
        "tool-input-start",
        "tool-input-delta \"{\\\"n\\\":1}\"",
        "tool-input-available {\"n\":1}",
    ];
    let begin = ["start \"m1\"", "start-step", "text-start", "text-delta \"Wait\"", "text-end"];
    let rest = [
        "tool-output-available [1]",
        "tool-output-error \"no such city\"",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta \"One\"",
        "text-end",
        "finish-step",
        "finish \"stop\"",
    ];
    let expected = [&begin[..], &call, &call, &rest].concat();
    let chunks = server.chat("t", &[user("u1", "look")]).await;
    assert_eq!(brief(&chunks), expected);
    assert!(
        chunks
            .iter()
            .filter(|chunk| chunk["type"] == "tool-input-available")
            .all(|chunk| chunk["providerExecuted"] == true)
    );
    let stored = server.read_chat("t").await;
    let parts: Vec<_> = stored[1]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| [&part["type"], &part["state"]])
        .collect();
    assert_eq!(
        json!(parts),
        json!([
            ["step-start", null],
            ["text", "done"],
            ["tool-look_up", "output-available"],
            ["tool-look_up", "output-error"],
            ["step-start", null],
            ["text", "done"],
        ])
    );
    // The page sends the whole answer back with its next message, and nothing is stored twice.
    server.chat("t", &[stored[0].clone(), stored[1].clone(), user("u2", "file")]).await;
    let read = server.read_chat("t").await;
    assert_eq!(read.len(), 4);
    assert_eq!(read[..2], stored);
}

#[tokio::test]
async fn the_page_answers_a_call_of_its_tool_and_the_message_continues() {
    let server = start().await;
    let tools = json!({ "pick": { "description": "Picks", "inputSchema": { "jsonSchema": { "type": "object" } } } });
    let body = |messages: Value| json!({ "id": "t", "messages": messages, "tools": tools });
    let response = server.post_chat(&body(json!([user("u1", "pick")]))).await;
    let first = chunks(&response.text().await.unwrap());
    assert_eq!(brief(&first).last().unwrap(), "finish \"tool-calls\"");
    let available = first.iter().find(|chunk| chunk["type"] == "tool-input-available").unwrap();
    assert_eq!(available.get("providerExecuted"), None);
    let mut stored = server.read_chat("t").await;
    stored[1]["parts"][1]["state"] = "output-available".into();
    stored[1]["parts"][1]["output"] = json!({ "colour": "red" });
    let response = server.post_chat(&body(json!(stored))).await;
    assert_eq!(
        brief(&chunks(&response.text().await.unwrap())),
        [
            "start \"c1\"",
            "start-step",
            "text-start",
            "text-delta \"Picked\"",
            "text-end",
            "finish-step",
            "finish \"stop\"",
        ]
    );
    let read = server.read_chat("t").await;
    assert_eq!(read.len(), 2);
    assert_eq!(read[1]["parts"][1]["output"], json!({ "colour": "red" }));
    let wrong = server
        .post_chat(&json!({ "id": "t", "messages": [user("u2", "hello")], "tools": [{}] }))
        .await;
    assert_eq!(
        (wrong.status().as_u16(), wrong.text().await.unwrap().as_str()),
        (400, "tools: expected an object of tools by name, or a list")
    );
}

/// Sets the person's decision in a stored message.
fn decided(mut message: Value, approved: bool) -> Value {
    let part = &mut message["parts"][1];
    part["state"] = "approval-responded".into();
    part["approval"]["approved"] = approved.into();
    part["approval"]["reason"] = "because".into();
    message
}

#[tokio::test]
async fn an_approval_resumes_and_a_declined_call_is_denied() {
    let server = start().await;
    for approved in [true, false] {
        let chat = format!("t-{approved}");
        let first = server.chat(&chat, &[user("u1", "pay")]).await;
        let asked = first.iter().find(|chunk| chunk["type"] == "tool-approval-request").unwrap();
        assert_eq!(
            [&asked["approvalId"], &asked["toolCallId"], &asked["reason"]],
            ["i1", "c1", "Pay?"]
        );
        let stored = server.read_chat(&chat).await;
        assert_eq!(stored[1]["parts"][1]["state"], "approval-requested");
        let replied = [stored[0].clone(), decided(stored[1].clone(), approved)];
        let continued = server.chat(&chat, &replied).await;
        let output = match approved {
            true => "tool-output-available {\"approved\":true,\"reason\":\"because\"}",
            false => "tool-output-denied",
        };
        assert_eq!(
            brief(&continued),
            [
                "start \"c1\"",
                output,
                "start-step",
                "text-start",
                "text-delta \"Done\"",
                "text-end",
                "finish-step",
                "finish \"stop\"",
            ]
        );
        // The same request again has the same end, and another one changes nothing.
        let runs = server.runs_of(&chat).await.len();
        for again in [approved, !approved] {
            let replied = [stored[0].clone(), decided(stored[1].clone(), again)];
            let texts: Vec<_> = brief(&server.chat(&chat, &replied).await);
            assert!(texts.contains(&"text-delta \"Done\"".to_owned()), "{texts:?}");
        }
        assert_eq!(server.runs_of(&chat).await.len(), runs);
    }
}

#[tokio::test]
async fn a_question_that_stays_open_is_asked_again_in_the_next_message() {
    let server = start().await;
    server.chat("t", &[user("u1", "pay")]).await;
    let stored = server.read_chat("t").await;
    let asked =
        server.chat("t", &[stored[0].clone(), stored[1].clone(), user("u2", "hello")]).await;
    let types: Vec<_> = asked.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert!(
        types.ends_with(&[
            "tool-input-available",
            "tool-approval-request",
            "finish-step",
            "message-metadata",
            "finish"
        ]),
        "{types:?}"
    );
}

#[tokio::test]
async fn errors_are_chunks_and_refusals_are_texts() {
    let server = start().await;
    let failed = server.chat("t", &[user("u1", "fail")]).await;
    assert_eq!(brief(&failed)[1..], ["error \"It broke.\"", "finish \"error\""]);
    for (body, status, expected) in [
        (json!({ "id": "t", "messages": [] }), 400, "messages: expected a message to answer"),
        (
            json!({ "messages": [] }),
            400,
            "the body is not a request of the AI SDK: missing field `id`",
        ),
        (
            json!({ "id": "t", "trigger": "regenerate-message", "message": { "id": "m1", "role": "assistant" } }),
            400,
            "messages: expected a message to answer",
        ),
    ] {
        let response = server.post_chat(&body).await;
        assert_eq!(
            (response.status().as_u16(), response.text().await.unwrap().as_str()),
            (status, expected)
        );
    }
    let key = ApiKey::from_secret("web", "open sesame");
    let server = Running::start(Server::new().agent("a", agent).api_keys([key])).await;
    let response = server.post_chat(&json!({ "id": "t", "messages": [user("u1", "hello")] })).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (401, &"text/plain; charset=utf-8".parse().unwrap())
    );
    assert!(response.headers().contains_key("www-authenticate"));
    assert!(!response.text().await.unwrap().contains('{'));
}

#[tokio::test]
async fn a_run_continues_without_its_page_until_it_is_stopped() {
    let server = start().await;
    let get = async |path: &str| server.client.get(server.url(path)).send().await.unwrap();
    let stop = async || {
        let stopped = server.post("/ai-sdk/a/t/stop").send().await.unwrap();
        stopped.json::<Value>().await.unwrap()["stopped"] == true
    };
    assert_eq!(get("/ai-sdk/a/t/stream").await.status(), 204);
    assert!(server.read_chat("t").await.is_empty());
    assert!(!stop().await);
    let mut response =
        server.post_chat(&json!({ "id": "t", "messages": [user("u1", "endless")] })).await;
    while !String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()).contains("and so on")
    {
    }
    drop(response);
    assert_eq!(server.read_chat("t").await, [user("u1", "endless")]);
    let followed = get("/ai-sdk/default/t/stream").await;
    assert_eq!(followed.headers()["x-vercel-ai-ui-message-stream"], "v1");
    assert!(stop().await);
    assert_eq!(
        brief(&chunks(&followed.text().await.unwrap())),
        [
            "data-state {}",
            "start \"m1\"",
            "start-step",
            "text-start",
            "text-delta \"and so on\"",
            "text-end",
            "finish-step",
            "abort",
            "finish \"interrupted\"",
        ]
    );
    eventually_async("the run has ended", async || {
        server.runs_of("t").await[0]["status"] == "cancelled"
    })
    .await;
    assert_eq!(get("/ai-sdk/a/t/stream").await.status(), 204);
}

#[tokio::test]
async fn a_request_is_known_by_its_chat_and_its_message() {
    let server = start().await;
    let first = json!({ "id": "t", "messages": [user("u1", "endless")] });
    let mut responses = Vec::new();
    for _ in 0..2 {
        let mut response = server.post_chat(&first).await;
        while !String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap())
            .contains("and so on")
        {}
        responses.push(response);
    }
    assert_eq!(server.runs_of("t").await.len(), 1);
    server.post("/ai-sdk/a/t/stop").send().await.unwrap();
    for response in responses {
        assert!(response.text().await.unwrap().contains("\"abort\""));
    }
    // Another text of the same message is an edit, and another answer a run of its own.
    server.chat("t", &[user("u1", "hello")]).await;
    let again = json!({ "id": "t", "messages": [user("u1", "hello"), { "id": "m1", "role": "assistant", "parts": [] }], "trigger": "regenerate-message" });
    server.post_chat(&again).await.text().await.unwrap();
    let runs = server.runs_of("t").await;
    let ids: std::collections::HashSet<_> =
        runs.iter().map(|run| run["runId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(server.read_chat("t").await.len(), 2);
}

#[tokio::test]
async fn the_routes_have_a_prefix_of_their_own_or_none() {
    let mut options = HttpOptions::default();
    options.ai_sdk.prefix = "/api/chats".to_owned();
    let server =
        Running::start(Server::new().agent("a", agent).http_options(options.clone())).await;
    let body = json!({ "id": "t", "message": user("u1", "hello") });
    assert_eq!(server.post("/api/chats/a").json(&body).send().await.unwrap().status(), 200);
    options.ai_sdk.enabled = false;
    let server = Running::start(Server::new().agent("a", agent).http_options(options)).await;
    assert_eq!(server.post("/api/chats/a").json(&body).send().await.unwrap().status(), 404);
}
