//! HTTP tools against a service that records its requests, with arguments that try to leave their places.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use agui_server::{
    agent::Principal,
    protocol::{ContentPart, PartSource},
    tools::{Approval, ApprovalRule, OfferedTool, Tool as _, Validator},
};
use agui_tools::http::{HttpMethod, HttpTool, HttpToolOptions};
use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json};

use crate::tools::support::{call, context_of, error_message, text};

#[derive(Debug, Clone)]
struct RecordedRequest {
    method: Method,
    /// The path and query as they were received.
    target: String,
    headers: HeaderMap,
    body: String,
}

type Record = Arc<Mutex<Vec<RecordedRequest>>>;

struct Service {
    address: SocketAddr,
    record: Record,
}

async fn respond(State(record): State<Record>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    record.lock().unwrap().push(RecordedRequest {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers.clone(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let with =
        |kind: &'static str, body: Vec<u8>| ([(header::CONTENT_TYPE, kind)], body).into_response();
    match head.uri.path() {
        "/json" => {
            with("application/json; charset=utf-8", br#"{"a":{"b":["x",{"c":1}]}}"#.to_vec())
        }
        "/image" => with("image/png", vec![0x89, b'P', b'N', b'G', 0]),
        "/svg" => with("image/svg+xml", b"<svg/>".to_vec()),
        "/zip" => with("application/zip", vec![0x50, 0x4b, 3, 4, 0]),
        "/bytes" => with("application/octet-stream", vec![0, 159, 146, 150]),
        "/latin" => with("text/plain", b"Gr\xfc\xdfe".to_vec()),
        "/big" => with("text/plain", "é".repeat(1_000_000).into_bytes()),
        "/empty" => StatusCode::NO_CONTENT.into_response(),
        "/redirect" => (StatusCode::FOUND, [(header::LOCATION, "/admin")]).into_response(),
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            "late".into_response()
        }
        // Some services repeat the request in their errors.
        "/repeat" | "/refuse" => {
            let status = if head.uri.path() == "/refuse" {
                StatusCode::UNAUTHORIZED
            } else {
                StatusCode::OK
            };
            let key =
                head.headers.get(header::AUTHORIZATION).map(|key| key.to_str().unwrap().to_owned());
            (status, format!("the key\nis {}", key.unwrap_or_default())).into_response()
        }
        "/long-refusal" => (StatusCode::BAD_REQUEST, "no ".repeat(100_000)).into_response(),
        "/html-refusal" => {
            (StatusCode::BAD_GATEWAY, [(header::CONTENT_TYPE, "image/png")], "x").into_response()
        }
        _ => "fine".into_response(),
    }
}

fn options(address: SocketAddr, target: &str) -> HttpToolOptions {
    let url = format!("http://{address}{target}");
    serde_json::from_value(json!({ "kind": "http", "description": "A tool", "url": url })).unwrap()
}

impl Service {
    async fn start() -> Self {
        let record = Record::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(any(respond)).with_state(record.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, record }
    }

    fn tool(&self, target: &str, change: impl FnOnce(&mut HttpToolOptions)) -> OfferedTool {
        let mut options = options(self.address, target);
        change(&mut options);
        let tool = HttpTool::new("tool", options).unwrap();
        OfferedTool {
            validator: Arc::new(Validator::new(&tool.spec().parameters).unwrap()),
            tool: Arc::new(tool),
        }
    }

    /// Returns the requests since the last call.
    fn take_requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.record.lock().unwrap())
    }
}

#[tokio::test]
async fn arguments_are_inserted_into_path_and_query() {
    let service = Service::start().await;
    let tool = service.tool("/v1/{city}/weather?units=metric&lang={lang}&tag={tags}", |options| {
        options.parameters = Some(json!({ "properties": {
            "city": { "type": "string" }, "lang": {}, "tags": { "type": "array" }, "days": { "type": "integer" }
        } }));
    });
    let arguments = json!({ "city": "São Paulo", "tags": ["a b", "c"], "days": 3 });
    assert_eq!(text(call(&tool, arguments).await), "fine");
    let requests = service.take_requests();
    assert_eq!(requests[0].method, Method::GET);
    assert_eq!(
        requests[0].target,
        "/v1/S%C3%A3o%20Paulo/weather?units=metric&tag=a%20b&tag=c&days=3"
    );
    assert_eq!(requests[0].body, "");
}

#[tokio::test]
async fn arguments_without_a_place_go_into_the_body() {
    let service = Service::start().await;
    let tool = service.tool("/orders/{id}", |options| {
        options.method = HttpMethod::Put;
        options.parameters = Some(json!({ "properties": { "id": {}, "note": {}, "items": {} } }));
    });
    call(&tool, json!({ "id": 7, "note": "é\"", "items": [{ "n": 1.5 }] })).await.unwrap();
    let requests = service.take_requests();
    assert_eq!(
        (requests[0].method.clone(), requests[0].target.as_str()),
        (Method::PUT, "/orders/7")
    );
    assert_eq!(requests[0].headers[header::CONTENT_TYPE], "application/json");
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(body, json!({ "note": "é\"", "items": [{ "n": 1.5 }] }));
}

#[tokio::test]
async fn hostile_arguments_do_not_leave_their_places() {
    let service = Service::start().await;
    let tool = service.tool("/cities/{city}/weather?key=fixed&q={q}", |_| {});
    for value in [
        "../../admin",
        "..",
        "x&admin=1",
        "@evil.com",
        "//evil.com/",
        "http://evil.com/",
        "x?admin=1",
        "x#y",
        "x\r\nHost: evil.com",
        "x\0",
        "%2e%2e%2fadmin",
        "..%2fadmin",
        "\\..\\admin",
        "{key}",
        "x;admin=1",
        "ünï ✓",
        "+",
        " ",
    ] {
        let result = call(&tool, json!({ "city": value, "q": value })).await;
        match (result, &service.take_requests()[..]) {
            (Ok(_), [request]) => {
                let url = reqwest::Url::parse(&format!("http://h{}", request.target)).unwrap();
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                assert_eq!(
                    (segments.len(), segments[0], segments[2]),
                    (3, "cities", "weather"),
                    "{value}: {request:?}"
                );
                let pairs: Vec<_> = url.query_pairs().collect();
                assert_eq!(
                    pairs,
                    [("key".into(), "fixed".into()), ("q".into(), value.into())],
                    "{value}: {request:?}"
                );
                assert_eq!(request.headers[header::HOST], service.address.to_string());
                assert!(!request.target.to_lowercase().contains("%2e"), "{value}");
            }
            // Refused before a request was sent.
            (Err(_), []) => {}
            (result, requests) => panic!("{value}: {result:?} {requests:?}"),
        }
    }
    // The schema refuses unknown arguments.
    assert!(tool.validator.check(r#"{"city":"x","admin":1}"#).await.is_err());
    // An argument cannot repeat a parameter of the URL, even without the check by the schema.
    let arguments = json!({ "city": "x", "key": "other" }).as_object().unwrap().clone();
    tool.tool.call(arguments, &crate::tools::support::context()).await.unwrap();
    assert_eq!(service.take_requests()[0].target, "/cities/x/weather?key=fixed");
}

#[tokio::test]
async fn responses_are_converted_by_media_type_and_pointer() {
    let service = Service::start().await;
    let ask_for = async |path: &str, selection: Value| {
        let tool = service.tool(path, |options| {
            options.result = serde_json::from_value(selection).unwrap();
            options.max_result_bytes = 1001;
        });
        call(&tool, json!({})).await
    };
    let ask = async |path: &str, pointer: Option<&str>| ask_for(path, json!(pointer)).await;
    assert_eq!(text(ask("/json", None).await), r#"{"a":{"b":["x",{"c":1}]}}"#);
    assert_eq!(text(ask("/json", Some("/a/b/0")).await), "x");
    assert_eq!(text(ask("/json", Some("/a/b/1")).await), r#"{"c":1}"#);
    assert_eq!(
        error_message(ask("/json", Some("/a/x")).await),
        "The response has nothing at /a/x."
    );
    let members = json!({ "first": "/a/b/0", "c": "/a/b/1/c" });
    assert_eq!(text(ask_for("/json", members).await), r#"{"first":"x","c":1}"#);
    let absent = ask_for("/json", json!({ "first": "/a/b/0", "none": "/a/x" })).await;
    assert_eq!(error_message(absent), "The response has nothing at /a/x.");
    assert_eq!(error_message(ask("/plain", Some("/a")).await), "The response is not valid JSON.");
    let png = PartSource::Data { value: "iVBORwA=".into(), mime_type: "image/png".into() };
    assert_eq!(ask("/image", None).await.unwrap(), vec![ContentPart::image(png)].into());
    assert_eq!(text(ask("/svg", None).await), "<svg/>");
    assert_eq!(text(ask("/latin", None).await), "Gr\u{fffd}\u{fffd}e");
    assert!(
        error_message(ask("/zip", None).await)
            .contains("application/zip, which cannot be read as text")
    );
    assert!(error_message(ask("/bytes", None).await).contains("cannot be read as text"));
    assert_eq!(
        text(ask("/empty", None).await),
        "(the service answered 204 No Content, with nothing else)"
    );
    let big = text(ask("/big", None).await);
    assert_eq!(
        big,
        format!("{}\n\n[cut here: the response is longer than 1001 bytes]", "é".repeat(500))
    );
    assert_eq!(
        error_message(ask("/big", Some("/a")).await),
        "The response is longer than 1001 bytes."
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let service = Service::start().await;
    let error = error_message(call(&service.tool("/redirect", |_| {}), json!({})).await);
    assert_eq!(error, "302 Found: the response is a redirect, which is not followed.");
    assert_eq!(service.take_requests().len(), 1);
}

/// Runs the test above in a process whose environment names a proxy.
#[tokio::test]
async fn proxies_from_the_environment_are_not_used() {
    let mut test = tokio::process::Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "tools::http::redirects_are_not_followed"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        test.env(name, "http://127.0.0.1:1");
    }
    let output = test.env_remove("NO_PROXY").env_remove("no_proxy").output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[tokio::test]
async fn error_responses_are_shortened_and_secrets_removed() {
    let service = Service::start().await;
    let tool = |target: &str| {
        service.tool(target, |options| {
            options.headers.insert("Authorization".to_owned(), "Bearer sk-very-secret-0123".into());
            options.headers.insert("X-App".to_owned(), "agui".into());
        })
    };
    let refused = call(&tool("/refuse"), json!({})).await.unwrap_err();
    assert_eq!(
        refused.message(),
        "The service answered 401 Unauthorized: the key is Bearer [redacted]"
    );
    assert!(!format!("{refused:?}").contains("very-secret"));
    let requests = service.take_requests();
    assert_eq!(requests[0].headers[header::AUTHORIZATION], "Bearer sk-very-secret-0123");
    assert_eq!(requests[0].headers["x-app"], "agui");
    assert_eq!(text(call(&tool("/repeat"), json!({})).await), "the key\nis Bearer [redacted]");
    let long = error_message(call(&tool("/long-refusal"), json!({})).await);
    assert!(
        long.starts_with("The service answered 400 Bad Request: no no") && long.len() < 1100,
        "{long}"
    );
    let binary = error_message(call(&tool("/html-refusal"), json!({})).await);
    assert_eq!(binary, "The service answered 502 Bad Gateway.");
}

#[tokio::test]
async fn errors_of_slow_and_unreachable_services_do_not_contain_arguments() {
    let service = Service::start().await;
    let slow = service.tool("/slow?q={q}", |options| options.timeout = Duration::from_millis(200));
    let begin = Instant::now();
    let error = error_message(call(&slow, json!({ "q": "private" })).await);
    assert_eq!(error, "127.0.0.1 did not answer within 0.2 s.");
    assert!(begin.elapsed() < Duration::from_secs(5));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tool = HttpTool::new("tool", options(gone, "/x?q={q}")).unwrap();
    let arguments = json!({ "q": "private" }).as_object().unwrap().clone();
    let error = tool.call(arguments, &crate::tools::support::context()).await.unwrap_err();
    assert_eq!(error.message(), "127.0.0.1 cannot be reached.");
    assert!(!format!("{error:?}").contains("private"), "{error:?}");
}

#[tokio::test]
async fn approval_depends_on_the_arguments() {
    let service = Service::start().await;
    let tool = service.tool("/{path}", |options| {
        options.approval = ApprovalRule::unless([("path", "public-.*")]).unwrap()
    });
    let approval = |path: &str| {
        let arguments = json!({ "path": path }).as_object().unwrap().clone();
        tool.tool.approval(&arguments)
    };
    assert_eq!(
        (approval("public-a"), approval("private")),
        (Approval::NotNeeded, Approval::Needed)
    );
}

#[tokio::test]
async fn a_service_learns_who_asks_and_a_model_cannot_say_it() {
    let service = Service::start().await;
    let tool = service.tool("/repeat?a={a}", |options| {
        options.headers_from = serde_json::from_value(json!({
            "X-User": "principal",
            "X-Tenant": { "from": "claim:tenant", "required": true },
            "Authorization": "header:x-token"
        }))
        .unwrap();
        options.parameters =
            Some(json!({ "properties": { "a": {} }, "additionalProperties": true }));
    });
    let claims = json!({ "tenant": "acme" }).as_object().unwrap().clone();
    let ada = context_of(
        Some(Principal::new("jwt:id", "ada").with_claims(claims)),
        &[("x-token", "of-ada-12345")],
    );
    let arguments =
        json!({ "a": "x\r\nX-User: eve", "X-User": "eve", "headers": { "X-User": "eve" } });
    let result = tool.tool.call(arguments.as_object().unwrap().clone(), &ada).await;
    assert_eq!(text(result), "the key\nis [redacted]", "a caller's token is a secret, too");
    let [request] = &service.take_requests()[..] else { panic!() };
    for (name, value) in
        [("x-user", "ada"), ("x-tenant", "acme"), ("authorization", "of-ada-12345")]
    {
        let values: Vec<_> = request.headers.get_all(name).iter().collect();
        assert_eq!(values, [value]);
    }
    let guest = context_of(None, &[]);
    let refused =
        tool.tool.call(json!({ "X-Tenant": "acme" }).as_object().unwrap().clone(), &guest).await;
    assert_eq!(
        error_message(refused),
        "the tool was not called: the request has no claim \"tenant\" of a token"
    );
    assert!(service.take_requests().is_empty());
}
