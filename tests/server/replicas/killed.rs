//! A server that is killed, and the other servers.

use std::time::Instant;

use super::{
    SHORT_LEASE, ask, ask_detached,
    client::{numbered, spoken},
    postgres::Postgres,
    replicas_on, said,
};

#[tokio::test]
async fn the_run_of_a_killed_server_is_closed_by_another_with_its_logged_messages() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b, c] = replicas_on(&postgres.database("killed").await, SHORT_LEASE);
    let started = a.run(&ask_detached("r", "count to 10000")).await;
    let mut followed = b.follow("r", 0).await;
    let mut seen = followed.take(10).await;
    let killed = Instant::now();
    a.kill();
    drop(started);
    seen.extend(followed.rest().await);
    let closed = killed.elapsed();
    println!("the run of a killed server is closed after {closed:?}, with leases of {SHORT_LEASE:?}");
    assert!(closed < 5 * SHORT_LEASE, "{closed:?}");
    let last = numbered(&seen, 1);
    assert_eq!((last.name(), &last.event["code"]), ("RUN_ERROR", &"server_lost".into()));
    let thread = b.thread().await;
    assert_eq!((&thread["runs"][0]["status"], &thread["runs"][0]["events"]), (&"failed".into(), &seen.len().into()));
    assert_eq!(thread["runs"][0]["error"]["code"], "server_lost");
    assert!(thread.get("activeRunId").is_none(), "{thread}");
    let half = format!("assistant: {}", spoken(&seen));
    assert_eq!(said(&thread), ["user: count to 10000", &half]);
    // It was closed once, and the thread goes on.
    let whole = c.follow("r", 0).await.rest().await;
    assert_eq!(whole.len(), seen.len());
    let next = b.run(&ask("next", "hello")).await.rest().await;
    assert_eq!(next.last().unwrap().name(), "RUN_FINISHED");
    let thread = c.thread().await;
    assert_eq!(said(&thread)[..2], ["user: count to 10000", &half]);
    assert_eq!(said(&thread)[2..], ["user: hello", "assistant: Hello! How can I help you?"]);
}

#[tokio::test]
async fn a_run_that_waits_for_a_run_of_a_killed_server_gets_its_turn() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b] = replicas_on(&postgres.database("waiting").await, SHORT_LEASE);
    let mut started = a.run(&ask("r", "count to 10000")).await;
    started.take(5).await;
    let waiting = ask("next", "hello");
    let (next, killed) = tokio::join!(b.run(&waiting), async {
        // The run is not listed while it waits, so it may also be listed only later.
        a.kill();
        Instant::now()
    });
    let next = next.rest().await;
    println!("a run that waits for one of a killed server is done after {:?}", killed.elapsed());
    assert!(killed.elapsed() < 5 * SHORT_LEASE, "{:?}", killed.elapsed());
    assert_eq!(next.last().unwrap().name(), "RUN_FINISHED");
    let thread = b.thread().await;
    let statuses: Vec<_> = thread["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str()).collect();
    assert_eq!(statuses, [Some("finished"), Some("failed")]);
    assert_eq!(thread["runs"][1]["error"]["code"], "server_lost");
}
