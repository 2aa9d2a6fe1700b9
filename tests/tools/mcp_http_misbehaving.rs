//! MCP servers over HTTP that deviate from the specification like real ones: redirects, sessions
//! that are forgotten in five ways, answers in other forms. The fake refuses requests outside of a
//! known session, as a real server does.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use agui_server::tools::mcp::McpServerOptions;
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Redirect, Response},
    routing::any,
};
use serde_json::{Value, json};

use crate::tools::support::{McpFixture, error_message, text};

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// The ways in which servers refuse an unknown session, as reported of
/// modelcontextprotocol/python-sdk (#1004), of servers with the TypeScript SDK
/// (modelcontextprotocol/typescript-sdk#1476, DAWNCR0W/affine-mcp-server#301), and of
/// mcp-use/mcp-use (#1133).
#[derive(Debug, Clone, Copy)]
enum Forgets {
    /// The server also fails requests without a session.
    Crashes,
    NotFound,
    BadRequest,
    BadRequestAsText,
    Gone,
    Unauthorized,
}

impl Forgets {
    fn response(self) -> Response {
        let error = |id| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": "No valid session" } });
        match self {
            Self::Crashes => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Self::NotFound => (StatusCode::NOT_FOUND, Json(error(Value::Null))).into_response(),
            Self::BadRequest => (StatusCode::BAD_REQUEST, Json(error(Value::Null))).into_response(),
            Self::BadRequestAsText => (StatusCode::BAD_REQUEST, "unknown session").into_response(),
            Self::Gone => StatusCode::GONE.into_response(),
            Self::Unauthorized => StatusCode::UNAUTHORIZED.into_response(),
        }
    }
}

struct Fake {
    forgets: Forgets,
    /// The response to a call, as it is sent: `ID` is the request's id.
    answer: (StatusCode, String),
    sessions: Mutex<HashSet<String>>,
    initialized: Mutex<usize>,
    calls: Mutex<usize>,
}

impl Fake {
    async fn start(forgets: Forgets, status: StatusCode, answer: &str) -> (Arc<Self>, String) {
        let (sessions, initialized, calls) = Default::default();
        let fake = Arc::new(Self {
            forgets,
            answer: (status, answer.to_owned()),
            sessions,
            initialized,
            calls,
        });
        let app = Router::new()
            .route("/mcp", any(async || Redirect::temporary("/mcp/")))
            .route("/mcp/", any(handle))
            .with_state(fake.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (fake, url)
    }

    fn forget(&self) {
        self.sessions.lock().unwrap().clear();
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

async fn handle(State(fake): State<Arc<Fake>>, headers: HeaderMap, body: String) -> Response {
    let Ok(message) = serde_json::from_str::<Value>(&body) else {
        // A stream of the server's own messages, or the end of a session.
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let result = |result: Value| {
        Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
    };
    if message["method"] == "initialize" {
        let mut initialized = fake.initialized.lock().unwrap();
        *initialized += 1;
        let session = format!("s{initialized}");
        fake.sessions.lock().unwrap().insert(session.clone());
        let info = json!({ "name": "fake", "version": "0" });
        let mut response = result(
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": info }),
        );
        response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
        return response;
    }
    let session = headers.get("mcp-session-id").map(|id| id.to_str().unwrap());
    if !session.is_some_and(|session| fake.sessions.lock().unwrap().contains(session)) {
        return fake.forgets.response();
    }
    match message["method"].as_str().unwrap_or_default() {
        "tools/list" => {
            result(json!({ "tools": [{ "name": "act", "inputSchema": { "type": "object" } }] }))
        }
        "tools/call" => {
            *fake.calls.lock().unwrap() += 1;
            let (status, answer) = &fake.answer;
            (*status, JSON, answer.replace("ID", &message["id"].to_string())).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

fn done() -> String {
    json!({ "jsonrpc": "2.0", "id": "ID", "result": { "content": [{ "type": "text", "text": "done" }] } })
        .to_string()
        .replace("\"ID\"", "ID")
}

async fn connect(url: &str) -> McpFixture {
    McpFixture::new(McpServerOptions::url(url)).ready().await
}

#[tokio::test]
async fn a_call_of_a_forgotten_session_is_made_once_in_a_new_one() {
    for forgets in [
        Forgets::NotFound,
        Forgets::BadRequest,
        Forgets::BadRequestAsText,
        Forgets::Gone,
        Forgets::Unauthorized,
    ] {
        let (fake, url) = Fake::start(forgets, StatusCode::OK, &done()).await;
        let mcp = connect(&format!("{url}/mcp/")).await;
        assert_eq!(text(mcp.call("act", json!({})).await), "done");
        fake.forget();
        let again = tokio::time::timeout(Duration::from_secs(10), mcp.call("act", json!({}))).await;
        assert_eq!(
            text(again.unwrap_or_else(|_| panic!("{forgets:?} hangs"))),
            "done",
            "{forgets:?}"
        );
        assert_eq!((fake.calls(), *fake.initialized.lock().unwrap()), (2, 2), "{forgets:?}");
    }
}

#[tokio::test]
async fn an_older_server_that_crashes_when_it_is_asked_for_its_revisions_is_used() {
    let (_, url) = Fake::start(Forgets::Crashes, StatusCode::OK, &done()).await;
    let mcp = connect(&format!("{url}/mcp/")).await;
    assert_eq!(text(mcp.call("act", json!({})).await), "done");
}

/// Starlette redirects requests for a mount without its last `/`:
/// opensearch-project/opensearch-mcp-server-py#271, BerriAI/litellm#23758,
/// modelcontextprotocol/python-sdk#1168.
#[tokio::test]
async fn a_redirect_to_the_same_server_is_followed() {
    let (fake, url) = Fake::start(Forgets::NotFound, StatusCode::OK, &done()).await;
    let mcp = connect(&format!("{url}/mcp")).await;
    assert_eq!(text(mcp.call("act", json!({})).await), "done");
    assert_eq!(fake.calls(), 1);
}

/// The answers have an id that became a text (sleuthkit/autopsy#7999), or an error that names no
/// request (helidon-io/helidon-mcp#65).
#[tokio::test]
async fn answers_in_other_forms_are_read() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"done"}}"#, Ok("done")),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":{"type":"text","text":"done"}}}"#,
            Ok("done"),
        ),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":["done"]}}"#, Ok("done")),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"a":NaN}}}"#,
            Ok(r#"{"a":null}"#),
        ),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":\"done\"}}", Ok("done")),
        (r#"{"jsonrpc":"2.0","id":"ID","result":{"content":"done"}}"#, Ok("done")),
        (r#"{"jsonrpc":"2.0","id":ID.0,"result":{"content":"done"}}"#, Ok("done")),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":null}}"#,
            Ok("(the tool returned nothing)"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"isError":true}}"#,
            Err("(the tool failed, and does not say why)"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
            Err("The MCP server `test` refuses the call: no"),
        ),
    ];
    for (answer, expected) in cases {
        let (_fake, url) = Fake::start(Forgets::NotFound, StatusCode::OK, answer).await;
        let mcp = connect(&format!("{url}/mcp/")).await;
        let result = mcp.call("act", json!({})).await;
        match expected {
            Ok(expected) => assert_eq!(text(result), expected, "{answer}"),
            Err(expected) => assert_eq!(error_message(result), expected, "{answer}"),
        }
    }
}

/// A model makes a call again only if it was not carried out.
#[tokio::test]
async fn a_refused_call_is_told_from_one_of_unknown_outcome() {
    let cases = [
        (StatusCode::FORBIDDEN, "you may not", "refuses the call: HTTP 403 Forbidden: you may not"),
        (StatusCode::UNPROCESSABLE_ENTITY, "", "refuses the call: HTTP 422"),
        (
            StatusCode::BAD_REQUEST,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}"#,
            "the call: no",
        ),
        (StatusCode::TOO_MANY_REQUESTS, "", "it was not carried out"),
        (StatusCode::BAD_GATEWAY, "", "it is unknown if the call was carried out"),
    ];
    for (status, answer, expected) in cases {
        let (fake, url) = Fake::start(Forgets::NotFound, status, answer).await;
        let mcp = connect(&format!("{url}/mcp/")).await;
        let message = error_message(mcp.call("act", json!({})).await);
        assert!(message.contains(expected), "{status}: {message}");
        // The call is not made again in a new session, which would end the calls of other callers.
        assert_eq!(fake.calls(), 1, "{status}");
    }
}

/// A task can end with the response that begins it, and a gateway can repeat the headers of the request in it.
#[tokio::test]
async fn a_task_that_has_ended_at_once_shows_no_secret_of_the_request() {
    let ended = |task: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":ID,"result":{{"resultType":"task","taskId":"t",{task}}}}}"#
        )
    };
    let completed = ended(r#""status":"completed","result":{"content":"you sent open-sesame"}"#);
    let failed = ended(r#""status":"failed","error":{"message":"open-sesame is refused"}"#);
    for (answer, expected) in [
        (completed, Ok("you sent [redacted]")),
        (failed, Err("The task of the MCP server `test` has failed: [redacted] is refused")),
    ] {
        let (_fake, url) = Fake::start(Forgets::NotFound, StatusCode::OK, &answer).await;
        let mut options = McpServerOptions::url(format!("{url}/mcp/"));
        options.headers.insert("Authorization".to_owned(), "Bearer open-sesame".into());
        let result = McpFixture::new(options).ready().await.call("act", json!({})).await;
        match expected {
            Ok(expected) => assert_eq!(text(result), expected),
            Err(expected) => assert_eq!(error_message(result), expected),
        }
    }
}
