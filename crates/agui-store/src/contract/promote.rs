//! Promises about running runs that become detached ones.

use super::prelude::*;

fn undetached(thread: &str) -> TestRun {
    TestRun { detached: false, ..run(thread, "r") }
}

pub(super) async fn a_promoted_run_is_a_detached_one(store: DynStore) {
    let state = Some(json!({ "n": 1 }));
    let begin = TestRun { state: state.clone(), ..undetached("t") }.with([user("u")]);
    let lease = begin.begun(&store).await;
    let before = thread(&store, "t").await;
    let first = batch(&lease, 1, 2);
    assert!(store.promote(&lease, Some("{\"a\":1}"), &first).await.unwrap());
    let run = record(&store, "t", "r").await;
    assert_eq!((run.detached, run.number, run.events), (true, lease.run, 2));
    let view = thread(&store, "t").await;
    assert_eq!((view.thread, view.nodes), (before.thread, before.nodes), "the thread is the same");
    let start = RunStart { head: MessageNumber(1), state, request: "{\"a\":1}".to_owned() };
    let given = async || store.run_start(OWNER, lease.run).await.unwrap();
    assert_eq!(given().await, Some(start.clone()));
    assert_eq!(store.append(&[batch(&lease, 3, 2)]).await.unwrap(), [true]);
    let end = TestEnd { state: Some(json!({ "n": 2 })), ..answer(["a"]).last(batch(&lease, 5, 1)) };
    end.finish(&store, &lease, 1).await.unwrap();
    assert_eq!((log(&store, lease.run).await, given().await), (events(1, 5), Some(start)));
    // Its log is kept and removed like that of every detached run.
    let logs = changed(Retention::default(), |it| it.log_age = Some(1000));
    assert_eq!(store.sweep(&logs, NOW + 2000).await.unwrap().logs, 1);
    assert_eq!((log(&store, lease.run).await.len(), given().await), (0, None));

    // Without a request, no server can continue it.
    let lease = undetached("u").begun(&store).await;
    assert!(store.promote(&lease, None, &batch(&lease, 1, 1)).await.unwrap());
    assert!(store.run_start(OWNER, lease.run).await.unwrap().is_none());
    finish(&store, &lease, NOW).await;
    assert_eq!(log(&store, lease.run).await, events(1, 1));
    assert!(record(&store, "u", "r").await.detached);
}

pub(super) async fn a_promotion_is_repeated_without_effect(store: DynStore) {
    let lease = undetached("t").begun(&store).await;
    let promote = async |request, events| {
        store.promote(&lease, request, &batch(&lease, 1, events)).await.unwrap()
    };
    for _ in 0..2 {
        assert!(promote(Some("{}"), 2).await);
    }
    store.append(&[batch(&lease, 3, 2)]).await.unwrap();
    assert!(promote(Some("{\"other\":1}"), 2).await, "its log has more events now");
    assert_eq!(log(&store, lease.run).await, events(1, 4));
    let start = store.run_start(OWNER, lease.run).await.unwrap().unwrap();
    assert_eq!((&*start.request, start.head.0, start.state), ("{}", 0, None));
    finish(&store, &lease, NOW).await;
    assert!(!promote(Some("{}"), 2).await, "it has ended");
}

pub(super) async fn a_promotion_without_the_lease_writes_nothing(store: DynStore) {
    let held = undetached("t").begun(&store).await;
    let before = thread(&store, "t").await;
    for wrong in wrong_leases(&held) {
        assert!(!store.promote(&wrong, Some("{}"), &batch(&held, 1, 1)).await.unwrap());
    }
    assert_eq!(thread(&store, "t").await, before);
    assert!(log(&store, held.run).await.is_empty());
    assert!(store.run_start(OWNER, held.run).await.unwrap().is_none());
    let taken = store.take_over(&held, "there", UNTIL + 1, UNTIL + 9).await.unwrap().unwrap();
    assert!(!store.promote(&held, None, &batch(&held, 1, 1)).await.unwrap(), "it was taken over");
    assert!(store.promote(&taken, None, &batch(&taken, 1, 1)).await.unwrap());
    delete(&store, "t").await;
    assert!(!store.promote(&taken, None, &batch(&taken, 1, 1)).await.unwrap());
}
