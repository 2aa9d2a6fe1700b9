//! A fake AG-UI endpoint that sends the responses of a test and records its requests.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agui_server::{
    Server,
    agent::builtin::{Remote, RemoteOptions},
    protocol::{Event, RunAgentInput},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::Response as HttpResponse,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    running::{Count, OnDrop, Running, events},
    support::checker,
};

/// A piece of a response body.
#[derive(Clone)]
pub enum Piece {
    Text(String),
    /// A pause in milliseconds.
    Wait(u64),
    /// Sends nothing more, and keeps the connection open.
    Hang,
    /// Breaks the connection.
    Break,
    /// Sends the same text forever.
    Endless(String),
}

/// A response of the endpoint.
#[derive(Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub pieces: Vec<Piece>,
}

impl Response {
    /// An event stream.
    pub fn stream(pieces: impl IntoIterator<Item = Piece>) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, pieces: pieces.into_iter().collect() }
    }

    /// An event stream in one piece.
    pub fn text(text: impl Into<String>) -> Self {
        Self::stream([Piece::Text(text.into())])
    }

    /// An event stream with these events.
    pub fn events(events: &[Value]) -> Self {
        Self::stream(events.iter().map(event))
    }

    pub fn status(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), pieces: vec![Piece::Text(body.to_owned())] }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(header, _)| *header != name);
        self.headers.push((name, value.to_owned()));
        self
    }
}

pub fn event(event: &Value) -> Piece {
    Piece::Text(format!("data: {event}\n\n"))
}

/// The first event of a remote run.
pub fn started() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "theirs", "runId": "their-run" })
}
/// The last event of a remote run.
pub fn finished() -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "theirs", "runId": "their-run" })
}
/// The first and the last event of a run with this id.
pub fn begin_and_end(run: &str) -> [Value; 2] {
    ["RUN_STARTED", "RUN_FINISHED"]
        .map(|kind| json!({ "type": kind, "threadId": "theirs", "runId": run }))
}
/// The events of a text message.
pub fn text(id: &str, text: &str) -> [Value; 3] {
    [
        json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": id }),
    ]
}

/// A request to the endpoint.
#[derive(Clone)]
pub struct RecordedRequest {
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Clone)]
struct Shared {
    responses: Arc<Mutex<Vec<Response>>>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    /// The pieces of `Piece::Endless` that were sent.
    endless_pieces: Count,
    /// The responses that were sent to their end, and those that are over in any way.
    completed: Count,
    closed: Count,
}

/// The endpoint. It stops when it is dropped.
pub struct FakeEndpoint {
    pub url: String,
    shared: Shared,
    task: JoinHandle<()>,
}

impl FakeEndpoint {
    /// Sends the responses in turn, and the last one to all further requests.
    pub async fn new(responses: impl IntoIterator<Item = Response>) -> Self {
        let responses = Arc::new(Mutex::new(responses.into_iter().collect()));
        let shared = Shared {
            responses,
            requests: Arc::default(),
            endless_pieces: Count::default(),
            completed: Count::default(),
            closed: Count::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/agent", listener.local_addr().unwrap());
        let router = Router::new().fallback(respond).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, task }
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns the number of responses that were sent to their end.
    pub fn completed(&self) -> usize {
        self.shared.completed.get()
    }

    /// Returns the number of responses that were sent to their end or whose request was dropped.
    pub fn closed(&self) -> usize {
        self.shared.closed.get()
    }

    /// Returns the number of pieces of `Piece::Endless` that were sent.
    pub fn endless_pieces(&self) -> usize {
        self.shared.endless_pieces.get()
    }

    pub fn options(&self) -> RemoteOptions {
        RemoteOptions::new(&self.url)
    }

    /// Starts a server with an agent for this endpoint.
    pub async fn server(&self) -> Running {
        server_with(self.options()).await
    }
}

impl Drop for FakeEndpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a server with a remote agent.
pub async fn server_with(options: RemoteOptions) -> Running {
    Running::start(Server::new().agent("remote", Remote::new(options).unwrap())).await
}

async fn respond(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> HttpResponse {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    // Endpoints repeat the ids that they are given: the tests' ids `t` and `r` are replaced.
    let given = [("threadId", "t"), ("runId", "r")]
        .map(|(name, id)| (format!(r#""{name}":"{id}""#), format!(r#""{name}":{}"#, body[name])));
    shared.requests.lock().unwrap().push(RecordedRequest { headers, body });
    let answer = {
        let mut responses = shared.responses.lock().unwrap();
        if responses.len() > 1 { responses.remove(0) } else { responses[0].clone() }
    };
    let guard = OnDrop(shared.closed.clone());
    let is_broken = answer.pieces.iter().any(|piece| matches!(piece, Piece::Break));
    let body = async_stream::stream! {
        let _guard = guard;
        for piece in answer.pieces {
            match piece {
                Piece::Text(text) => {
                    let repeated = given.iter().fold(text, |text, (ours, theirs)| text.replace(ours, theirs));
                    yield Ok(Bytes::from(repeated));
                }
                Piece::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Piece::Hang => std::future::pending::<()>().await,
                Piece::Break => {
                    // The earlier pieces must reach the client before the connection breaks.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    yield Err(std::io::Error::other("broken"));
                }
                Piece::Endless(text) => loop {
                    shared.endless_pieces.add();
                    yield Ok::<_, std::io::Error>(Bytes::from(text.clone()));
                },
            }
        }
        if !is_broken {
            shared.completed.add();
        }
    };
    let mut response = HttpResponse::new(Body::from_stream(body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap();
    for (name, value) in answer.headers {
        response
            .headers_mut()
            .append(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    response
}

/// Starts a run, and returns its events after checking that their order is legal.
pub async fn run(server: &Running, input: &Value) -> Vec<Value> {
    let response = server.run(input).await;
    assert_eq!(response.status(), 200);
    let events = events(&response.text().await.unwrap());
    assert_legal(input, &events);
    events
}

/// Checks that events are a legal answer to an input.
pub fn assert_legal(input: &Value, events: &[Value]) {
    let input: RunAgentInput = serde_json::from_value(input.clone()).unwrap();
    let typed: Vec<Event> =
        events.iter().map(|event| serde_json::from_value(event.clone()).unwrap()).collect();
    checker::check(&input, &typed).unwrap_or_else(|fault| panic!("{fault}: {events:#?}"));
}

/// Returns the events without the first and the last one, which the server makes itself.
pub fn agent_events(events: &[Value]) -> &[Value] {
    &events[1..events.len() - 1]
}
