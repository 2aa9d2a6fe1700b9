//! A server and a client of it.

use std::{
    ops::Deref,
    process::Command,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::Value;

use super::{
    TEST_TIMEOUT,
    poll::poll_until,
    server::{BINARY, Process},
};

/// One of the servers.
pub(crate) struct Replica {
    pub(crate) process: Process,
    endpoint: Endpoint,
}

impl Deref for Replica {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Replica {
    pub(crate) fn start(environment: &[(&str, &str)]) -> Self {
        Self::start_with(&[], environment)
    }

    pub(crate) fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::launch(Command::new(BINARY), arguments, environment)
    }

    /// Starts another command, to which the arguments are appended.
    pub(crate) fn launch(
        command: Command,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let arguments = [&["--log", "warn,agui_server=info"], arguments].concat();
        let process =
            Process::launch(command, tempfile::tempdir().unwrap(), &arguments, environment);
        let endpoint = Endpoint::new(process.url.clone());
        Self { process, endpoint }
    }

    /// Waits until the stopped process has ended. Returns its exit code and its log.
    pub(crate) fn end(self) -> (Option<i32>, String) {
        self.process.ended()
    }

    /// Ends the process as if the machine had failed.
    pub(crate) fn kill(self) {
        self.process.signal("-KILL");
        assert_eq!(self.process.ended().0, None);
    }
}

/// A client of a server, or of a proxy in front of servers.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    client: reqwest::Client,
}

impl Endpoint {
    pub(crate) fn new(url: String) -> Self {
        Self { url, client: agui_base::upstream::direct_client(&Default::default()).unwrap() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn post(&self, input: &Value) -> reqwest::Response {
        self.post_to("/send-message", input).await
    }

    pub(crate) async fn post_to(&self, path: &str, body: &Value) -> reqwest::Response {
        self.request(Method::POST, path).json(body).send().await.unwrap()
    }

    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Stream {
        Stream::of(self.post_to(path, body).await).await
    }

    pub(crate) async fn run(&self, input: &Value) -> Stream {
        Stream::of(self.post(input).await).await
    }

    /// Follows a run of the thread `t`.
    pub(crate) async fn follow(&self, run: &str, after: u64) -> Stream {
        Stream::of(self.get(&format!("/threads/t/runs/{run}/events?after={after}")).await).await
    }

    /// Follows the changes of all threads.
    pub(crate) async fn changes(&self) -> Stream {
        Stream::of(self.get("/threads/events").await).await
    }

    pub(crate) async fn cancel(&self, run: &str) -> u16 {
        let path = format!("/threads/t/runs/{run}/cancel");
        self.request(Method::POST, &path).send().await.unwrap().status().as_u16()
    }

    /// The thread `t`.
    pub(crate) async fn thread(&self) -> Value {
        let response = self.get("/threads/t").await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// Waits until the newest run of the thread `t` has this status.
    pub(crate) async fn until_status(&self, status: &str) -> Value {
        poll_until(status, async || {
            let thread = self.thread().await;
            (thread["runs"][0]["status"] == status).then_some(thread)
        })
        .await
    }

    /// Waits until a path is answered with this status.
    pub(crate) async fn until_answered(&self, path: &str, status: u16) {
        let what = format!("{path} is answered with {status}");
        poll_until(&what, async || (self.get(path).await.status() == status).then_some(())).await;
    }
}

/// An event as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Its number, from a stream that has numbers.
    pub(crate) number: Option<u64>,
    pub(crate) event: Value,
    pub(crate) at: Instant,
}

impl Received {
    pub(crate) fn name(&self) -> &str {
        self.event["type"].as_str().unwrap()
    }
}

/// A response, event by event. Dropped early, its connection is closed.
pub(crate) struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    /// Returns a header of the response; empty if the response does not have it.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) async fn of(response: reqwest::Response) -> Self {
        if response.status() != 200 {
            panic!("{}: {}", response.status(), response.text().await.unwrap());
        }
        Self { response, text: String::new() }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        self.next_or_cut().await.unwrap()
    }

    /// The events until the connection is lost.
    pub(crate) async fn until_cut(mut self) -> Vec<Received> {
        let mut events = Vec::new();
        while let Some(event) = self.next_or_cut().await.unwrap_or(None) {
            events.push(event);
        }
        events
    }

    pub(crate) async fn next_or_cut(&mut self) -> reqwest::Result<Option<Received>> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let received = parse(frame);
                self.text = rest.to_owned();
                match received {
                    Some(received) => return Ok(Some(received)),
                    None => continue,
                }
            }
            let piece = tokio::time::timeout(TEST_TIMEOUT, self.response.chunk())
                .await
                .expect("nothing more came");
            let Some(piece) = piece? else {
                assert_eq!(self.text, "", "the stream ended within an event");
                return Ok(None);
            };
            // Everything that is said here is ASCII.
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Returns the next `count` events.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<Received> {
        let mut events = Vec::new();
        while events.len() < count {
            events.push(self.next().await.expect("the stream ended early"));
        }
        events
    }

    /// Reads until the connection is lost. Panics at an end, of the run or of the response.
    pub(crate) async fn broken(mut self) {
        while let Ok(event) = self.next_or_cut().await {
            let event = event.expect("the response has an end").event;
            assert!(!event["type"].as_str().unwrap().starts_with("RUN_"), "{event}");
        }
    }

    /// Returns all remaining events.
    pub(crate) async fn rest(mut self) -> Vec<Received> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn parse(frame: &str) -> Option<Received> {
    let field =
        |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let event = serde_json::from_str(field("data")?).unwrap();
    Some(Received { number: field("id").map(|id| id.parse().unwrap()), event, at: Instant::now() })
}

/// The last event, after a check that the numbers are those from `first` on, each once.
pub(crate) fn numbered(events: &[Received], first: u64) -> &Received {
    let numbers: Vec<_> = events.iter().map(|event| event.number.unwrap()).collect();
    let expected: Vec<_> = (first..).take(events.len()).collect();
    assert_eq!(numbers, expected);
    let last = events.last().expect("no events");
    let ends =
        events.iter().filter(|event| matches!(event.name(), "RUN_FINISHED" | "RUN_ERROR")).count();
    assert!(
        ends == 1 && matches!(last.name(), "RUN_FINISHED" | "RUN_ERROR"),
        "{ends} ends, the last is {last:?}"
    );
    last
}

/// Asserts that texts arrive during the run, not all at its end. On a busy machine some arrive
/// together.
pub(crate) fn assert_gradual(events: &[Received]) {
    let texts: Vec<_> =
        events.iter().filter(|event| event.name() == "TEXT_MESSAGE_CONTENT").collect();
    let time = texts[texts.len() - 1].at.duration_since(texts[0].at);
    assert!(time > Duration::from_millis(200), "{} texts arrive within {time:?}", texts.len());
}

/// Returns the text of a run.
pub(crate) fn spoken<'a>(events: impl IntoIterator<Item = &'a Received>) -> String {
    let texts = events.into_iter().filter(|event| event.name() == "TEXT_MESSAGE_CONTENT");
    texts.map(|event| event.event["delta"].as_str().unwrap()).collect()
}
