//! Several processes on one Postgres database.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::store::{
    BeginOutcome, Begun, OpenError, PostgresStore, RunNumber, SharedStore, Signals, Topic,
};
use tokio::{net::TcpListener, sync::broadcast::Receiver, time::timeout};

use crate::{
    store::steps::{
        DynStore, NOW, TestRun, UNTIL, assistant, batch, delete, end_at, events, finish, is_lost,
        lease, log, run, thread,
    },
    support::postgres::{PASSWORD, Postgres},
};

pub(crate) async fn open(url: &str) -> DynStore {
    std::sync::Arc::new(PostgresStore::open(url).await.unwrap())
}

/// Two stores on one database, as two processes have them.
async fn two() -> Option<(DynStore, DynStore)> {
    let url = Postgres::shared()?.database("shared").await;
    Some((open(&url).await, open(&url).await))
}

fn shared(store: &DynStore) -> &dyn SharedStore {
    store.shared().unwrap()
}

/// Waits until notifications of other processes arrive.
async fn live_signals(store: &DynStore) -> Signals {
    let signals = shared(store).signals().clone();
    timeout(Duration::from_secs(60), async {
        let mut watch = signals.watch(Topic::Cancels);
        while !signals.is_live() {
            watch.changed().await;
        }
    })
    .await
    .expect("notifications arrive");
    signals
}

/// Waits for less than the millisecond to which tokio rounds a sleep.
async fn busy_wait(delay: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < delay {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_process_reads_the_writes_of_another() {
    let Some((a, b)) = two().await else { return };
    let lease = lease(&a, "t", "r").await;
    a.append(&[batch(&lease, 1, 3)]).await.unwrap();
    assert_eq!(log(&b, lease.run).await, events(1, 3));
    assert!(b.lost_runs("there", NOW, 9).await.unwrap().is_empty(), "while the lease lasts");
    let taken = b.take_over(&lease, "there", UNTIL + 1, UNTIL + 9).await.unwrap().unwrap();
    assert!(is_lost(end_at(NOW).with([assistant("x")]).finish(&a, &lease, 0).await));
    assert_eq!(a.append(&[batch(&lease, 4, 1)]).await.unwrap(), [false]);
    finish(&b, &taken, NOW).await;
    assert!(!thread(&a, "t").await.thread.is_running);
}

#[tokio::test]
async fn changes_are_signalled_to_other_processes() {
    let Some((a, b)) = two().await else { return };
    let signals = live_signals(&b).await;
    let lease = lease(&a, "t", "r").await;
    let [mut run, mut thread, mut cancels, mut other] = [
        Topic::Run(lease.run),
        Topic::Thread(lease.thread),
        Topic::Cancels,
        Topic::Run(RunNumber(lease.run.0 + 1000)),
    ]
    .map(|topic| signals.watch(topic));
    let soon = Duration::from_secs(20);
    a.append(&[batch(&lease, 1, 1)]).await.unwrap();
    shared(&a).request_cancel(lease.thread, &"r".into()).await.unwrap();
    timeout(soon, cancels.changed()).await.expect("cancels are signalled");
    assert!(timeout(Duration::ZERO, run.changed()).await.is_err(), "nobody follows the run");
    shared(&b).follow(&[lease.thread]).await.unwrap();
    a.append(&[batch(&lease, 2, 1)]).await.unwrap();
    timeout(soon, run.changed()).await.expect("events of a followed run are signalled");
    finish(&a, &lease, NOW).await;
    timeout(soon, thread.changed()).await.expect("ends are signalled");
    timeout(soon, run.changed()).await.expect("ends are signalled to followers");
    assert!(timeout(Duration::ZERO, other.changed()).await.is_err());
    let lease = self::lease(&a, "t", "s").await;
    thread = signals.watch(Topic::Thread(lease.thread));
    delete(&a, "t").await;
    timeout(soon, thread.changed()).await.expect("deletes are signalled");
}

/// An append that a follower's first read does not find must be signalled, also one that began before it followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_append_falls_between_the_first_read_and_the_first_signal_of_a_follower() {
    const EVENTS: u64 = 30;
    let Some((a, b)) = two().await else { return };
    let signals = live_signals(&b).await;
    for round in 0..20 {
        let lease = lease(&a, &format!("t{round}"), "r").await;
        let mut signal = signals.watch(Topic::Run(lease.run));
        let appends = async {
            for number in 1..=EVENTS {
                a.append(&[batch(&lease, number, 1)]).await.unwrap();
            }
        };
        let read = async {
            busy_wait(Duration::from_micros(300 * round)).await;
            shared(&b).follow(&[lease.thread]).await.unwrap();
            log(&b, lease.run).await.len()
        };
        let ((), read) = tokio::join!(appends, read);
        if read < EVENTS as usize {
            timeout(Duration::from_secs(20), signal.changed())
                .await
                .expect("the rest is signalled");
        }
    }
}

#[tokio::test]
async fn texts_are_announced_to_other_processes() {
    let Some((a, b)) = two().await else { return };
    let (mut of_a, mut of_b) =
        (live_signals(&a).await.announcements(), live_signals(&b).await.announcements());
    let heard = async |announcements: &mut Receiver<Option<Arc<str>>>| {
        timeout(Duration::from_secs(60), announcements.recv())
            .await
            .expect("announcements arrive")
            .unwrap()
    };
    // A connection that is slow or lost delivers `None` instead of a text, which is then announced again.
    for text in ["one", "two!"] {
        shared(&a).announce(text.to_owned());
        while heard(&mut of_b).await.as_deref() != Some(text) {
            shared(&a).announce(text.to_owned());
        }
    }
    shared(&a).announce("x".repeat(8000));
    while let Some(text) = heard(&mut of_b).await {
        assert!(text.len() < 8000, "it was too long");
    }
    let from_b = loop {
        shared(&b).announce("three".to_owned());
        if let Some(text) = heard(&mut of_a).await {
            break text;
        }
    };
    assert_eq!(&*from_b, "three", "not its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes_that_begin_a_run_succeeds() {
    let Some((a, b)) = two().await else { return };
    for round in 0..20 {
        let thread = format!("t{}", round / 2);
        let (one, two) =
            (run(&thread, &format!("a{round}")), run(&thread, &format!("b{round}")).by("there"));
        let (one, two) = tokio::join!(one.begin(&a), two.begin(&b));
        let begun = |begin| {
            if let BeginOutcome::Begun(Begun { lease, .. }) = begin { Some(lease) } else { None }
        };
        let begun: Vec<_> = [one, two].into_iter().filter_map(begun).collect();
        assert_eq!(begun.len(), 1);
        finish(&a, &begun[0], NOW).await;
    }
}

/// A run that begins while its thread is deleted must not leave rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_is_deleted_while_it_is_written_leaves_no_rows() {
    use sqlx::{Connection as _, PgConnection, Row as _};
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("deleted").await;
    let (a, b) = (open(&url).await, open(&url).await);
    for round in 0..60 {
        let first = lease(&a, "t", "r").await;
        end_at(NOW).with([assistant("a")]).finish(&a, &first, 0).await.unwrap();
        let next = run("t", "s").with([crate::store::steps::user("u")]);
        let delete = async {
            // The delay decides which of the two comes first.
            busy_wait(Duration::from_micros(round * 30)).await;
            b.delete(first.thread).await.unwrap()
        };
        let (_, deleted) = tokio::join!(next.begin(&a), delete);
        assert!(deleted);
        delete_again(&a).await;
    }
    let mut conn = PgConnection::connect(&url).await.unwrap();
    for table in ["SELECT COUNT(*) FROM agui_messages", "SELECT COUNT(*) FROM agui_runs"] {
        assert_eq!(
            sqlx::query(table).fetch_one(&mut conn).await.unwrap().get::<i64, _>(0),
            0,
            "{table}"
        );
    }
}

/// Deletes the thread if the run began after the delete, and so created it again.
async fn delete_again(store: &DynStore) {
    delete(store, "t").await;
}

/// An append at the time of a take-over must come before it or fail, so that the log which the new holder reads is final.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_appended_after_a_take_over() {
    let Some((a, b)) = two().await else { return };
    let mut rounds_with_appends = 0;
    for round in 0..40 {
        let thread = format!("t{round}");
        let old = TestRun { until: NOW, ..run(&thread, "r") }.begun(&a).await;
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
        // The delay decides how many appends come before the take-over.
        busy_wait(Duration::from_micros(round * 150)).await;
        let new = b.take_over(&old, "there", NOW + 1, UNTIL).await.unwrap().unwrap();
        let seen = log(&b, new.run).await;
        let written = writer.await.unwrap();
        assert_eq!(log(&b, new.run).await, seen);
        assert_eq!(seen.len() as u64, written);
        rounds_with_appends += u64::from(written > 0);
        finish(&b, &new, NOW).await;
    }
    assert!(rounds_with_appends > 0, "no append came before a take-over, so nothing was tested");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_can_create_the_tables_concurrently() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("starting").await;
    let start = |_| {
        let url = url.clone();
        tokio::spawn(async move { PostgresStore::open(&url).await.map(drop) })
    };
    for started in (0..8).map(start).collect::<Vec<_>>() {
        started.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_open_error_names_the_cause_and_no_password() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("refused").await;
    let refused = |url: String| async move {
        let error = PostgresStore::open(&url).await.unwrap_err();
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
    assert!(
        matches!(error, OpenError::Unreachable { .. }) && text.contains(&free.to_string()),
        "{text}"
    );
    for url in [
        format!("mysql://u:{PASSWORD}@h/d"),
        format!("postgres://u:{PASSWORD}@h:port/d"),
        String::new(),
    ] {
        let (error, text) = refused(url).await;
        assert!(matches!(error, OpenError::Url { .. }), "{text}");
    }
    let (error, text) =
        refused(format!("{url}&sslrootcert=/nowhere/{PASSWORD}").replace("disable", "wrong")).await;
    assert!(matches!(error, OpenError::Url { .. }), "{text}");
}

#[tokio::test]
async fn a_database_of_another_version_is_not_changed() {
    use sqlx::{Connection as _, PgConnection};
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("newer").await;
    drop(PostgresStore::open(&url).await.unwrap());
    let mut conn = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("UPDATE agui_schema SET version = 4711").execute(&mut conn).await.unwrap();
    let error = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::Version { found: 4711, .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}
