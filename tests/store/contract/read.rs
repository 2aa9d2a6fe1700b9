//! Lists, and what is not there.

use agui_server::{
    protocol::{Interrupt, ThreadId},
    store::{NewRun, ThreadContent, ThreadPage, ThreadSummary},
};

use crate::backends::{NOW, Shared, at, begun, ended_at, finish, lease, new_run};

async fn begin_at(store: &Shared, thread: &str, owner: &str, now: i64) {
    let run = NewRun { owner: Some(owner.to_owned()), ..at(now, new_run(thread, "r")) };
    let (lease, ..) = begun(store, run).await;
    finish(store, &lease, now).await;
}

async fn page(store: &Shared, after: Option<&ThreadSummary>, limit: usize) -> Vec<ThreadSummary> {
    let after = after.map(|last| (last.updated_at, last.id.clone()));
    store.threads(Some("ann"), &ThreadPage { after, limit }).await.unwrap()
}

pub(crate) async fn threads_are_listed_newest_first(store: Shared) {
    for (thread, owner, time) in [("a", "ann", 1), ("b", "ann", 5), ("c", "bob", 3), ("d", "ann", 3)] {
        begin_at(&store, thread, owner, NOW + time).await;
    }
    let ids = |page: &[ThreadSummary]| page.iter().map(|thread| thread.id.to_string()).collect::<String>();
    assert_eq!(ids(&page(&store, None, 9).await), "bda");
    assert_eq!(ids(&page(&store, None, 2).await), "bd");
    assert!(page(&store, None, 0).await.is_empty());
    assert!(store.threads(None, &ThreadPage { after: None, limit: 9 }).await.unwrap().is_empty());
    // A run that begins or ends changes a thread.
    let run = NewRun { owner: Some("ann".to_owned()), agent: "x".to_owned(), ..at(NOW + 6, new_run("a", "s")) };
    let (lease, ..) = begun(&store, run).await;
    let listed = page(&store, None, 9).await;
    assert_eq!(ids(&listed), "abd");
    assert_eq!((&*listed[0].agent, listed[0].active_run.as_deref()), ("x", Some("s")));
    assert_eq!((listed[0].created_at, listed[0].updated_at), (NOW + 1, NOW + 6));
    let open = ThreadContent { interrupts: vec![Interrupt::new("x"); 3], ..ThreadContent::default() };
    store.finish(&lease, Some(&open), None, &ended_at(NOW + 7)).await.unwrap();
    let listed = page(&store, None, 1).await;
    assert_eq!((listed[0].open_interrupts, &listed[0].active_run), (3, &None));
}

pub(crate) async fn pages_miss_and_repeat_nothing(store: Shared) {
    let long = "l".repeat(5000);
    let mut expected: Vec<ThreadId> = Vec::new();
    for thread in 0..40 {
        // Many change at the same moment, and not in the order of their names.
        let id = match thread {
            0 => String::new(),
            1 => long.clone(),
            2 => "\0".to_owned(),
            _ => format!("t{}", (thread * 17) % 40),
        };
        begin_at(&store, &id, "ann", NOW + thread / 10).await;
        expected.push((*id).into());
    }
    for limit in [1, 3, 7, 100] {
        let mut seen = Vec::new();
        let mut last = None;
        loop {
            // What changes meanwhile goes to the front, which was read.
            begin_at(&store, "changing", "ann", NOW + 1000 + i64::try_from(seen.len()).unwrap()).await;
            let page = page(&store, last.as_ref(), limit).await;
            assert!(page.len() <= limit);
            let Some(end) = page.last() else { break };
            last = Some(end.clone());
            assert!(page.is_sorted_by_key(|thread| std::cmp::Reverse(thread.updated_at)));
            seen.extend(page.into_iter().map(|thread| thread.id).filter(|id| *id != "changing"));
            assert!(seen.len() <= expected.len(), "{limit}: some come again");
        }
        let (mut sorted, mut all) = (seen.clone(), expected.clone());
        sorted.sort();
        all.sort();
        assert!(sorted == all, "{limit}: {} of {}", seen.len(), all.len());
    }
}

pub(crate) async fn runs_are_listed_newest_first(store: Shared) {
    for run in ["a", "b", "c", "a"] {
        let lease = lease(&store, "t", run).await;
        finish(&store, &lease, NOW).await;
    }
    lease(&store, "u", "other").await;
    let ids = |limit: usize| {
        let store = store.clone();
        async move {
            let runs = store.runs(&"t".into(), limit).await.unwrap();
            runs.iter().map(|run| run.run_id.to_string()).collect::<String>()
        }
    };
    assert_eq!(ids(9).await, "acb");
    assert_eq!(ids(2).await, "ac");
    assert_eq!(ids(0).await, "");
}

pub(crate) async fn what_is_not_there_is_none(store: Shared) {
    lease(&store, "t", "r").await;
    store.check().await.unwrap();
    assert!(store.thread(&"u".into()).await.unwrap().is_none());
    for (thread, run) in [("u", "r"), ("t", "s")] {
        assert!(store.run(&thread.into(), &run.into()).await.unwrap().is_none());
        assert!(store.events(&thread.into(), &run.into(), 0, 99).await.unwrap().is_none());
    }
    assert!(store.runs(&"u".into(), 9).await.unwrap().is_empty());
    let read = store.events(&"t".into(), &"r".into(), 0, 99).await.unwrap().unwrap();
    assert!(read.events.is_empty() && read.run.ended_at.is_none());
}
