//! Promises about lists, and about reading missing threads, runs and messages.

use super::prelude::*;

async fn page(store: &DynStore, after: Option<&Thread>, limit: usize) -> Vec<Thread> {
    store
        .threads(
            "key:ann",
            &changed(ThreadPage::first(limit), |it| it.after = after.map(|last| last.run)),
        )
        .await
        .unwrap()
}

pub(super) async fn threads_are_listed_newest_first(store: DynStore) {
    for (thread, owner, time) in
        [("a", "ann", 1), ("c", "bob", 3), ("d", "ann", 3), ("b", "ann", 5)]
    {
        ended_run(&store, run(thread, "r").of(&format!("key:{owner}")).at(NOW + time)).await;
    }
    assert_eq!(names(&page(&store, None, 9).await), "bda");
    assert_eq!(names(&page(&store, None, 2).await), "bd");
    assert!(page(&store, None, 0).await.is_empty());
    assert!(store.threads("none", &ThreadPage::first(9)).await.unwrap().is_empty());
    let next = TestRun { agent: "x".to_owned(), ..run("a", "s").of("key:ann").at(NOW + 6) };
    let lease = next.begun(&store).await;
    let listed = page(&store, None, 9).await;
    assert_eq!(names(&listed), "abd");
    assert_eq!((&*listed[0].agent, &*listed[0].run_id, listed[0].is_running), ("x", "s", true));
    assert_eq!((listed[0].created_at, listed[0].updated_at), (NOW + 1, NOW + 6));
    let end = TestEnd { interrupts: vec![Interrupt::new("x"); 3], ..end_at(NOW + 7) };
    end.finish(&store, &lease, 0).await.unwrap();
    let listed = page(&store, None, 1).await;
    assert_eq!((listed[0].interrupts.len(), listed[0].is_running), (3, false));
}

pub(super) async fn archived_threads_and_agents_are_selected(store: DynStore) {
    for (id, agent, archived) in
        [("a", "x", false), ("b", "y", true), ("c", "y", false), ("d", "x", true)]
    {
        ended_run(&store, TestRun { agent: agent.to_owned(), ..run(id, "r").of("key:ann") }).await;
        let key = ThreadKey { owner: "key:ann".into(), id: id.into() };
        let thread = view(&store, &key).await.unwrap().thread;
        let version = ThreadVersion::of(&thread);
        let update = changed(ThreadUpdate::default(), |it| it.archived = Some(archived));
        assert!(store.update(version, &update).await.unwrap());
    }
    let x = || Some("x".to_owned());
    for (archived, agent, expected) in [
        (None, None, "dcba"),
        (Some(false), None, "ca"),
        (Some(true), None, "db"),
        (None, x(), "da"),
        (Some(true), x(), "d"),
        (None, Some(String::new()), ""),
    ] {
        let page = changed(ThreadPage::first(9), |it| (it.archived, it.agent) = (archived, agent));
        let listed = store.threads("key:ann", &page).await.unwrap();
        assert_eq!(names(&listed), expected, "{page:?}");
        assert!(
            archived.is_none_or(|archived| listed.iter().all(|thread| thread.archived == archived))
        );
    }
}

pub(super) async fn paging_skips_and_repeats_no_thread(store: DynStore) {
    let expected: HashSet<_> = (0..40).map(|thread| format!("t{}", (thread * 17) % 40)).collect();
    for thread in &expected {
        ended_run(&store, run(thread, "r").of("key:ann")).await;
    }
    for limit in [1, 3, 7, 100] {
        let (mut seen, mut last) = (Vec::new(), None);
        loop {
            // A thread with a new run moves to the front of the list, which was read already.
            ended_run(&store, run("changing", "r").of("key:ann")).await;
            let page = page(&store, last.as_ref(), limit).await;
            assert!(page.len() <= limit && page.is_sorted_by_key(|thread| Reverse(thread.run)));
            let Some(end) = page.last() else { break };
            last = Some(end.clone());
            seen.extend(
                page.into_iter()
                    .map(|thread| thread.key.id.to_string())
                    .filter(|id| id != "changing"),
            );
            assert!(seen.len() <= expected.len(), "{limit}: threads are repeated");
        }
        assert_eq!(seen.into_iter().collect::<HashSet<_>>(), expected, "{limit}");
    }
}

pub(super) async fn runs_are_read_newest_first(store: DynStore) {
    for id in ["a", "b", "c", "a"] {
        run("t", id).ended(&store, end_at(NOW)).await;
    }
    lease(&store, "u", "other").await;
    for (limit, expected) in [(9, "acba"), (2, "ac"), (0, "")] {
        let view = store
            .thread(&key("t"), changed(ThreadParts::default(), |it| it.runs = limit))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(view.runs.iter().map(|run| run.id.to_string()).collect::<String>(), expected);
        assert!(view.nodes.is_empty());
    }
}

pub(super) async fn the_states_of_the_newest_runs_are_read_once_each(store: DynStore) {
    for (id, state) in
        [("1", Some(json!(1))), ("2", Some(json!(2))), ("3", None), ("4", Some(json!(4)))]
    {
        run("t", id).ended(&store, TestEnd { state, ..end_at(NOW) }).await;
    }
    TestRun { state: Some(json!(9)), ..run("other", "1") }.begun(&store).await;
    let parts =
        |runs| changed(ThreadParts::default(), |it| (it.runs, it.run_states) = (runs, true));
    for (runs, expected) in [
        (0, vec![]),
        (1, vec![json!(4)]),
        (3, vec![json!(2), json!(4)]),
        (9, vec![json!(1), json!(2), json!(4)]),
    ] {
        let view = store.thread(&key("t"), parts(runs)).await.unwrap().unwrap();
        assert_eq!(
            view.run_states.iter().map(|(_, state)| state.clone()).collect::<Vec<_>>(),
            expected,
            "{runs}"
        );
        let named: Vec<_> = view.runs.iter().rev().map(|run| run.state).collect();
        let of = |value: i64| {
            view.run_states
                .iter()
                .find(|(_, state)| *state == json!(value))
                .map(|(number, _)| *number)
        };
        assert!([of(1), of(2), of(2), of(4)].ends_with(&named), "{runs}: {named:?}");
    }
    assert!(thread(&store, "t").await.run_states.is_empty());
}

pub(super) async fn unknown_threads_and_runs_are_none(store: DynStore) {
    let lease = run("t", "r").with([user("u")]).begun(&store).await;
    store.check().await.unwrap();
    assert!(!exists(&store, "u").await);
    let number = thread(&store, "t").await.thread.number;
    for (thread, id) in [(number, "s"), (ThreadNumber(number.0 + 1000), "r")] {
        assert!(store.run(OWNER, thread, &id.into()).await.unwrap().is_none());
        assert!(store.end_state(OWNER, thread, EndedRun::Id(&id.into())).await.unwrap().is_none());
    }
    assert!(store.events(OWNER, RunNumber(lease.run.0 + 1000), 0, 99).await.unwrap().is_none());
    let page = store.events(OWNER, lease.run, 0, 99).await.unwrap().unwrap();
    assert!(page.events.is_empty() && page.count == 0);
    // The run may have been deleted, so this is no error.
    assert_eq!(
        store
            .set_delivered(ThreadNumber(number.0 + 1000), RunNumber(lease.run.0 + 1000), true)
            .await
            .unwrap(),
        None
    );
}
