//! Promises about changes of an owner: title, archive, metadata, head.

use super::prelude::*;

async fn version(store: &DynStore, id: &str) -> ThreadVersion {
    let thread = thread(store, id).await.thread;
    ThreadVersion::of(&thread)
}

pub(super) async fn a_title_is_set_unless_the_thread_has_one(store: DynStore) {
    for (id, title, expected) in
        [("r", None, None), ("s", Some("One"), Some("One")), ("t", Some("Two"), Some("One"))]
    {
        ended_run(&store, TestRun { title, ..run("a", id) }).await;
        assert_eq!(thread(&store, "a").await.thread.title.as_deref(), expected);
    }
    ended_run(&store, TestRun { title: Some("\"\0é"), ..run("b", "r") }).await;
    let listed = store.threads("none", &ThreadPage::first(9)).await.unwrap();
    let titles: Vec<_> = listed.iter().map(|thread| thread.title.as_deref()).collect();
    assert_eq!(titles, [Some("\"\0é"), Some("One")]);
}

pub(super) async fn an_update_changes_only_what_it_names(store: DynStore) {
    let state = Some(json!({ "a": 1 }));
    let begin = TestRun {
        state,
        interrupts: vec![Interrupt::new("x")],
        title: Some("One"),
        ..run("t", "r")
    };
    let lease = begin.with([user("u")]).begun(&store).await;
    let metadata = Map::from_iter([("tag".to_owned(), json!(["\0", 1.5]))]);
    let updates = [
        changed(ThreadUpdate::default(), |it| it.archived = Some(true)),
        changed(ThreadUpdate::default(), |it| it.metadata = Some(&metadata)),
        changed(ThreadUpdate::default(), |it| it.title = Some(Some("Two"))),
        ThreadUpdate::default(),
    ];
    for (number, update) in updates.iter().enumerate() {
        let before = thread(&store, "t").await.thread;
        assert!(
            store.update(version(&store, "t").await, update).await.unwrap(),
            "also during a run"
        );
        let after = thread(&store, "t").await.thread;
        assert_eq!(after.version, before.version + 1);
        assert_eq!((after.archived, after.title.as_deref() == Some("Two")), (true, number > 1));
        assert_eq!(after.metadata.is_empty(), number == 0);
        let same = (after.head, &after.state, &after.interrupts, after.updated_at, after.run);
        assert_eq!(
            same,
            (before.head, &before.state, &before.interrupts, before.updated_at, before.run)
        );
    }
    assert!(end_at(NOW).finish(&store, &lease, 1).await.unwrap());
    let kept = thread(&store, "t").await.thread;
    assert_eq!(
        (kept.title.as_deref(), kept.archived, &kept.metadata),
        (Some("Two"), true, &metadata)
    );
    let empty = Map::new();
    let removal = changed(ThreadUpdate::default(), |it| {
        it.title = Some(None);
        it.metadata = Some(&empty);
    });
    assert!(store.update(version(&store, "t").await, &removal).await.unwrap());
    let removed = thread(&store, "t").await.thread;
    assert_eq!((removed.title, removed.metadata), (None, empty));
}

pub(super) async fn an_update_with_an_outdated_version_writes_nothing(store: DynStore) {
    ended_run(&store, run("t", "r")).await;
    let known = version(&store, "t").await;
    let update = changed(ThreadUpdate::default(), |it| it.archived = Some(true));
    for wrong in [
        ThreadVersion { version: known.version - 1, ..known },
        ThreadVersion { number: ThreadNumber(known.number.0 + 1000), ..known },
    ] {
        assert!(!store.update(wrong, &update).await.unwrap());
    }
    assert!(!thread(&store, "t").await.thread.archived);
    assert!(store.update(known, &update).await.unwrap());
    assert!(!store.update(known, &update).await.unwrap(), "the version has increased");
}

pub(super) async fn the_head_moves_to_another_branch_but_not_during_a_run(store: DynStore) {
    let end = TestEnd { state: Some(json!(2)), ..answer(["a"]) };
    TestRun { state: Some(json!(1)), ..run("t", "r") }.with([user("u")]).ended(&store, end).await;
    let state = thread(&store, "t").await.thread.state.map(|(number, _)| number);
    let other = TestRun { base: Some(0), state: Some(json!(3)), ..run("t", "s") }
        .with([user("v")])
        .begun(&store)
        .await;
    let interrupts = [Interrupt::new("x")];
    let mut head = HeadUpdate::default();
    (head.head, head.state_number, head.interrupts) = (MessageNumber(2), state, &interrupts);
    let update = changed(ThreadUpdate::default(), |it| it.head = Some(head));
    assert!(!store.update(version(&store, "t").await, &update).await.unwrap());
    end_at(NOW).finish(&store, &other, 3).await.unwrap();
    assert_eq!(branch(&thread(&store, "t").await), "v");
    let before = version(&store, "t").await;
    assert!(store.update(before, &update).await.unwrap());
    let view = thread(&store, "t").await;
    assert_eq!(branch(&view), "u a");
    assert_eq!(
        (view.thread.state.map(|(_, state)| state), view.thread.interrupts.len()),
        (Some(json!(2)), 1)
    );
    assert!(matches!(
        run("t", "x").try_begin(&store, Some(before), 3, None).await.unwrap(),
        BeginOutcome::Changed
    ));
    lease(&store, "t", "x").await;
}
