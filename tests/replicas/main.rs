//! Several servers on one store: the real command, started two and three times on one Postgres, as clients see it over
//! HTTP. And one server that is killed and finds its file of SQLite again.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, missing_docs, unreachable_pub)]

mod cancel;
mod client;
mod copilotkit;
mod crowd;
mod file;
mod follow;
mod interrupts;
mod killed;
mod load;
mod outage;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/server.rs"]
mod server;
mod unheard;

use client::Replica;
use postgres::Postgres;
use serde_json::{Value, json};
use std::time::Duration;

/// How long leases last here.
const LEASE: Duration = Duration::from_secs(3);
/// Longer than anything here takes; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Servers on a new database of the Postgres that the tests share.
async fn replicas<const N: usize>(name: &str) -> Option<[Replica; N]> {
    Some(replicas_on(&Postgres::shared()?.database(name).await, LEASE))
}

/// Servers on this database. They start at the same time, so they also make its tables at the same time.
fn replicas_on<const N: usize>(url: &str, lease: Duration) -> [Replica; N] {
    let lease = lease.as_secs().to_string();
    let environment =
        [("AGUI_STORE__URL", url), ("AGUI_THREADS__LEASE_SECS", &lease), ("AGUI_THREADS__MAX_QUEUED", "100")];
    std::thread::scope(|scope| {
        std::array::from_fn::<_, N, _>(|_| scope.spawn(|| Replica::start(&environment))).map(|it| it.join().unwrap())
    })
}

/// A run's input on the thread `t`, with a user's message.
fn ask(run: &str, text: &str) -> Value {
    json!({ "threadId": "t", "runId": run, "messages": [{ "id": format!("m-{run}"), "role": "user", "content": text }] })
}

/// The same, to go on when its client leaves.
fn ask_detached(run: &str, text: &str) -> Value {
    let mut input = ask(run, text);
    input["forwardedProps"] = json!({ "onDisconnect": "continue" });
    input
}

/// The texts of a thread's messages, with who said them.
fn said(thread: &Value) -> Vec<String> {
    let messages = thread["messages"].as_array().unwrap().iter();
    messages.map(|it| format!("{}: {}", it["role"].as_str().unwrap(), it["content"].as_str().unwrap())).collect()
}
