//! Requests for unknown things, for threads of other principals, and with invalid bodies.

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn every_route_needs_a_key() {
    let server = with_two_keys().await;
    for (method, path) in [
        (Method::GET, "/info"),
        (Method::POST, ""),
        (Method::POST, "/"),
        (Method::POST, "/agent/echo/run"),
        (Method::POST, "/agent/echo/connect"),
        (Method::POST, "/agent/echo/stop/t"),
        (Method::GET, "/threads"),
        (Method::POST, "/agent/echo/suggest"),
        (Method::GET, "/cpk-debug-events"),
        (Method::POST, "/threads/subscribe"),
        (Method::PATCH, "/threads/t"),
        (Method::POST, "/threads/t/archive"),
        (Method::DELETE, "/threads/t"),
        (Method::GET, "/threads/t/messages"),
        (Method::GET, "/threads/t/state"),
        (Method::GET, "/threads/t/events"),
    ] {
        let refused = server
            .request_copilotkit(method.clone(), path)
            .json(&ask("t", "r"))
            .send()
            .await
            .unwrap();
        assert_eq!(refusal(refused).await, (401, "unauthenticated".to_owned()), "{method} {path}");
    }
}

#[tokio::test]
async fn annotations_are_not_available() {
    let server = with_two_keys().await;
    let refused = refusal(server.post_copilotkit("ada", "/annotate", &json!({})).await).await;
    assert_eq!(refused, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn an_unknown_agent_is_not_found() {
    let server = with_two_keys().await;
    for path in ["/agent/unknown/run", "/agent/unknown/connect", "/agent/unknown/stop/t"] {
        let refused = refusal(server.post_copilotkit("ada", path, &ask("t", "r")).await).await;
        assert_eq!(refused, (404, "unknown_agent".to_owned()), "{path}");
    }
    let list = server
        .request_copilotkit(Method::GET, "/threads?agentId=unknown")
        .bearer_auth("ada")
        .send()
        .await
        .unwrap();
    assert_eq!(refusal(list).await, (404, "unknown_agent".to_owned()));
}

#[tokio::test]
async fn threads_of_other_principals_look_unknown() {
    let server = with_two_keys().await;
    server.begin("ada", "t", "r").await;
    for thread in ["t", "no such thread"] {
        let connected =
            server.post_copilotkit("eve", "/agent/echo/connect", &ask(thread, "c")).await;
        assert_eq!(connected.status(), 200, "{thread}");
        assert_eq!(connected.headers()[header::CONTENT_TYPE], "text/event-stream");
        assert_eq!(connected.text().await.unwrap(), "", "{thread}");
        let stopped = server
            .post_copilotkit(
                "eve",
                &format!("/agent/endless/stop/{thread}"),
                &json!({ "runId": "r" }),
            )
            .await;
        assert_eq!(body(stopped).await["stopped"], false, "{thread}");
        for (method, path) in [
            (Method::GET, format!("/threads/{thread}/messages")),
            (Method::GET, format!("/threads/{thread}/state")),
            (Method::GET, format!("/threads/{thread}/events")),
            (Method::PATCH, format!("/threads/{thread}")),
            (Method::POST, format!("/threads/{thread}/archive")),
            (Method::DELETE, format!("/threads/{thread}")),
        ] {
            let request = server.request_copilotkit(method, &path).json(&json!({ "name": "mine" }));
            let refused = request.bearer_auth("eve").send().await.unwrap();
            assert_eq!(refusal(refused).await, (404, "unknown_thread".to_owned()), "{path}");
        }
    }
    // Eve's thread of the same id is another thread: her run does not wait for ada's, and leaves it running.
    let run = server.post_copilotkit("eve", "/agent/echo/run", &ask("t", "r")).await;
    assert!(run.text().await.unwrap().contains("RUN_FINISHED"));
    assert_eq!(server.statuses("eve", "t").await, ["finished"]);
    assert_eq!(server.statuses("ada", "t").await, ["running"]);
}

#[tokio::test]
async fn an_invalid_body_is_refused() {
    let options = agui_server::options::HttpOptions { max_body_bytes: 2000, ..Default::default() };
    let server = Running::start(two_agents().http_options(options)).await;
    let huge = json!({ "threadId": "t", "runId": "r", "messages": [], "forwardedProps": "x".repeat(3000) }).to_string();
    let run = "/agent/echo/run";
    let suggest = "/agent/echo/suggest";
    let connect = "/agent/echo/connect";
    let stop = "/agent/echo/stop/t";
    for (path, text, status, code) in [
        (run, huge.as_str(), 413, "body_too_large"),
        (connect, huge.as_str(), 413, "body_too_large"),
        (stop, huge.as_str(), 413, "body_too_large"),
        ("", huge.as_str(), 413, "body_too_large"),
        (run, "", 400, "invalid_json"),
        (run, "{", 400, "invalid_json"),
        (run, r#"{"threadId":1,"runId":"r","messages":[]}"#, 400, "invalid_input"),
        (suggest, "{", 400, "invalid_json"),
        (
            suggest,
            r#"{"threadId":"t","runId":"r","messages":[],"protocolVersion":"2.0"}"#,
            400,
            "unsupported_protocol_version",
        ),
        (connect, "", 400, "invalid_json"),
        (connect, "[]", 400, "invalid_json"),
        (connect, r#"{"runId":"r"}"#, 400, "invalid_json"),
        (connect, r#"{"threadId":["t"]}"#, 400, "invalid_json"),
        (stop, "{", 400, "invalid_json"),
        (stop, r#"{"runId":7}"#, 400, "invalid_json"),
        ("", "", 400, "invalid_json"),
        ("", r#"{"params":{}}"#, 400, "invalid_json"),
        ("", r#"{"method":"agent/fly"}"#, 400, "invalid_input"),
        ("", r#"{"method":"agent/run"}"#, 400, "invalid_input"),
        ("", r#"{"method":"agent/run","params":{"agentId":"echo"}}"#, 400, "invalid_json"),
        (
            "",
            r#"{"method":"agent/run","params":{"agentId":"../.."},"body":{}}"#,
            404,
            "unknown_agent",
        ),
        ("", r#"{"method":"agent/stop","params":{"agentId":"echo"}}"#, 400, "invalid_input"),
        ("", r#"{"method":"resource/request","params":{"path":"/threads"}}"#, 400, "invalid_input"),
        (
            "",
            r#"{"method":"resource/request","params":{"path":"/agents","httpMethod":"GET"}}"#,
            400,
            "invalid_input",
        ),
        (
            "",
            r#"{"method":"resource/request","params":{"path":"/threads/\n","httpMethod":"GET"}}"#,
            400,
            "invalid_input",
        ),
        (
            "",
            r#"{"method":"resource/request","params":{"path":"/threads/a/b","httpMethod":"GET"}}"#,
            404,
            "not_found",
        ),
        (
            "",
            r#"{"method":"resource/request","params":{"path":"/threads","httpMethod":"PUT"}}"#,
            405,
            "method_not_allowed",
        ),
    ] {
        let request = server
            .request_copilotkit(Method::POST, path)
            .header(header::CONTENT_TYPE, "application/json");
        let refused = refusal(request.body(text.to_owned()).send().await.unwrap()).await;
        assert_eq!(refused, (status, code.to_owned()), "{path} {}", &text[..text.len().min(80)]);
    }
    // Browsers send this content type across origins without a CORS preflight.
    for path in [run, ""] {
        let request = server
            .request_copilotkit(Method::POST, path)
            .header(header::CONTENT_TYPE, "text/plain");
        let refused = refusal(request.body(r#"{"method":"info"}"#).send().await.unwrap()).await;
        assert_eq!(refused, (415, "unsupported_media_type".to_owned()), "{path}");
    }
    for (method, path) in [
        (Method::GET, run),
        (Method::GET, ""),
        (Method::PUT, "/threads/t"),
        (Method::POST, "/info"),
    ] {
        let refused = server.request_copilotkit(method.clone(), path).send().await.unwrap();
        assert_eq!(
            refusal(refused).await,
            (405, "method_not_allowed".to_owned()),
            "{method} {path}"
        );
    }
    for path in ["/nothing", "/threads/t/rename", "/threads/t/archive/x"] {
        let refused = server.request_copilotkit(Method::POST, path).send().await.unwrap();
        assert_eq!(refusal(refused).await, (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_name_that_is_too_long_is_refused_as_the_member_of_the_request() {
    let server = with_two_keys().await;
    server.post_copilotkit("ada", "/agent/echo/run", &ask("t", "r")).await.text().await.unwrap();
    let request = server.request_copilotkit(Method::PATCH, "/threads/t").bearer_auth("ada");
    let refused =
        body(request.json(&json!({ "name": "x".repeat(201) })).send().await.unwrap()).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["path"]),
        (&json!("invalid_input"), &json!("name"))
    );
}

#[tokio::test]
async fn without_authentication_clients_of_a_proxy_on_the_same_machine_get_no_events_of_runs() {
    let server = Running::start(two_agents()).await;
    let request = || server.request_copilotkit(Method::GET, "/cpk-debug-events");
    assert_eq!(request().send().await.unwrap().status(), 200);
    let refused = request().header("x-forwarded-for", "203.0.113.7").send().await.unwrap();
    assert_eq!(refusal(refused).await, (403, "loopback_only".to_owned()));
}

#[tokio::test]
async fn the_body_of_a_stop_has_a_small_limit() {
    let server = Running::start(two_agents()).await;
    for (bytes, status) in [(60_000, 200), (70_000, 413)] {
        let stopped = server
            .post_copilotkit("", "/agent/echo/stop/t", &json!({ "more": "x".repeat(bytes) }))
            .await;
        assert_eq!(stopped.status(), status, "{bytes}");
    }
}

#[tokio::test]
async fn a_deeply_nested_envelope_does_not_crash_the_server() {
    let server = Running::start(two_agents()).await;
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    for text in [
        format!(
            r#"{{"method":"agent/run","params":{{"agentId":"echo"}},"body":{}}}"#,
            deep(1_000_000)
        ),
        format!(r#"{{"method":"info","params":{}}}"#, deep(1_000_000)),
        format!(r#"{{"method":"info","more":{}}}"#, deep(1_000_000)),
    ] {
        let request = server
            .request_copilotkit(Method::POST, "")
            .header(header::CONTENT_TYPE, "application/json");
        let status = request.body(text).send().await.unwrap().status().as_u16();
        assert!([200, 400, 413].contains(&status), "{status}");
    }
    let info: Value =
        body(server.request_copilotkit(Method::GET, "/info").send().await.unwrap()).await;
    assert_eq!(info["mode"], "sse");
}
