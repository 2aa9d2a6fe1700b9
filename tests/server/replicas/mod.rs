//! Several processes of the command on one Postgres database, tested over HTTP; and one process that is killed and
//! restarted on its SQLite file.
mod anywhere;
mod behind_proxy;
mod cancel;
mod client;
mod continued;
mod copilotkit;
mod cost;
mod crowd;
mod file;
mod follow;
mod gateway;
mod huge_pictures;
mod interrupts;
mod killed;
mod late;
mod load;
mod lost_runs;
mod mcp_calls;
mod outage;
mod proxy;
mod readiness;
mod repeated;
mod unheard;

use crate::support::{pgbouncer, poll, postgres, provider, server, small_disk, tokens};

use client::Replica;
use postgres::Postgres;
use serde_json::{Value, json};
use std::time::Duration;

/// The duration of leases, unless a test waits for one to end. It is the server's default: a renewal that comes a few
/// seconds late on a busy machine ends no run.
const LEASE: Duration = Duration::from_secs(15);
/// The duration of leases in tests where a server is killed or renews too late.
const SHORT_LEASE: Duration = Duration::from_secs(3);
/// Longer than anything in these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts servers on a new database of the shared Postgres.
async fn replicas<const N: usize>(name: &str) -> Option<[Replica; N]> {
    Some(replicas_on(&Postgres::shared()?.database(name).await, LEASE))
}

/// Starts servers on a database, all at once, so that they create its tables concurrently.
fn replicas_on<const N: usize>(url: &str, lease: Duration) -> [Replica; N] {
    let lease = lease.as_secs().to_string();
    let environment = [
        ("AGUI_STORE__URL", url),
        ("AGUI_THREADS__LEASE_SECS", &lease),
        ("AGUI_THREADS__MAX_QUEUED", "100"),
        // The last of many runs on one thread waits for all others.
        ("AGUI_THREADS__QUEUE_TIMEOUT_SECS", "120"),
    ];
    start_all(&environment)
}

fn start_all<const N: usize>(environment: &[(&str, &str)]) -> [Replica; N] {
    std::thread::scope(|scope| {
        std::array::from_fn::<_, N, _>(|_| scope.spawn(|| Replica::start(environment)))
            .map(|it| it.join().unwrap())
    })
}

/// The input of a run on the thread `t`, with a message of a user.
fn ask(run: &str, text: &str) -> Value {
    json!({ "threadId": "t", "runId": run, "messages": [{ "id": format!("m-{run}"), "role": "user", "content": text }] })
}

/// The same for a detached run.
fn ask_detached(run: &str, text: &str) -> Value {
    let mut input = ask(run, text);
    input["forwardedProps"] = json!({ "onDisconnect": "continue" });
    input
}

/// The texts of a thread's messages with their roles.
fn said(thread: &Value) -> Vec<String> {
    let messages = thread["messages"].as_array().unwrap().iter();
    messages
        .map(|it| format!("{}: {}", it["role"].as_str().unwrap(), it["content"].as_str().unwrap()))
        .collect()
}
