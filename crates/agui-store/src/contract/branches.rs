//! Promises about the tree of a thread's messages and the state after each run.

use super::prelude::*;

fn messages() -> Vec<Message> {
    let of_every_role = json!([
        { "id": "1", "role": "developer", "content": "d", "name": "n" },
        { "id": "2", "role": "system", "content": "" },
        { "id": "3", "role": "user", "content": "a \u{0} and \n and \u{2028} and 🦀 and '; DROP TABLE" },
        { "id": "4", "role": "user", "content": [{ "type": "text", "text": "part" }], "metadata": { "a": [1, 2.5, null] } },
        { "id": "5", "role": "assistant", "content": "x", "toolCalls": [
            { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{\"not\": json" } } ] },
        { "id": "6", "role": "assistant", "toolCalls": [] },
        { "id": "7", "role": "tool", "content": "r", "toolCallId": "c", "error": "e" },
        { "id": "8", "role": "activity", "activityType": "plan", "content": { "z": 1, "a": deep(120) } },
        { "id": "9", "role": "reasoning", "content": "hm", "encryptedValue": "x", "subagentRunId": "s" },
    ]);
    // Converted from a value, because a parser of text limits the depth.
    serde_json::from_value(of_every_role).unwrap()
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!("bottom"), |inner, _| json!([inner]))
}

pub(super) async fn messages_and_states_are_read_back_unchanged(store: DynStore) {
    let interrupt =
        Interrupt { message: Some("may\0 I?".to_owned()), ..Interrupt::new("tool_call") };
    let states = [
        Value::Null,
        json!({ "z": [0.1, 1e300, -0.0, u64::MAX, i64::MIN], "a": "\u{0}", "": {} }),
        deep(200),
        json!("x".repeat(2_000_000)),
    ];
    for (number, state) in states.into_iter().enumerate() {
        let id = number.to_string();
        let begin = TestRun {
            state: Some(state.clone()),
            interrupts: vec![interrupt.clone(); 2],
            ..run(&id, "r")
        };
        let lease = begin.with(messages()).begun(&store).await;
        let view = thread(&store, &id).await;
        assert!(view.current_branch().into_iter().eq(messages().iter()));
        assert!(view.thread.state.as_ref().is_some_and(|(_, it)| *it == state));
        assert_eq!(view.thread.interrupts, vec![interrupt.clone(); 2]);
        let end = TestEnd { state: Some(json!({ "was": state })), ..end_at(NOW).with(messages()) };
        end.finish(&store, &lease, 9).await.unwrap();
        let view = thread(&store, &id).await;
        assert!(view.current_branch().into_iter().eq(messages().iter().chain(&messages())));
        assert!(view.thread.state.is_some_and(|(_, it)| it == json!({ "was": state })));
        assert_eq!(view.thread.interrupts, []);
        let bytes: usize =
            view.nodes.iter().map(|node| serde_json::to_string(&node.message).unwrap().len()).sum();
        let state = serde_json::to_string(&state).unwrap().len();
        assert_eq!(view.thread.bytes, (bytes + 2 * state + r#"{"was":}"#.len()) as u64);
    }
}

pub(super) async fn a_branch_that_was_left_can_still_be_read(store: DynStore) {
    run("t", "1").with([user("u1")]).ended(&store, answer(["a1", "a2"])).await;
    let edited = TestRun { base: Some(1), ..run("t", "2").with([user("u2")]) }.begun(&store).await;
    assert_eq!(branch(&thread(&store, "t").await), "u1 u2");
    answer(["a3"]).finish(&store, &edited, 4).await.unwrap();
    TestRun { base: Some(0), ..run("t", "3").with([user("u3")]) }.ended(&store, end_at(NOW)).await;
    assert_eq!(branch(&thread(&store, "t").await), "u3");
    TestRun { base: Some(3), ..run("t", "4") }.ended(&store, end_at(NOW)).await;
    let view = thread(&store, "t").await;
    assert_eq!(
        (&*branch(&view), view.thread.head.0, &*tree(&view.nodes)),
        ("u1 a1 a2", 3, "u1 a1 a2 u2 a3 u3")
    );
    assert_eq!(view.nodes.iter().map(|node| node.number.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(view.nodes.iter().map(|node| node.parent.0).collect::<Vec<_>>(), [0, 1, 2, 1, 4, 0]);
}

pub(super) async fn an_updated_message_keeps_its_position(store: DynStore) {
    run("t", "1").with([user("u1")]).ended(&store, answer(["a1"])).await;
    let bytes = thread(&store, "t").await.thread.bytes;
    let longer = Message::user("u1", "now longer é");
    TestRun { updated: vec![(1, longer.clone())], ..run("t", "2") }.begun(&store).await;
    let view = thread(&store, "t").await;
    assert_eq!((&*branch(&view), &view.nodes[0].message), ("u1 a1", &longer));
    assert_eq!(view.thread.bytes - bytes, ("now longer é".len() - "u1".len()) as u64);
}

pub(super) async fn messages_carry_their_run_and_its_delivery(store: DynStore) {
    let first = run("t", "1").with([user("u")]).begun(&store).await;
    let undelivered = answer(["a"]);
    let undelivered =
        TestEnd { end: changed(undelivered.end, |it| it.delivered = false), ..undelivered };
    undelivered.finish(&store, &first, 1).await.unwrap();
    let before = thread(&store, "t").await;
    let origins =
        |delivered| [MessageOrigin::Client, MessageOrigin::Run { run: first.run, delivered }];
    assert_eq!(before.nodes.iter().map(|node| node.origin).collect::<Vec<_>>(), origins(false));
    assert!(!before.runs[0].delivered);
    let version = store.set_delivered(first.thread, first.run, true).await.unwrap();
    let after = thread(&store, "t").await;
    assert_eq!(after.nodes.iter().map(|node| node.origin).collect::<Vec<_>>(), origins(true));
    assert!(after.runs[0].delivered && after.thread.version > before.thread.version);
    assert_eq!(version, Some(after.thread.version));
}

pub(super) async fn the_end_state_has_branch_state_and_interrupts(store: DynStore) {
    let first =
        TestRun { state: Some(json!(1)), ..run("t", "1").with([user("u1")]) }.begun(&store).await;
    let number = first.thread;
    assert_eq!(
        store.end_state(OWNER, number, EndedRun::Id(&"1".into())).await.unwrap(),
        None,
        "it is running"
    );
    let open = vec![Interrupt::new("a"), Interrupt::new("b")];
    let end = TestEnd { interrupts: open.clone(), ..answer(["a1"]) };
    end.finish(&store, &first, 1).await.unwrap();
    let end = TestEnd { state: Some(json!(2)), ..answer(["a2"]) };
    run("t", "2").with([user("u2")]).ended(&store, end).await;
    for (by_run, by_head, state, interrupts) in
        [("1", 2, json!(1), open), ("2", 4, json!(2), vec![])]
    {
        let left =
            store.end_state(OWNER, number, EndedRun::Id(&by_run.into())).await.unwrap().unwrap();
        assert_eq!((&*left.run_id, left.head.0, &left.interrupts), (by_run, by_head, &interrupts));
        assert_eq!(left.state.as_ref().unwrap().1, state);
        assert_eq!(
            store.end_state(OWNER, number, EndedRun::Branch(MessageNumber(by_head))).await.unwrap(),
            Some(left)
        );
    }
    // Several runs end at this message: the newest counts.
    let end = TestEnd { state: Some(json!(3)), ..end_at(NOW) };
    run("t", "3").ended(&store, end).await;
    let left =
        store.end_state(OWNER, number, EndedRun::Branch(MessageNumber(4))).await.unwrap().unwrap();
    assert_eq!((&*left.run_id, left.state.unwrap().1), ("3", json!(3)));
    for unknown in [
        EndedRun::Id(&"4".into()),
        EndedRun::Branch(MessageNumber(1)),
        EndedRun::Branch(MessageNumber(9)),
    ] {
        assert_eq!(store.end_state(OWNER, number, unknown).await.unwrap(), None);
    }
    assert_eq!(
        store
            .end_state(OWNER, ThreadNumber(number.0 + 1000), EndedRun::Id(&"1".into()))
            .await
            .unwrap(),
        None
    );

    // The last one of the branch, not of another branch.
    let left = async |message| {
        store
            .end_state(OWNER, number, EndedRun::Branch(MessageNumber(message)))
            .await
            .unwrap()
            .unwrap()
    };
    assert_eq!((&*left(3).await.run_id, left(3).await.head.0), ("1", 2));
    TestRun { base: Some(1), ..run("t", "4") }
        .with([user("u3"), user("u4")])
        .ended(&store, answer(["a4"]))
        .await;
    assert_eq!((&*left(7).await.run_id, &*left(4).await.run_id), ("4", "3"));
    for without in [5, 6] {
        assert_eq!(
            store.end_state(OWNER, number, EndedRun::Branch(MessageNumber(without))).await.unwrap(),
            None
        );
    }
}

pub(super) async fn a_branch_is_known_by_its_first_run(store: DynStore) {
    let first = run("t", "1").with([user("u1")]).begun(&store).await;
    let current = async || thread(&store, "t").await.thread.first_run;
    assert_eq!(current().await, Some(first.run), "also while it runs");
    answer(["a1"]).finish(&store, &first, 1).await.unwrap();
    let second = TestRun { first_run: Some(first.run), ..run("t", "2").with([user("u2")]) };
    let second = second.ended(&store, answer(["a2"])).await;
    assert_eq!(current().await, Some(first.run));
    let left = async |message| {
        store
            .end_state(OWNER, first.thread, EndedRun::Branch(MessageNumber(message)))
            .await
            .unwrap()
            .unwrap()
    };
    assert_eq!(
        (left(2).await.first_run, left(4).await.first_run),
        (None, Some(first.run)),
        "it continues after 2"
    );

    let edit = TestRun { base: Some(2), ..run("t", "3").with([user("u3")]) }
        .ended(&store, answer(["a3"]))
        .await;
    assert!(edit.run > second.run);
    assert_eq!(current().await, Some(edit.run));
    assert_eq!(
        (left(4).await.first_run, left(6).await.first_run),
        (Some(first.run), Some(edit.run))
    );
    // The next attempt of the first run of a branch continues the branch.
    let again = TestRun { base: Some(6), first_run: Some(edit.run), ..run("t", "3") }
        .ended(&store, end_at(NOW))
        .await;
    assert_eq!((current().await, again.run > edit.run), (Some(edit.run), true));
}

pub(super) async fn an_answered_interrupt_is_not_in_the_end_state(store: DynStore) {
    let open = vec![Interrupt::new("a"), Interrupt::new("b")];
    let first = lease(&store, "t", "1").await;
    let end = TestEnd { interrupts: open.clone(), ..answer(["a1"]) };
    end.finish(&store, &first, 0).await.unwrap();
    assert_eq!(thread(&store, "t").await.thread.interrupts, open);
    let answering =
        TestRun { answered: vec![approves(&open[0].id)], ..run("t", "2").with([user("u")]) };
    answering.ended(&store, end_at(NOW)).await;
    let left =
        store.end_state(OWNER, first.thread, EndedRun::Id(&"1".into())).await.unwrap().unwrap();
    assert_eq!((left.head.0, &left.interrupts[..]), (1, &open[1..]));
    // The interrupt stays answered after the next attempt of the run that answered it.
    for answered in [vec![], vec![approves(&open[1].id)]] {
        let expected = if answered.is_empty() { &open[1..] } else { &[] };
        TestRun { answered, ..run("t", "2") }.ended(&store, end_at(NOW)).await;
        let left =
            store.end_state(OWNER, first.thread, EndedRun::Id(&"1".into())).await.unwrap().unwrap();
        assert_eq!(left.interrupts, expected);
    }
    let replies = open.iter().map(|interrupt| approves(&interrupt.id)).collect::<Vec<_>>();
    assert_eq!(store.answered(OWNER, first.thread).await.unwrap(), replies);
    assert_eq!(store.answered(OWNER, ThreadNumber(first.thread.0 + 1000)).await.unwrap(), []);
    assert_eq!(ids(thread(&store, "t").await.nodes.iter().map(|node| &node.message)), "a1 u");
}
