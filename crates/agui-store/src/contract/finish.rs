//! Promises about ending a run.

use super::prelude::*;

pub(super) async fn an_end_is_stored_whole(store: DynStore) {
    let lease = run("t", "r").with([user("u")]).begun(&store).await;
    assert_eq!(store.append(&[batch(&lease, 1, 3)]).await.unwrap(), [true]);
    let end = TestEnd {
        state: Some(json!({ "left": true })),
        interrupts: vec![Interrupt::new("x")],
        ..end_at(NOW + 7).with([assistant("a1"), assistant("a2")]).last(batch(&lease, 4, 2))
    };
    assert!(end.finish(&store, &lease, 1).await.unwrap());
    let view = thread(&store, "t").await;
    assert_eq!((&*branch(&view), view.thread.head.0, view.thread.messages), ("u a1 a2", 3, 3));
    assert!(!view.thread.is_running && view.thread.updated_at == NOW + 7);
    assert_eq!(view.thread.state.unwrap().1, json!({ "left": true }));
    assert_eq!(view.thread.interrupts, end.interrupts);
    let page = store.events(OWNER, lease.run, 0, usize::MAX).await.unwrap().unwrap();
    assert_eq!((page.events, page.status, page.count), (events(1, 5), RunStatus::Finished, 5));
    let run = record(&store, "t", "r").await;
    assert_eq!((run.status, run.ended_at, run.events), (RunStatus::Finished, Some(NOW + 7), 5));
    assert!(store.lost_runs("there", UNTIL + 1, 9).await.unwrap().is_empty());
}

pub(super) async fn a_finish_without_the_lease_writes_nothing(store: DynStore) {
    let held = lease(&store, "t", "r").await;
    let before = thread(&store, "t").await;
    for wrong in wrong_leases(&held) {
        let end = end_at(NOW + 9).with([assistant("a")]).last(batch(&wrong, 1, 1));
        assert!(is_lost(end.finish(&store, &wrong, 0).await), "{wrong:?}");
    }
    assert_eq!(thread(&store, "t").await, before);
    assert!(log(&store, held.run).await.is_empty());
}

pub(super) async fn a_repeated_finish_changes_nothing(store: DynStore) {
    let first = lease(&store, "t", "r").await;
    let end = |at| end_at(at).with([assistant("a")]).last(batch(&first, 1, 2));
    assert!(end(NOW + 1).finish(&store, &first, 0).await.unwrap());
    let before = thread(&store, "t").await;
    assert!(!end(NOW + 1).finish(&store, &first, 0).await.unwrap());
    assert_eq!(thread(&store, "t").await, before);
    // A repeated end does not change the next run, which is running.
    let second = run("t", "s").at(NOW + 2).begun(&store).await;
    assert!(!end(NOW + 1).finish(&store, &first, 0).await.unwrap());
    let view = thread(&store, "t").await;
    assert_eq!((&*view.thread.run_id, view.thread.is_running, &*branch(&view)), ("s", true, "a"));
    assert_eq!(log(&store, first.run).await, events(1, 2));
    // Another time or status is another end: another process may have closed the run.
    assert!(is_lost(end(NOW + 2).finish(&store, &first, 0).await));
    let failed = end(NOW + 1);
    let failed = TestEnd { end: changed(failed.end, |it| it.status = RunStatus::Failed), ..failed };
    assert!(is_lost(failed.finish(&store, &first, 0).await));
    // The same holds after the next attempt of the run.
    finish(&store, &second, NOW + 1).await;
    let third = lease(&store, "t", "r").await;
    assert!(!end(NOW + 1).finish(&store, &first, 0).await.unwrap());
    assert!(is_lost(end(NOW + 2).finish(&store, &first, 0).await));
    finish(&store, &third, NOW + 1).await;
}

pub(super) async fn every_status_is_stored(store: DynStore) {
    let failure = |code: Option<&str>| RunFailure {
        code: code.map(str::to_owned),
        message: "failed\0".to_owned(),
    };
    let usage = TokenUsage {
        model: Some("m\0".to_owned()),
        input_tokens: Some(0),
        ..TokenUsage::default()
    };
    for status in RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Running) {
        for code in [None, Some("E")] {
            let lease = lease(&store, "t", "r").await;
            let (usage, failure) = (vec![usage.clone(); status as usize], failure(code));
            let failure = (status == RunStatus::Failed).then_some(&failure);
            let end = changed(RunEnd::new(status, MessageNumber::ROOT), |it| {
                it.events = 12;
                it.usage = &usage;
                it.failure = failure;
            });
            store.finish(&lease, &end).await.unwrap();
            let run = record(&store, "t", "r").await;
            assert_eq!((run.status, run.ended_at, run.events), (status, Some(end.ended_at), 12));
            assert_eq!((&run.usage, run.failure.as_ref()), (&usage, failure));
        }
    }
}

pub(super) async fn the_reason_of_an_end_is_stored(store: DynStore) {
    for reason in EndReason::ALL.map(Some).into_iter().chain([None]) {
        let lease = lease(&store, "t", "r").await;
        let end = changed(RunEnd::new(RunStatus::Cancelled, MessageNumber::ROOT), |it| {
            (it.reason, it.has_unsafe_calls) = (reason, reason.is_some());
        });
        store.finish(&lease, &end).await.unwrap();
        let run = record(&store, "t", "r").await;
        assert_eq!((run.end_reason, run.has_unsafe_calls), (reason, reason.is_some()));
        assert_eq!(thread(&store, "t").await.runs[0], run);
    }
}

/// A store may group concurrent writes into one transaction.
pub(super) async fn concurrent_operations_on_many_threads_do_not_interfere(store: DynStore) {
    let name = |prefix: &str, task: usize| format!("{prefix}{task}");
    let begin = |task: usize| {
        let store = store.clone();
        async move { run(&name("t", task), "r").with([user("u")]).begun(&store).await }
    };
    let leases = join_all((0..200).map(begin)).await;
    assert_eq!(leases.iter().map(|lease| lease.run).collect::<HashSet<_>>().len(), leases.len());
    assert_eq!(leases.iter().map(|lease| lease.thread).collect::<HashSet<_>>().len(), leases.len());
    let at_once = leases.iter().enumerate().map(|(task, lease)| {
        let (store, wrong) = (store.clone(), wrong_leases(lease)[task % 3].clone());
        async move {
            let end = |lease| {
                end_at(NOW + 1).with([assistant(&name("a", task))]).last(batch(lease, 1, 2))
            };
            match task % 5 {
                0 | 1 => assert!(end(lease).finish(&store, lease, 1).await.unwrap()),
                2 => assert!(is_lost(end(&wrong).finish(&store, &wrong, 1).await)),
                3 => assert_eq!(store.append(&[batch(lease, 1, 2)]).await.unwrap(), [true]),
                _ => assert!(matches!(
                    run(&name("t", task), "s").begin(&store).await,
                    BeginOutcome::Busy { .. }
                )),
            }
        }
    });
    join_all(at_once).await;
    for (task, lease) in leases.iter().enumerate() {
        let (view, has_ended) = (thread(&store, &name("t", task)).await, task % 5 < 2);
        assert_eq!(view.thread.is_running, !has_ended, "{task}");
        assert_eq!(branch(&view), if has_ended { format!("u a{task}") } else { "u".to_owned() });
        let has_log = has_ended || task % 5 == 3;
        assert_eq!(
            log(&store, lease.run).await,
            if has_log { events(1, 2) } else { Vec::new() },
            "{task}"
        );
    }
    // Some of the ended runs are ended once more; others are followed by a run, of the same id or
    // of another.
    let again = leases.iter().enumerate().filter(|(task, _)| task % 5 < 2).map(|(task, lease)| {
        let store = store.clone();
        async move {
            if task % 5 == 0 {
                return assert!(!end_at(NOW + 1).finish(&store, lease, 1).await.unwrap());
            }
            let id = if task % 2 == 0 { "r" } else { "s" };
            let begin = run(&name("t", task), id).begin(&store).await;
            let BeginOutcome::Begun(Begun { lease: next, .. }) = begin else { panic!("{begin:?}") };
            assert!(next.run > lease.run);
        }
    });
    join_all(again).await;
}
