//! Leases and cancel requests of a store that several processes share. Other stores pass.

use super::prelude::*;

async fn held_by(store: &DynStore, holder: &str, thread: &str, until: i64) -> Lease {
    TestRun { until, ..run(thread, "r").by(holder) }.begun(store).await
}

pub(super) async fn the_leases_of_a_holder_are_renewed(store: DynStore) {
    let Some(shared) = store.shared() else { return };
    let one = held_by(&store, "here", "a", NOW).await;
    held_by(&store, "here", "b", UNTIL).await;
    held_by(&store, "there", "c", UNTIL).await;
    let threads = async |holder: &str| {
        let held = shared.renew(holder, UNTIL + 1000).await.unwrap();
        let mut threads: Vec<_> = held.iter().map(|held| held.key.id.to_string()).collect();
        threads.sort_unstable();
        threads.concat()
    };
    let lost = LostRun { key: key("a"), run_id: "r".into(), lease: one.clone() };
    let held = shared.renew("here", UNTIL).await.unwrap();
    assert!(held.len() == 2 && held.contains(&lost));
    assert!(
        store.lost_runs("there", NOW + 1, 9).await.unwrap().is_empty(),
        "a renewed lease is not lost"
    );
    assert_eq!(store.take_over(&one, "there", NOW + 1, UNTIL).await.unwrap(), None);
    finish(&store, &one, NOW).await;
    assert_eq!((threads("here").await, threads("other").await), ("b".to_owned(), String::new()));
}

pub(super) async fn a_released_lease_is_lost_at_once_and_is_not_renewed(store: DynStore) {
    let Some(shared) = store.shared() else { return };
    let lease = held_by(&store, "here", "a", UNTIL).await;
    shared.release(&lease).await.unwrap();
    assert!(shared.renew("here", UNTIL + 1000).await.unwrap().is_empty());
    let lost = store.lost_runs("there", NOW, 9).await.unwrap();
    let taken = store.take_over(&lost[0].lease, "there", NOW, UNTIL).await.unwrap().unwrap();
    shared.release(&lease).await.unwrap();
    assert!(
        store.lost_runs("other", NOW, 9).await.unwrap().is_empty(),
        "another process has the lease now"
    );
    assert!(!store.append(&[batch(&lease, 1, 1)]).await.unwrap()[0]);
    finish(&store, &taken, NOW).await;
}

pub(super) async fn the_runs_lost_the_longest_are_listed_first(store: DynStore) {
    if store.shared().is_none() {
        return;
    }
    for (thread, until) in [("c", 3), ("a", 1), ("b", 2), ("d", 100)] {
        held_by(&store, "dead", thread, NOW + until).await;
    }
    for (limit, expected) in [(9, "abc"), (2, "ab")] {
        let lost = store.lost_runs("here", NOW + 10, limit).await.unwrap();
        assert_eq!(lost.iter().map(|lost| lost.key.id.to_string()).collect::<String>(), expected);
    }
}

pub(super) async fn a_cancel_request_is_listed_for_the_holder(store: DynStore) {
    let Some(shared) = store.shared() else { return };
    let one = held_by(&store, "here", "a", UNTIL).await;
    let two = held_by(&store, "here", "b", UNTIL).await;
    assert!(shared.cancel_requests("here").await.unwrap().is_empty());
    for _ in 0..2 {
        let requested = shared.request_cancel(one.thread, &"r".into()).await.unwrap();
        assert_eq!(requested, CancelRequest::Requested);
    }
    assert_eq!(shared.cancel_requests("here").await.unwrap(), [one.run]);
    assert!(shared.cancel_requests("there").await.unwrap().is_empty());
    // The request names a run: the next run of the thread is not affected.
    finish(&store, &one, NOW).await;
    lease(&store, "a", "s").await;
    assert!(shared.cancel_requests("here").await.unwrap().is_empty());
    let CancelRequest::Ended(run) = shared.request_cancel(one.thread, &"r".into()).await.unwrap()
    else {
        panic!()
    };
    assert_eq!((&*run.id, run.status), ("r", RunStatus::Finished));
    for (thread, run) in [(one.thread, "x"), (ThreadNumber(two.thread.0 + 1000), "r")] {
        assert_eq!(
            shared.request_cancel(thread, &run.into()).await.unwrap(),
            CancelRequest::Unknown
        );
    }
}
