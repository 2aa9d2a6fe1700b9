//! A fake model provider with scripted answers, which can also stall or abort.
//!
//! Each request gets the next answer of the script. A request after the last answer gets status 418: clients treat it
//! as an error and do not retry it.

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
    routing::get,
    serve::ListenerExt as _,
};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::AbortHandle};

use super::strict;

/// A fake provider that runs until it is dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: AbortHandle,
}

/// A request that the provider has received.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    /// The body, or `null` if it was not JSON.
    pub body: Value,
    /// The body as it came.
    pub text: String,
    pub at: Instant,
    /// The client's address, which is the same for all requests of a connection.
    pub from: SocketAddr,
}

/// A step of an answer's body.
#[derive(Debug, Clone)]
pub enum Step {
    Send(Bytes),
    Pause(Duration),
    /// Sends nothing more and keeps the connection open.
    Stall,
    /// Closes the connection in the middle of the body.
    Abort,
}

/// The answer to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    /// The wait before the head is sent.
    delay: Duration,
    steps: Vec<Step>,
}

/// Returns the reason for which the real provider would refuse a request with status 400.
pub type Check = fn(&Recorded) -> Option<String>;

struct Shared {
    check: Check,
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Recorded>>,
    /// The times at which clients closed their connections before the end of the answer.
    hung_up: watch::Sender<Vec<Instant>>,
}

impl Answer {
    /// Returns an answer with `Content-Type: text/event-stream` and this body.
    pub fn stream(steps: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        Self::new(200, steps).header("content-type", "text/event-stream")
    }

    pub fn new(status: u16, steps: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        let steps = steps.into_iter().map(Into::into).collect();
        Self {
            status: StatusCode::from_u16(status).unwrap(),
            headers: Vec::new(),
            delay: Duration::ZERO,
            steps,
        }
    }

    /// Returns a stream of chat completion chunks, with `[DONE]` at the end.
    pub fn openai(chunks: &[Value]) -> Self {
        let chunks = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        Self::stream(chunks.chain(["data: [DONE]\n\n".to_owned()]))
    }

    /// Returns a stream of events of the Messages API. Panics if an event has no `type`.
    pub fn anthropic(events: &[Value]) -> Self {
        Self::stream(
            events.iter().map(|event| {
                format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
            }),
        )
    }

    /// Returns a stream of responses of the Gemini API.
    pub fn gemini(responses: &[Value]) -> Self {
        Self::stream(responses.iter().map(|response| format!("data: {response}\r\n\r\n")))
    }

    /// Returns a refusal in the common form, or in its own form if it is an object. No request has
    /// its `param`: otherwise the client would ask again without the parameter.
    fn refused(message: &str) -> Self {
        let error =
            json!({"type": "invalid_request_error", "message": message, "param": "request"});
        let body = match message.starts_with('{') {
            true => message.to_owned(),
            false => json!({"type": "error", "error": error}).to_string(),
        };
        Self::new(400, [body]).header("content-type", "application/json")
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Delays the head of the answer.
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

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
    /// Starts a provider that refuses invalid tools and histories like the real one.
    pub async fn start() -> Self {
        Self::start_checked(strict::refusal_of_known_paths).await
    }

    /// Starts a provider that refuses what `check` refuses. A refused request takes no answer of
    /// the script.
    pub async fn start_checked(check: Check) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Otherwise the end of each answer waits 40 ms for the client's acknowledgement of its beginning.
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        let shared = Arc::new(Shared {
            check,
            answers: Mutex::default(),
            requests: Mutex::default(),
            hung_up: watch::Sender::default(),
        });
        let router = Router::new()
            .route("/calculator", get(calculate))
            .fallback(answer)
            .with_state(shared.clone());
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        let server =
            tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { address, shared, server }
    }

    /// Returns the base URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the configuration of a tool `calculator`, which this server carries out beside the script.
    pub fn calculator(&self) -> String {
        let url = format!("{}/calculator?expression={{expression}}", self.url());
        format!(
            "[tools.calculator]\nkind = \"http\"\ndescription = \"Calculates.\"\nurl = {url:?}\n"
        )
    }

    /// Adds an answer to the script.
    pub fn answer(&self, answer: Answer) {
        self.shared.answers.lock().unwrap().push_back(answer);
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until `count` clients have closed their connections before the end of the answer, and returns the time
    /// of the last of them.
    pub async fn until_hang_ups(&self, count: usize) -> Instant {
        let mut hung_up = self.shared.hung_up.subscribe();
        let waiting = hung_up.wait_for(|instants| instants.len() >= count);
        let instants = tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .expect("too few hang-ups")
            .unwrap();
        instants[count - 1]
    }

    /// Returns the number of clients that have closed their connections before the end of the answer.
    pub fn hang_ups(&self) -> usize {
        self.shared.hung_up.borrow().len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Calculates the expressions of the scripts.
async fn calculate(uri: Uri) -> &'static str {
    match uri.query().unwrap_or_default() {
        "expression=1" => "1",
        "expression=1%2B1" => "2",
        "expression=2%2A3" => "6",
        "expression=6%2A7" | "expression=6%20%2A%207" => "42",
        other => panic!("the calculator does not know {other}"),
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
        text: String::from_utf8_lossy(&body).into_owned(),
        at: Instant::now(),
        from,
    };
    let refusal = (shared.check)(&recorded);
    shared.requests.lock().unwrap().push(recorded);
    let scripted = match refusal {
        Some(message) => Some(Answer::refused(&message)),
        None => shared.answers.lock().unwrap().pop_front(),
    };
    let answer =
        scripted.unwrap_or_else(|| Answer::new(418, ["the script has no answer for this request"]));
    // Created before the delay, so that a client that disconnects before the head is recorded, too.
    let mut recorder = HangUpRecorder { shared, ended: false };
    tokio::time::sleep(answer.delay).await;
    let body = async_stream::stream! {
        for step in answer.steps {
            match step {
                Step::Send(bytes) => yield Ok(bytes),
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::Stall => std::future::pending().await,
                Step::Abort => {
                    // The bytes before the abort have to arrive.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    recorder.end();
                    yield Err(std::io::Error::other("scripted"));
                }
            }
            // Sends each step as a separate chunk.
            tokio::task::yield_now().await;
        }
        recorder.end();
    };
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = answer.status;
    for (name, value) in answer.headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}

/// Records the time when an answer is dropped before its end.
struct HangUpRecorder {
    shared: Arc<Shared>,
    ended: bool,
}

impl HangUpRecorder {
    fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for HangUpRecorder {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.hung_up.send_modify(|instants| instants.push(Instant::now()));
        }
    }
}
