//! Leases: kept, lost and taken over.

use agui_server::store::{CancelRequest, Held, Lease, NewRun, RunStatus};

use crate::backends::{NOW, Shared, UNTIL, at, batch, begun, ended_at, finish, is_lost, lease, log, new_run, said};

async fn held_by(store: &Shared, holder: &str, thread: &str, until: i64) -> Lease {
    let run = NewRun { holder: holder.to_owned(), until, ..new_run(thread, "r") };
    begun(store, run).await.0
}

fn threads(held: &[Held]) -> Vec<&str> {
    let mut threads: Vec<_> = held.iter().map(|held| &*held.thread_id).collect();
    threads.sort_unstable();
    threads
}

pub(crate) async fn those_of_a_holder_are_renewed(store: Shared) {
    let one = held_by(&store, "here", "a", UNTIL).await;
    held_by(&store, "here", "b", UNTIL).await;
    held_by(&store, "there", "c", UNTIL).await;
    let held = store.renew("here", UNTIL + 1000).await.unwrap();
    assert_eq!(threads(&held), ["a", "b"]);
    assert!(held.contains(&Held {
        thread_id: "a".into(),
        thread_number: one.thread_number,
        token: one.token,
        cancel: false
    }));
    finish(&store, &one, NOW).await;
    assert_eq!(threads(&store.renew("here", UNTIL).await.unwrap()), ["b"]);
    assert!(store.renew("nobody", UNTIL).await.unwrap().is_empty());
}

pub(crate) async fn a_cancel_reaches_the_holder(store: Shared) {
    let one = held_by(&store, "here", "a", UNTIL).await;
    held_by(&store, "here", "b", UNTIL).await;
    assert!(store.cancel_requests("here").await.unwrap().is_empty());
    for _ in 0..2 {
        assert_eq!(store.request_cancel(&"a".into(), &"r".into()).await.unwrap(), CancelRequest::Requested);
    }
    let asked = Held { thread_id: "a".into(), thread_number: one.thread_number, token: one.token, cancel: true };
    assert_eq!(store.cancel_requests("here").await.unwrap(), std::slice::from_ref(&asked));
    assert!(store.cancel_requests("there").await.unwrap().is_empty());
    assert!(store.renew("here", UNTIL).await.unwrap().contains(&asked));
    // It is the run's, not the thread's.
    finish(&store, &one, NOW).await;
    assert!(store.cancel_requests("here").await.unwrap().is_empty());
    lease(&store, "a", "s").await;
    assert!(store.cancel_requests("here").await.unwrap().is_empty());
}

pub(crate) async fn a_run_that_ended_is_not_cancelled(store: Shared) {
    let first = lease(&store, "t", "r").await;
    finish(&store, &first, NOW).await;
    let second = lease(&store, "t", "s").await;
    let CancelRequest::Ended(run) = store.request_cancel(&"t".into(), &"r".into()).await.unwrap() else { panic!() };
    assert_eq!((&*run.run_id, run.status), ("r", RunStatus::Finished));
    assert_eq!(store.request_cancel(&"t".into(), &"x".into()).await.unwrap(), CancelRequest::Unknown);
    assert_eq!(store.request_cancel(&"x".into(), &"r".into()).await.unwrap(), CancelRequest::Unknown);
    assert!(store.cancel_requests("here").await.unwrap().is_empty());
    finish(&store, &second, NOW).await;
}

pub(crate) async fn a_lost_one_is_taken_over_once(store: Shared) {
    let old = held_by(&store, "dead", "t", NOW).await;
    assert_eq!(store.lost("here", NOW + 1, 9).await.unwrap(), std::slice::from_ref(&old));
    let other = held_by(&store, "dead", "u", NOW).await;
    let take = |holder: String| {
        let (store, old) = (store.clone(), old.clone());
        tokio::spawn(async move { store.take_over(&old, &holder, NOW + 1, UNTIL).await.unwrap() })
    };
    let tasks: Vec<_> = (0..16).map(|task| take(format!("h{task}"))).collect();
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await.unwrap());
    }
    let [new] = &taken[..] else { panic!("{taken:?}") };
    assert!(new.token > old.token);
    assert_eq!(Lease { token: old.token, ..new.clone() }, old, "it is the same run");
    assert_eq!(store.take_over(&old, "here", UNTIL + 1, UNTIL + 2).await.unwrap(), None);
    assert!(store.lost("here", NOW + 1, 9).await.unwrap().contains(&other), "nobody took that one");
    // The run can be closed, and the next one comes after.
    finish(&store, new, NOW).await;
    assert_eq!(store.take_over(new, "here", UNTIL + 1, UNTIL + 2).await.unwrap(), None);
    assert!(lease(&store, "t", "s").await.token > new.token);
}

pub(crate) async fn the_longest_lost_come_first(store: Shared) {
    for (thread, until) in [("c", 3), ("a", 1), ("b", 2), ("d", 100)] {
        held_by(&store, "dead", thread, NOW + until).await;
    }
    held_by(&store, "here", "mine", NOW + 50).await;
    let lost = store.lost("here", NOW + 10, 9).await.unwrap();
    let lost: Vec<_> = lost.iter().map(|lease| &*lease.thread_id).collect();
    // A store that is not shared knows that the others are gone.
    assert_eq!(lost, if store.is_shared() { &["a", "b", "c"][..] } else { &["a", "b", "c", "d"] });
    let two = store.lost("here", NOW + 10, 2).await.unwrap();
    assert_eq!(two.iter().map(|lease| &*lease.thread_id).collect::<Vec<_>>(), ["a", "b"]);
}

pub(crate) async fn a_renewed_one_is_not_lost(store: Shared) {
    let old = held_by(&store, "there", "t", NOW).await;
    store.renew("there", UNTIL).await.unwrap();
    if store.is_shared() {
        assert!(store.lost("here", NOW + 1, 9).await.unwrap().is_empty());
        assert_eq!(store.take_over(&old, "here", NOW + 1, UNTIL).await.unwrap(), None);
    }
    // The holder's own is not, either way.
    assert_eq!(store.take_over(&old, "there", NOW + 1, UNTIL).await.unwrap(), None);
    assert!(!is_lost(store.save(&old, &said("x")).await));
}

pub(crate) async fn after_a_take_over_the_old_one_writes_nothing(store: Shared) {
    let old = held_by(&store, "dead", "t", NOW).await;
    assert_eq!(store.append(&[batch(&old, 1, 2)]).await.unwrap(), [true]);
    let new = store.take_over(&old, "here", NOW + 1, UNTIL).await.unwrap().unwrap();
    assert!(is_lost(store.save(&old, &said("old")).await));
    assert_eq!(store.append(&[batch(&old, 3, 1), batch(&new, 3, 2)]).await.unwrap(), [false, true]);
    assert!(is_lost(store.finish(&old, Some(&said("old")), Some(&batch(&old, 5, 9)), &ended_at(NOW)).await));
    assert!(store.renew("dead", UNTIL).await.unwrap().is_empty());
    assert_eq!(store.renew("here", UNTIL).await.unwrap().len(), 1);
    store.save(&new, &said("new")).await.unwrap();
    finish(&store, &new, NOW + 2).await;
    assert!(is_lost(store.finish(&old, None, None, &ended_at(NOW)).await), "another lease has finished it");
    assert_eq!(log(&store, "t", "r").await.len(), 4);
    assert_eq!(store.thread(&"t".into()).await.unwrap().unwrap().content, said("new"));
    begun(&store, at(NOW + 3, new_run("t", "s"))).await;
}
