//! An endpoint that answers exactly as a test tells it, and keeps what it was asked.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agui_server::{
    Server,
    agents::{Remote, RemoteOptions},
    protocol::{Event, RunAgentInput},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    running::{Count, OnDrop, Running, events},
    support::checker,
};

/// A piece of a body.
#[derive(Clone)]
pub enum Piece {
    Text(String),
    Wait(u64),
    /// Nothing more comes, and the connection stays.
    Hang,
    /// The connection goes.
    Break,
    /// The same text for ever.
    Endless(String),
}

/// What is answered.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub pieces: Vec<Piece>,
}

impl Answer {
    /// A stream, with an event or text a piece.
    pub fn stream(pieces: impl IntoIterator<Item = Piece>) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, pieces: pieces.into_iter().collect() }
    }

    /// A stream that is there as a whole.
    pub fn text(text: impl Into<String>) -> Self {
        Self::stream([Piece::Text(text.into())])
    }

    /// A stream of events.
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

/// What begins and ends a remote run.
pub fn started() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "theirs", "runId": "their-run" })
}
pub fn finished() -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "theirs", "runId": "their-run" })
}
pub fn text(id: &str, text: &str) -> [Value; 3] {
    [
        json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": id }),
    ]
}

/// A request as it arrived.
#[derive(Clone)]
pub struct Asked {
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Clone)]
struct Shared {
    answers: Arc<Mutex<Vec<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Bodies that were told to the end, and all that are gone.
    told: Count,
    gone: Count,
}

/// The endpoint; it ends with the test.
pub struct Upstream {
    pub url: String,
    shared: Shared,
    task: JoinHandle<()>,
}

impl Upstream {
    /// Answers with each in turn, and with the last one from then on.
    pub async fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let shared = Shared { answers, asked: Arc::default(), told: Count::default(), gone: Count::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/agent", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, task }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// How many answers were told to their end.
    pub fn told(&self) -> usize {
        self.shared.told.get()
    }

    /// How many answers are over, because they were told or because nobody listened any more.
    pub fn gone(&self) -> usize {
        self.shared.gone.get()
    }

    pub fn options(&self) -> RemoteOptions {
        RemoteOptions::new(&self.url)
    }

    /// A server in front of it.
    pub async fn server(&self) -> Running {
        served(self.options()).await
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub async fn served(options: RemoteOptions) -> Running {
    Running::start(Server::new().agent("remote", Remote::new(options).unwrap())).await
}

async fn answer(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    shared.asked.lock().unwrap().push(Asked { headers, body });
    let answer = {
        let mut answers = shared.answers.lock().unwrap();
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    };
    let (told, guard) = (shared.told.clone(), OnDrop(shared.gone.clone()));
    let broken = answer.pieces.iter().any(|piece| matches!(piece, Piece::Break));
    let body = async_stream::stream! {
        let _guard = guard;
        for piece in answer.pieces {
            match piece {
                Piece::Text(text) => yield Ok(Bytes::from(text)),
                Piece::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Piece::Hang => std::future::pending::<()>().await,
                Piece::Break => {
                    // What was said before is on its way.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    yield Err(std::io::Error::other("broken"));
                }
                Piece::Endless(text) => loop {
                    yield Ok::<_, std::io::Error>(Bytes::from(text.clone()));
                },
            }
        }
        if !broken {
            told.add();
        }
    };
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap();
    for (name, value) in answer.headers {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    response
}

/// Asks a server for a run, and answers its events, which are a legal run whatever the remote agent did.
pub async fn run(server: &Running, input: &Value) -> Vec<Value> {
    let response = server.run(input).await;
    assert_eq!(response.status(), 200);
    let events = events(&response.text().await.unwrap());
    judge(input, &events);
    events
}

pub fn judge(input: &Value, events: &[Value]) {
    let input: RunAgentInput = serde_json::from_value(input.clone()).unwrap();
    let typed: Vec<Event> = events.iter().map(|event| serde_json::from_value(event.clone()).unwrap()).collect();
    checker::check(&input, &typed).unwrap_or_else(|fault| panic!("{fault}: {events:#?}"));
}

/// The events between the first and the last one, which are the server's own.
pub fn between(events: &[Value]) -> &[Value] {
    &events[1..events.len() - 1]
}
