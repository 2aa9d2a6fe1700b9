//! Promises about beginning a run.

use super::prelude::*;

pub(super) async fn the_first_run_creates_the_thread(store: DynStore) {
    let first = run("t", "r").begin(&store).await;
    let BeginOutcome::Begun(Begun { lease, version, last_message, state_number }) = first else {
        panic!("{first:?}")
    };
    assert_eq!((version, last_message, state_number), (1, MessageNumber::ROOT, None));
    assert_eq!(&*lease.holder, "here");
    let made = thread(&store, "t").await;
    assert_eq!((&made.thread.key, &*made.thread.agent), (&key("t"), "echo"));
    assert_eq!(
        (made.thread.number, made.thread.run, &*made.thread.run_id),
        (lease.thread, lease.run, "r")
    );
    assert_eq!(
        (made.thread.head, &made.thread.state, made.nodes.len()),
        (MessageNumber::ROOT, &None, 0)
    );
    assert!(made.thread.is_running && made.thread.version == version);
    assert_eq!((made.thread.created_at, made.thread.updated_at), (NOW, NOW));
    let [begun] = &made.runs[..] else { panic!("{made:?}") };
    assert_eq!(
        (begun.number, begun.thread, begun.status),
        (lease.run, lease.thread, RunStatus::Running)
    );
    assert_eq!(
        (begun.detached, begun.started_at, begun.ended_at, begun.events),
        (true, NOW, None, 0)
    );
    assert_eq!((begun.attempt, &begun.asked, begun.continues), (1, &None, false));
    assert_eq!((begun.end_reason, begun.has_unsafe_calls), (None, false));
    // The next run changes agent and time only.
    end_at(NOW + 1).with([assistant("a")]).finish(&store, &lease, 0).await.unwrap();
    let next = TestRun { agent: "other".to_owned(), detached: false, ..run("t", "s").at(NOW + 2) }
        .begin(&store)
        .await;
    assert!(
        matches!(
            next,
            BeginOutcome::Begun(Begun { version: 3, last_message: MessageNumber(1), .. })
        ),
        "{next:?}"
    );
    let view = thread(&store, "t").await;
    assert_eq!((&*view.thread.agent, &*branch(&view), view.thread.version), ("other", "a", 3));
    assert_eq!((view.thread.created_at, view.thread.updated_at), (NOW, NOW + 2));
    assert!(!view.runs[0].detached);
}

pub(super) async fn a_thread_has_at_most_one_running_run(store: DynStore) {
    let first = lease(&store, "t", "r").await;
    for id in ["r", "s"] {
        let BeginOutcome::Busy { run, lost } = run("t", id).begin(&store).await else { panic!() };
        assert_eq!((&*run.id, run.status, run.number), ("r", RunStatus::Running, first.run));
        assert_eq!(lost, None);
    }
    assert_eq!(thread(&store, "t").await.runs.len(), 1, "a refused run is not stored");
    for now in [NOW, UNTIL + 1] {
        let BeginOutcome::Busy { lost, .. } = run("t", "s").at(now).by("there").begin(&store).await
        else {
            panic!()
        };
        let is_lost = store.shared().is_none() || now > UNTIL;
        assert_eq!(lost, is_lost.then(|| first.clone()));
    }
    finish(&store, &first, NOW).await;
    lease(&store, "t", "s").await;
}

pub(super) async fn the_same_id_of_two_owners_is_two_threads(store: DynStore) {
    let owners = [ThreadKey::ANONYMOUS, "key:ann", "key:bob", "jwt:https%3A//i:ann", "jwt:i:"];
    for (place, owner) in owners.iter().enumerate() {
        let lease = run("t", "r").of(owner).with([user(owner)]).begun(&store).await;
        if place % 2 == 0 {
            answer(["a"]).finish(&store, &lease, 1).await.unwrap();
        }
    }
    for (place, owner) in owners.iter().enumerate() {
        let view = view(&store, &ThreadKey { owner: (*owner).into(), ..key("t") }).await.unwrap();
        assert_eq!(ids(view.current_branch()).split(' ').next(), Some(*owner));
        assert_eq!((view.runs.len(), view.thread.is_running), (1, place % 2 == 1));
        let listed = store.threads(owner, &ThreadPage::first(10)).await.unwrap();
        assert_eq!(listed.len(), 1, "{owner}");
    }
    assert!(view(&store, &ThreadKey { owner: "key:carl".into(), ..key("t") }).await.is_none());
}

pub(super) async fn one_of_many_concurrent_begins_succeeds(store: DynStore) {
    for round in 0..4 {
        let version = view(&store, &key("t")).await.map(|view| {
            let thread = view.thread;
            ThreadVersion::of(&thread)
        });
        let begin = |task: usize| {
            let (store, run) = (store.clone(), run("t", &format!("r{round}-{task}")));
            tokio::spawn(async move { run.try_begin(&store, version, 0, None).await.unwrap() })
        };
        let tasks: Vec<_> = (0..24).map(begin).collect();
        let (mut leases, mut running) = (Vec::new(), HashSet::new());
        for task in tasks {
            match task.await.unwrap() {
                BeginOutcome::Begun(Begun { lease, .. }) => leases.push(lease),
                BeginOutcome::Busy { run, lost } => {
                    assert_eq!(lost, None);
                    running.insert(run.number);
                }
                other => panic!("{other:?}"),
            }
        }
        let [winner] = &leases[..] else { panic!("{leases:?}") };
        assert_eq!(running, HashSet::from([winner.run]));
        finish(&store, winner, NOW).await;
    }
    assert_eq!(thread(&store, "t").await.runs.len(), 4);
}

pub(super) async fn a_begin_with_an_outdated_version_writes_nothing(store: DynStore) {
    run("t", "r").ended(&store, answer(["a"])).await;
    let before = thread(&store, "t").await;
    let now = ThreadVersion::of(&before.thread);
    let next = run("t", "s").with([user("u")]);
    let outdated = [
        None,
        Some(ThreadVersion { version: now.version - 1, ..now }),
        Some(ThreadVersion { version: now.version + 1, ..now }),
        Some(ThreadVersion { number: ThreadNumber(now.number.0 + 1000), ..now }),
    ];
    for known in outdated {
        let begin = next.try_begin(&store, known, 1, None).await.unwrap();
        assert!(matches!(begin, BeginOutcome::Changed), "{known:?}: {begin:?}");
    }
    assert_eq!(thread(&store, "t").await, before);
    delete(&store, "t").await;
    assert!(matches!(
        next.try_begin(&store, Some(now), 1, None).await.unwrap(),
        BeginOutcome::Changed
    ));
    assert!(!exists(&store, "t").await);
}

pub(super) async fn every_string_is_a_valid_identifier(store: DynStore) {
    let long = "x".repeat(1024);
    let texts =
        ["", " ", "\0", "a\0b", "#", "%", "'; --", "é", "\u{10ffff}", "\"q\"", "\"", "null", &long];
    for text in texts {
        let first = TestRun { agent: text.to_owned(), ..run(text, text) }
            .with([user(text)])
            .begun(&store)
            .await;
        store.append(&[batch(&first, 1, 2)]).await.unwrap();
        end_at(NOW).with([assistant(text)]).finish(&store, &first, 1).await.unwrap();
        let view = thread(&store, text).await;
        assert_eq!(
            (&*view.thread.key.id, &*view.thread.run_id, &*view.thread.agent),
            (text, text, text)
        );
        assert_eq!(
            view.nodes.iter().map(|node| node.message.id().as_str()).collect::<Vec<_>>(),
            [text, text]
        );
        assert_eq!((&*view.runs[0].id, &*view.runs[0].agent), (text, text));
        assert_eq!(&*record(&store, text, text).await.id, text);
        let listed = store.threads(ThreadKey::ANONYMOUS, &ThreadPage::first(1)).await.unwrap();
        assert_eq!(&*listed[0].key.id, text);
        let next = run(text, text).by("dead").begun(&store).await;
        let lost = store.lost_runs("here", UNTIL + 1, 99).await.unwrap();
        assert_eq!((&lost[0].key, &*lost[0].run_id, &lost[0].lease), (&key(text), text, &next));
        assert!(delete(&store, text).await);
    }
}

pub(super) async fn a_begin_with_a_dropped_future_happens_whole_or_not_at_all(store: DynStore) {
    for patience in 0..60 {
        let run = run("t", &format!("r{patience}")).with([user("u")]);
        let _ = tokio::time::timeout(Duration::from_micros(patience * 40), run.begin(&store)).await;
    }
    run("other", "r").ended(&store, end_at(NOW)).await;
    // A write whose future was dropped may happen a little later.
    let Some(view) = view(&store, &key("t")).await else { return };
    assert_eq!(
        (view.runs.len(), &*branch(&view)),
        (1, "u"),
        "the first run began, and the others found it running"
    );
    assert!(view.thread.is_running && view.runs[0].id == view.thread.run_id);
}

pub(super) async fn the_clients_messages_and_state_are_stored_when_the_run_begins(store: DynStore) {
    let first =
        TestRun { state: Some(json!({ "a": 1 })), ..run("t", "r").with([user("u1"), user("u2")]) };
    let BeginOutcome::Begun(Begun {
        lease,
        last_message: MessageNumber(2),
        state_number: Some(_),
        ..
    }) = first.begin(&store).await
    else {
        panic!()
    };
    let view = thread(&store, "t").await;
    assert_eq!((&*branch(&view), view.thread.head.0, view.thread.messages), ("u1 u2", 2, 2));
    assert_eq!(view.thread.state.as_ref().unwrap().1, json!({ "a": 1 }));
    let without = store.thread(&key("t"), ThreadParts::default()).await.unwrap().unwrap().thread;
    assert_eq!(
        without,
        changed(view.thread.clone(), |it| it.state = None),
        "it is read only on demand"
    );
    assert!(view.thread.bytes > 20);
    answer(["a"]).finish(&store, &lease, 2).await.unwrap();
    // The state stays unless the next run brings another.
    for state in [None, Some(json!([]))] {
        let next = TestRun { state: state.clone(), ..run("t", "s").with([user("u")]) };
        let BeginOutcome::Begun(Begun { lease, state_number, .. }) = next.begin(&store).await
        else {
            panic!()
        };
        let now = thread(&store, "t").await.thread.state.unwrap();
        assert_eq!(now, (state_number.unwrap(), state.unwrap_or(json!({ "a": 1 }))));
        finish(&store, &lease, NOW).await;
    }
}

pub(super) async fn a_run_that_would_make_the_thread_too_large_writes_nothing(store: DynStore) {
    let max = ThreadSize { messages: 3, bytes: 1000 };
    let large = TestRun { state: Some(json!("x".repeat(1000))), ..run("t", "r") };
    for too_large in
        [run("t", "r").with([user("1"), user("2"), user("3"), user("4")]), large.clone()]
    {
        let begin = TestRun { max, ..too_large }.begin(&store).await;
        assert!(matches!(begin, BeginOutcome::TooLarge(_)), "{begin:?}");
        assert!(!exists(&store, "t").await);
    }
    let first = TestRun { max, ..run("t", "r").with([user("1"), user("2")]) }.begun(&store).await;
    // `max_size` does not limit the messages that a run makes.
    answer(["3", "4"]).finish(&store, &first, 2).await.unwrap();
    let before = thread(&store, "t").await;
    let five = ThreadSize { messages: 5, bytes: before.thread.bytes + 1002 };
    for too_large in [run("t", "s").with([user("5"), user("6")]), large.clone().with([user("5")])] {
        let BeginOutcome::TooLarge(size) = (TestRun { max: five, ..too_large }).begin(&store).await
        else {
            panic!()
        };
        assert!(size.messages > 5 || size.bytes > five.bytes, "{size:?}");
    }
    // New texts of stored messages count, too.
    let longer = |length: usize| TestRun {
        max: five,
        updated: vec![(1, Message::user("1", "x".repeat(length)))],
        ..run("t", "u")
    };
    let BeginOutcome::TooLarge(size) = longer(1002).begin(&store).await else { panic!() };
    assert!(size.bytes > five.bytes, "{size:?}");
    assert_eq!(thread(&store, "t").await, before);
    ended_run(&store, TestRun { max: five, ..large }).await;
    let grown = TestRun { max: ThreadSize { bytes: five.bytes + 200, ..five }, ..longer(100) };
    grown.begun(&store).await;
    assert!(thread(&store, "t").await.thread.bytes > five.bytes);
    ended_run(&store, run("other", "r")).await;
}
