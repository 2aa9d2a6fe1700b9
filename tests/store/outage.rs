//! A Postgres that goes away and comes back.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::{
    postgres::Postgres,
    shared::open,
    steps::{NOW, assistant, batch, branch, end_at, events, finish, key, lease, log, run, thread},
};

/// How long a call may take that cannot succeed.
const SECONDS: Duration = Duration::from_secs(12);

#[tokio::test]
async fn a_server_that_stops_is_used_again_when_it_is_back() {
    // Its own: other tests must not notice.
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
            store.run(held.thread, &new.id),
            store.check(),
        );
        let faults = [begun.err(), appended.err(), finished.err(), read.err(), checked.err()];
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
        assert_eq!(log(&store, held.run).await, events(1, 4));
    }
    finish(&store, &held, NOW).await;
    lease(&store, "t", "s").await;
}

/// The network drops all packets without an error.
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
    let end = end_at(NOW).with([assistant("a")]);
    let key = key("t");
    let (ended, read) = tokio::join!(end.finish(&store, &held, 0), store.thread(&key, Default::default()));
    assert!(ended.unwrap_err().is_transient() && read.unwrap_err().is_transient());
    assert!(begin.elapsed() < SECONDS, "{:?}", begin.elapsed());
    IS_SILENT.store(false, Ordering::Relaxed);
    end.finish(&store, &held, 0).await.unwrap();
    assert_eq!(branch(&thread(&store, "t").await), "a");
}
