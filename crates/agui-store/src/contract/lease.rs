//! Promises of every store about leases that are lost or taken over. `shared` has the promises of a
//! shared store.

use super::prelude::*;

async fn dead(store: &DynStore, thread: &str) -> Lease {
    TestRun { until: NOW, ..run(thread, "r").by("dead") }.begun(store).await
}

pub(super) async fn a_lost_run_is_taken_over_once(store: DynStore) {
    let old = dead(&store, "t").await;
    let lost = |thread: &str, lease: &Lease| LostRun {
        key: key(thread),
        run_id: "r".into(),
        lease: lease.clone(),
    };
    assert_eq!(store.lost_runs("here", NOW + 1, 9).await.unwrap(), [lost("t", &old)]);
    let other = dead(&store, "u").await;
    assert_eq!(store.lost_runs("here", NOW + 1, 1).await.unwrap().len(), 1);
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
    assert_eq!(
        Lease { holder: old.holder.clone(), ..new.clone() },
        old,
        "the lease is of the same run"
    );
    assert_eq!(record(&store, "t", "r").await.takeovers, 1);
    assert_eq!(store.take_over(&old, "here", UNTIL + 1, UNTIL + 2).await.unwrap(), None);
    assert_eq!(
        store.take_over(new, &new.holder, NOW + 1, UNTIL).await.unwrap(),
        None,
        "a holder does not take over its own lease"
    );
    assert!(
        store.lost_runs(&new.holder, NOW + 1, 9).await.unwrap().contains(&lost("u", &other)),
        "the other run stays lost"
    );
    finish(&store, new, NOW).await;
    assert_eq!(store.take_over(new, "here", UNTIL + 1, UNTIL + 2).await.unwrap(), None);
    assert!(lease(&store, "t", "s").await.run > new.run);
}

pub(super) async fn after_a_take_over_the_old_lease_writes_nothing(store: DynStore) {
    let old = dead(&store, "t").await;
    assert_eq!(store.append(&[batch(&old, 1, 2)]).await.unwrap(), [true]);
    let new = store.take_over(&old, "here", NOW + 1, UNTIL).await.unwrap().unwrap();
    assert_eq!(store.append(&[batch(&old, 3, 1), batch(&new, 3, 2)]).await.unwrap(), [false, true]);
    assert!(is_lost(answer(["old"]).last(batch(&old, 5, 9)).finish(&store, &old, 0).await));
    end_at(NOW + 2).with([assistant("new")]).finish(&store, &new, 0).await.unwrap();
    assert!(
        is_lost(end_at(NOW).finish(&store, &old, 0).await),
        "the run was ended with the new lease"
    );
    assert_eq!(log(&store, old.run).await.len(), 4);
    assert_eq!(branch(&thread(&store, "t").await), "new");
    run("t", "s").at(NOW + 3).begun(&store).await;
}
