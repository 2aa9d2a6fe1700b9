//! Calls and runs that meet a server which is away.

use std::{net::TcpListener, sync::Arc, time::Duration};

use rmcp::model::PingRequest;
use tokio::time::Instant;

use super::{
    begin, connect,
    fake_server::{FakeServer, Kind, options_at},
};
use crate::{McpServer, McpServerOptions};
use agui_tools::{ToolContext, ToolSource as _};

#[tokio::test]
async fn calls_that_meet_a_server_which_is_away_wait_and_connect_once() {
    let mut fake = FakeServer::start(Kind::Sessions).await;
    let server = connect(fake.options()).await;
    fake.stop().await;
    let calls = [begin(&server, "done"), begin(&server, "done"), begin(&server, "done")];
    server.supervisor.caller.session.has_waiting(3).await;
    let fake = FakeServer::start_at(Kind::Sessions, fake.address).await;
    for call in calls {
        assert_eq!(call.await.unwrap().as_deref(), Ok("done"));
    }
    assert_eq!((fake.count("initialize"), fake.count("done")), (1, 3));
}

#[tokio::test]
async fn a_first_message_waits_for_a_server_that_is_starting() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = McpServer::new("test", options_at(address)).unwrap();
    server.settled().await;
    assert!(!server.is_connected());
    let started = async {
        server.supervisor.caller.session.has_waiting(1).await;
        FakeServer::start_at(Kind::Sessions, address).await
    };
    let (_fake, ()) = tokio::join!(started, server.ready());
    assert!(!server.tools().is_empty());
}

fn missing_program() -> Arc<McpServer> {
    Arc::new(McpServer::new("test", McpServerOptions::command(["/does/not/exist"])).unwrap())
}

#[tokio::test(start_paused = true)]
async fn messages_do_not_wait_for_a_server_that_does_not_start() {
    let server = missing_program();
    for seconds in [5, 0] {
        let begin = Instant::now();
        server.ready().await;
        assert_eq!(begin.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_five_seconds_in_all_and_a_hundred_calls_wait_for_a_server() {
    let server = missing_program();
    server.ready().await;
    let ping = async |cx: &ToolContext| {
        let begin = Instant::now();
        let request = PingRequest::default().into();
        let error = server.supervisor.caller.send_once(request, cx).await.map(drop).unwrap_err();
        assert!(error.message().contains("is not available"), "{error:?}");
        begin.elapsed().as_secs()
    };
    let cx = ToolContext::for_test("tool");
    assert_eq!((ping(&cx).await, ping(&cx).await), (5, 0));
    let runs: Vec<_> = (0..101).map(|_| ToolContext::for_test("tool")).collect();
    let mut waited = futures::future::join_all(runs.iter().map(ping)).await;
    waited.sort_unstable();
    assert_eq!((waited[0], waited[1], waited[100]), (0, 5, 5));
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_make_one_attempt_to_connect_a_second() {
    let server = missing_program();
    server.settled().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let session = &server.supervisor.caller.session;
    let mut attempts = 0;
    let count = async {
        let mut statuses = session.statuses();
        while statuses.changed().await.is_ok() {
            attempts += 1;
        }
    };
    let waits = (0..50).map(|_| tokio::time::timeout(Duration::from_secs(10), session.opened()));
    tokio::select! {
        () = count => {}
        _ = futures::future::join_all(waits) => {}
    }
    assert!((10..=11).contains(&attempts), "{attempts}");
}
