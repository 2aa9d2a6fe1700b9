//! A run on one server, cancelled or deleted on another.

use std::time::Instant;

use reqwest::Method;

use super::{ask, ask_detached, client::numbered, replicas};

#[tokio::test]
async fn a_followed_run_is_cancelled_on_a_third_server() {
    let Some([a, b, c]) = replicas("cancel").await else { return };
    let mut started = a.run(&ask_detached("r", "count to 10000")).await;
    let mut followed = b.follow("r", 0).await;
    started.take(5).await;
    let mut seen = followed.take(5).await;
    let begin = Instant::now();
    assert_eq!(c.cancel("r").await, 202);
    let last = started.rest().await.pop().unwrap();
    println!("a cancel on another server ends the run after {:?}", begin.elapsed());
    assert_eq!(
        (last.name(), &last.event["outcome"]["type"]),
        ("RUN_FINISHED", &"cancelled".into())
    );
    seen.extend(followed.rest().await);
    assert_eq!(numbered(&seen, 1).event, last.event);
    assert_eq!(c.thread().await["runs"][0]["status"], "cancelled");
    // Once more does nothing.
    assert_eq!(c.cancel("r").await, 200);
}

#[tokio::test]
async fn a_foreground_run_is_cancelled_on_another_server() {
    let Some([a, b]) = replicas("cancel_foreground").await else { return };
    let mut started = a.run(&ask("r", "count to 10000")).await;
    started.take(5).await;
    assert_eq!(b.cancel("r").await, 202);
    let last = started.rest().await.pop().unwrap();
    assert_eq!(
        (last.name(), &last.event["outcome"]["type"]),
        ("RUN_FINISHED", &"cancelled".into())
    );
    // All received events are stored.
    assert_eq!(b.thread().await["runs"][0]["status"], "cancelled");
}

/// Well before the lease is renewed: the servers tell each other.
#[tokio::test]
async fn a_thread_that_is_deleted_on_a_third_server_ends_all_its_streams() {
    let Some([a, b, c]) = replicas("delete").await else { return };
    for (input, is_detached) in
        [(ask("r", "count to 10000"), false), (ask_detached("r", "count to 10000"), true)]
    {
        let mut streams = vec![a.run(&input).await];
        if is_detached {
            streams.push(a.follow("r", 0).await);
            streams.push(b.follow("r", 0).await);
        }
        for stream in &mut streams {
            stream.take(5).await;
        }
        let begin = Instant::now();
        let deleted = c.request(Method::DELETE, "/threads/t").send().await.unwrap();
        assert_eq!(deleted.status(), 204);
        for stream in streams {
            let last = stream.rest().await.pop().unwrap().event;
            assert_eq!(
                (&last["type"], &last["code"]),
                (&"RUN_ERROR".into(), &"thread_deleted".into())
            );
        }
        println!("a deletion on another server ends the streams after {:?}", begin.elapsed());
        assert_eq!(a.get("/threads/t").await.status(), 404);
    }
}
