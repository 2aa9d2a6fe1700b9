//! The command with an MCP server: it is started with the server and gone with it, and `check` starts nothing.

use std::{process::Stdio, time::Duration};

use tokio::process::Command;

use crate::support::{PATIENCE, fake, processes, until};

fn write_config(folder: &std::path::Path, word: &str) -> std::path::PathBuf {
    let file = folder.join("my.toml");
    let (script, record) = (fake(), folder.join("record"));
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"memory:\"\n[agents.echo]\nkind = \"echo\"\n\
         [mcp.fake]\ncommand = [\"node\", {script:?}, \"deaf\", {record:?}, {word:?}]\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

#[tokio::test]
async fn it_is_started_with_the_server_and_gone_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let word = format!("agui-test-{}", agui_server::protocol::RunId::random().as_str());
    let config = write_config(folder.path(), &word);
    let mut server = Command::new(env!("CARGO_BIN_EXE_agui-server"))
        .args(["--config", config.to_str().unwrap()])
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let children = || processes(&word).len();
    until("it is started", || children() == 1).await;
    // Until it is connected, too.
    until("it is asked", || {
        std::fs::read_to_string(folder.path().join("record")).is_ok_and(|text| text.contains("tools/list"))
    })
    .await;
    let pid = server.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = tokio::time::timeout(PATIENCE, server.wait()).await.unwrap().unwrap();
    assert!(status.success());
    assert_eq!(children(), 0);
}

#[tokio::test]
async fn checking_a_configuration_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = write_config(folder.path(), "agui-test-check");
    let check =
        Command::new(env!("CARGO_BIN_EXE_agui-server")).args(["check", "--config", config.to_str().unwrap()]).output();
    assert!(tokio::time::timeout(PATIENCE, check).await.unwrap().unwrap().status.success());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!folder.path().join("record").exists());
}
