//! A server in this process on its own port, a client for it, and agents for tests.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use agui_server::{
    Server,
    agent::{EventStream, RunContext, emit::TextMessage, event_stream},
    protocol::RunAgentInput,
    store::SqliteStore,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::refusals;

/// The longest time that a test waits for one thing.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A server that runs until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    _refusals: refusals::RefusalCheck,
}

impl Running {
    pub async fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            // Resolves when the test drops the sender.
            let _ = stopped.await;
        };
        tokio::spawn(server.serve_on(listener, shutdown));
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        Self { address, client, stop: Some(stop), _refusals: refusals::RefusalCheck::start().await }
    }

    /// Begins the shutdown.
    pub fn shut_down(&mut self) {
        self.stop = None;
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.post(self.url(path))
    }

    pub async fn run(&self, input: &Value) -> reqwest::Response {
        self.post("/send-message").json(input).send().await.unwrap()
    }

    /// Sends a request for a run on a socket. Returns the socket, from which nothing has been read.
    pub async fn raw_run(&self, input: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let body = input.to_string();
        let head = format!(
            "POST /send-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream
    }
}

/// Returns an input with one user message, on a new thread.
pub fn input(text: &str) -> Value {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    // Concurrent runs on the same thread would wait for each other.
    let thread = format!("t{}", THREADS.fetch_add(1, Ordering::Relaxed));
    json!({ "threadId": thread, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": text }] })
}

/// Parses the events of a whole body.
pub fn events(body: &str) -> Vec<Value> {
    numbered_events(body).into_iter().map(|(_, event)| event).collect()
}

/// Parses the events of a whole body with their numbers, which detached runs have.
pub fn numbered_events(body: &str) -> Vec<(Option<u64>, Value)> {
    assert!(body.ends_with("\n\n"), "{body:?}");
    let frames = body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| {
            let (number, data) =
                match frame.strip_prefix("id: ").and_then(|rest| rest.split_once('\n')) {
                    Some((number, data)) => (Some(number.parse().unwrap()), data),
                    None => (None, frame),
                };
            (number, serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap())
        })
        .collect()
}

/// Reads a response, head and body, until `enough` is true or the connection closes.
pub async fn read_until(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = tokio::time::timeout(TEST_TIMEOUT, stream.read(&mut piece))
            .await
            .expect("nothing more came");
        match read {
            Ok(0) | Err(_) => break,
            Ok(n) => all.extend_from_slice(&piece[..n]),
        }
        if enough(&String::from_utf8_lossy(&all)) {
            break;
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Polls until a test succeeds.
pub async fn eventually(what: &str, mut test: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
    while !test() {
        assert!(tokio::time::Instant::now() < deadline, "not reached in {TEST_TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Polls until an async test succeeds.
pub async fn eventually_async(what: &str, mut test: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
    while !test().await {
        assert!(tokio::time::Instant::now() < deadline, "not reached in {TEST_TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Opens the SQLite file in a folder, as soon as the server that had it has closed it.
pub async fn reopened(folder: &std::path::Path) -> Arc<SqliteStore> {
    let mut store = None;
    eventually_async("the file is closed", async || {
        store = SqliteStore::open(&folder.join("threads.db")).await.ok();
        store.is_some()
    })
    .await;
    Arc::new(store.unwrap())
}

/// A counter that clones share.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicUsize>);

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Increments a counter when it is dropped.
pub struct OnDrop(pub Count);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Returns an agent that starts a message and then waits for ever, and the number of its dropped runs.
pub fn silent() -> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Count)
{
    let stopped = Count::default();
    let count = stopped.clone();
    let agent = move |_: RunAgentInput, _: RunContext| {
        let guard = OnDrop(count.clone());
        event_stream(async_stream::try_stream! {
            let _guard = guard;
            yield TextMessage::new().start();
            std::future::pending::<()>().await;
        })
    };
    (agent, stopped)
}

/// Returns an agent whose message never ends, the number of its deltas, and the number of its dropped runs.
pub fn endless()
-> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Count, Count) {
    let (deltas, stopped) = (Count::default(), Count::default());
    let counts = (deltas.clone(), stopped.clone());
    let agent = move |_: RunAgentInput, _: RunContext| {
        let (deltas, guard) = (counts.0.clone(), OnDrop(counts.1.clone()));
        event_stream(async_stream::try_stream! {
            let _guard = guard;
            let message = TextMessage::new();
            yield message.start();
            loop {
                deltas.add();
                yield message.delta("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
            }
        })
    };
    (agent, deltas, stopped)
}
