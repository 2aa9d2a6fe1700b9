//! A provider of models that does what a script tells it: answers, stalls, breaks off, lies.
//!
//! Answers are given in the order in which they were scripted, one a request; a request that nothing was scripted for
//! is answered by 418, which no client takes for an answer or tries again.
#![allow(dead_code, reason = "every test crate compiles this module for itself and uses a part of it")]

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, task::AbortHandle};

/// A provider that runs until it is dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: AbortHandle,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    /// `null` if it was no JSON.
    pub body: Value,
    pub at: Instant,
    /// The client's end of the connection, which is the same as long as the connection is.
    pub from: SocketAddr,
}

#[derive(Debug, Clone)]
pub enum Step {
    /// Bytes, sent at once.
    Send(Bytes),
    Pause(Duration),
    /// Silence for ever.
    Stall,
    /// The connection is closed in the middle of the body.
    Abort,
}

/// What one request is answered with.
#[derive(Debug, Clone)]
pub struct Answer {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    /// Before the head is sent.
    delay: Duration,
    steps: Vec<Step>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Recorded>>,
    /// When each client that did not wait for the end hung up.
    hung_up: watch::Sender<Vec<Instant>>,
}

impl Answer {
    /// A stream of events, as these bytes.
    pub fn stream(steps: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        Self::new(200, steps).header("content-type", "text/event-stream")
    }

    /// Any answer.
    pub fn new(status: u16, steps: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        let steps = steps.into_iter().map(Into::into).collect();
        Self { status: StatusCode::from_u16(status).unwrap(), headers: Vec::new(), delay: Duration::ZERO, steps }
    }

    /// The chunks of chat completions, and `[DONE]`.
    pub fn openai(chunks: &[Value]) -> Self {
        let chunks = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        Self::stream(chunks.chain(["data: [DONE]\n\n".to_owned()]))
    }

    /// The events of the Messages API; each must have a type.
    pub fn anthropic(events: &[Value]) -> Self {
        Self::stream(
            events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())),
        )
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Waits before the head of the answer.
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// What follows.
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }
}

impl<T: Into<Bytes>> From<T> for Step {
    fn from(bytes: T) -> Self {
        Self::Send(bytes.into())
    }
}

impl Provider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { address, shared, server }
    }

    /// Where it is; what comes after that is up to the client.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds an answer to the script.
    pub fn answer(&self, answer: Answer) {
        self.shared.answers.lock().unwrap().push_back(answer);
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// When the first client hung up that did not wait for the end of its answer.
    pub async fn hung_up(&self) -> Instant {
        let mut hung_up = self.shared.hung_up.subscribe();
        let instants = hung_up.wait_for(|instants| !instants.is_empty()).await.unwrap();
        instants[0]
    }

    /// How many clients have hung up.
    pub fn hang_ups(&self) -> usize {
        self.shared.hung_up.borrow().len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let recorded = Recorded {
        path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        at: Instant::now(),
        from,
    };
    shared.requests.lock().unwrap().push(recorded);
    let scripted = shared.answers.lock().unwrap().pop_front();
    let answer = scripted.unwrap_or_else(|| Answer::new(418, ["nothing was scripted for this request"]));
    // From here on somebody who leaves is seen, also while the head is waited for.
    let mut watcher = Watcher { shared, ended: false };
    tokio::time::sleep(answer.delay).await;
    let body = async_stream::stream! {
        for step in answer.steps {
            match step {
                Step::Send(bytes) => yield Ok(bytes),
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::Stall => std::future::pending().await,
                Step::Abort => {
                    // What was sent before is to arrive.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    watcher.end();
                    yield Err(std::io::Error::other("scripted"));
                }
            }
            // Each step is to be a piece of its own on the wire.
            tokio::task::yield_now().await;
        }
        watcher.end();
    };
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = answer.status;
    for (name, value) in answer.headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}

/// Says when an answer was dropped before it had ended.
struct Watcher {
    shared: Arc<Shared>,
    ended: bool,
}

impl Watcher {
    fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.hung_up.send_modify(|instants| instants.push(Instant::now()));
        }
    }
}
