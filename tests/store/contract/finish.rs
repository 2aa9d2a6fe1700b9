//! Ending a run.

use std::collections::HashSet;

use agui_server::{
    protocol::TokenUsage,
    store::{Begin, Lease, NewRun, RunEnd, RunFailure, RunRecord, RunStatus, ThreadContent},
};
use futures::future::join_all;

use crate::backends::{
    NOW, Shared, UNTIL, at, batch, begun, elsewhere, ended_at, events, is_lost, lease, log, new_run, said,
};

pub(crate) async fn it_ends_everything_at_once(store: Shared) {
    let lease = lease(&store, "t", "r").await;
    assert_eq!(store.append(&[batch(&lease, 1, 3)]).await.unwrap(), [true]);
    let end = RunEnd { events: 5, ..ended_at(NOW + 7) };
    store.finish(&lease, Some(&said("bye")), Some(&batch(&lease, 4, 2)), &end).await.unwrap();
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.active_run, thread.content, thread.updated_at), (None, said("bye"), NOW + 7));
    let read = store.events(&"t".into(), &"r".into(), 0, usize::MAX).await.unwrap().unwrap();
    assert_eq!(read.events, events(1, 5));
    assert_eq!((read.run.status, read.run.ended_at, read.run.events), (RunStatus::Finished, Some(NOW + 7), 5));
    assert!(store.renew("here", UNTIL).await.unwrap().is_empty());
    assert!(store.lost("there", UNTIL + 1, 9).await.unwrap().is_empty());
}

pub(crate) async fn a_run_is_recorded_once(store: Shared) {
    let known = async || {
        let runs = store.runs(&"t".into(), 9).await.unwrap();
        let known = |run: RunRecord| (run.run_id.to_string(), run.number, run.agent, run.started_at, run.ended_at);
        runs.into_iter().map(known).collect::<Vec<_>>()
    };
    let mut expected = Vec::new();
    for (name, detached) in [("a", true), ("b", false), ("c", true), ("d", false), ("e", false)] {
        let start = NOW + 10 * i64::try_from(expected.len()).unwrap();
        let run = NewRun { detached, agent: format!("agent of {name}"), ..at(start, new_run("t", name)) };
        let (lease, ..) = begun(&store, run).await;
        expected.insert(0, (name.to_owned(), lease.run_number, format!("agent of {name}"), start, None));
        assert_eq!(known().await, expected);
        // Whoever ends it may be another than who began it.
        let later = NOW + 100_000;
        let lease = match name {
            "c" | "d" => store.take_over(&lease, "there", later, later + 1).await.unwrap().unwrap(),
            _ => lease,
        };
        assert_eq!(known().await, expected);
        for _ in 0..2 {
            store.finish(&lease, None, None, &ended_at(start + 7)).await.unwrap();
            expected[0].4 = Some(start + 7);
            assert_eq!(known().await, expected);
        }
    }
    // A run that nobody ends leaves with its thread.
    begun(&store, NewRun { detached: false, ..new_run("t", "f") }).await;
    assert!(store.delete(&"t".into()).await.unwrap());
    assert!(known().await.is_empty());
    let lease = lease(&store, "t", "f").await;
    assert_eq!(known().await, [("f".to_owned(), lease.run_number, "echo".to_owned(), NOW, None)]);
}

pub(crate) async fn without_the_lease_nothing_happens(store: Shared) {
    let first = lease(&store, "t", "r").await;
    let wrong = Lease { token: first.token + 1, ..first.clone() };
    let end = RunEnd { events: 1, ..ended_at(NOW + 9) };
    assert!(is_lost(store.finish(&wrong, Some(&said("x")), Some(&batch(&wrong, 1, 1)), &end).await));
    let elsewhere = elsewhere(&first, "u");
    assert!(is_lost(store.finish(&elsewhere, Some(&said("x")), None, &end).await));
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.active_run.as_deref(), thread.version, thread.updated_at), (Some("r"), 0, NOW));
    assert!(log(&store, "t", "r").await.is_empty());
    assert_eq!(store.run(&"t".into(), &"r".into()).await.unwrap().unwrap().ended_at, None);
}

pub(crate) async fn it_may_be_repeated(store: Shared) {
    let first = lease(&store, "t", "r").await;
    let end = RunEnd { events: 2, ..ended_at(NOW + 1) };
    let last = batch(&first, 1, 2);
    for _ in 0..3 {
        store.finish(&first, Some(&said("bye")), Some(&last), &end).await.unwrap();
    }
    // Also when the next run has begun, which it leaves alone.
    let (second, ..) = begun(&store, at(NOW + 2, new_run("t", "s"))).await;
    store.finish(&first, Some(&said("again")), Some(&last), &end).await.unwrap();
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.active_run.as_deref(), thread.content, thread.version), (Some("s"), said("bye"), 1));
    assert_eq!(thread.updated_at, NOW + 2);
    assert_eq!(log(&store, "t", "r").await, events(1, 2));
    // But not by another lease, nor when the run is another by now.
    assert!(is_lost(store.finish(&Lease { token: second.token + 1, ..first.clone() }, None, None, &end).await));
    store.finish(&second, None, None, &end).await.unwrap();
    let third = lease(&store, "t", "r").await;
    assert!(is_lost(store.finish(&first, None, None, &end).await));
    store.finish(&third, None, None, &end).await.unwrap();
}

pub(crate) async fn every_way_to_end_is_kept(store: Shared) {
    let failure = |code: Option<&str>| RunFailure { code: code.map(str::to_owned), message: "so\0 sad".to_owned() };
    let usage = TokenUsage { model: Some("m\0".to_owned()), input_tokens: Some(0), ..TokenUsage::default() };
    let ends = RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Running).map(|status| RunEnd {
        status,
        at: NOW + 3,
        events: 12,
        usage: vec![usage.clone(); status as usize],
        failure: (status == RunStatus::Failed).then(|| failure(Some("E"))),
    });
    let nameless = RunEnd { status: RunStatus::Failed, failure: Some(failure(None)), ..ended_at(NOW + 3) };
    for end in ends.chain([nameless]) {
        let lease = lease(&store, "t", "r").await;
        store.finish(&lease, None, None, &end).await.unwrap();
        let run = store.run(&"t".into(), &"r".into()).await.unwrap().unwrap();
        assert_eq!((run.status, run.ended_at, run.events), (end.status, Some(end.at), end.events));
        assert_eq!((run.usage, run.failure), (end.usage, end.failure));
    }
}

pub(crate) async fn it_needs_no_content(store: Shared) {
    let first = lease(&store, "t", "r").await;
    store.finish(&first, Some(&said("kept")), None, &ended_at(NOW)).await.unwrap();
    let second = lease(&store, "t", "s").await;
    store.finish(&second, None, None, &ended_at(NOW)).await.unwrap();
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.content, thread.version), (said("kept"), 1));
}

/// A store may do together what many ask for at once. Each is answered for itself all the same.
pub(crate) async fn what_many_ask_for_at_once_is_done_for_each(store: Shared) {
    let name = |prefix: &str, task: usize| format!("{prefix}{task}");
    let begin = |task: usize| {
        let store = store.clone();
        async move { begun(&store, new_run(&name("t", task), "r")).await.0 }
    };
    let leases = join_all((0..200).map(begin)).await;
    let numbers: HashSet<_> = leases.iter().map(|lease| lease.run_number).collect();
    assert_eq!(numbers.len(), leases.len());
    // Some finish, some have lost their lease, some save, and some would begin another run.
    let at_once = leases.iter().enumerate().map(|(task, lease)| {
        let (store, content, end) = (store.clone(), said(&name("said in ", task)), ended_at(NOW + 1));
        let lost = Lease { token: lease.token + 1, ..lease.clone() };
        async move {
            match task % 5 {
                0 | 1 => store.finish(lease, Some(&content), Some(&batch(lease, 1, 2)), &end).await.unwrap(),
                2 => assert!(is_lost(store.finish(&lost, Some(&said("x")), Some(&batch(&lost, 1, 2)), &end).await)),
                3 => store.save(lease, &content).await.unwrap(),
                _ => assert!(matches!(store.begin(&new_run(&name("t", task), "s")).await, Ok(Begin::Busy { .. }))),
            }
        }
    });
    join_all(at_once).await;
    for (task, lease) in leases.iter().enumerate() {
        let thread = store.thread(&lease.thread_id).await.unwrap().unwrap();
        let (ended, saved) = (task % 5 < 2, matches!(task % 5, 0 | 1 | 3));
        assert_eq!(thread.active_run.is_none(), ended, "{task}");
        let content = if saved { said(&name("said in ", task)) } else { ThreadContent::default() };
        assert_eq!((thread.content, thread.version), (content, i64::from(saved)), "{task}");
        let events = if ended { events(1, 2) } else { Vec::new() };
        assert_eq!(log(&store, &lease.thread_id, "r").await, events, "{task}");
    }
    // What has ended begins again, some in place of the old run; and what has ended is ended once more.
    let again = leases.iter().enumerate().filter(|(task, _)| task % 5 < 2).map(|(task, lease)| {
        let store = store.clone();
        async move {
            if task % 5 == 0 {
                return store.finish(lease, Some(&said("again")), None, &ended_at(NOW + 1)).await.unwrap();
            }
            let run = if task % 2 == 0 { "r" } else { "s" };
            let (next, thread, replaced) = begun(&store, new_run(&lease.thread_id, run)).await;
            assert_eq!((replaced, thread.content), (run == "r", said(&name("said in ", task))));
            assert!(next.token > lease.token && next.run_number > lease.run_number);
        }
    });
    join_all(again).await;
}
