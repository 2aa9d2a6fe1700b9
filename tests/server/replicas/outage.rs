//! Postgres stopped and started again under running servers.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    SHORT_LEASE, ask, ask_detached,
    client::{Replica, Stream, numbered, spoken},
    continued::folded,
    load::Load,
    poll::poll_until,
    postgres::Postgres,
    replicas_on, said,
};

/// Asserts that a run is refused soon.
async fn refused(server: &Replica) {
    let begin = Instant::now();
    // On the thread that is busy it would wait for its turn.
    let mut input = ask("refused", "hello");
    input["threadId"] = "another".into();
    let response = server.post(&input).await;
    println!("a run without Postgres is refused after {:?}", begin.elapsed());
    assert_eq!(response.status(), 503);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "store_unavailable");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_run_and_its_followers_survive_an_outage_shorter_than_the_lease() {
    let Some(postgres) = Postgres::launch() else { return };
    let [a, b] = replicas_on(&postgres.database("outage").await, Duration::from_secs(12));
    let started = a.run(&ask_detached("r", "count to 80")).await;
    let mut followed = b.follow("r", 0).await;
    let mut seen = followed.take(5).await;
    let begin = Instant::now();
    postgres.stop();
    tokio::join!(
        refused(&a),
        refused(&b),
        a.until_answered("/readyz", 503),
        b.until_answered("/readyz", 503)
    );
    postgres.start();
    println!("Postgres was away for {:?}", begin.elapsed());
    tokio::join!(a.until_answered("/readyz", 200), b.until_answered("/readyz", 200));
    seen.extend(followed.rest().await);
    assert_eq!(numbered(&seen, 1).event["outcome"]["type"], "success");
    let told = started.rest().await;
    assert!(
        told.iter().zip(&seen).all(|(it, other)| it.event == other.event)
            && told.len() == seen.len()
    );
    assert_eq!(numbered(&b.follow("r", 0).await.rest().await, 1).number, Some(seen.len() as u64));
    let thread = b.thread().await;
    assert_eq!(thread["runs"][0]["status"], "finished");
    assert_eq!(said(&thread), ["user: count to 80", &format!("assistant: {}", spoken(&seen))]);
    // A refused request may be repeated.
    assert_eq!(
        a.run(&ask("refused", "hello")).await.rest().await.last().unwrap().name(),
        "RUN_FINISHED"
    );
}

/// Both the run and its log must end, whether or not the run can continue. Streams do not wait for the store: another server
/// may have the run.
#[tokio::test]
async fn a_run_does_not_stay_open_after_an_outage_longer_than_the_lease() {
    let Some(postgres) = Postgres::launch() else { return };
    let [a, b] = replicas_on(&postgres.database("outage").await, SHORT_LEASE);
    let mut started = a.run(&ask_detached("r", "count to 200")).await;
    started.take(5).await;
    let mut input = ask("foreground", "count to 10000");
    input["threadId"] = "foreground".into();
    let mut foreground = a.run(&input).await;
    foreground.take(5).await;
    let begin = Instant::now();
    postgres.stop();
    tokio::join!(refused(&a), refused(&b), started.broken(), foreground.broken());
    println!("after an outage longer than the lease streams break after {:?}", begin.elapsed());
    while begin.elapsed() < SHORT_LEASE + SHORT_LEASE / 2 {
        tokio::join!(refused(&a), refused(&b));
    }
    postgres.start();
    b.until_answered("/readyz", 200).await;
    // A request may still get a connection to the old process, and fail.
    let path = "/threads/t/runs/r/events?after=0";
    let followed = poll_until("the run can be followed", async || {
        let response = b.get(path).await;
        (response.status() == 200).then_some(response)
    });
    let log = Stream::of(followed.await).await.rest().await;
    println!("after an outage longer than the lease a run ends with {}", log.last().unwrap().event);
    let thread = poll_until("the thread can be read", async || {
        let response = b.get("/threads/t").await;
        if response.status() == 200 { response.json::<Value>().await.ok() } else { None }
    })
    .await;
    assert_ne!(thread["runs"][0]["status"], "running");
    assert_eq!(
        said(&thread)[1..],
        folded(&log).iter().map(|text| format!("assistant: {text}")).collect::<Vec<_>>()
    );
    let next = ask("next", "hello");
    poll_until("a run on the thread is admitted", async || {
        (a.post(&next).await.status() == 200).then_some(())
    })
    .await;
}

/// `AGUI_TEST_STOPS` sets another number of stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_finished_run_is_lost_when_postgres_stops_at_once() {
    let Some(postgres) = Postgres::launch() else { return };
    let stops: usize = std::env::var("AGUI_TEST_STOPS").map_or(4, |stops| stops.parse().unwrap());
    let leases = [2, 15, 5, 10].map(Duration::from_secs);
    let (mut finished, mut lost) = (0, 0);
    for (round, lease) in leases.into_iter().enumerate() {
        let servers = replicas_on::<2>(&postgres.database("crash").await, lease);
        let load = Load::start(24);
        load.use_servers(&servers);
        for _ in (round..stops).step_by(leases.len()) {
            load.until_finished(200).await;
            postgres.stop_immediately();
            postgres.start();
        }
        load.until_finished(50).await;
        let (more, missing) = load.end(&servers[0]).await;
        (finished, lost) = (finished + more, lost + missing);
    }
    println!("{stops} immediate stops of Postgres: {finished} runs finished, {lost} of them lost");
    assert_eq!(lost, 0);
}
