//! Promises about the logs of detached runs.

use super::prelude::*;

pub(super) async fn batches_of_many_runs_are_appended_in_one_call(store: DynStore) {
    let mut leases = Vec::new();
    for thread in 0..77 {
        leases.push(lease(&store, &format!("t{thread}"), "r").await);
    }
    for (thread, lease) in leases.iter().enumerate() {
        if thread % 10 == 3 {
            finish(&store, lease, NOW).await;
        }
    }
    for round in 0..3 {
        let batches: Vec<_> = leases.iter().map(|lease| batch(lease, 1 + 4 * round, 4)).collect();
        let appended = store.append(&batches).await.unwrap();
        assert_eq!(appended, (0..77).map(|thread| thread % 10 != 3).collect::<Vec<_>>());
    }
    for (thread, lease) in leases.iter().enumerate() {
        let count = if thread % 10 == 3 { 0 } else { 12 };
        assert_eq!(log(&store, lease.run).await, events(1, count));
        assert_eq!(
            record(&store, &format!("t{thread}"), "r").await.events,
            if count == 0 { 0 } else { 12 }
        );
    }
    assert!(store.append(&[]).await.unwrap().is_empty());
}

pub(super) async fn a_log_has_each_event_once_with_its_time(store: DynStore) {
    // The first event of each batch, and its number of events: repeated batches, with more events, with other boundaries.
    let logs: [&[(u64, u64)]; 4] = [
        &[(1, 4), (5, 1), (6, 7)],
        &[(1, 2), (1, 2), (3, 2), (3, 2), (1, 2), (5, 2), (3, 2), (2, 3)],
        &[(1, 2), (1, 4), (3, 5), (8, 1)],
        &[(1, 10), (3, 2), (1, 1), (6, 3)],
    ];
    for (thread, batches) in logs.into_iter().enumerate() {
        let lease = lease(&store, &thread.to_string(), "r").await;
        for (first, count) in batches {
            assert_eq!(store.append(&[batch(&lease, *first, *count)]).await.unwrap(), [true]);
        }
        let last = batches.iter().map(|(first, count)| first + count - 1).max().unwrap();
        for after in (0..last + 2).chain([u64::MAX]) {
            let read = store.events(OWNER, lease.run, after, usize::MAX).await.unwrap().unwrap();
            let (first, rest) = (after.saturating_add(1), last.saturating_sub(after));
            assert_eq!(
                (read.first, read.events, read.times),
                (first, events(first, rest), times(first, rest))
            );
            assert_eq!((read.count, read.status), (last, RunStatus::Running));
            let read =
                store.events(OWNER, lease.run, after, 3 * event(1).len()).await.unwrap().unwrap();
            assert_eq!(read.times, times(first, read.events.len() as u64));
        }
        let end = EventBatch { times: vec![u64::MAX; 4], ..batch(&lease, last - 1, 4) };
        end_at(NOW).last(end).finish(&store, &lease, 0).await.unwrap();
        let read = store.events(OWNER, lease.run, last - 1, usize::MAX).await.unwrap().unwrap();
        assert_eq!(
            (read.events, read.times),
            (events(last, 3), vec![1000 * last, u64::MAX, u64::MAX])
        );
    }
}

pub(super) async fn a_log_begins_with_the_line_of_its_begin(store: DynStore) {
    for round in ["first attempt", "second attempt"] {
        let lease = TestRun { started: Some(r#"{"n":1}"#), ..run("t", "r") }.begun(&store).await;
        let read = store.events(OWNER, lease.run, 0, 99).await.unwrap().unwrap();
        assert_eq!(
            (read.first, read.events, read.times),
            (1, vec![r#"{"n":1}"#.to_owned()], vec![0]),
            "{round}"
        );
        assert_eq!((read.count, record(&store, "t", "r").await.events), (1, 1));
        assert_eq!(store.append(&[batch(&lease, 2, 3)]).await.unwrap(), [true]);
        assert_eq!(log(&store, lease.run).await[1..], events(2, 3));
        finish(&store, &lease, NOW).await;
    }
}

pub(super) async fn one_call_may_append_two_batches_of_a_run(store: DynStore) {
    let lease = lease(&store, "t", "r").await;
    let batches =
        [batch(&lease, 1, 2), batch(&lease, 3, 2), batch(&lease, 1, 2), batch(&lease, 5, 1)];
    assert_eq!(store.append(&batches).await.unwrap(), [true; 4]);
    assert_eq!(log(&store, lease.run).await, events(1, 5));
}

pub(super) async fn an_empty_batch_only_checks_the_lease(store: DynStore) {
    let lease = lease(&store, "t", "r").await;
    for first in [1, 3] {
        assert_eq!(
            store.append(&[batch(&lease, first, 0), batch(&lease, first, 2)]).await.unwrap(),
            [true; 2]
        );
    }
    assert_eq!(log(&store, lease.run).await, events(1, 4));
    end_at(NOW).last(batch(&lease, 5, 0)).finish(&store, &lease, 0).await.unwrap();
    assert_eq!(log(&store, lease.run).await, events(1, 4));
    assert_eq!(store.append(&[batch(&lease, 5, 0)]).await.unwrap(), [false]);
}

pub(super) async fn a_lost_lease_fails_only_its_own_batch(store: DynStore) {
    let lease = lease(&store, "t", "r").await;
    let deleted = self::lease(&store, "d", "r").await;
    delete(&store, "d").await;
    let [thread, run, holder] = wrong_leases(&lease);
    let batches = [&thread, &lease, &run, &holder, &deleted].map(|lease| batch(lease, 1, 1));
    let appended = [false, true, false, false, false];
    assert_eq!(store.append(&batches).await.unwrap(), appended);
    assert_eq!(store.append(&batches).await.unwrap(), appended, "the second time");
    assert_eq!(log(&store, lease.run).await, events(1, 1));
    assert!(store.events(OWNER, deleted.run, 0, 99).await.unwrap().is_none());
}

pub(super) async fn a_page_of_a_log_respects_max_bytes(store: DynStore) {
    let lease = lease(&store, "t", "r").await;
    // More batches than a store reads in one query, with one to three events each.
    let mut next = 1;
    let mut batches = Vec::new();
    for batch in 0..600 {
        let count = 1 + batch % 3;
        batches.push(self::batch(&lease, next, count));
        next += count;
    }
    let large = EventBatch {
        events: vec!["x".repeat(3_000_000), "\"y\"".to_owned()],
        ..batch(&lease, next, 2)
    };
    batches.push(large.clone());
    assert!(store.append(&batches).await.unwrap().into_iter().all(|there| there));
    let mut whole = events(1, next - 1);
    whole.extend(large.events);
    let read = |after: u64, space: usize| {
        let store = store.clone();
        async move { store.events(OWNER, lease.run, after, space).await.unwrap().unwrap().events }
    };
    for space in [0, 1, event(1).len(), 3 * event(1).len(), 500, 5000, 1_000_000, usize::MAX] {
        let mut all = Vec::new();
        while all.len() < whole.len() && (space > 100 || all.len() < 8) {
            let part = read(all.len() as u64, space).await;
            let bytes: usize = part.iter().map(String::len).sum();
            assert!(
                !part.is_empty() && (bytes <= space || part.len() == 1),
                "{space}: {} events",
                part.len()
            );
            all.extend(part);
        }
        assert!(all == whole[..all.len()], "{space}");
    }
    assert_eq!(read(0, 3 * event(1).len()).await.len(), 3);
    assert!(read(1, 5000).await.len() > 50, "a page has many events");
}

pub(super) async fn a_log_that_is_read_as_ended_is_complete(store: DynStore) {
    for round in 0..10 {
        let thread = format!("t{round}");
        let lease = lease(&store, &thread, "r").await;
        let run = lease.run;
        let writer = {
            let store = store.clone();
            tokio::spawn(async move {
                for first in 0..20 {
                    store.append(&[batch(&lease, 1 + 2 * first, 2)]).await.unwrap();
                }
                end_at(NOW).last(batch(&lease, 41, 2)).finish(&store, &lease, 0).await.unwrap();
            })
        };
        let mut all = Vec::new();
        loop {
            let after = all.len() as u64;
            let read = store.events(OWNER, run, after, usize::MAX).await.unwrap().unwrap();
            all.extend(read.events);
            if read.status != RunStatus::Running {
                break;
            }
        }
        assert_eq!(all, events(1, 42));
        writer.await.unwrap();
    }
}

pub(super) async fn the_logs_of_several_runs_are_read_at_once(store: DynStore) {
    let mut leases = Vec::new();
    for thread in ["a", "b", "c", "d"] {
        leases.push(lease(&store, thread, "r").await);
    }
    let [a, b, c, empty] = [0, 1, 2, 3].map(|i| leases[i].run);
    for first in (1..40).step_by(4) {
        let batches: Vec<_> = leases[..3].iter().map(|lease| batch(lease, first, 4)).collect();
        store.append(&batches).await.unwrap();
    }
    finish(&store, &leases[2], NOW).await;
    let unknown = RunNumber(empty.0 + 1000);
    let after = [(a, 0), (b, 38), (c, 40), (empty, 0), (unknown, 0)].into();
    for max_bytes in [1, 10 * event(1).len(), usize::MAX] {
        let pages = store.events_of_runs(&after, max_bytes).await.unwrap();
        assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [a, b, c, empty]);
        for (run, page) in &pages {
            let alone = store.events(OWNER, *run, after[run], max_bytes).await.unwrap().unwrap();
            let last = after[run] + alone.events.len() as u64;
            assert!(
                page.count == alone.count || page.count >= alone.count.min(last + 1),
                "{} {}",
                page.count,
                last
            );
            assert_eq!(*page, changed(alone, |alone| alone.count = page.count));
        }
        assert!(!pages[&a].events.is_empty() && pages[&empty].events.is_empty());
    }
    assert!(store.events_of_runs(&[].into(), 1).await.unwrap().is_empty());
}

pub(super) async fn concurrent_runs_append_to_their_own_logs(store: DynStore) {
    let write = |task: u64| {
        let store = store.clone();
        tokio::spawn(async move {
            let thread = format!("t{task}");
            for run in ["r", "s"] {
                let lease = lease(&store, &thread, run).await;
                for first in 0..5 {
                    assert_eq!(store.append(&[batch(&lease, 1 + first, 1)]).await.unwrap(), [true]);
                }
                if let Some(shared) = store.shared() {
                    shared.renew("here", NOW + 99).await.unwrap();
                }
                finish(&store, &lease, NOW).await;
            }
        })
    };
    for task in (0..40).map(write).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    for task in 0..40 {
        let run = record(&store, &format!("t{task}"), "s").await;
        assert_eq!(log(&store, run.number).await, events(1, 5));
    }
}

pub(super) async fn what_a_run_was_given_is_read_after_its_end(store: DynStore) {
    let start = async |run| store.run_start(OWNER, run).await.unwrap();
    let request = r#"{"tools":["\u0000é"]}"#;
    let first = TestRun {
        state: Some(serde_json::json!({ "n": 1 })),
        request: Some(request),
        ..run("t", "r")
    };
    let first = first.with([user("a"), user("b")]).begun(&store).await;
    let given = RunStart {
        head: MessageNumber(2),
        state: Some(serde_json::json!({ "n": 1 })),
        request: request.to_owned(),
    };
    assert_eq!(start(first.run).await, Some(given.clone()), "while it is running");
    let mut end = answer(["c"]).last(batch(&first, 1, 1));
    end.state = Some(serde_json::json!({ "n": 2 }));
    end.finish(&store, &first, 2).await.unwrap();
    assert_eq!(start(first.run).await, Some(given.clone()), "when messages and state have changed");
    let second = TestRun { request: Some("{}"), ..run("t", "s") }.begun(&store).await;
    let state = Some(serde_json::json!({ "n": 2 }));
    assert_eq!(
        start(second.run).await,
        Some(RunStart { head: MessageNumber(3), state, request: "{}".to_owned() })
    );
    finish(&store, &second, NOW).await;
    assert_eq!(start(first.run).await, Some(given), "after another run");
    let empty = TestRun { request: Some("{}"), ..run("u", "r") }.begun(&store).await;
    assert_eq!(
        start(empty.run).await,
        Some(RunStart { head: MessageNumber::ROOT, state: None, request: "{}".to_owned() })
    );
    let without = lease(&store, "v", "r").await;
    assert_eq!(
        (start(without.run).await, start(RunNumber(without.run.0 + 1000)).await),
        (None, None)
    );
}

pub(super) async fn what_a_run_was_given_is_removed_with_its_log(store: DynStore) {
    let begin = async |thread: &str, id: &str| {
        TestRun { request: Some("{}"), ..run(thread, id) }.begun(&store).await
    };
    let is_kept = async |run| store.run_start(OWNER, run).await.unwrap().is_some();
    let earlier = begin("t", "r").await;
    finish(&store, &earlier, NOW).await;
    let (logged, running) = (begin("t", "r").await, begin("u", "r").await);
    assert!(is_kept(earlier.run).await, "each attempt has its own");
    end_at(NOW).last(batch(&logged, 1, 1)).finish(&store, &logged, 0).await.unwrap();
    let without_events = begin("v", "r").await;
    finish(&store, &without_events, NOW).await;
    let logs = changed(Retention::default(), |it| it.log_age = Some(1000));
    let swept = store.sweep(&logs, NOW + 2000).await.unwrap();
    assert_eq!((swept.threads, swept.logs), (0, 3));
    assert!(
        !is_kept(earlier.run).await
            && !is_kept(logged.run).await
            && !is_kept(without_events.run).await
            && is_kept(running.run).await
    );
    assert_eq!(record(&store, "t", "r").await.number, logged.run, "the run itself is kept");
    assert!(delete(&store, "u").await);
    assert!(!is_kept(running.run).await, "the thread was deleted");
}
