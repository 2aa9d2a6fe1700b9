//! A server that is killed, and the other servers.

use std::time::Instant;

use super::{
    SHORT_LEASE, ask, ask_detached,
    continued::{counted, folded},
    postgres::Postgres,
    replicas_on, said,
};

#[tokio::test]
async fn another_server_continues_the_run_of_a_killed_one() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b, c] = replicas_on(&postgres.database("killed").await, SHORT_LEASE);
    let started = a.run(&ask_detached("r", "count to 200")).await;
    let mut followed = b.follow("r", 0).await;
    let mut seen = followed.take(10).await;
    let killed = Instant::now();
    a.kill();
    drop(started);
    while seen.last().unwrap().event["name"] != "agui-server.run_continued" {
        seen.push(followed.next().await.unwrap());
    }
    let lost = killed.elapsed();
    println!("the run of a killed server continues after {lost:?}, with leases of {SHORT_LEASE:?}");
    assert!(lost < 5 * SHORT_LEASE, "{lost:?}");
    seen.extend(followed.rest().await);
    let last = seen.last().unwrap();
    assert_eq!(last.name(), "RUN_FINISHED");
    let thread = b.thread().await;
    let events = last.number.unwrap();
    assert_eq!(
        (&thread["runs"][0]["status"], &thread["runs"][0]["events"]),
        (&"finished".into(), &events.into())
    );
    assert!(thread.get("activeRunId").is_none(), "{thread}");
    assert_eq!(folded(&seen), [counted(200)]);
    let whole_text = format!("assistant: {}", counted(200));
    assert_eq!(said(&thread), ["user: count to 200", &whole_text]);
    // One server has the run, and the thread takes a new run.
    let whole = c.follow("r", 0).await.rest().await;
    assert_eq!(whole.len(), seen.len());
    let next = b.run(&ask("next", "hello")).await.rest().await;
    assert_eq!(next.last().unwrap().name(), "RUN_FINISHED");
    let thread = c.thread().await;
    assert_eq!(said(&thread)[..2], ["user: count to 200", &whole_text]);
    assert_eq!(said(&thread)[2..], ["user: hello", "assistant: Hello! How can I help you?"]);
}

#[tokio::test]
async fn a_run_that_waits_for_a_run_of_a_killed_server_gets_its_turn() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b] = replicas_on(&postgres.database("queued").await, SHORT_LEASE);
    let mut started = a.run(&ask("r", "count to 10000")).await;
    started.take(5).await;
    let queued = ask("next", "hello");
    let (next, killed) = tokio::join!(b.run(&queued), async {
        // The run is not listed while it waits, so it may also be listed only later.
        a.kill();
        Instant::now()
    });
    let next = next.rest().await;
    println!("a run that waits for one of a killed server is done after {:?}", killed.elapsed());
    assert!(killed.elapsed() < 5 * SHORT_LEASE, "{:?}", killed.elapsed());
    assert_eq!(next.last().unwrap().name(), "RUN_FINISHED");
    let thread = b.thread().await;
    let statuses: Vec<_> =
        thread["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str()).collect();
    assert_eq!(statuses, [Some("finished"), Some("failed")]);
    assert_eq!(thread["runs"][1]["error"]["code"], "server_lost");
}
