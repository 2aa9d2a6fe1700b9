//! One server and its file of SQLite.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use tempfile::tempdir;
use tokio::{process::Command, time::timeout};

use super::{
    ask, ask_detached, client::Replica, continued::counted, load::Load, said, server::BINARY,
};

fn start(folder: &Path) -> Replica {
    Replica::start(&[("AGUI_SERVER__DATA_DIR", folder.to_str().unwrap())])
}

/// Starts a server that must not start. Returns its exit code and its output.
async fn refusal(folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(BINARY);
    command
        .env("AGUI_SERVER__DATA_DIR", folder)
        .args(["--listen", "127.0.0.1:0"])
        .env_remove("RUST_LOG");
    let server = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let output = timeout(Duration::from_secs(20), server.wait_with_output())
        .await
        .expect("the server started")
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn the_run_of_a_killed_server_continues_when_it_is_started_again() {
    let folder = tempdir().unwrap();
    let server = start(folder.path());
    let mut started = server.run(&ask_detached("r", "count to 100")).await;
    let told = started.take(10).await;
    server.kill();
    let begin = Instant::now();
    let server = start(folder.path());
    let thread = server.until_status("finished").await;
    println!("a server that is started again has ended its run after {:?}", begin.elapsed());
    let log = server.follow("r", 0).await.rest().await;
    assert_eq!(log.last().unwrap().name(), "RUN_FINISHED");
    // No event that the client got is lost.
    assert!(
        log.len() > told.len() && told.iter().zip(&log).all(|(it, other)| it.event == other.event)
    );
    assert_eq!(said(&thread), ["user: count to 100", &format!("assistant: {}", counted(100))]);
    assert_eq!(
        server.run(&ask("next", "hello")).await.rest().await.last().unwrap().name(),
        "RUN_FINISHED"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_removed_lock_file_lets_no_second_server_in() {
    let folder = tempdir().unwrap();
    let server = start(folder.path());
    std::fs::remove_file(folder.path().join("agui-server.sqlite.lock")).unwrap();
    let (code, text) = refusal(folder.path()).await;
    assert!(
        code == Some(1) && text.contains("is in use by another agui-server"),
        "{code:?} {text}"
    );
    assert_eq!(
        server.run(&ask("r", "hello")).await.rest().await.last().unwrap().name(),
        "RUN_FINISHED"
    );
}

#[tokio::test]
async fn a_server_that_is_killed_during_a_run_keeps_the_clients_messages() {
    let folder = tempdir().unwrap();
    let server = start(folder.path());
    let mut started = server.run(&ask("r", "count to 10000")).await;
    started.take(3).await;
    server.kill();
    let server = start(folder.path());
    let thread = server.until_status("failed").await;
    assert_eq!(said(&thread), ["user: count to 10000"]);
    assert_eq!(thread["runs"][0]["error"]["code"], "server_lost");
    // The client continues.
    assert_eq!(
        server.run(&ask("next", "hello")).await.rest().await.last().unwrap().name(),
        "RUN_FINISHED"
    );
    assert_eq!(said(&server.thread().await)[..2], ["user: count to 10000", "user: hello"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_finished_run_is_lost_when_the_server_is_killed_thirty_times() {
    let folder = tempdir().unwrap();
    let load = Load::start(16);
    for _ in 0..30 {
        let server = start(folder.path());
        load.use_servers([&server]);
        load.until_finished(40).await;
        server.kill();
    }
    let server = start(folder.path());
    load.use_servers([&server]);
    load.until_finished(1).await;
    let (finished, lost) = load.end(&server).await;
    println!("30 kills: {finished} runs finished, {lost} of them lost");
    assert_eq!(lost, 0);
}

#[tokio::test]
async fn a_second_server_on_the_same_file_does_not_start() {
    let folder = tempdir().unwrap();
    let server = start(folder.path());
    let (code, text) = refusal(folder.path()).await;
    println!("{text}");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("agui-server.sqlite") && text.contains("in use by another agui-server"),
        "{text}"
    );
    // The first one is not disturbed.
    assert_eq!(
        server.run(&ask("r", "hello")).await.rest().await.last().unwrap().name(),
        "RUN_FINISHED"
    );
    server.kill();
    // A dead server does not hold the file either.
    assert_eq!(said(&start(folder.path()).thread().await).len(), 2);
}

#[tokio::test]
async fn a_server_does_not_start_on_a_damaged_file() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("agui-server.sqlite");
    let garbage = "this is not a database ".repeat(1000);
    fs::write(&file, &garbage).unwrap();
    let (code, text) = refusal(folder.path()).await;
    println!("{text}");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("agui-server.sqlite") && !text.contains("panicked"), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), garbage, "the file is not changed");
}
