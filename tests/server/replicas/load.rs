//! Clients that send one request after the other while servers and databases restart. At the end they check that every run
//! whose end they received is stored.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    client::Replica,
    poll::{poll_until, poll_within},
};

/// The number of runs after which a client uses a new thread.
const RUNS_PER_THREAD: usize = 20;

/// Longer than a crash of the database can block runs: leases of up to 15 seconds, then the queues of their threads.
const FINISH_TIMEOUT: Duration = Duration::from_secs(120);

/// The running clients.
pub(crate) struct Load {
    shared: Arc<Shared>,
    workers: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    urls: Mutex<Vec<String>>,
    is_over: AtomicBool,
    finished: Mutex<Vec<FinishedRun>>,
}

/// A run whose `RUN_FINISHED` a client has received.
struct FinishedRun {
    thread: String,
    /// The ids of its question and its answer.
    messages: [String; 2],
}

impl Load {
    /// Starts clients. They send their requests to the servers that [`use_servers`](Self::use_servers) names.
    pub(crate) fn start(clients: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let mut workers = JoinSet::new();
        for client in 0..clients {
            workers.spawn(work(shared.clone(), client));
        }
        Self { shared, workers }
    }

    pub(crate) fn use_servers<'a>(&self, servers: impl IntoIterator<Item = &'a Replica>) {
        *self.shared.urls.lock().unwrap() =
            servers.into_iter().map(|server| server.process.url.clone()).collect();
    }

    /// Waits until clients have received the end of `more` further runs.
    pub(crate) async fn until_finished(&self, more: usize) {
        let before = self.finished();
        let what = format!("{more} more runs than {before} finished");
        poll_within(FINISH_TIMEOUT, &what, async || {
            (self.finished() >= before + more).then_some(())
        })
        .await;
    }

    pub(crate) fn finished(&self) -> usize {
        self.shared.finished.lock().unwrap().len()
    }

    /// Ends the clients. Returns the number of finished runs, and of those that the server does not
    /// have.
    pub(crate) async fn end(self, server: &Replica) -> (usize, usize) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.workers.join_all().await;
        let finished = std::mem::take(&mut *self.shared.finished.lock().unwrap());
        let mut stored = HashMap::new();
        let mut lost = 0;
        for FinishedRun { thread, messages } in &finished {
            if !stored.contains_key(thread) {
                // After an outage a request may get a connection that was lost. 404 is the answer for a lost thread.
                let path = format!("/threads/{thread}");
                let what = format!("{path} is answered");
                let response = poll_until(&what, async || {
                    let response = server.get(&path).await;
                    [200, 404].contains(&response.status().as_u16()).then_some(response)
                });
                let body: Value = response.await.json().await.unwrap();
                let ids = body["messages"].as_array().into_iter().flatten();
                let ids: HashSet<String> =
                    ids.map(|message| message["id"].as_str().unwrap().to_owned()).collect();
                stored.insert(thread, ids);
            }
            if !messages.iter().all(|id| stored[thread].contains(id)) {
                println!("{thread} has {:?}, and lacks one of {messages:?}", stored[thread]);
                lost += 1;
            }
        }
        (finished.len(), lost)
    }
}

async fn work(shared: Arc<Shared>, client: usize) {
    let http = agui_base::upstream::direct_client(&Default::default()).unwrap();
    for number in 0.. {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let url = {
            let urls = shared.urls.lock().unwrap();
            (!urls.is_empty()).then(|| urls[(client + number) % urls.len()].clone())
        };
        let thread = format!("load-{client}-{}", number / RUNS_PER_THREAD);
        let (run, question) = (format!("r{number}"), format!("q{number}"));
        let mut input = json!({
            "threadId": thread, "runId": run, "messages": [{ "id": question, "role": "user", "content": "hello" }]
        });
        if client.is_multiple_of(2) {
            input["forwardedProps"] = json!({ "onDisconnect": "continue" });
        }
        let answer = match url {
            Some(url) => answer(&http, &url, &input).await,
            None => None,
        };
        match answer {
            Some(answer) => {
                shared
                    .finished
                    .lock()
                    .unwrap()
                    .push(FinishedRun { thread, messages: [question, answer] });
            }
            // No server responds, or it cannot reach its database: the client tries again after a
            // pause.
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Runs the agent. Returns the id of its answer, if the run has finished successfully. A run that
/// was continued on another server has an answer for each attempt, and the last one stays.
async fn answer(http: &reqwest::Client, url: &str, input: &Value) -> Option<String> {
    let response = http.post(format!("{url}/send-message")).json(input).send().await.ok()?;
    let text = response.text().await.ok()?;
    let events = text
        .split("\n\n")
        .filter_map(|frame| frame.lines().find_map(|line| line.strip_prefix("data: ")));
    let events: Vec<Value> = events.filter_map(|event| serde_json::from_str(event).ok()).collect();
    events.iter().find(|event| event["outcome"]["type"] == "success")?;
    let answer = events.iter().rfind(|event| event["type"] == "TEXT_MESSAGE_START")?;
    Some(answer["messageId"].as_str()?.to_owned())
}
