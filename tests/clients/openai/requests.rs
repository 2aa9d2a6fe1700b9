//! What is read of a request, what reaches the agent, and what is refused.

use std::sync::{Arc, Mutex};

use agui_server::{
    agent::{builtin::Echo, events},
    auth::ApiKey,
    options::{HttpOptions, ThreadOptions},
};

use super::*;

#[tokio::test]
async fn options_reach_the_model() {
    let provider = Provider::start().await;
    let server = Running::start(Server::new().agent("a", model_agent(&provider))).await;
    let sent = async |more: Value| {
        answer(&provider, "{}", "stop");
        completion(&server, &asking("Hi", more)).await;
        provider.requests().pop().unwrap().body
    };
    let body = sent(json!({
        "max_completion_tokens": 50, "max_tokens": 70, "temperature": 0.25, "stop": "END",
        "seed": 1, "user": "ann", "unknown": { "a": 1 },
    }))
    .await;
    assert_eq!(body["max_tokens"].as_u64().or(body["max_completion_tokens"].as_u64()), Some(50));
    assert_eq!((&body["temperature"], &body["stop"]), (&json!(0.25), &json!(["END"])));
    assert!(body.get("seed").is_none() && body.get("user").is_none(), "{body}");
    let body = sent(json!({ "max_tokens": 70, "stop": ["A", "B"] })).await;
    assert_eq!(body["max_tokens"].as_u64().or(body["max_completion_tokens"].as_u64()), Some(70));
    assert_eq!(body["stop"], json!(["A", "B"]));
    let choice = json!({ "type": "function", "function": { "name": "look_up" } });
    let body = sent(json!({ "tools": [look_up()], "tool_choice": choice })).await;
    assert_eq!(body["tool_choice"]["function"]["name"], "look_up");
    let body = sent(json!({ "tools": [look_up()], "tool_choice": "required" })).await;
    assert_eq!(body["tool_choice"], "required");
    assert_eq!(body["tools"][0]["function"]["name"], "look_up");
    let body = sent(json!({ "tools": [look_up()], "tool_choice": "none" })).await;
    assert!(body.get("tools").is_none(), "the model cannot call the caller's tools: {body}");
    let body = sent(json!({ "response_format": { "type": "json_object" } })).await;
    assert_eq!(body["response_format"]["json_schema"]["schema"]["type"], "object");
}

#[tokio::test]
async fn options_are_for_the_agent_and_not_for_its_subagents() {
    let (provider, of_helper) = (Provider::start().await, Provider::start().await);
    let helper = Arc::new(model_agent(&of_helper));
    let agent = model_agent(&provider).subagent("helper", "Helps.", helper);
    let server = Running::start(Server::new().agent("a", agent)).await;
    answer_with_call(&provider, "c0", "helper", r#"{"task":"Count"}"#);
    answer(&of_helper, "1 2 3", "stop");
    answer(&provider, "{\"n\":3}", "stop");
    let format = json!({ "type": "json_object" });
    let more = json!({ "temperature": 0.5, "response_format": format, "tools": [look_up()], "tool_choice": "required" });
    let completion = completion(&server, &asking("Count", more)).await;
    assert_eq!(*content(&completion), "{\"n\":3}");
    assert_eq!(provider.requests()[0].body["temperature"], 0.5);
    let body = &of_helper.requests()[0].body;
    let absent = ["temperature", "response_format", "tool_choice"].map(|name| body.get(name));
    assert_eq!(absent, [None; 3], "{body}");
}

#[tokio::test]
async fn instructions_are_instructions_or_data_as_the_option_says() {
    let provider = Provider::start().await;
    let body = json!({ "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "developer", "content": [{ "type": "text", "text": "Be kind." }] },
        { "role": "user", "content": "Hi" },
    ] });
    let sent = async |accepts: bool| {
        let mut options = ThreadOptions::default();
        options.accept_instructions = accepts;
        let server = Server::new().agent("a", model_agent(&provider)).thread_options(options);
        let server = Running::start(server).await;
        answer(&provider, "Hello.", "stop");
        assert_eq!(*content(&completion(&server, &body).await), "Hello.");
        provider.requests().pop().unwrap().body["messages"].take()
    };
    let accepted = sent(true).await;
    let roles = accepted.as_array().unwrap().iter().map(|message| &message["role"]);
    assert_eq!(roles.filter(|role| *role != "user").count(), 2, "{accepted}");
    let refused = sent(false).await;
    let messages = refused.as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")), "{refused}");
    let text = messages[0]["content"].to_string();
    let places = ["not instructions", "Be brief.", "Be kind.", "Hi"].map(|part| text.find(part));
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
}

#[tokio::test]
async fn parts_and_messages_reach_the_agent() {
    let seen = Arc::new(Mutex::new(Value::Null));
    let kept = seen.clone();
    let agent = move |input: RunAgentInput, _: RunContext| {
        *kept.lock().unwrap() = serde_json::to_value(&input).unwrap();
        events([])
    };
    let server = Running::start(Server::new().agent("a", agent)).await;
    let body = json!({ "messages": [
        { "role": "user", "name": "ann", "content": [
            { "type": "text", "text": "Look" },
            { "type": "image_url", "image_url": { "url": "https://a.test/b.png", "detail": "low" } },
            { "type": "image_url", "image_url": { "url": "data:image/PNG;base64,AAAA" } },
            { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB" } },
            { "type": "input_audio", "input_audio": { "data": "CCCC", "format": "mp3" } },
        ] },
        { "role": "assistant", "content": [{ "type": "refusal", "refusal": "No." }] },
        { "role": "user", "content": "Go on" },
    ] });
    completion(&server, &body).await;
    let input = seen.lock().unwrap().take();
    let data =
        |value: &str, mime: &str| json!({ "type": "data", "value": value, "mimeType": mime });
    assert_eq!(
        input["messages"][0]["content"],
        json!([
            { "type": "text", "text": "Look" },
            { "type": "image", "source": { "type": "url", "value": "https://a.test/b.png" } },
            { "type": "image", "source": data("AAAA", "image/png") },
            { "type": "document", "source": data("BBBB", "application/pdf"), "metadata": { "filename": "a.pdf" } },
            { "type": "audio", "source": data("CCCC", "audio/mpeg") },
        ])
    );
    assert_eq!(input["messages"][0]["name"], "ann");
    assert_eq!(input["messages"][1]["content"], "No.");
    assert!(input.get("forwardedProps").is_none(), "{input}");
}

#[tokio::test]
async fn what_is_wrong_or_not_supported_is_refused_with_its_place() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
    let file = json!([{ "type": "file", "file": { "file_id": "f" } }]);
    let ftp = json!([{ "type": "image_url", "image_url": { "url": "ftp://a" } }]);
    let system = json!([{ "type": "image_url", "image_url": { "url": "https://a.test/b.png" } }]);
    let none = [json!({}), json!([]), json!("text")];
    for (body, param, code) in [
        (asking("Hi", json!({ "n": 2 })), json!("n"), "unsupported_parameter"),
        (asking("Hi", json!({ "logprobs": true })), json!("logprobs"), "unsupported_parameter"),
        (asking("Hi", json!({ "audio": {} })), json!("audio"), "unsupported_parameter"),
        (
            asking("Hi", json!({ "modalities": ["text", "audio"] })),
            json!("modalities"),
            "unsupported_parameter",
        ),
        (
            asking("Hi", json!({ "tools": [{ "type": "custom", "custom": {} }] })),
            json!("tools[0].type"),
            "unsupported_parameter",
        ),
        (user(file), json!("messages[0].content[0].file.file_id"), "unsupported_parameter"),
        (user(ftp), json!("messages[0].content[0].image_url.url"), "invalid_input"),
        (
            json!({ "messages": [{ "role": "system", "content": system }] }),
            json!("messages[0].content[0].type"),
            "invalid_input",
        ),
        (user(json!(5)), json!("messages[0].content"), "invalid_input"),
        (user(json!([{ "type": "video" }])), json!("messages[0].content[0].type"), "invalid_input"),
        (user(Value::Null), json!("messages[0].content"), "invalid_input"),
        (
            json!({ "messages": [{ "role": "tool", "content": "x" }] }),
            json!("messages[0].tool_call_id"),
            "invalid_input",
        ),
        (json!({ "messages": [{ "role": "god" }] }), json!("messages[0].role"), "invalid_input"),
        (json!({ "messages": [] }), json!("messages"), "invalid_input"),
        (asking("Hi", json!({ "temperature": 3 })), json!("temperature"), "invalid_input"),
        (asking("Hi", json!({ "max_tokens": 0 })), json!("max_tokens"), "invalid_input"),
        (asking("Hi", json!({ "tool_choice": "required" })), json!("tool_choice"), "invalid_input"),
        (
            asking(
                "Hi",
                json!({ "tools": [look_up()], "tool_choice": { "function": { "name": "x" } } }),
            ),
            json!("tool_choice.function.name"),
            "invalid_input",
        ),
        (
            asking("Hi", json!({ "response_format": { "type": "json_schema" } })),
            json!("response_format.json_schema.schema"),
            "invalid_input",
        ),
    ] {
        let response = post(&server, &body).await;
        assert_eq!(response.status(), 400, "{body}");
        assert!(!response.headers().contains_key("x-should-retry"), "no agent has begun");
        let error = response.json::<Value>().await.unwrap()["error"].take();
        assert_eq!((&error["param"], &error["code"]), (&param, &json!(code)), "{body} {error}");
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].is_string());
    }
    for body in none {
        assert_eq!(post(&server, &body).await.status(), 400, "{body}");
    }
}

#[tokio::test]
async fn the_layers_in_front_refuse_in_the_same_form() {
    let options = HttpOptions { max_body_bytes: 1000, ..HttpOptions::default() };
    let keys = [ApiKey::from_secret("web", "open sesame")];
    let server = Server::new().agent("echo", Echo).api_keys(keys).http_options(options);
    let server = Running::start(server).await;
    let error_of = async |request: reqwest::RequestBuilder| {
        let response = request.send().await.unwrap();
        let (status, challenge) =
            (response.status().as_u16(), response.headers().contains_key("www-authenticate"));
        let error = response.json::<Value>().await.unwrap()["error"].take();
        assert!(error["message"].is_string() && error["param"].is_null(), "{error}");
        (status, error["type"].clone(), error["code"].clone(), challenge)
    };
    let post = || server.post(PATH);
    let short = asking("Hi", json!({}));
    let unknown = ("authentication_error".into(), "unauthenticated".into());
    assert_eq!(error_of(post().json(&short)).await, (401, unknown.0, unknown.1, true));
    let wrong = error_of(post().bearer_auth("wrong").json(&short)).await;
    assert_eq!((wrong.0, wrong.2), (401, json!("invalid_key")));
    let list = server.client.get(server.url("/v1/models"));
    assert_eq!(error_of(list).await.0, 401);
    let long = asking(&"x".repeat(1000), json!({}));
    let large = error_of(post().bearer_auth("open sesame").json(&long)).await;
    assert_eq!((large.0, large.2), (413, json!("body_too_large")));
    let plain = error_of(post().bearer_auth("open sesame").body("Hi")).await;
    assert_eq!((plain.0, plain.2), (415, json!("unsupported_media_type")));
    let broken = post().bearer_auth("open sesame").header("content-type", "application/json");
    let broken = error_of(broken.body("{")).await;
    assert_eq!((broken.0, broken.2), (400, json!("invalid_json")));
}

/// The bodies that Open WebUI's back end sends: a chat, also with functions, and the title of the chat.
#[tokio::test]
async fn requests_of_open_webui_are_answered() {
    let provider = Provider::start().await;
    let server = Running::start(Server::new().agent("a", model_agent(&provider))).await;
    let chat = json!({
        "stream": true, "model": "a",
        "messages": [
            { "role": "system", "content": "User: ann" },
            { "role": "user", "content": [
                { "type": "text", "text": "What is it?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0KGgo=" } },
            ] },
            { "role": "assistant", "content": "A bee." },
            { "role": "user", "content": "And now?" },
        ],
        "stream_options": { "include_usage": true },
        "temperature": 0.8, "max_tokens": 128, "top_p": 0.9, "frequency_penalty": 0, "seed": 0,
        "stop": ["\n\n\n"], "logit_bias": {}, "user": { "name": "ann", "id": "1", "role": "user" },
        "tools": [look_up()], "reasoning": { "effort": "low" },
    });
    answer(&provider, "A wasp.", "stop");
    let body = post(&server, &chat).await.text().await.unwrap();
    assert_eq!(text_and_reason(&chunks(&body)), ("A wasp.".to_owned(), json!("stop")));
    answer(&provider, "{\"title\":\"Bees\"}", "stop");
    let title = json!({
        "model": "a", "stream": false, "max_completion_tokens": 1000,
        "messages": [{ "role": "user", "content": "### Task:\nGenerate a title." }],
    });
    assert_eq!(*content(&completion(&server, &title).await), "{\"title\":\"Bees\"}");
}
