//! A run on one server, followed on others.

use std::{fs, time::Duration};

use super::{
    ask, ask_detached,
    client::{assert_gradual, numbered, spoken},
    postgres::Postgres,
    replicas, said, start_all,
};

#[tokio::test]
async fn a_run_is_followed_on_another_server_from_where_its_client_left() {
    let Some([a, b]) = replicas("follow").await else { return };
    let mut left = a.run(&ask_detached("r", "count to 30")).await;
    let before = left.take(8).await;
    drop(left);
    let follower = b.follow("r", 8).await;
    let rest = follower.rest().await;
    assert_eq!(numbered(&rest, 9).name(), "RUN_FINISHED");
    // Both parts together have each event once.
    let whole = b.follow("r", 0).await.rest().await;
    assert_eq!(numbered(&whole, 1).event["outcome"]["type"], "success");
    let together: Vec<_> = before.iter().chain(&rest).map(|event| &event.event).collect();
    assert_eq!(together, whole.iter().map(|event| &event.event).collect::<Vec<_>>());
    let thread = a.thread().await;
    assert_eq!(said(&thread)[1], format!("assistant: {}", spoken(&whole)));
    assert!(spoken(&whole).contains("30"));
    // A client that has all events is told that there are no more.
    let after = whole.len();
    assert_eq!(b.get(&format!("/threads/t/runs/r/events?after={after}")).await.status(), 204);
}

#[tokio::test]
async fn followers_on_every_server_see_the_same_while_the_run_continues() {
    let Some([a, b, c]) = replicas("latency").await else { return };
    let started = a.run(&ask_detached("r", "count to 25")).await;
    let mut tails = Vec::new();
    for server in [&a, &b, &c] {
        tails.push(server.follow("r", 0).await.rest());
    }
    let (told, seen) = tokio::join!(started.rest(), futures::future::join_all(tails));
    for events in &seen {
        assert_eq!(numbered(events, 1).name(), "RUN_FINISHED");
        let same = events.iter().zip(&told).all(|(it, other)| it.event == other.event);
        assert!(same && events.len() == told.len());
    }
    // The first events are older than the followers.
    let mut late: Vec<_> =
        (3..told.len()).map(|i| seen[1][i].at.saturating_duration_since(seen[0][i].at)).collect();
    late.sort();
    let (median, most) = (late[late.len() / 2], late[late.len() - 1]);
    println!(
        "an event comes on another server after {median:?} more than on the run's own, at most {most:?}"
    );
    // Without signals the delay would be two seconds.
    assert!(most < Duration::from_millis(1500), "{most:?}");
    for events in &seen {
        assert_gradual(events);
    }
}

/// A signal covers the events of the next 500 ms, so the last of them has no signal of its own.
#[tokio::test]
async fn the_last_events_before_a_silence_come_as_soon_on_another_server() {
    let Some(postgres) = Postgres::shared() else { return };
    let (url, folder) = (postgres.database("silence").await, tempfile::tempdir().unwrap());
    let script = folder.path().join("silence.toml");
    let play = "{ text = 'zero' }, { wait_ms = 700 }, { text = ['one ', 'two '], every_ms = 60 }, { wait_ms = 4000 }, { text = 'three' }";
    fs::write(&script, format!("[[answer]]\nplay = [{play}]\n")).unwrap();
    let script = script.to_str().unwrap();
    let agent = [("AGUI_AGENTS__DEMO__KIND", "script"), ("AGUI_AGENTS__DEMO__SCRIPT", script)];
    let [a, b] = start_all(&[&[("AGUI_STORE__URL", &*url)], &agent[..]].concat());
    let started = a.run(&ask_detached("r", "hello")).await;
    let follower = b.follow("r", 0).await;
    let (told, seen) = tokio::join!(started.rest(), follower.rest());
    assert_eq!(seen.len(), told.len());
    for (seen, told) in seen.iter().zip(&told) {
        let late = seen.at.saturating_duration_since(told.at);
        assert!(late < Duration::from_secs(1), "{} comes after {late:?}", told.event);
    }
}

#[tokio::test]
async fn lists_on_another_server_keep_themselves_current() {
    let Some([a, b]) = replicas("changes").await else { return };
    let mut changes = b.changes().await;
    // Events may be missing until the server listens, which `missed` reports: each attempt has a thread of its own.
    for attempt in 0..10 {
        let thread = format!("t{attempt}");
        let mut input = ask("r", "hello");
        input["threadId"] = thread.as_str().into();
        a.run(&input).await.rest().await;
        let mut seen = Vec::new();
        loop {
            let change = changes.next().await.unwrap();
            if change.name() == "missed" {
                break;
            }
            if change.event["threadId"] == thread.as_str() {
                seen.push(change.name().to_owned());
                if change.name() == "ended" {
                    break;
                }
            }
        }
        if seen == ["begun", "ended"] {
            return;
        }
    }
    panic!("no run was announced as begun and then as ended");
}
