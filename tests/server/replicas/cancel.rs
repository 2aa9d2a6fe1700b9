//! A run on one server, cancelled on another.

use std::time::Instant;

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
