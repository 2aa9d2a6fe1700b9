//! Promises about the attempts of a run, and about requests that a run has answered.

use super::prelude::*;

/// The number that a caller gives that knows no run.
const UNKNOWN: RunNumber = RunNumber(0);

async fn attempts(store: &DynStore, thread: ThreadNumber, id: &str) -> Vec<RunRecord> {
    store.attempts(OWNER, thread, &id.into()).await.unwrap()
}

pub(super) async fn the_attempts_of_a_run_are_kept(store: DynStore) {
    let first = TestRun { asked: Some("a\0"), request: Some("{}"), ..run("t", "r") };
    let first = first.begun(&store).await;
    assert_eq!(store.append(&[batch(&first, 1, 3)]).await.unwrap(), [true]);
    answer(["a"]).finish(&store, &first, 0).await.unwrap();
    let before = record(&store, "t", "r").await;
    run("t", "s").ended(&store, answer(["b"])).await;
    let second = TestRun { asked: Some("b"), continues: true, ..run("t", "r") };
    let second = second.begun(&store).await;
    assert!(second.run > first.run, "{first:?} {second:?}");
    assert_eq!(log(&store, first.run).await, events(1, 3), "it keeps its log");
    assert!(store.run_start(OWNER, first.run).await.unwrap().is_some());
    assert!(log(&store, second.run).await.is_empty());
    let both = attempts(&store, first.thread, "r").await;
    let [kept, begun] = &both[..] else { panic!("{both:?}") };
    assert_eq!((kept, kept.attempt, kept.continues), (&before, 1, false));
    assert_eq!(kept.asked.as_deref(), Some("a\0"));
    assert_eq!((begun.number, begun.attempt, begun.continues), (second.run, 2, true));
    assert_eq!((begun.asked.as_deref(), begun.status), (Some("b"), RunStatus::Running));
    // Each has its own log, lease and delivery.
    let batches = [batch(&first, 4, 1), batch(&second, 1, 1)];
    assert_eq!(store.append(&batches).await.unwrap(), [false, true]);
    finish(&store, &second, NOW).await;
    store.set_delivered(first.thread, second.run, false).await.unwrap();
    let delivered = |runs: Vec<RunRecord>| runs.iter().map(|run| run.delivered).collect::<Vec<_>>();
    assert_eq!(delivered(attempts(&store, first.thread, "r").await), [true, false]);
    let view = thread(&store, "t").await;
    assert_eq!(
        view.runs.iter().map(|run| (&*run.id, run.attempt)).collect::<Vec<_>>(),
        [("r", 2), ("s", 1), ("r", 1)]
    );
    // The same id in another thread is another run.
    lease(&store, "u", "r").await;
    assert_eq!(record(&store, "u", "r").await.attempt, 1);
    assert_eq!(attempts(&store, first.thread, "r").await.len(), 2);
    assert!(attempts(&store, first.thread, "unknown").await.is_empty());
    assert!(attempts(&store, ThreadNumber(first.thread.0 + 1000), "r").await.is_empty());
    assert!(delete(&store, "t").await);
    assert!(attempts(&store, first.thread, "r").await.is_empty());
    assert!(store.events(OWNER, first.run, 0, 99).await.unwrap().is_none());
}

pub(super) async fn the_newest_attempt_is_the_run(store: DynStore) {
    let first = run("t", "r").ended(&store, answer(["a", "b"])).await;
    // It ends before the end of the attempt before it.
    TestRun { base: Some(0), ..run("t", "r") }.ended(&store, end_at(NOW + 1)).await;
    let third = lease(&store, "t", "r").await;
    let run = record(&store, "t", "r").await;
    assert_eq!((run.number, run.attempt, run.ended_at), (third.run, 3, None));
    let left = async |by| store.end_state(OWNER, first.thread, by).await.unwrap().unwrap();
    let id = "r".into();
    assert_eq!(left(EndedRun::Id(&id)).await.head.0, 0, "of the newest one that has ended");
    assert_eq!(left(EndedRun::Branch(MessageNumber(2))).await.head.0, 2, "of the first one");
}

pub(super) async fn an_answered_request_begins_no_run(store: DynStore) {
    let asking =
        |asked: &'static str, known| TestRun { asked: Some(asked), known, ..run("t", "r") };
    let known = async |run: TestRun| match run.begin(&store).await {
        BeginOutcome::Known(run) => *run,
        other => panic!("{other:?}"),
    };
    let first = asking("a", UNKNOWN).with([user("u")]).ended(&store, answer(["x"])).await;
    let before = thread(&store, "t").await;
    assert_eq!(known(asking("a", UNKNOWN).with([user("v")])).await, before.runs[0]);
    assert_eq!(known(asking("a", RunNumber(first.run.0 - 1))).await.number, first.run);
    assert_eq!(thread(&store, "t").await, before, "nothing is written");
    // Another request, another id, and a request without a digest begin a run.
    asking("b", UNKNOWN).ended(&store, end_at(NOW)).await;
    TestRun { id: "s".into(), ..asking("a", UNKNOWN) }.ended(&store, end_at(NOW)).await;
    run("t", "r").ended(&store, end_at(NOW)).await;
    TestRun { key: key("u"), ..asking("a", UNKNOWN) }.ended(&store, end_at(NOW)).await;
    assert_eq!(
        known(asking("a", UNKNOWN)).await.number,
        first.run,
        "older than two other attempts"
    );
    // The caller knows the run, so it begins another attempt. The next caller finds the newest one.
    let again = asking("a", first.run).ended(&store, end_at(NOW)).await;
    assert_eq!(known(asking("a", first.run)).await.attempt, 4);
    assert_eq!(known(asking("a", UNKNOWN)).await.number, again.run);
    asking("a", RunNumber(i64::MAX)).ended(&store, end_at(NOW)).await;
    assert_eq!(record(&store, "t", "r").await.attempt, 5);
}

pub(super) async fn a_known_run_is_searched_after_the_other_checks(store: DynStore) {
    let asking = || TestRun { asked: Some("a"), ..run("t", "r") };
    let lease = asking().begun(&store).await;
    assert!(matches!(asking().begin(&store).await, BeginOutcome::Busy { .. }));
    finish(&store, &lease, NOW).await;
    let version = ThreadVersion::of(&thread(&store, "t").await.thread);
    let outdated = ThreadVersion { version: version.version - 1, ..version };
    for expected in [None, Some(outdated)] {
        let begin = asking().try_begin(&store, expected, 0, None).await.unwrap();
        assert!(matches!(begin, BeginOutcome::Changed), "{begin:?}");
    }
    let too_large = TestRun { max: ThreadSize { messages: 0, bytes: 0 }, ..asking() };
    let too_large = too_large.with([user("u")]);
    assert!(matches!(too_large.begin(&store).await, BeginOutcome::Known(_)), "the size comes last");
}

pub(super) async fn one_of_many_begins_of_a_request_succeeds(store: DynStore) {
    for round in 0..8 {
        let begin = |task: usize| {
            let store = store.clone();
            tokio::spawn(async move {
                let asking = TestRun { asked: Some("a"), ..run(&format!("t{round}"), "r") };
                // Each reads the thread and tries again, as a server does.
                loop {
                    match asking.begin(&store).await {
                        BeginOutcome::Begun(Begun { lease, .. }) => {
                            end_at(NOW + task as i64).finish(&store, &lease, 0).await.unwrap();
                            return true;
                        }
                        BeginOutcome::Known(_) => return false,
                        BeginOutcome::Busy { .. } | BeginOutcome::Changed => {}
                        other => panic!("{other:?}"),
                    }
                }
            })
        };
        let begun = join_all((0..12).map(begin).collect::<Vec<_>>()).await;
        assert_eq!(begun.into_iter().filter(|begun| *begun.as_ref().unwrap()).count(), 1);
    }
}

pub(super) async fn an_alias_finds_its_run_and_answers_its_request(store: DynStore) {
    let first = TestRun { asked: Some("a"), ..run("t", "r") }.begun(&store).await;
    store.set_alias(first.thread, first.run, &"page".into()).await.unwrap();
    assert_eq!(record(&store, "t", "page").await, record(&store, "t", "r").await);
    finish(&store, &first, NOW).await;
    let asking = |known| TestRun { asked: Some("a"), known, ..run("t", "page") };
    match asking(UNKNOWN).begin(&store).await {
        BeginOutcome::Known(run) => assert_eq!(run.number, first.run),
        other => panic!("{other:?}"),
    }
    assert!(store.run(OWNER, first.thread, &"other".into()).await.unwrap().is_none());
    // Another request under the alias is a run of its own, whose id the alias is from then on.
    TestRun { asked: Some("b"), ..run("t", "page") }.ended(&store, end_at(NOW)).await;
    let own = record(&store, "t", "page").await;
    assert_eq!((&*own.id, own.attempt, own.asked.as_deref()), ("page", 1, Some("b")));
    let again = asking(first.run).ended(&store, end_at(NOW)).await;
    assert_eq!(record(&store, "t", "page").await.number, again.run);
    assert_eq!(record(&store, "t", "r").await.number, first.run);
}
