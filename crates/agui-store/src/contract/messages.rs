//! Promises about pages of messages.

use super::prelude::*;

async fn page(store: &DynStore, newest: i64, limit: usize) -> MessagePage {
    let thread = thread(store, "t").await.thread;
    store.messages(&thread, &MessageQuery::new(MessageNumber(newest), limit)).await.unwrap()
}

fn shown(page: &MessagePage) -> String {
    ids(page.nodes.iter().map(|node| &node.message))
}

pub(super) async fn a_branch_is_read_backwards_page_by_page(store: DynStore) {
    run("t", "r").with((0..7).map(|n| user(&n.to_string()))).begun(&store).await;
    run("other", "r").with([user("x")]).begun(&store).await;
    for (limit, expected) in
        [(3, ["4 5 6", "1 2 3", "0"].as_slice()), (7, &["0 1 2 3 4 5 6"]), (1, &["6", "5"])]
    {
        let mut newest = Some(7);
        for expected in expected {
            let page = page(&store, newest.unwrap(), limit).await;
            assert_eq!(shown(&page), *expected);
            assert!(page.siblings.is_empty());
            newest = page.before.map(|before| before.0);
        }
        assert_eq!(newest.is_some(), limit == 1);
    }
    for nowhere in [0, -1, 8, i64::MAX] {
        assert_eq!(page(&store, nowhere, 9).await, MessagePage::default());
    }
    let thread = thread(&store, "t").await.thread;
    let gone = changed(thread, |it| it.number.0 += 1000);
    let query = MessageQuery::new(MessageNumber(1), 9);
    assert_eq!(store.messages(&gone, &query).await.unwrap(), MessagePage::default());
}

pub(super) async fn a_page_has_the_siblings_of_its_messages(store: DynStore) {
    run("t", "r")
        .with([user("u")])
        .ended(&store, end_at(NOW).with([assistant("a"), user("b")]))
        .await;
    for (base, id, message) in [(1, "s", "c"), (0, "t", "v"), (1, "u", "d")] {
        TestRun { base: Some(base), ..run("t", id) }
            .with([user(message)])
            .ended(&store, end_at(NOW))
            .await;
    }
    // 1 u – 2 a – 3 b; 4 c and 6 d after u; 5 v beside u.
    let siblings = |page: &MessagePage| {
        let texts = page.siblings.iter().map(|(parent, ids)| {
            format!("{parent}:{}", ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(","))
        });
        texts.collect::<Vec<_>>().join(" ")
    };
    let first = page(&store, 3, 9).await;
    assert_eq!((shown(&first).as_str(), siblings(&first).as_str()), ("u a b", "0:u,v 1:a,c,d"));
    let other = page(&store, 6, 1).await;
    assert_eq!(
        (shown(&other).as_str(), siblings(&other).as_str(), other.before),
        ("d", "1:a,c,d", Some(MessageNumber(1)))
    );
    let root = page(&store, 5, 9).await;
    assert_eq!(
        (shown(&root).as_str(), siblings(&root).as_str(), root.before),
        ("v", "0:u,v", None)
    );
}

pub(super) async fn the_messages_of_a_run_are_read_on_all_branches(store: DynStore) {
    let first = run("t", "r").with([user("u")]).ended(&store, answer(["a", "b"])).await;
    let second = TestRun { base: Some(1), ..run("t", "s") }
        .with([user("v")])
        .ended(&store, answer(["c"]))
        .await;
    let thread = thread(&store, "t").await.thread;
    let of_run = async |run: RunNumber, newest: i64, limit: usize| {
        store
            .messages(
                &thread,
                &changed(MessageQuery::new(MessageNumber(newest), limit), |it| it.run = Some(run)),
            )
            .await
            .unwrap()
    };
    let page = of_run(first.run, i64::MAX, 1).await;
    assert_eq!((shown(&page).as_str(), page.before), ("b", Some(MessageNumber(2))));
    assert_eq!(page.nodes[0].origin, MessageOrigin::Run { run: first.run, delivered: true });
    let page = of_run(first.run, 2, 1).await;
    assert_eq!((shown(&page).as_str(), page.before), ("a", None));
    assert_eq!(shown(&of_run(first.run, i64::MAX, 9).await), "a b");
    assert_eq!(shown(&of_run(second.run, i64::MAX, 9).await), "c");
    let running = lease(&store, "t", "x").await;
    assert!(of_run(running.run, i64::MAX, 9).await.nodes.is_empty());
}
