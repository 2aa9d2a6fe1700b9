//! Calls that fail end no other call and no session.

use super::{
    begin, call, connect,
    fake_server::{FakeServer, Kind},
};

const UNKNOWN: &str = "it is unknown if the call was carried out";

#[tokio::test]
async fn a_failed_call_ends_no_other_call_and_no_session() {
    for (failing, expected) in [
        ("status_500", UNKNOWN),
        ("status_429", "it was not carried out"),
        ("html", UNKNOWN),
        ("cut", UNKNOWN),
        ("cut_stream", UNKNOWN),
        ("other_id", UNKNOWN),
        ("other_id_stream", UNKNOWN),
    ] {
        for waiting in ["wait", "stream"] {
            let fake = FakeServer::start(Kind::Sessions).await;
            let server = connect(fake.options()).await;
            let other = begin(&server, waiting);
            fake.until(waiting).await;
            let error = call(&server, failing).await.unwrap_err();
            assert!(error.contains(expected), "{failing}: {error}");
            if expected == UNKNOWN {
                fake.until("ping").await;
            }
            assert_eq!(call(&server, "done").await.as_deref(), Ok("done"), "{failing}");
            assert!(!other.is_finished(), "{failing} ends a call of {waiting}");
            fake.release();
            assert_eq!(other.await.unwrap().as_deref(), Ok("done"), "{failing} beside {waiting}");
            assert_eq!((fake.count("initialize"), fake.count(failing)), (1, 1), "{failing}");
        }
    }
}

#[tokio::test]
async fn calls_of_a_session_that_is_forgotten_go_on_while_others_use_the_next_one() {
    let fake = FakeServer::start(Kind::Sessions).await;
    let server = connect(fake.options()).await;
    let others = [begin(&server, "wait"), begin(&server, "stream")];
    fake.until("wait").await;
    fake.until("stream").await;
    assert_eq!(call(&server, "forget").await.as_deref(), Ok("done"));
    assert_eq!((fake.count("initialize"), fake.count("forget")), (2, 2));
    assert!(others.iter().all(|other| !other.is_finished()));
    assert_eq!(fake.count("DELETE"), 0);
    fake.release();
    for other in others {
        assert_eq!(other.await.unwrap().as_deref(), Ok("done"));
    }
    fake.until("DELETE").await;
}

#[tokio::test]
async fn a_task_that_a_cancelled_call_becomes_is_cancelled() {
    let fake = FakeServer::start(Kind::Modern).await;
    let server = connect(fake.options()).await;
    let called = begin(&server, "task");
    fake.until("task").await;
    called.abort();
    assert!(called.await.unwrap_err().is_cancelled());
    fake.release();
    fake.until("tasks/cancel").await;
    assert_eq!(fake.count("notifications/cancelled"), 0);
}
