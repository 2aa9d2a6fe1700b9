//! Outages of Postgres: a restart, and a network that drops all packets.

use std::time::{Duration, Instant};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    store::{
        shared::open,
        steps::{
            NOW, assistant, batch, branch, end_at, events, finish, key, lease, log, run, thread,
        },
    },
    support::postgres::Postgres,
};

/// The maximum time of a call that cannot succeed: 5 seconds for a connection, 8 for the operation, and time for a busy
/// machine.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_restarted_postgres_is_used_again() {
    // A server of its own, because other tests use the shared one.
    let Some(server) = Postgres::launch() else { return };
    let store = open(&server.url()).await;
    let held = lease(&store, "t", "r").await;
    store.append(&[batch(&held, 1, 2)]).await.unwrap();
    for _ in 0..2 {
        server.stop();
        let begin = Instant::now();
        let (new, end, batches) = (run("u", "r"), end_at(NOW), [batch(&held, 3, 2)]);
        let (begun, appended, finished, read, checked) = tokio::join!(
            new.try_begin(&store, None, 0, None),
            store.append(&batches),
            end.finish(&store, &held, 0),
            store.run(crate::store::steps::OWNER, held.thread, &new.id),
            store.check(),
        );
        let errors = [begun.err(), appended.err(), finished.err(), read.err(), checked.err()];
        for error in errors {
            assert!(error.as_ref().is_some_and(|error| error.is_transient()), "{error:?}");
        }
        assert!(begin.elapsed() < FAILURE_TIMEOUT, "{:?}", begin.elapsed());
        server.start();
        // Old connections of the pool may still fail, one at a time.
        let begin = Instant::now();
        while let Err(error) = store.check().await {
            assert!(error.is_transient() && begin.elapsed() < FAILURE_TIMEOUT, "{error:?}");
        }
        store.append(&[batch(&held, 3, 2)]).await.unwrap();
        assert_eq!(log(&store, held.run).await, events(1, 4));
    }
    finish(&store, &held, NOW).await;
    lease(&store, "t", "s").await;
}

/// The network drops all packets without an error.
#[tokio::test]
async fn an_unresponsive_postgres_is_a_transient_error() {
    let (silence, is_silent) = watch::channel(false);
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("silent").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxied =
        url.replace(&server.port().to_string(), &listener.local_addr().unwrap().port().to_string());
    let port = server.port();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut is_silent = is_silent.clone();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let silence = async { drop(is_silent.wait_for(|is_silent| *is_silent).await) };
                // Biased, so that no byte passes after the silence has begun.
                tokio::select! {
                    biased;
                    () = silence => {}
                    _ = copy_bidirectional(&mut client, &mut server) => return,
                }
                // Neither end is told that the other end is gone.
                std::future::pending::<()>().await;
            });
        }
    });
    let store = open(&proxied).await;
    let held = lease(&store, "t", "r").await;
    silence.send_replace(true);
    let begin = Instant::now();
    let end = end_at(NOW).with([assistant("a")]);
    let key = key("t");
    let (ended, read) =
        tokio::join!(end.finish(&store, &held, 0), store.thread(&key, Default::default()));
    assert!(ended.unwrap_err().is_transient() && read.unwrap_err().is_transient());
    assert!(begin.elapsed() < FAILURE_TIMEOUT, "{:?}", begin.elapsed());
    silence.send_replace(false);
    end.finish(&store, &held, 0).await.unwrap();
    assert_eq!(branch(&thread(&store, "t").await), "a");
}
