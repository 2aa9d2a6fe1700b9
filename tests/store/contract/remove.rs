//! What is deleted, and what goes by itself.

use agui_server::store::{Begin, Pruned, Retention, ThreadContent};

use crate::backends::{NOW, Shared, at, batch, begun, ended_at, ended_run, events, is_lost, lease, log, new_run, said};

const KEEP: Retention = Retention { thread_age: None, threads: None, log_age: None, logs: None };

async fn prune(store: &Shared, retention: Retention) -> (u64, u64) {
    let Pruned { threads, logs, .. } = store.prune(&retention, NOW).await.unwrap();
    (threads, logs)
}

async fn exists(store: &Shared, thread: &str) -> bool {
    store.thread(&thread.into()).await.unwrap().is_some()
}

pub(crate) async fn a_deleted_thread_is_gone(store: Shared) {
    assert!(!store.delete(&"t".into()).await.unwrap());
    ended_run(&store, "t", "r", NOW).await;
    ended_run(&store, "u", "r", NOW).await;
    let lease = lease(&store, "t", "s").await;
    store.save(&lease, &said("x")).await.unwrap();
    assert!(store.delete(&"t".into()).await.unwrap(), "whoever holds its lease");
    assert!(!store.delete(&"t".into()).await.unwrap());
    assert!(!exists(&store, "t").await && exists(&store, "u").await);
    assert!(store.runs(&"t".into(), 9).await.unwrap().is_empty());
    assert!(is_lost(store.save(&lease, &said("x")).await));
    assert_eq!(store.append(&[batch(&lease, 1, 1)]).await.unwrap(), [false]);
    assert!(is_lost(store.finish(&lease, None, None, &ended_at(NOW)).await));
    assert!(store.renew("here", NOW).await.unwrap().is_empty());
    assert_eq!(store.take_over(&lease, "there", i64::MAX, i64::MAX).await.unwrap(), None);
    assert_eq!(log(&store, "u", "r").await, events(1, 1));
}

pub(crate) async fn a_thread_begun_anew_knows_no_old_lease(store: Shared) {
    let old = lease(&store, "t", "r").await;
    store.append(&[batch(&old, 1, 3)]).await.unwrap();
    store.save(&old, &said("old")).await.unwrap();
    store.delete(&"t".into()).await.unwrap();
    let (new, thread, replaced) = begun(&store, new_run("t", "r")).await;
    assert_eq!((thread.content, thread.version, replaced), (ThreadContent::default(), 0, false));
    assert!(log(&store, "t", "r").await.is_empty());
    assert!(is_lost(store.save(&old, &said("old")).await));
    assert_eq!(store.append(&[batch(&old, 4, 1)]).await.unwrap(), [false]);
    assert!(is_lost(store.finish(&old, None, None, &ended_at(NOW)).await));
    assert_eq!(store.append(&[batch(&new, 1, 1)]).await.unwrap(), [true]);
}

pub(crate) async fn nothing_goes_without_a_limit(store: Shared) {
    ended_run(&store, "t", "r", 0).await;
    assert_eq!(prune(&store, KEEP).await, (0, 0));
    let plenty = Retention {
        thread_age: Some(u64::MAX),
        threads: Some(u64::MAX),
        log_age: Some(u64::MAX),
        logs: Some(u64::MAX),
    };
    assert_eq!(prune(&store, plenty).await, (0, 0));
    assert_eq!(log(&store, "t", "r").await, events(1, 1));
}

pub(crate) async fn old_threads_go(store: Shared) {
    // More than go at a time.
    for thread in 0..450 {
        ended_run(&store, &format!("old{thread}"), "r", NOW - 101).await;
    }
    ended_run(&store, "new", "r", NOW - 100).await;
    let retention = Retention { thread_age: Some(100), ..KEEP };
    assert_eq!(prune(&store, retention).await, (450, 0));
    assert_eq!(prune(&store, retention).await, (0, 0));
    assert!(exists(&store, "new").await && !exists(&store, "old7").await);
    assert!(store.run(&"old7".into(), &"r".into()).await.unwrap().is_none());
    let (_, thread, replaced) = begun(&store, new_run("old7", "r")).await;
    assert!(!replaced && thread.created_at == NOW && log(&store, "old7", "r").await.is_empty());
}

pub(crate) async fn surplus_threads_go(store: Shared) {
    for (thread, time) in [("a", 5), ("b", 1), ("c", 3), ("d", 3), ("e", 3), ("f", 9)] {
        ended_run(&store, thread, "r", NOW - 10 + time).await;
    }
    assert_eq!(prune(&store, Retention { threads: Some(6), ..KEEP }).await, (0, 0));
    assert_eq!(prune(&store, Retention { threads: Some(3), ..KEEP }).await, (3, 0));
    assert!(exists(&store, "f").await && exists(&store, "a").await && !exists(&store, "b").await);
    assert_eq!(prune(&store, Retention { threads: Some(0), ..KEEP }).await, (3, 0));
    assert!(!exists(&store, "f").await);
}

pub(crate) async fn old_logs_go(store: Shared) {
    for thread in 0..450 {
        ended_run(&store, &format!("old{thread}"), "r", NOW - 101).await;
    }
    ended_run(&store, "old7", "s", NOW - 100).await;
    let quiet = begun(&store, at(NOW - 200, new_run("quiet", "r"))).await.0;
    store.finish(&quiet, None, None, &ended_at(NOW - 200)).await.unwrap();
    let retention = Retention { log_age: Some(100), ..KEEP };
    assert_eq!(prune(&store, retention).await, (0, 450), "a run without events has no log");
    assert_eq!(prune(&store, retention).await, (0, 0));
    assert!(log(&store, "old7", "r").await.is_empty());
    assert_eq!(log(&store, "old7", "s").await, events(1, 1));
    let run = store.run(&"old7".into(), &"r".into()).await.unwrap().unwrap();
    assert_eq!((run.events, run.ended_at), (1, Some(NOW - 101)), "the run is still known");
}

pub(crate) async fn surplus_logs_go(store: Shared) {
    for (run, time) in [("a", 5), ("b", 1), ("c", 3), ("d", 3)] {
        ended_run(&store, "t", run, NOW - 10 + time).await;
    }
    assert_eq!(prune(&store, Retention { logs: Some(4), ..KEEP }).await, (0, 0));
    assert_eq!(prune(&store, Retention { logs: Some(2), ..KEEP }).await, (0, 2));
    assert_eq!(log(&store, "t", "a").await, events(1, 1));
    assert!(log(&store, "t", "b").await.is_empty());
    assert_eq!(prune(&store, Retention { logs: Some(0), ..KEEP }).await, (0, 2));
    assert!(log(&store, "t", "a").await.is_empty());
}

pub(crate) async fn what_is_running_stays(store: Shared) {
    ended_run(&store, "t", "r", 10).await;
    let lease = begun(&store, at(20, new_run("t", "s"))).await.0;
    store.append(&[batch(&lease, 1, 2)]).await.unwrap();
    let nothing = Retention { thread_age: Some(0), threads: Some(0), log_age: Some(0), logs: Some(0) };
    assert_eq!(prune(&store, nothing).await, (0, 1));
    assert!(exists(&store, "t").await);
    assert_eq!(log(&store, "t", "s").await, events(1, 2));
    assert!(matches!(store.begin(&at(30, new_run("t", "u"))).await.unwrap(), Begin::Busy { .. }));
    store.finish(&lease, None, None, &ended_at(30)).await.unwrap();
    assert_eq!(prune(&store, nothing).await, (1, 0));
}
