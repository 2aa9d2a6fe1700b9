//! `GET /readyz` of a server whose store cannot be written.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::tempdir;
use tokio::time::sleep;

use super::{
    LEASE, ask, client::Replica, poll::poll_until, postgres::Postgres, replicas_on,
    small_disk::SmallDisk,
};

/// The longest age of a probe whose result `/readyz` repeats.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time of a response: the server's limit of 800 ms, and time for a busy machine.
const ANSWER_TIME: Duration = Duration::from_secs(5);

const UNAVAILABLE: &str = "store_unavailable";

fn start(folder: &Path) -> Replica {
    Replica::start(&[("AGUI_SERVER__DATA_DIR", folder.to_str().unwrap())])
}

/// Waits until the server is not ready. Every answer, ready or not, must come in time.
async fn until_unready(server: &Replica, why: &str, status: &str) {
    let body = poll_until(why, async || {
        let begin = Instant::now();
        let response = server.get("/readyz").await;
        assert!(begin.elapsed() < ANSWER_TIME, "{why}: {:?}", begin.elapsed());
        if response.status() == 200 {
            return None;
        }
        assert_eq!(response.status(), 503);
        response.json::<Value>().await.ok()
    })
    .await;
    assert_eq!(body["status"], status, "{why}");
}

#[tokio::test]
async fn a_server_with_a_full_disk_is_not_ready() {
    let Some(disk) = SmallDisk::mount() else { return };
    let server = start(disk.path());
    // The disk becomes full slowly: in between, the server takes its reserve.
    let beginning = disk.fill_with(2 << 20);
    let reserve = disk.path().join("agui-server.sqlite-reserve");
    poll_until("a reserve", async || {
        server.until_answered("/readyz", 200).await;
        reserve.exists().then_some(())
    })
    .await;
    let rest = disk.fill();
    until_unready(&server, "a full disk", "disk_full").await;
    // More than the log has room for.
    let text = "hello ".repeat(50_000);
    assert_eq!(server.post(&ask("r", &text)).await.status(), 503);
    for filler in [beginning, rest] {
        fs::remove_file(filler).unwrap();
    }
    server.until_answered("/readyz", 200).await;
    assert_eq!(server.post(&ask("r", &text)).await.status(), 200);
}

#[tokio::test]
async fn a_server_whose_database_was_removed_or_replaced_is_not_ready() {
    for suffix in ["", "-wal", "-shm"] {
        let folder = tempdir().unwrap();
        let server = start(folder.path());
        server.until_answered("/readyz", 200).await;
        let file = folder.path().join(format!("agui-server.sqlite{suffix}"));
        let moved = folder.path().join("moved");
        fs::rename(&file, &moved).unwrap();
        until_unready(&server, "a removed file", UNAVAILABLE).await;
        fs::copy(&moved, &file).unwrap();
        // An answer within the interval may be that of an earlier probe, and the first one after it begins a new probe.
        let begin = Instant::now();
        while begin.elapsed() < 2 * PROBE_INTERVAL {
            let refused = server.get("/readyz").await;
            assert_eq!(refused.status(), 503, "another file of the same name");
            sleep(POLL_INTERVAL).await;
        }
        fs::rename(&moved, &file).unwrap();
        server.until_answered("/readyz", 200).await;
    }
}

/// A program that holds the write lock of the file, such as a long backup.
#[tokio::test]
async fn a_server_that_cannot_lock_its_file_is_not_ready() {
    let folder = tempdir().unwrap();
    let server = start(folder.path());
    server.until_answered("/readyz", 200).await;
    let other = rusqlite::Connection::open(folder.path().join("agui-server.sqlite")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    until_unready(&server, "a locked file", UNAVAILABLE).await;
    other.execute_batch("COMMIT").unwrap();
    server.until_answered("/readyz", 200).await;
}

#[tokio::test]
async fn without_postgres_a_server_says_within_seconds_that_it_is_not_ready() {
    let Some(postgres) = Postgres::launch() else { return };
    let [server] = replicas_on(&postgres.database("readiness").await, LEASE);
    server.until_answered("/readyz", 200).await;
    postgres.suspend();
    until_unready(&server, "a Postgres that does not respond", UNAVAILABLE).await;
    postgres.resume();
    server.until_answered("/readyz", 200).await;
    postgres.stop_immediately();
    until_unready(&server, "a Postgres that has crashed", UNAVAILABLE).await;
    postgres.start();
    server.until_answered("/readyz", 200).await;
}

/// The waiting requests fill the pool of connections.
#[tokio::test]
async fn requests_that_an_overloaded_postgres_does_not_answer_get_503_with_a_time_to_retry() {
    let Some(postgres) = Postgres::launch() else { return };
    let url = postgres.database("overloaded").await;
    let [server] = replicas_on(&url, LEASE);
    let mut other = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE agui_threads IN ACCESS EXCLUSIVE MODE")
        .execute(&mut other)
        .await
        .unwrap();
    let request = async |number: usize| {
        let mut input = ask("r", "hello");
        input["threadId"] = format!("t{number}").into();
        let response = server.post(&input).await;
        let retry_after =
            response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        (status, retry_after, body["error"]["code"].clone())
    };
    let answers = futures::future::join_all((0..40).map(request)).await;
    for answer in answers {
        assert_eq!(answer, (503, Some("1".to_owned()), "store_unavailable".into()));
    }
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    assert_eq!(server.post(&ask("r", "hello")).await.status(), 200);
}
