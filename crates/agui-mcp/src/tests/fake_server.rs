//! A server over HTTP whose tools fail in different ways. It refuses unknown sessions, as servers with the SDKs do.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime, sync::watch};

use crate::McpServerOptions;

/// The tools, named by what they do.
const TOOLS: [&str; 13] = [
    "done",
    "task",
    "wait",
    "stream",
    "status_500",
    "status_429",
    "html",
    "cut",
    "cut_stream",
    "other_id",
    "other_id_stream",
    "forget",
    "elicit",
];

/// The kind of the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// It has sessions, and no `server/discover`.
    Sessions,
    /// It has the revision 2026-07-28.
    Modern,
    /// It has the transport HTTP+SSE alone.
    HttpSse,
    /// It wants a login.
    Login,
    /// It has sessions, and wants a login for its stream of messages.
    LoginForStream,
}

/// The server in a runtime of its own, so that stopping it closes its connections.
pub(super) struct FakeServer {
    pub(super) shared: Arc<Shared>,
    pub(super) address: SocketAddr,
    runtime: Option<Runtime>,
}

pub(super) struct Shared {
    kind: Kind,
    sessions: Mutex<HashSet<String>>,
    /// The methods of the messages, and the names of the called tools.
    received: watch::Sender<Vec<String>>,
    pub(super) first_message: Mutex<Value>,
    /// The id of the call of `wait`, `task` or `stream`.
    waiting: Mutex<Value>,
    released: watch::Sender<bool>,
}

impl FakeServer {
    pub(super) async fn start(kind: Kind) -> Self {
        Self::start_at(kind, "127.0.0.1:0".parse().unwrap()).await
    }

    pub(super) async fn start_at(kind: Kind, address: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            kind,
            sessions: Mutex::default(),
            received: watch::Sender::default(),
            first_message: Mutex::default(),
            waiting: Mutex::default(),
            released: watch::Sender::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let app = Router::new().route("/mcp", any(handle)).with_state(shared.clone());
        let served = runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move { axum::serve(listener, app).await });
            address
        });
        Self { address: served.await.unwrap(), shared, runtime: Some(runtime) }
    }

    /// Ends the server and its connections.
    pub(super) async fn stop(&mut self) {
        let runtime = self.runtime.take().unwrap();
        let stopped = tokio::task::spawn_blocking(move || drop(runtime));
        stopped.await.unwrap();
    }

    pub(super) fn options(&self) -> McpServerOptions {
        options_at(self.address)
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.shared.count(method)
    }

    /// Waits until a message was received.
    pub(super) async fn until(&self, method: &str) {
        let mut received = self.shared.received.subscribe();
        let has_come = received.wait_for(|all| all.iter().any(|received| received == method));
        let come = tokio::time::timeout(Duration::from_secs(30), has_come).await;
        come.unwrap_or_else(|_| panic!("{method} does not come")).unwrap();
    }

    /// Lets the calls of `wait`, `task` and `stream` end.
    pub(super) fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Shared {
    /// Returns how often a message of a method, or a call of a tool, was received.
    fn count(&self, method: &str) -> usize {
        self.received.borrow().iter().filter(|received| *received == method).count()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(super) fn options_at(address: SocketAddr) -> McpServerOptions {
    McpServerOptions::url(format!("http://{address}/mcp"))
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    method: Method,
    headers: HeaderMap,
    body: String,
) -> Response {
    let mut response = respond(&shared, method, &headers, &body).await;
    // A stopped server must not be found by a connection that the client keeps.
    response.headers_mut().insert(header::CONNECTION, "close".parse().unwrap());
    response
}

async fn respond(
    shared: &Arc<Shared>,
    method: Method,
    headers: &HeaderMap,
    body: &str,
) -> Response {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let named = message["method"].as_str().unwrap_or(method.as_str()).to_owned();
    shared.received.send_modify(|received| received.push(named.clone()));
    if shared.first_message.lock().unwrap().is_null() {
        *shared.first_message.lock().unwrap() = message.clone();
    }
    match (shared.kind, &method) {
        (Kind::Login, _) | (Kind::LoginForStream, &Method::GET) => {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        (Kind::HttpSse, &Method::GET) => {
            let event = "event: endpoint\ndata: /messages/?session_id=1\n\n";
            return ([(header::CONTENT_TYPE, "text/event-stream")], event).into_response();
        }
        (Kind::HttpSse, _) | (_, &Method::GET) => {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        _ => {}
    }
    let capabilities =
        json!({ "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    match (&*named, shared.kind) {
        ("server/discover", Kind::Modern) => {
            let revisions = json!(["2026-07-28"]);
            return result(
                &message,
                json!({ "supportedVersions": revisions, "capabilities": capabilities }),
            );
        }
        ("initialize", Kind::Sessions | Kind::LoginForStream) => {
            let session = format!("s{}", shared.received.borrow().len());
            shared.sessions.lock().unwrap().insert(session.clone());
            let info = json!({ "name": "fake", "version": "0" });
            let offered = &message["params"]["protocolVersion"];
            let revision = if *offered == "2025-11-25" { offered } else { &json!("2025-06-18") };
            let mut response = result(
                &message,
                json!({ "protocolVersion": revision, "capabilities": capabilities, "serverInfo": info }),
            );
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            return response;
        }
        _ => {}
    }
    let session = headers.get("mcp-session-id").map(|id| id.to_str().unwrap());
    let is_known = session.is_some_and(|session| shared.sessions.lock().unwrap().contains(session));
    if shared.kind != Kind::Modern && !is_known {
        let error = json!({ "code": -32000, "message": "Bad Request: Server not initialized" });
        let status =
            if session.is_some() { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
        return (status, Json(json!({ "jsonrpc": "2.0", "id": null, "error": error })))
            .into_response();
    }
    match &*named {
        "tools/list" => {
            let tools =
                TOOLS.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
            result(&message, json!({ "tools": tools }))
        }
        "tools/call" => {
            let tool = message["params"]["name"].as_str().unwrap_or_default();
            shared.received.send_modify(|received| received.push(tool.to_owned()));
            called(shared, tool, &message).await
        }
        "ping" => result(&message, json!({})),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Returns the response to a call.
async fn called(shared: &Arc<Shared>, tool: &str, message: &Value) -> Response {
    let done = json!({ "content": [{ "type": "text", "text": "done" }] });
    let other_id =
        || json!({ "jsonrpc": "2.0", "id": *shared.waiting.lock().unwrap(), "result": done });
    let cut = || Err(std::io::Error::other("cut"));
    match tool {
        "wait" | "task" | "stream" => {
            *shared.waiting.lock().unwrap() = message["id"].clone();
            let mut released = shared.released.subscribe();
            let waited = async move { _ = released.wait_for(|is_released| *is_released).await };
            if tool == "wait" {
                waited.await;
                return result(message, done);
            }
            if tool == "task" {
                waited.await;
                let task = json!({ "resultType": "task", "taskId": "t1", "status": "working",
                    "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z" });
                return Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": task }))
                    .into_response();
            }
            let response = event(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": done }));
            let begin = stream::iter([Ok(Bytes::from(": begin\n\n"))]);
            event_stream(begin.chain(stream::once(async move {
                waited.await;
                response
            })))
        }
        "status_500" => {
            (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response()
        }
        "status_429" => StatusCode::TOO_MANY_REQUESTS.into_response(),
        "html" => ([(header::CONTENT_TYPE, "text/html")], "<h1>Hello</h1>").into_response(),
        "cut" => {
            let pieces = stream::iter([Ok(Bytes::from("{\"jsonrpc\":")), cut()]);
            ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(pieces))
                .into_response()
        }
        "cut_stream" => event_stream(stream::iter([Ok(Bytes::from(": begin\n\n")), cut()])),
        "other_id" => Json(other_id()).into_response(),
        "other_id_stream" => event_stream(stream::iter([event(&other_id())])),
        "forget" if shared.count("forget") == 1 => {
            shared.sessions.lock().unwrap().clear();
            StatusCode::NOT_FOUND.into_response()
        }
        // The words of FastMCP 4.1.4 for `ctx.elicit`.
        "elicit" if shared.kind == Kind::Modern => {
            let text = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.";
            result(
                message,
                json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
            )
        }
        _ => result(message, done),
    }
}

/// Returns a result, with the members that results have since 2026-07-28.
fn result(message: &Value, mut result: Value) -> Response {
    result["resultType"] = "complete".into();
    (result["ttlMs"], result["cacheScope"]) = (0.into(), "private".into());
    Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
}

fn event(message: &Value) -> std::io::Result<Bytes> {
    Ok(Bytes::from(format!("data: {message}\n\n")))
}

fn event_stream(
    pieces: impl futures::Stream<Item = std::io::Result<Bytes>> + Send + 'static,
) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response()
}
