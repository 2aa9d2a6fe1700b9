//! The load of followers on other servers on the database.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tokio::{task::JoinSet, time::sleep};

use super::{
    LEASE,
    client::{Replica, Stream, numbered},
    pgbouncer::PgBouncer,
    postgres::Postgres,
    replicas_on, start_all,
};

const RUNS: usize = 50;

/// Starts a detached run on a thread of its own, and leaves it.
async fn start(server: &Replica, run: usize, text: &str) {
    let input = json!({
        "threadId": format!("t{run}"), "runId": "r", "forwardedProps": { "onDisconnect": "continue" },
        "messages": [{ "id": "m", "role": "user", "content": text }],
    });
    let request = server
        .request(Method::POST, "/send-message")
        .header("prefer", "respond-async")
        .json(&input);
    assert_eq!(request.send().await.unwrap().status(), 202);
}

async fn follow(server: &Replica, run: usize) -> Stream {
    Stream::of(server.get(&format!("/threads/t{run}/runs/r/events?after=0")).await).await
}

/// Returns the transactions of a database within three seconds. Postgres counts those of a busy connection once a second.
async fn transactions(conn: &mut PgConnection) -> i64 {
    let mut count = async || -> i64 {
        let count = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
        sqlx::query_scalar(count).fetch_one(&mut *conn).await.unwrap()
    };
    sleep(Duration::from_secs(2)).await;
    let before = count().await;
    sleep(Duration::from_secs(3)).await;
    count().await - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_followers_on_another_server_cost_at_most_twice_those_of_one() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("cost").await;
    let [a, b] = replicas_on(&url, LEASE);
    let mut conn = PgConnection::connect(&url).await.unwrap();
    for run in 0..RUNS {
        start(&a, run, "count to 1000").await;
    }
    let alone = transactions(&mut conn).await;
    let mut followers = JoinSet::new();
    let mut follow_one = async |run| {
        let mut stream = follow(&b, run).await;
        followers.spawn(async move {
            loop {
                stream.take(1).await;
            }
        });
    };
    follow_one(0).await;
    let one = transactions(&mut conn).await;
    for run in 1..RUNS {
        follow_one(run).await;
    }
    let fifty = transactions(&mut conn).await;
    println!(
        "transactions in 3 s: {alone} without followers, {one} with one on another server, {fifty} with {RUNS}"
    );
    assert!(fifty <= 2 * one && alone < one, "{alone}, {one}, {fifty}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_pgbouncer_servers_share_a_few_connections_and_hear_each_other() {
    let Some(postgres) = Postgres::shared() else { return };
    let Some(bouncer) = PgBouncer::start(postgres, 4) else { return };
    let direct = postgres.database("bouncer").await;
    let pooled = bouncer.url(&direct);
    let replicas =
        start_all::<3>(&[("AGUI_STORE__URL", &pooled), ("AGUI_STORE__LISTEN_URL", &direct)]);
    for run in 0..12 {
        start(&replicas[run % 3], run, "count to 40").await;
    }
    let followers: Vec<_> = (0..12).map(|run| follow(&replicas[(run + 1) % 3], run)).collect();
    let followers = futures::future::join_all(followers).await;
    let mut conn = PgConnection::connect(&direct).await.unwrap();
    let connections = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let connections: i64 = sqlx::query_scalar(connections).fetch_one(&mut conn).await.unwrap();
    assert!(connections <= 4 + 3, "{connections} connections");
    for events in futures::future::join_all(followers.into_iter().map(Stream::rest)).await {
        assert_eq!(numbered(&events, 1).event["outcome"]["type"], "success");
    }
    for replica in replicas {
        replica.process.signal("-TERM");
        let (code, log) = replica.end();
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("cannot listen") && !log.contains("ERROR"), "{log}");
    }
}
