//! Requests that are refused before a stream begins.

use std::time::{Duration, Instant};

use agui_server::{Server, agent::builtin::Echo, options::ThreadOptions};
use axum::{
    body::{Body, to_bytes},
    http::Request,
};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::running::{Running, input};

async fn server() -> Running {
    Running::start(Server::new().agent("echo", Echo)).await
}

/// Returns the status, and the error's code, message and path.
async fn refusal(response: reqwest::Response) -> (StatusCode, String, String, Option<String>) {
    let status = response.status();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    assert!(response.headers().contains_key("x-request-id"));
    let body: Value = response.json().await.unwrap();
    let error = &body["error"];
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    (
        status,
        error["code"].as_str().unwrap().to_owned(),
        error["message"].as_str().unwrap().to_owned(),
        error["path"].as_str().map(str::to_owned),
    )
}

#[tokio::test]
async fn an_invalid_body_is_refused_with_the_path_of_the_error() {
    let server = server().await;
    for (body, code, message, path) in [
        (
            "{",
            "invalid_json",
            "not valid JSON: EOF while parsing an object at line 1 column 1",
            None,
        ),
        ("[]", "invalid_input", "the request body: expected an object, found an array", None),
        ("{}", "invalid_input", "threadId: missing", Some("threadId")),
        (
            r#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"tool","content":""}]}"#,
            "invalid_input",
            "messages[0].toolCallId: missing",
            Some("messages[0].toolCallId"),
        ),
        (
            r#"{"threadId":"t","runId":"r","messages":[],"protocolVersion":"2.0"}"#,
            "unsupported_protocol_version",
            "this server speaks AG-UI 1.1, not 2.0",
            Some("protocolVersion"),
        ),
    ] {
        let request = server
            .post("/send-message")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        let refusal = refusal(request.send().await.unwrap()).await;
        let expected =
            (StatusCode::BAD_REQUEST, code.to_owned(), message.to_owned(), path.map(str::to_owned));
        assert_eq!(refusal, expected, "{body}");
    }
    let deep = format!(
        r#"{{"threadId":"t","runId":"r","messages":[],"state":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let request =
        server.post("/send-message").header(header::CONTENT_TYPE, "application/json").body(deep);
    assert_eq!(refusal(request.send().await.unwrap()).await.1, "too_deep");
}

#[tokio::test]
async fn every_version_before_2_is_served_and_1_0_gets_a_stream_of_1_0() {
    let server = server().await;
    let versions = ["1.0", "1.1", "1.10", "1.0.0", "0.9", "soon"];
    for version in versions.map(Value::from).into_iter().chain([Value::Null]) {
        let mut input = input("hi");
        input["protocolVersion"] = version.clone();
        let response = server.run(&input).await;
        assert_eq!(response.status(), 200, "{version}");
        let declared = if version == "1.0" { "1.0" } else { "1.1" };
        assert!(
            response.text().await.unwrap().contains(&format!("\"protocolVersion\":\"{declared}\"")),
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let server = server().await;
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("json"),
        Some("application/jsonx"),
    ] {
        let mut request = server.post("/send-message").body(input("hi").to_string());
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let (status, code, message, _) = refusal(request.send().await.unwrap()).await;
        assert_eq!(
            (status, code.as_str()),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
        );
        assert!(message.contains("Content-Type: application/json"), "{message}");
    }
    for content_type in
        ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"]
    {
        let request = server.post("/send-message").header(header::CONTENT_TYPE, content_type);
        assert_eq!(
            request.body(input("hi").to_string()).send().await.unwrap().status(),
            200,
            "{content_type}"
        );
    }
    let zipped =
        server.post("/send-message").header(header::CONTENT_ENCODING, "gzip").json(&input("hi"));
    assert_eq!(refusal(zipped.send().await.unwrap()).await.1, "unsupported_content_encoding");
}

/// The path is refused before authentication. The test uses no HTTP client, whose time would be
/// measured as well.
#[tokio::test]
async fn a_long_unknown_path_costs_no_time() {
    let (router, _handle) = Server::new().agent("echo", Echo).into_router().unwrap();
    let path = format!("/threads/{}/x", "a".repeat(32_000));
    let mut fastest = Duration::MAX;
    // Other processes may slow one request down.
    for _ in 0..10 {
        let request = Request::get(&path).header("host", "localhost").body(Body::empty()).unwrap();
        let begin = Instant::now();
        let response = router.clone().oneshot(request).await.unwrap();
        fastest = fastest.min(begin.elapsed());
        assert_eq!(response.status(), 404);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(!String::from_utf8_lossy(&body).contains("Did you mean"), "{body:?}");
    }
    assert!(fastest < Duration::from_millis(5), "{fastest:?}");
}

#[tokio::test]
async fn refusals_of_unknown_routes_agents_and_methods_name_those_that_exist() {
    let server = server().await;
    let get = |path: &str| server.client.get(server.url(path)).send();
    for (path, expected) in [
        ("/nowhere", "there is no route \"/nowhere\". GET / lists all routes"),
        (
            "/send-mesage",
            "there is no route \"/send-mesage\". Did you mean GET, POST /send-message? GET / lists all routes",
        ),
    ] {
        let (status, code, message, _) = refusal(get(path).await.unwrap()).await;
        assert_eq!(
            (status, code.as_str(), message.as_str()),
            (StatusCode::NOT_FOUND, "not_found", expected)
        );
    }
    assert_eq!(refusal(get("/agents/nobody/capabilities").await.unwrap()).await.1, "unknown_agent");
    let (status, code, message, _) = refusal(
        server.post("/agents/no%0Abody/send-message").json(&input("")).send().await.unwrap(),
    )
    .await;
    assert_eq!((status, code.as_str()), (StatusCode::NOT_FOUND, "unknown_agent"));
    assert_eq!(message, "there is no agent \"no\\nbody\"; the agents are: echo");
    let wrong = server.client.delete(server.url("/send-message")).send().await.unwrap();
    let allowed = wrong.headers()[header::ALLOW].to_str().unwrap();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
    let (status, code, message, _) = refusal(wrong).await;
    assert_eq!((status, code.as_str()), (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"));
    assert_eq!(message, "DELETE is not allowed on \"/send-message\"; use GET, POST");
    let wrong = server.client.put(server.url("/threads/a")).send().await.unwrap();
    assert_eq!(
        refusal(wrong).await.2,
        "PUT is not allowed on \"/threads/a\"; use GET, PATCH, DELETE"
    );
    // HEAD would read the thread, and send nothing of it.
    let wrong = server.client.head(server.url("/threads/a")).send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong.headers()[header::ALLOW], "GET, PATCH, DELETE");
    assert_eq!(
        server.client.head(server.url("/healthz")).send().await.unwrap().status(),
        StatusCode::OK
    );
    let wrong = server.post("/agents").json(&json!({})).send().await.unwrap();
    assert_eq!(refusal(wrong).await.1, "method_not_allowed");
}

#[tokio::test]
async fn agents_and_their_capabilities_can_be_read() {
    let server = Running::start(Server::new().agent("one", Echo).agent("two", Echo)).await;
    let get = async |path: &str| {
        server.client.get(server.url(path)).send().await.unwrap().json::<Value>().await.unwrap()
    };
    let agents = get("/agents").await;
    let echo = |name: &str, default: bool| json!({ "name": name, "default": default, "description": "Repeats the newest user message" });
    assert_eq!(agents, json!({ "agents": [echo("one", true), echo("two", false)] }));
    let capabilities = get("/agents/two/capabilities").await;
    assert_eq!(capabilities["identity"]["name"], "echo");
    assert_eq!(capabilities["transport"]["streaming"], true);
    assert_eq!(capabilities["transport"]["resumable"], true);
    let mut options = ThreadOptions::default();
    options.runs.max_detached = Some(0);
    let never_detached =
        Running::start(Server::new().agent("one", Echo).thread_options(options)).await;
    let found = never_detached
        .client
        .get(never_detached.url("/agents/one/capabilities"))
        .send()
        .await
        .unwrap();
    assert_eq!(found.json::<Value>().await.unwrap()["transport"]["resumable"], false);
    let mut detached = input("hi");
    detached["forwardedProps"] = json!({ "onDisconnect": "continue" });
    assert_eq!(refusal(never_detached.run(&detached).await).await.1, "too_many_detached_runs");
}

#[tokio::test]
async fn health_and_readiness_are_reported() {
    let server = server().await;
    for (path, expected) in
        [("/healthz", json!({ "status": "ok" })), ("/readyz", json!({ "status": "ready" }))]
    {
        let response = server.client.get(server.url(path)).send().await.unwrap();
        assert_eq!(response.json::<Value>().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_request_keeps_a_short_plain_id_and_gets_a_new_one_otherwise() {
    let server = server().await;
    let id_of = |id: &'static str| {
        let request = server.client.get(server.url("/healthz")).header("x-request-id", id);
        async {
            request.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
        }
    };
    assert_eq!(id_of("abc-123").await, "abc-123");
    assert_eq!(id_of("no spaces, please").await.len(), 32);
    assert_ne!(id_of("").await, id_of("").await);
}
