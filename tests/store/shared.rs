//! A Postgres that several processes share, and that goes away and comes back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use agui_server::store::{Begin, NewRun, OpenError, Sql};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::{
    backends::{NOW, Shared, UNTIL, at, batch, begun, ended_at, events, finish, is_lost, lease, log, new_run, said},
    postgres::{PASSWORD, Postgres},
};

/// How long a call may take that cannot succeed.
const SECONDS: Duration = Duration::from_secs(12);

async fn open(url: &str) -> Shared {
    Arc::new(Sql::postgres(url).await.unwrap())
}

/// Two processes, as far as the store can tell.
async fn two() -> Option<(Shared, Shared)> {
    let url = Postgres::shared()?.database("shared").await;
    Some((open(&url).await, open(&url).await))
}

fn there(run: NewRun) -> NewRun {
    NewRun { holder: "there".to_owned(), ..run }
}

#[tokio::test]
async fn what_one_writes_the_other_reads() {
    let Some((a, b)) = two().await else { return };
    assert!(a.is_shared());
    let lease = lease(&a, "t", "r").await;
    a.append(&[batch(&lease, 1, 3)]).await.unwrap();
    assert_eq!(log(&b, "t", "r").await, events(1, 3));
    b.request_cancel(&"t".into(), &"r".into()).await.unwrap();
    assert_eq!(a.cancel_requests("here").await.unwrap().len(), 1);
    assert!(b.lost("there", NOW, 9).await.unwrap().is_empty(), "while the lease lasts");
    let taken = b.take_over(&lease, "there", UNTIL + 1, UNTIL + 9).await.unwrap().unwrap();
    assert!(is_lost(a.save(&lease, &said("x")).await));
    assert_eq!(a.append(&[batch(&lease, 4, 1)]).await.unwrap(), [false]);
    finish(&b, &taken, NOW).await;
    assert_eq!(a.thread(&"t".into()).await.unwrap().unwrap().active_run, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_begin_one_does() {
    let Some((a, b)) = two().await else { return };
    for round in 0..20 {
        let thread = format!("t{}", round / 2);
        let (one, two) = (new_run(&thread, &format!("a{round}")), there(new_run(&thread, &format!("b{round}"))));
        let (one, two) = tokio::join!(a.begin(&one), b.begin(&two));
        let begun: Vec<_> = [one.unwrap(), two.unwrap()]
            .into_iter()
            .filter_map(|begin| match begin {
                Begin::Begun { lease, .. } => Some(lease),
                _ => None,
            })
            .collect();
        assert_eq!(begun.len(), 1);
        finish(&a, &begun[0], NOW).await;
    }
}

/// An append and a take-over at the same moment: whichever comes first, the log that the new holder reads after
/// it has the lease is the log that stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_behind_the_back_of_who_took_over() {
    let Some((a, b)) = two().await else { return };
    let mut refused = 0;
    for round in 0..40 {
        let thread = format!("t{round}");
        let (old, ..) = begun(&a, NewRun { until: NOW, ..new_run(&thread, "r") }).await;
        let writer = {
            let (a, old) = (a.clone(), old.clone());
            tokio::spawn(async move {
                for first in 1.. {
                    if a.append(&[batch(&old, first, 1)]).await.unwrap() == [false] {
                        return first - 1;
                    }
                }
                0
            })
        };
        tokio::time::sleep(Duration::from_micros(round * 150)).await;
        let new = b.take_over(&old, "there", NOW + 1, UNTIL).await.unwrap().unwrap();
        let seen = log(&b, &thread, "r").await;
        let written = writer.await.unwrap();
        assert_eq!(log(&b, &thread, "r").await, seen);
        assert_eq!(seen.len() as u64, written);
        refused += u64::from(written > 0);
        finish(&b, &new, NOW).await;
    }
    assert!(refused > 0, "no append came before a take-over: the test tries nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_may_start_at_the_same_moment() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("starting").await;
    let start = |_| {
        let url = url.clone();
        tokio::spawn(async move { Sql::postgres(&url).await.map(drop) })
    };
    for started in (0..8).map(start).collect::<Vec<_>>() {
        started.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn why_it_cannot_be_opened_is_said_without_the_password() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("refused").await;
    let refused = |url: String| async move {
        let error = Sql::postgres(&url).await.unwrap_err();
        let text = error.to_string();
        assert!(!text.contains(PASSWORD) && !text.contains("secret"), "{text}");
        assert!(!format!("{error:?}").contains(PASSWORD));
        (error, text)
    };
    let place = format!("127.0.0.1:{}", server.port());
    let (error, text) = refused(url.replace(PASSWORD, "secret")).await;
    assert!(matches!(error, OpenError::Refused { .. }) && text.contains(&place), "{text}");
    assert!(text.contains("password authentication failed"), "{text}");
    let (error, text) = refused(server.url_of("nowhere")).await;
    assert!(matches!(error, OpenError::Refused { .. }) && text.contains("nowhere"), "{text}");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (error, text) = refused(url.replace(&place, &free.to_string())).await;
    assert!(matches!(error, OpenError::Unreachable { .. }) && text.contains(&free.to_string()), "{text}");
    for url in [format!("mysql://u:{PASSWORD}@h/d"), format!("postgres://u:{PASSWORD}@h:port/d"), String::new()] {
        let (error, text) = refused(url).await;
        assert!(matches!(error, OpenError::Url { .. }), "{text}");
    }
    let (error, text) = refused(format!("{url}&sslrootcert=/nowhere/{PASSWORD}").replace("disable", "wrong")).await;
    assert!(matches!(error, OpenError::Url { .. }), "{text}");
}

#[tokio::test]
async fn a_newer_database_is_left_alone() {
    use sqlx::{Connection as _, PgConnection};
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("newer").await;
    Sql::postgres(&url).await.unwrap().close().await;
    let mut conn = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("INSERT INTO agui_schema (version) VALUES (4711)").execute(&mut conn).await.unwrap();
    let error = Sql::postgres(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 4711, .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_server_that_stops_is_waited_for_and_used_again() {
    // Its own, for the others must not notice.
    let Some(server) = Postgres::launch() else { return };
    let store = open(&server.url()).await;
    let held = lease(&store, "t", "r").await;
    store.append(&[batch(&held, 1, 2)]).await.unwrap();
    for _ in 0..2 {
        server.stop();
        let begin = Instant::now();
        let end = ended_at(NOW);
        let (run, content, batches) = (new_run("u", "r"), said("x"), [batch(&held, 3, 2)]);
        let (begun, saved, appended, finished, read, checked) = tokio::join!(
            store.begin(&run),
            store.save(&held, &content),
            store.append(&batches),
            store.finish(&held, None, None, &end),
            store.run(&held.thread_id, &held.run_id),
            store.check(),
        );
        let faults = [begun.err(), saved.err(), appended.err(), finished.err(), read.err(), checked.err()];
        for fault in faults {
            assert!(fault.as_ref().is_some_and(|fault| fault.is_transient()), "{fault:?}");
        }
        assert!(begin.elapsed() < SECONDS, "{:?}", begin.elapsed());
        server.start();
        // Connections from before may still be noticed to be gone, one at a time.
        let begin = Instant::now();
        while let Err(error) = store.check().await {
            assert!(error.is_transient() && begin.elapsed() < SECONDS, "{error:?}");
        }
        store.append(&[batch(&held, 3, 2)]).await.unwrap();
        assert_eq!(log(&store, "t", "r").await, events(1, 4));
    }
    finish(&store, &held, NOW).await;
    begun(&store, at(NOW + 1, new_run("t", "s"))).await;
}

/// The network swallows everything, and nobody says so.
#[tokio::test]
async fn a_server_that_falls_silent_is_not_waited_for() {
    static IS_SILENT: AtomicBool = AtomicBool::new(false);
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("silent").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxied = url.replace(&server.port().to_string(), &listener.local_addr().unwrap().port().to_string());
    let port = server.port();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let silence = async {
                    while !IS_SILENT.load(Ordering::Relaxed) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => return,
                    () = silence => {}
                }
                // Neither end hears that the other is gone.
                std::future::pending::<()>().await;
            });
        }
    });
    let store = open(&proxied).await;
    let held = lease(&store, "t", "r").await;
    IS_SILENT.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begin = Instant::now();
    let content = said("x");
    let (saved, read) = tokio::join!(store.save(&held, &content), store.thread(&held.thread_id));
    assert!(saved.unwrap_err().is_transient() && read.unwrap_err().is_transient());
    assert!(begin.elapsed() < SECONDS, "{:?}", begin.elapsed());
    IS_SILENT.store(false, Ordering::Relaxed);
    store.save(&held, &content).await.unwrap();
    assert_eq!(store.thread(&held.thread_id).await.unwrap().unwrap().content, content);
}
