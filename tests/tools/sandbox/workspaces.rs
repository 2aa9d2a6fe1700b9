//! Workspaces of the sandbox are removed with their threads.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{TestSandbox, is_skipped};
use crate::support::{
    named_events::{AGENT, TestServer, call, chunk, named, on},
    provider::{Answer, Provider},
    server::{BINARY, Process},
};

/// Starts a server whose data is in a folder.
fn start(provider: &Provider, more: &str, data: tempfile::TempDir) -> TestServer {
    let config = data.path().join("server.toml");
    std::fs::write(&config, TestServer::worker(provider, more)).unwrap();
    let config = config.to_str().unwrap().to_owned();
    let command = std::process::Command::new(BINARY);
    TestServer::new(Process::launch(command, data, &["--config", &config], &[]), None)
}

/// The number of workspaces, without the files that name their threads.
fn workspaces(data: &Path) -> usize {
    std::fs::read_dir(data.join("workspaces"))
        .map_or(0, |entries| entries.flatten().filter(|entry| entry.path().is_dir()).count())
}

async fn wait_for_workspaces(data: &Path, expected: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while workspaces(data) != expected {
        assert!(Instant::now() < deadline, "{} workspaces", workspaces(data));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs a command on a thread, and returns its result.
async fn run(server: &TestServer, provider: &Provider, thread: &str, command: &str) -> String {
    provider.answer(Answer::openai(&[call("c", "run_command", &json!({ "command": command }))]));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Done." }))]));
    let frames = server.ask(AGENT, &on(thread, "go on")).await;
    named(&frames, "tool_result")[0]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_deleted_thread_takes_its_workspace_with_it() {
    if is_skipped() {
        return;
    }
    let provider = Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_owned();
    let server = start(&provider, "", folder);
    for thread in ["t", "u"] {
        run(
            &server,
            &provider,
            thread,
            "perl -e 'for (1..200) { mkdir \"d\" x 100; chdir \"d\" x 100 }'; touch file",
        )
        .await;
    }
    assert_eq!(workspaces(&data), 2);
    let response =
        server.client.delete(format!("{}/threads/t", server.process.url)).send().await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(workspaces(&data), 1);
    // A new thread with the same id begins with an empty workspace.
    assert!(run(&server, &provider, "t", "ls").await.contains("\"stdout\":\"\""));
    assert_eq!(workspaces(&data), 2);
}

#[tokio::test]
async fn retention_removes_workspaces() {
    if is_skipped() {
        return;
    }
    let provider = Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_owned();
    let server = start(&provider, "[retention]\nmax_threads = 1\n", folder);
    run(&server, &provider, "t", "echo old > file").await;
    run(&server, &provider, "u", "echo new > file").await;
    // The start of this run makes a sweep due, which keeps only its thread.
    run(&server, &provider, "v", "echo new > file").await;
    wait_for_workspaces(&data, 1).await;
}

#[tokio::test]
async fn workspaces_of_unknown_threads_are_removed_at_the_start() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    sandbox.print("mkdir a; echo old > a/file").await;
    let data = sandbox.folder.path().to_owned();
    assert_eq!(workspaces(&data), 1);
    let provider = Provider::start().await;
    let _server = start(&provider, "", sandbox.folder);
    wait_for_workspaces(&data, 0).await;
}
