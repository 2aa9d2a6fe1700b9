//! Any sequence of requests, closed connections and stops of the pages of one person, with any timing, on one server or on two
//! that share Postgres: each call is made once for one run id and one message, no message that was taken is lost, and each
//! connection that its client keeps ends legally. Servers that are killed are in `tests/chaos`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agui_server::{
    Server,
    agent::{Agent, Emitter, agent_fn},
    protocol::RunAgentInput,
    store::{PostgresStore, SqliteStore},
};
use futures::future::join_all;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    run::{ask, types},
    support::{
        postgres::Postgres,
        running::{Running, events, eventually_async},
    },
};

const RUNS: u8 = 3;
const MESSAGES: u8 = 4;

#[derive(Debug, Clone)]
enum Step {
    /// A page sends a message under a run id. With `continues`, its run goes on without it.
    Send {
        run: u8,
        message: u8,
        continues: bool,
        to: prop::sample::Index,
    },
    /// A page closes one of its connections.
    Close(prop::sample::Index),
    Stop {
        run: u8,
    },
    Pause {
        millis: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..RUNS, 0..MESSAGES, any::<bool>(), any::<prop::sample::Index>())
            .prop_map(|(run, message, continues, to)| Step::Send { run, message, continues, to }),
        3 => any::<prop::sample::Index>().prop_map(Step::Close),
        1 => (0..RUNS).prop_map(|run| Step::Stop { run }),
        4 => (0..30_u64).prop_map(|millis| Step::Pause { millis }),
    ]
}

/// The calls that were made, by run id and message.
type Payments = Arc<Mutex<BTreeMap<(String, String), usize>>>;

/// An agent that pays for every second message, and needs some milliseconds for each answer.
fn clerk(payments: Payments) -> impl Agent {
    agent_fn(move |input: RunAgentInput, out: Emitter| {
        let payments = payments.clone();
        async move {
            let text = input.last_user_text().unwrap_or_default().into_owned();
            sleep(Duration::from_millis(3)).await;
            if text.starts_with("pay") {
                let call = out.call("pay", json!({})).await?;
                let paid = (input.run_id.to_string(), text.clone());
                *payments.lock().entry(paid).or_default() += 1;
                sleep(Duration::from_millis(3)).await;
                call.result("paid").await?;
            }
            sleep(Duration::from_millis(3)).await;
            out.text(format!("done: {text}")).await
        }
    })
}

fn request(run: u8, message: u8, continues: bool) -> Value {
    let text = if message.is_multiple_of(2) { "pay" } else { "say" };
    let mut request =
        ask("t", &format!("r{run}"), &format!("m{message}"), &format!("{text} {message}"));
    if continues {
        request["forwardedProps"] = json!({ "onDisconnect": "continue" });
    }
    request
}

#[derive(Debug, Clone, Copy)]
enum Stored {
    Memory,
    Sqlite,
    /// By two servers.
    Postgres,
}

/// A response: its status and its body, or `None` if it broke.
type Answer = JoinHandle<(u16, Option<String>)>;

fn send(server: &Running, request: &Value) -> Answer {
    let request = server.post("/send-message").json(request);
    tokio::spawn(async move {
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.ok())
    })
}

/// Checks a whole response. Returns whether its message was taken, and nobody stopped its run, perhaps before it began.
fn was_taken(status: u16, body: &str) -> bool {
    if status != 200 {
        let code = serde_json::from_str::<Value>(body).unwrap()["error"]["code"].clone();
        let codes = ["run_is_running", "run_is_ending", "too_many_queued"];
        assert!(codes.iter().any(|known| code == *known), "{status} {body}");
        return false;
    }
    let events = events(body);
    let types = types(&events);
    assert_eq!(types.iter().filter(|name| **name == "RUN_STARTED").count(), 1, "{types:?}");
    let is_end = |name: &&str| ["RUN_FINISHED", "RUN_ERROR"].contains(name);
    assert_eq!(types.iter().filter(|name| is_end(name)).count(), 1, "{types:?}");
    assert!(types.last().is_some_and(is_end), "{types:?}");
    events.last().is_some_and(|end| end["outcome"]["type"] != "cancelled")
}

async fn until_quiet(server: &Running) {
    eventually_async("no run is running", async || {
        let thread: Value = server.get("/threads/t").await.json().await.unwrap();
        let runs = thread["runs"].as_array().cloned().unwrap_or_default();
        runs.iter().all(|run| run["status"] != "running")
    })
    .await;
}

async fn play(servers: Vec<Server>, payments: Payments, steps: Vec<Step>) {
    let servers = join_all(servers.into_iter().map(Running::start)).await;
    // A run of a response that another server has can ask its client to send the request again.
    let may_break = servers.len() > 1;
    let mut open: Vec<((u8, u8), Answer)> = Vec::new();
    for step in steps {
        match step {
            Step::Send { run, message, continues, to } => {
                let server = &servers[to.index(servers.len())];
                open.push(((run, message), send(server, &request(run, message, continues))));
            }
            Step::Close(at) if !open.is_empty() => {
                let (_, answer) = open.swap_remove(at.index(open.len()));
                answer.abort();
            }
            Step::Close(_) => {}
            Step::Stop { run } => {
                let path = format!("/threads/t/runs/r{run}/cancel");
                servers[0].post(&path).send().await.unwrap();
            }
            Step::Pause { millis } => sleep(Duration::from_millis(millis)).await,
        }
    }
    let mut taken = Vec::new();
    for (sent, answer) in open {
        let (status, body) = answer.await.unwrap();
        assert!(body.is_some() || may_break, "the response to {sent:?} breaks");
        if let Some(body) = body.filter(|body| was_taken(status, body)) {
            taken.push((sent, body));
        }
    }
    let server = &servers[0];
    until_quiet(server).await;
    let export = server.get("/threads/t/export").await.text().await.unwrap();
    for ((_, message), body) in &taken {
        assert!(export.contains(&format!("\"m{message}\"")), "m{message} is lost: {body} {export}");
    }
    // A page that lost its connection asks again.
    for ((run, message), _) in taken {
        let (status, body) = send(server, &request(run, message, false)).await.unwrap();
        let body = body.unwrap();
        assert_eq!(status, 200, "{body}");
        was_taken(status, &body);
        until_quiet(server).await;
    }
    for (paid, times) in &*payments.lock() {
        assert_eq!(*times, 1, "{paid:?}");
    }
}

fn config(cases: u32) -> ProptestConfig {
    // Failures are printed in full, so that they need no file beside the test. Each case has a server.
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 60, ..Default::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_call_is_made_once_in_any_sequence_of_requests(
        steps in prop::collection::vec(step(), 1..24),
        stored in prop_oneof![
            Just(Stored::Memory), Just(Stored::Sqlite), Just(Stored::Postgres),
        ],
    ) {
        runtime().block_on(async {
            let payments = Payments::default();
            let server = || Server::new().agent("clerk", clerk(payments.clone()));
            let folder = tempfile::tempdir().unwrap();
            let servers = match (stored, Postgres::shared()) {
                (Stored::Sqlite, _) => {
                    let store = SqliteStore::open(&folder.path().join("threads.db")).await.unwrap();
                    vec![server().store(store)]
                }
                (Stored::Postgres, Some(postgres)) => {
                    let url = postgres.database("sequences").await;
                    let store = async || PostgresStore::open(&url).await.unwrap();
                    vec![server().store(store().await), server().store(store().await)]
                }
                (Stored::Memory | Stored::Postgres, _) => vec![server()],
            };
            play(servers, payments, steps).await;
        });
    }
}
