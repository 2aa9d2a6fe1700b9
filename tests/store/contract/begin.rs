//! Beginning a run.

use std::{collections::HashSet, time::Duration};

use agui_server::{
    protocol::RunId,
    store::{Begin, CancelRequest, NewRun, RunEnd, RunStatus, ThreadContent, ThreadPage},
};

use crate::backends::{NOW, Shared, UNTIL, at, batch, begun, ended_at, finish, lease, log, new_run, said};

pub(crate) async fn a_first_run_makes_the_thread(store: Shared) {
    let run = NewRun { owner: Some("ann".to_owned()), ..new_run("t", "r") };
    let (lease, thread, replaced) = begun(&store, run).await;
    assert!(!replaced);
    assert_eq!((&*lease.thread_id, &*lease.run_id), ("t", "r"));
    assert_eq!((&*thread.id, thread.owner.as_deref(), &*thread.agent), ("t", Some("ann"), "echo"));
    assert_eq!(thread.content, ThreadContent::default());
    assert_eq!(thread.active_run, Some(RunId::from("r")));
    assert_eq!((thread.version, thread.created_at, thread.updated_at), (0, NOW, NOW));
    assert_eq!(store.thread(&"t".into()).await.unwrap(), Some(thread));
    let record = store.run(&"t".into(), &"r".into()).await.unwrap().unwrap();
    assert_eq!((record.number, record.status), (lease.run_number, RunStatus::Running));
    assert_eq!((record.started_at, record.ended_at, record.events), (NOW, None, 0));
    // The next one finds what the first left, and changes agent and time.
    store.finish(&lease, Some(&said("hello")), None, &ended_at(NOW + 1)).await.unwrap();
    let next = NewRun { owner: Some("ann".to_owned()), agent: "other".to_owned(), ..new_run("t", "s") };
    let (_, thread, _) = begun(&store, at(NOW + 2, next)).await;
    assert_eq!((&*thread.agent, thread.content, thread.version), ("other", said("hello"), 1));
    assert_eq!((thread.created_at, thread.updated_at), (NOW, NOW + 2));
}

pub(crate) async fn a_run_outlives_its_connection_or_not(store: Shared) {
    for detached in [true, false, true, false] {
        let (lease, ..) = begun(&store, NewRun { detached, ..new_run("t", "r") }).await;
        let is_detached = || async { store.run(&"t".into(), &"r".into()).await.unwrap().unwrap().detached };
        assert_eq!(is_detached().await, detached, "while it is running");
        finish(&store, &lease, NOW).await;
        assert_eq!(is_detached().await, detached, "when it has ended");
    }
}

pub(crate) async fn a_thread_has_one_running_run(store: Shared) {
    let first = lease(&store, "t", "r").await;
    for run in ["r", "s"] {
        let Begin::Busy { run, lost } = store.begin(&new_run("t", run)).await.unwrap() else { panic!() };
        assert_eq!((&*run.run_id, run.status, run.number), ("r", RunStatus::Running, first.run_number));
        assert_eq!(lost, None);
    }
    assert!(store.run(&"t".into(), &"s".into()).await.unwrap().is_none(), "what did not begin is not recorded");
    // Somebody else, while the lease lasts, and after.
    for now in [NOW, UNTIL + 1] {
        let other = NewRun { holder: "there".to_owned(), ..at(now, new_run("t", "s")) };
        let Begin::Busy { lost, .. } = store.begin(&other).await.unwrap() else { panic!() };
        let is_lost = !store.is_shared() || now > UNTIL;
        assert_eq!(lost, is_lost.then(|| first.clone()));
    }
    finish(&store, &first, NOW).await;
    lease(&store, "t", "s").await;
}

pub(crate) async fn a_thread_is_only_its_owners(store: Shared) {
    let owners = [None, Some(""), Some("ann"), Some("bob"), Some("#")].map(|owner| owner.map(str::to_owned));
    for (thread, owner) in owners.iter().enumerate() {
        let run = NewRun { owner: owner.clone(), ..new_run(&thread.to_string(), "r") };
        let (lease, ..) = begun(&store, run).await;
        // Whether a run is running there or not.
        if thread % 2 == 0 {
            finish(&store, &lease, NOW).await;
        }
    }
    for (thread, owner) in owners.iter().enumerate() {
        for other in owners.iter().filter(|other| *other != owner) {
            let run = NewRun { owner: other.clone(), ..new_run(&thread.to_string(), "s") };
            assert!(matches!(store.begin(&run).await.unwrap(), Begin::NotYours), "{owner:?} {other:?}");
        }
        assert_eq!(store.thread(&thread.to_string().into()).await.unwrap().unwrap().owner, *owner);
        let listed = store.threads(owner.as_deref(), &ThreadPage { after: None, limit: 10 }).await.unwrap();
        assert_eq!(listed.iter().map(|thread| &*thread.id).collect::<Vec<_>>(), [&*thread.to_string()]);
    }
}

pub(crate) async fn of_many_that_begin_at_once_one_does(store: Shared) {
    for round in 0..4 {
        let begin = |task: usize| {
            let (store, run) = (store.clone(), new_run("t", &format!("r{round}-{task}")));
            tokio::spawn(async move { store.begin(&run).await.unwrap() })
        };
        let tasks: Vec<_> = (0..24).map(begin).collect();
        let (mut leases, mut running) = (Vec::new(), HashSet::new());
        for task in tasks {
            match task.await.unwrap() {
                Begin::Begun { lease, .. } => leases.push(lease),
                Begin::Busy { run, lost } => {
                    assert_eq!(lost, None);
                    running.insert(run.run_id);
                }
                Begin::NotYours => panic!(),
            }
        }
        let [winner] = &leases[..] else { panic!("{leases:?}") };
        assert_eq!(running, HashSet::from([winner.run_id.clone()]));
        finish(&store, winner, NOW).await;
    }
    assert_eq!(store.runs(&"t".into(), 10).await.unwrap().len(), 4);
}

pub(crate) async fn leases_and_runs_are_numbered_upwards(store: Shared) {
    let mut last = lease(&store, "t", "r").await;
    for run in ["s", "r", "r", "u"] {
        finish(&store, &last, NOW).await;
        let next = lease(&store, "t", run).await;
        assert!(next.token > last.token && next.run_number > last.run_number, "{last:?} {next:?}");
        last = next;
    }
}

pub(crate) async fn an_ended_run_of_the_same_id_is_replaced_with_its_log(store: Shared) {
    let first = lease(&store, "t", "r").await;
    assert_eq!(store.append(&[batch(&first, 1, 3)]).await.unwrap(), [true]);
    finish(&store, &first, NOW).await;
    let (second, _, replaced) = begun(&store, new_run("t", "r")).await;
    assert!(replaced);
    assert!(log(&store, "t", "r").await.is_empty());
    let record = store.run(&"t".into(), &"r".into()).await.unwrap().unwrap();
    assert_eq!((record.status, record.number, record.events), (RunStatus::Running, second.run_number, 0));
    assert_eq!(store.runs(&"t".into(), 10).await.unwrap(), [record]);
    assert_eq!(store.append(&[batch(&first, 4, 1), batch(&second, 1, 1)]).await.unwrap(), [false, true]);
    assert_eq!(log(&store, "t", "r").await.len(), 1);
}

pub(crate) async fn any_text_is_an_identifier(store: Shared) {
    let long = "x".repeat(1_100_000);
    let ids = ["", " ", "\0", "a\0b", "#", "#sha256:", "%", "'; --", "é", "\u{10ffff}", "\"q\"", "null", &long];
    let near = format!("{long}y");
    let ids: Vec<&str> = ids.into_iter().chain([&*near, "A", "a"]).collect();
    let mut tokens = Vec::new();
    for id in &ids {
        let run = NewRun { owner: Some((*id).to_owned()), agent: (*id).to_owned(), ..new_run(id, id) };
        let run = NewRun { holder: (*id).to_owned(), ..run };
        let (lease, thread, _) = begun(&store, run).await;
        assert!(thread.id == **id && thread.owner.as_deref() == Some(*id) && thread.agent == *id);
        assert_eq!(store.append(&[batch(&lease, 1, 2)]).await.unwrap(), [true]);
        tokens.push(lease.token);
    }
    for (id, token) in ids.iter().zip(tokens) {
        let (thread, run) = ((*id).into(), (*id).into());
        let listed = store.threads(Some(id), &ThreadPage { after: None, limit: 9 }).await.unwrap();
        assert!(listed.len() == 1 && listed[0].id == thread && listed[0].agent == *id);
        assert!(listed[0].active_run.as_ref() == Some(&run));
        assert!(store.request_cancel(&thread, &run).await.unwrap() == CancelRequest::Requested);
        let held = store.renew(id, UNTIL).await.unwrap();
        assert!(held.len() == 1 && held[0].thread_id == thread && held[0].token == token && held[0].cancel);
        let lost = store.lost("other", UNTIL + 1, 99).await.unwrap();
        let lease = lost.into_iter().find(|lease| lease.thread_id == thread).unwrap();
        assert!(lease.run_id == run && lease.token == token);
        let end = RunEnd { events: 2, ..ended_at(NOW) };
        store.finish(&lease, Some(&said(id)), None, &end).await.unwrap();
        assert!(store.thread(&thread).await.unwrap().unwrap().content == said(id));
        assert_eq!(store.events(&thread, &run, 0, 1000).await.unwrap().unwrap().events.len(), 2);
        assert!(store.runs(&thread, 9).await.unwrap()[0].run_id == run);
        assert!(store.delete(&thread).await.unwrap());
    }
}

/// Whoever is dropped in the middle of a call has begun or has not, and everybody else goes on.
pub(crate) async fn a_caller_who_leaves_leaves_nothing_behind(store: Shared) {
    for patience in 0..60 {
        let run = new_run("t", &format!("r{patience}"));
        let _ = tokio::time::timeout(Duration::from_micros(patience * 40), store.begin(&run)).await;
        let _ = tokio::time::timeout(Duration::from_micros(patience * 20), store.thread(&run.thread_id)).await;
    }
    let other = lease(&store, "other", "r").await;
    finish(&store, &other, NOW).await;
    // The one that began, if one did, is the only one.
    let began = store.runs(&"t".into(), 99).await.unwrap();
    assert!(began.len() <= 1, "{began:?}");
    let active = store.thread(&"t".into()).await.unwrap().and_then(|thread| thread.active_run);
    assert_eq!(began.first().map(|run| run.run_id.clone()), active);
}
