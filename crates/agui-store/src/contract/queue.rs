//! Promises about queued runs, for stores that keep them.

use std::slice;

use super::prelude::*;

async fn enqueue(store: &DynStore, thread: &str, id: &str, holder: &str) -> Enqueued {
    let (key, id) = (key(thread), id.into());
    let run = NewQueuedRun {
        key: &key,
        run_id: &id,
        asked: Some("what"),
        agent: "echo",
        request: "{\"a\":1}",
        holder,
        now: NOW,
        max_queued: 3,
    };
    store.queue().unwrap().enqueue(&run).await.unwrap()
}

async fn stored(store: &DynStore, thread: &str, id: &str, holder: &str) -> QueuedRun {
    match enqueue(store, thread, id, holder).await {
        Enqueued::Stored(queued) => queued,
        other => panic!("{other:?}"),
    }
}

async fn queued_ids(store: &DynStore, thread: &str) -> Vec<RunId> {
    let number = self::thread(store, thread).await.thread.number;
    let queued = store.queue().unwrap().queued_runs(OWNER, number).await.unwrap();
    queued.into_iter().map(|run| run.run_id).collect()
}

pub(super) async fn queued_runs_are_kept_in_order_up_to_a_limit(store: DynStore) {
    let Some(queue) = store.queue() else { return };
    assert_eq!(enqueue(&store, "t", "a", "here").await, Enqueued::NoThread);
    let lease = run("t", "r").begun(&store).await;
    let bytes = store.stored_bytes(Some(OWNER)).await.unwrap();
    let first = stored(&store, "t", "a", "here").await;
    assert_eq!((&first.key, first.thread, first.takeovers), (&key("t"), lease.thread, 0));
    assert_eq!((&*first.agent, first.asked.as_deref()), ("echo", Some("what")));
    assert_eq!(store.stored_bytes(Some(OWNER)).await.unwrap(), bytes + 7);
    assert_eq!(enqueue(&store, "t", "a", "there").await, Enqueued::Exists(first.clone()));
    let second = stored(&store, "t", "b", "here").await;
    assert!(second.number > first.number);
    stored(&store, "t", "c", "here").await;
    assert_eq!(enqueue(&store, "t", "d", "here").await, Enqueued::Full);
    assert_eq!(queued_ids(&store, "t").await, ["a", "b", "c"]);
    assert_eq!(queue.queued_request(first.number).await.unwrap().as_deref(), Some("{\"a\":1}"));
    // They have no place in the thread.
    let runs = thread(&store, "t").await.runs;
    assert_eq!(runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["r"]);

    assert!(queue.remove_queued_run(lease.thread, &"a".into()).await.unwrap());
    assert!(!queue.remove_queued_run(lease.thread, &"a".into()).await.unwrap());
    assert_eq!(queue.queued_request(first.number).await.unwrap(), None);
    assert!(stored(&store, "t", "a", "here").await.number > second.number);
    assert!(delete(&store, "t").await);
    assert_eq!(queue.queued_request(second.number).await.unwrap(), None);
    assert_eq!(store.stored_bytes(Some(OWNER)).await.unwrap(), 0);
}

pub(super) async fn a_queued_run_begins_once_and_in_its_order(store: DynStore) {
    if store.queue().is_none() {
        return;
    }
    let lease = run("t", "r").begun(&store).await;
    let (first, second) =
        (stored(&store, "t", "a", "here").await, stored(&store, "t", "b", "there").await);
    let begin = async |queued: &QueuedRun, holder: &str| {
        let queued = TestRun { queued: Some(queued.number), ..run("t", queued.run_id.as_str()) };
        queued.by(holder).begin(&store).await
    };
    let outcome = begin(&first, "here").await;
    assert!(matches!(outcome, BeginOutcome::Busy { .. }), "{outcome:?}");
    finish(&store, &lease, NOW).await;
    let outcome = begin(&second, "there").await;
    assert!(matches!(outcome, BeginOutcome::Behind), "{outcome:?}");
    let BeginOutcome::Begun(begun) = begin(&first, "here").await else { panic!("it is the first") };
    assert_eq!(queued_ids(&store, "t").await, ["b"]);
    let outcome = begin(&first, "other").await;
    assert!(matches!(outcome, BeginOutcome::Dequeued), "{outcome:?}");
    finish(&store, &begun.lease, NOW).await;
    let outcome = begin(&first, "other").await;
    assert!(matches!(outcome, BeginOutcome::Dequeued), "{outcome:?}");
    let BeginOutcome::Begun(begun) = begin(&second, "there").await else {
        panic!("it is the next")
    };

    // A process begins its queued runs in any order while it has the first one of the thread.
    let first = stored(&store, "t", "c", "here").await;
    let (second, third) =
        (stored(&store, "t", "d", "there").await, stored(&store, "t", "e", "here").await);
    finish(&store, &begun.lease, NOW).await;
    assert!(matches!(begin(&second, "there").await, BeginOutcome::Behind));
    let BeginOutcome::Begun(begun) = begin(&third, "here").await else {
        panic!("here has the turn")
    };
    finish(&store, &begun.lease, NOW).await;
    let BeginOutcome::Begun(begun) = begin(&first, "here").await else { panic!("it is the first") };
    finish(&store, &begun.lease, NOW).await;
    assert!(matches!(begin(&second, "there").await, BeginOutcome::Begun(_)));
}

pub(super) async fn a_queued_run_begins_on_no_new_thread(store: DynStore) {
    if store.queue().is_none() {
        return;
    }
    run("t", "r").begun(&store).await;
    let queued = stored(&store, "t", "a", "here").await;
    assert!(delete(&store, "t").await);
    let outcome = TestRun { queued: Some(queued.number), ..run("t", "a") }.begin(&store).await;
    assert!(matches!(outcome, BeginOutcome::Dequeued), "{outcome:?}");
    assert!(!exists(&store, "t").await);
}

pub(super) async fn a_lost_queued_run_is_taken_once(store: DynStore) {
    let Some(queue) = store.queue() else { return };
    let lease = run("t", "r").by("dead").begun(&store).await;
    let queued = stored(&store, "t", "a", "dead").await;
    let lost = async |before| queue.lost_queued_runs(before, 9).await.unwrap();
    if store.shared().is_some() {
        assert_eq!(lost(NOW + 9).await, [], "its thread has a running run");
    }
    queue.release_queued_runs("dead").await.unwrap();
    let released = QueuedRun { holder: String::new(), ..queued.clone() };
    assert_eq!(lost(NOW - 9).await, slice::from_ref(&released));
    assert!(!queue.take_queued_run(&queued, "here", NOW).await.unwrap(), "it was released since");
    assert!(queue.take_queued_run(&released, "here", NOW).await.unwrap());
    assert!(!queue.take_queued_run(&released, "there", NOW).await.unwrap());
    finish(&store, &lease, NOW).await;
    if store.shared().is_some() {
        assert_eq!(lost(NOW).await, [], "its holder begins it");
    }
    let held = QueuedRun { holder: "here".to_owned(), ..queued.clone() };
    assert_eq!(lost(NOW + 9).await, slice::from_ref(&held), "given away, it was not lost");
    assert!(queue.take_queued_run(&held, "there", NOW).await.unwrap());
    let taken = QueuedRun { holder: "there".to_owned(), takeovers: 1, ..queued };
    assert_eq!(lost(NOW + 9).await, [taken]);
}

pub(super) async fn who_takes_a_lost_run_may_take_the_queued_runs_of_its_holder(store: DynStore) {
    let Some(queue) = store.queue().filter(|_| store.shared().is_some()) else { return };
    let lost = TestRun { until: NOW, ..run("t", "r").by("dead") }.begun(&store).await;
    stored(&store, "t", "a", "dead").await;
    stored(&store, "t", "b", "alive").await;
    store.take_over(&lost, "here", NOW + 1, UNTIL).await.unwrap().unwrap();
    let lost = queue.lost_queued_runs(NOW - 9, 9).await.unwrap();
    assert_eq!(lost.into_iter().map(|run| run.run_id).collect::<Vec<_>>(), ["a"]);
}
