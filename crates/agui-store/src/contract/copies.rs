//! Promises about copies of threads, and about feedback.

use super::prelude::*;

fn opinion(score: f64) -> Feedback {
    Feedback { score: Some(score), comment: Some("a \0 and '".to_owned()), at: NOW }
}

/// Stores a thread with two branches, three runs, and states.
async fn store_thread(store: &DynStore) -> ThreadContent {
    let first =
        TestRun { state: Some(json!(1)), title: Some("Title"), ..run("t", "r") }.with([user("u")]);
    let end = TestEnd {
        state: Some(json!({ "a": [2] })),
        ..end_at(NOW + 1).with([assistant("a"), assistant("b")])
    };
    first.ended(store, end).await;
    let end =
        TestEnd { interrupts: vec![Interrupt::new("y")], ..end_at(NOW + 2).with([assistant("c")]) };
    TestRun { base: Some(1), answered: vec![approves("x")], ..run("t", "s") }
        .with([user("v")])
        .ended(store, end)
        .await;
    let metadata = Map::from_iter([("tag".to_owned(), json!([1]))]);
    let known = thread(store, "t").await.thread;
    let version = ThreadVersion::of(&known);
    let update = changed(ThreadUpdate::default(), |it| {
        it.archived = Some(true);
        it.metadata = Some(&metadata);
    });
    assert!(store.update(version, &update).await.unwrap());
    assert!(store.set_feedback(known.number, &"a".into(), Some(&opinion(0.5))).await.unwrap());
    lease(store, "t", "running").await;
    store.content(&key("t")).await.unwrap().unwrap()
}

pub(super) async fn a_thread_is_read_with_all_its_content(store: DynStore) {
    let content = store_thread(&store).await;
    assert_eq!(
        (content.title.as_deref(), content.archived, content.head.0),
        (Some("Title"), true, 5)
    );
    assert_eq!(content.metadata["tag"], json!([1]));
    let messages =
        content.messages.iter().map(|it| (it.message.id().as_str(), it.parent.0, it.run));
    let expected =
        [("u", 0, None), ("a", 1, Some(0)), ("b", 2, Some(0)), ("v", 1, None), ("c", 4, Some(1))];
    assert_eq!(messages.collect::<Vec<_>>(), expected);
    assert_eq!(content.messages[1].feedback, Some(opinion(0.5)));
    assert_eq!(content.states, [json!(1), json!({ "a": [2] })]);
    let runs = content
        .runs
        .iter()
        .map(|run| (run.record.id.as_str(), run.head.0, run.state, run.record.status));
    // The run that has not ended is left out.
    let finished = RunStatus::Finished;
    assert_eq!(
        runs.collect::<Vec<_>>(),
        [("r", 3, Some(1), finished), ("s", 5, Some(1), finished)]
    );
    assert_eq!((content.runs[1].interrupts.len(), content.runs[1].answered.len()), (1, 1));
    assert!(store.content(&key("nothing")).await.unwrap().is_none());
}

pub(super) async fn a_thread_is_created_with_its_content(store: DynStore) {
    let mut content = store_thread(&store).await;
    content.state = Some(1);
    content.interrupts = vec![Interrupt::new("y")];
    let copy = key("copy");
    assert!(store.insert(&copy, &content).await.unwrap());
    assert!(!store.insert(&copy, &content).await.unwrap(), "it exists");
    assert_eq!(store.content(&copy).await.unwrap().unwrap().messages, content.messages);
    assert_eq!(store.content(&copy).await.unwrap().unwrap().states, content.states);
    let view = thread(&store, "copy").await;
    assert_eq!(branch(&view), "u v c");
    assert_eq!((view.thread.version, view.thread.is_running, view.thread.messages), (1, false, 5));
    assert_eq!((view.thread.title.as_deref(), view.thread.archived), (Some("Title"), true));
    assert_eq!(
        (view.thread.state.map(|(_, state)| state), view.thread.interrupts.len()),
        (Some(json!({ "a": [2] })), 1)
    );
    assert_eq!(view.thread.bytes, content.bytes());
    let bytes = async |owner| store.stored_bytes(owner).await.unwrap();
    assert_eq!(bytes(Some(OWNER)).await, bytes(None).await);
    assert!(bytes(None).await >= content.bytes());
    assert_eq!(bytes(Some("key:other")).await, 0);
    assert!(
        matches!(view.nodes[1].origin, MessageOrigin::Run { .. })
            && view.nodes[3].origin == MessageOrigin::Client
    );
    let left = store
        .end_state(OWNER, view.thread.number, EndedRun::Id(&"r".into()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((left.head.0, left.state.unwrap().1), (3, json!({ "a": [2] })));
    assert_eq!(listed(&store, "none", ThreadPage::first(9)).await, "copyt", "the newest first");

    // The copy continues like any other thread, and the original is not changed by it.
    TestRun { state: Some(json!(7)), ..run("copy", "next") }
        .with([user("w")])
        .ended(&store, end_at(NOW))
        .await;
    assert_eq!(thread(&store, "copy").await.thread.state.unwrap().1, json!(7));
    assert_eq!(thread(&store, "t").await.nodes.len(), 5);
    assert!(store.delete(view.thread.number).await.unwrap());
    assert_eq!(store.content(&key("t")).await.unwrap().unwrap().messages.len(), 5);
}

pub(super) async fn the_attempts_of_a_run_are_copied(store: DynStore) {
    let asking = TestRun { asked: Some("a"), ..run("t", "r") };
    asking.ended(&store, answer(["a"])).await;
    let second = TestRun { continues: true, known: RunNumber(i64::MAX), ..asking.clone() };
    let second = second.begun(&store).await;
    let end = changed(RunEnd::new(RunStatus::Cancelled, MessageNumber(1)), |it| {
        (it.reason, it.has_unsafe_calls) = (Some(EndReason::Left), true);
    });
    store.finish(&second, &end).await.unwrap();
    let content = store.content(&key("t")).await.unwrap().unwrap();
    let exported = serde_json::to_value(&content).unwrap();
    let [first, second] = &exported["runs"].as_array().unwrap()[..] else { panic!("{exported}") };
    assert_eq!((&first["attempt"], &first["continues"]), (&json!(1), &json!(false)));
    assert_eq!((&second["attempt"], &second["continues"]), (&json!(2), &json!(true)));
    assert_eq!((&second["endReason"], &second["hasUnsafeCalls"]), (&json!("left"), &json!(true)));
    assert!(first.get("endReason").is_none() && first.get("asked").is_none());
    let imported = serde_json::from_value::<ThreadContent>(exported.clone()).unwrap();
    assert!(store.insert(&key("copy"), &imported).await.unwrap());
    let copied = store.content(&key("copy")).await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(&copied).unwrap(), exported);
    // A request is not answered from a copy.
    assert!(store.insert(&key("other"), &content).await.unwrap());
    let next = TestRun { key: key("other"), ..asking }.begun(&store).await;
    let attempts = store.attempts(OWNER, next.thread, &"r".into()).await.unwrap();
    assert_eq!(attempts.iter().map(|run| run.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(attempts[..2].iter().all(|run| run.asked.is_none()));
}

pub(super) async fn feedback_is_replaced_and_removed(store: DynStore) {
    run("t", "r").with([user("u"), user("m")]).ended(&store, end_at(NOW)).await;
    ended_run(&store, run("other", "r").with([user("m")])).await;
    let commented = thread(&store, "t").await.thread;
    let (number, message) = (commented.number, MessageId::from("m"));
    let given = async || {
        let query = MessageQuery::new(MessageNumber(2), 9);
        let page = store.messages(&commented, &query).await.unwrap();
        page.nodes
            .into_iter()
            .filter_map(|node| Some((node.number.0, node.feedback?)))
            .collect::<Vec<_>>()
    };
    assert!(given().await.is_empty());
    for score in [1.0, -0.25] {
        assert!(store.set_feedback(number, &message, Some(&opinion(score))).await.unwrap());
        assert_eq!(given().await, [(2, opinion(score))]);
    }
    assert!(store.set_feedback(number, &message, None).await.unwrap());
    assert!(given().await.is_empty());
    for (thread, message) in [(number, "nothing"), (ThreadNumber(number.0 + 1000), "m")] {
        assert!(!store.set_feedback(thread, &message.into(), Some(&opinion(1.0))).await.unwrap());
    }
}
