//! Promises about deleting and about retention.

use super::prelude::*;

async fn sweep(store: &DynStore, retention: Retention) -> (u64, u64) {
    let SweepResult { threads, logs, .. } = store.sweep(&retention, NOW).await.unwrap();
    (threads, logs)
}

pub(super) async fn a_deleted_thread_is_not_found(store: DynStore) {
    ended_run(&store, run("t", "r")).await;
    let other = ended_run(&store, run("u", "r")).await;
    let lease = run("t", "s").with([user("x")]).begun(&store).await;
    assert!(store.delete(lease.thread).await.unwrap(), "a thread with a running run");
    assert!(!store.delete(lease.thread).await.unwrap());
    assert!(!exists(&store, "t").await && exists(&store, "u").await);
    assert!(store.run(OWNER, lease.thread, &"r".into()).await.unwrap().is_none());
    assert_eq!(store.append(&[batch(&lease, 1, 1)]).await.unwrap(), [false]);
    assert!(is_lost(end_at(NOW).finish(&store, &lease, 0).await));
    assert_eq!(store.take_over(&lease, "there", i64::MAX, i64::MAX).await.unwrap(), None);
    assert!(store.lost_runs("there", i64::MAX, 9).await.unwrap().is_empty());
    assert_eq!(log(&store, other.run).await, events(1, 1));
}

pub(super) async fn a_recreated_thread_rejects_old_leases(store: DynStore) {
    let old = run("t", "r").with([user("old")]).begun(&store).await;
    store.append(&[batch(&old, 1, 3)]).await.unwrap();
    store.delete(old.thread).await.unwrap();
    let BeginOutcome::Begun(Begun { lease: new, version: 1, .. }) =
        run("t", "r").begin(&store).await
    else {
        panic!()
    };
    assert!(new.thread != old.thread && new.run != old.run);
    assert_eq!(branch(&thread(&store, "t").await), "");
    assert!(log(&store, new.run).await.is_empty());
    assert_eq!(store.append(&[batch(&old, 4, 1)]).await.unwrap(), [false]);
    assert!(is_lost(answer(["old"]).finish(&store, &old, 0).await));
    assert!(
        !store.delete(old.thread).await.unwrap(),
        "the old number does not name the new thread"
    );
    assert_eq!(store.append(&[batch(&new, 1, 1)]).await.unwrap(), [true]);
}

pub(super) async fn retention_without_limits_removes_nothing(store: DynStore) {
    let lease = ended_run(&store, run("t", "r").at(0)).await;
    assert_eq!(sweep(&store, Retention::default()).await, (0, 0));
    let plenty = changed(Retention::default(), |it| {
        it.thread_age = Some(u64::MAX);
        it.owner_threads = Some(u64::MAX);
        it.threads = Some(u64::MAX);
        it.log_age = Some(u64::MAX);
        it.logs = Some(u64::MAX);
    });
    assert_eq!(sweep(&store, plenty).await, (0, 0));
    assert_eq!(log(&store, lease.run).await, events(1, 1));
}

pub(super) async fn old_threads_are_removed(store: DynStore) {
    // More threads than a store removes in one transaction.
    for thread in 0..450 {
        ended_run(&store, run(&format!("old{thread}"), "r").at(NOW - 101)).await;
    }
    ended_run(&store, run("new", "r").at(NOW - 100)).await;
    let retention = changed(Retention::default(), |it| it.thread_age = Some(100));
    assert_eq!(sweep(&store, retention).await, (450, 0));
    assert_eq!(sweep(&store, retention).await, (0, 0));
    assert!(exists(&store, "new").await && !exists(&store, "old7").await);
    let lease = lease(&store, "old7", "r").await;
    assert!(
        thread(&store, "old7").await.thread.created_at == NOW
            && log(&store, lease.run).await.is_empty()
    );
}

pub(super) async fn surplus_threads_of_an_owner_are_removed(store: DynStore) {
    for (owner, threads) in [("key:ann", "abcdef"), ("key:bob", "gh")] {
        for thread in threads.chars() {
            ended_run(&store, run(&thread.to_string(), "r").of(owner)).await;
        }
    }
    // The newest run decides the age of a thread.
    ended_run(&store, run("a", "s").of("key:ann")).await;
    let kept = async |owner: &str| listed(&store, owner, ThreadPage::first(99)).await;
    assert_eq!(
        sweep(&store, changed(Retention::default(), |it| it.owner_threads = Some(6))).await,
        (0, 0)
    );
    assert_eq!(
        sweep(&store, changed(Retention::default(), |it| it.owner_threads = Some(3))).await,
        (3, 0)
    );
    assert_eq!((&*kept("key:ann").await, &*kept("key:bob").await), ("afe", "hg"));
    assert_eq!(
        sweep(&store, changed(Retention::default(), |it| it.owner_threads = Some(0))).await,
        (5, 0)
    );
    assert_eq!(kept("key:ann").await + &kept("key:bob").await, "");
}

pub(super) async fn the_owner_with_the_most_threads_loses_threads_first(store: DynStore) {
    for (owner, count) in [("key:ann", 3), ("key:bob", 9), ("key:carl", 1)] {
        for thread in 0..count {
            ended_run(&store, run(&format!("t{thread}"), "r").of(owner)).await;
        }
    }
    let count =
        async |owner: &str| store.threads(owner, &ThreadPage::first(99)).await.unwrap().len();
    let counts = async || [count("key:ann").await, count("key:bob").await, count("key:carl").await];
    assert_eq!(
        sweep(&store, changed(Retention::default(), |it| it.threads = Some(8))).await,
        (5, 0)
    );
    assert_eq!(counts().await, [3, 4, 1]);
    assert_eq!(
        sweep(&store, changed(Retention::default(), |it| it.threads = Some(5))).await,
        (3, 0)
    );
    assert_eq!(counts().await, [2, 2, 1]);
}

pub(super) async fn old_logs_are_removed(store: DynStore) {
    let mut first = None;
    for thread in 0..450 {
        let lease = ended_run(&store, run(&format!("old{thread}"), "r").at(NOW - 101)).await;
        first.get_or_insert(lease);
    }
    let newer = ended_run(&store, run("old0", "s").at(NOW - 100)).await;
    let quiet = run("quiet", "r").at(NOW - 200).begun(&store).await;
    finish(&store, &quiet, NOW - 200).await;
    let retention = changed(Retention::default(), |it| it.log_age = Some(100));
    assert_eq!(sweep(&store, retention).await, (0, 450), "a run without events has no log");
    assert_eq!(sweep(&store, retention).await, (0, 0));
    assert!(log(&store, first.unwrap().run).await.is_empty());
    assert_eq!(log(&store, newer.run).await, events(1, 1));
    let run = record(&store, "old0", "r").await;
    assert_eq!((run.events, run.ended_at), (1, Some(NOW - 101)), "the run itself is kept");
}

pub(super) async fn surplus_logs_are_removed(store: DynStore) {
    let mut logs = Vec::new();
    for (id, time) in [("a", 5), ("b", 1), ("c", 3), ("d", 3)] {
        logs.push(ended_run(&store, run("t", id).at(NOW - 10 + time)).await.run);
    }
    assert_eq!(sweep(&store, changed(Retention::default(), |it| it.logs = Some(4))).await, (0, 0));
    assert_eq!(sweep(&store, changed(Retention::default(), |it| it.logs = Some(2))).await, (0, 2));
    assert_eq!(log(&store, logs[0]).await, events(1, 1));
    assert!(log(&store, logs[1]).await.is_empty());
    assert_eq!(sweep(&store, changed(Retention::default(), |it| it.logs = Some(0))).await, (0, 2));
    assert!(log(&store, logs[0]).await.is_empty());
}

pub(super) async fn running_runs_are_not_removed(store: DynStore) {
    ended_run(&store, run("t", "r").at(10)).await;
    let lease = run("t", "s").at(20).begun(&store).await;
    store.append(&[batch(&lease, 1, 2)]).await.unwrap();
    let nothing = changed(Retention::default(), |it| {
        it.thread_age = Some(0);
        it.owner_threads = Some(0);
        it.threads = Some(0);
        it.log_age = Some(0);
        it.logs = Some(0);
    });
    assert_eq!(sweep(&store, nothing).await, (0, 1));
    assert!(exists(&store, "t").await);
    assert_eq!(log(&store, lease.run).await, events(1, 2));
    assert!(matches!(run("t", "u").at(30).begin(&store).await, BeginOutcome::Busy { .. }));
    finish(&store, &lease, 30).await;
    assert_eq!(sweep(&store, nothing).await.0, 1);
    assert!(!delete(&store, "t").await);
}
