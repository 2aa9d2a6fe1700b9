//! The command with an MCP server in its configuration.

use std::{path::Path, process::Stdio};

use tokio::process::Command;

use crate::{
    support::running::{TEST_TIMEOUT, eventually},
    tools::support::{fake_script, processes, unique_word},
};

fn write_config(folder: &Path, word: &str) -> std::path::PathBuf {
    let file = folder.join("my.toml");
    let (script, record) = (fake_script(), folder.join("record"));
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"memory:\"\n[agents.echo]\nkind = \"echo\"\n\
         [mcp.fake]\ncommand = [\"node\", {script:?}, \"deaf\", {record:?}, {word:?}]\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

#[tokio::test]
async fn an_mcp_server_starts_and_ends_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let word = unique_word();
    let config = write_config(folder.path(), &word);
    let mut server = Command::new(env!("CARGO_BIN_EXE_agui-server"))
        .args(["--config", config.to_str().unwrap()])
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    eventually("the process is started", || processes(&word).len() == 1).await;
    eventually("the server is connected", || {
        std::fs::read_to_string(folder.path().join("record"))
            .is_ok_and(|text| text.contains("tools/list"))
    })
    .await;
    let pid = server.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = tokio::time::timeout(TEST_TIMEOUT, server.wait()).await.unwrap().unwrap();
    assert!(status.success());
    assert_eq!(processes(&word), [0; 0]);
}

#[tokio::test]
async fn checking_a_configuration_starts_no_mcp_server() {
    let folder = tempfile::tempdir().unwrap();
    let word = unique_word();
    let config = write_config(folder.path(), &word);
    let check = Command::new(env!("CARGO_BIN_EXE_agui-server"))
        .args(["check", "--config", config.to_str().unwrap()])
        .output();
    assert!(tokio::time::timeout(TEST_TIMEOUT, check).await.unwrap().unwrap().status.success());
    assert_eq!(processes(&word), [0; 0]);
    assert!(!folder.path().join("record").exists());
}

#[tokio::test]
async fn a_check_online_names_tools_that_another_one_hides() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("my.toml");
    let check = async |further: &str| {
        let command =
            serde_json::json!(["node", fake_script(), "apps", folder.path().join("record")]);
        let agent = "[agents.a]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\nmax_retries = 0\n\
                     tools = [\"mcp:one\", \"mcp:two\", \"update_state\"]\n";
        let text = format!(
            "{agent}[mcp.one]\ncommand = {command}\n[mcp.two]\ncommand = {command}\n{further}"
        );
        std::fs::write(&config, text).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_agui-server"))
            .args(["check", "--online"])
            .arg(&config)
            .output();
        String::from_utf8(
            tokio::time::timeout(TEST_TIMEOUT, command).await.unwrap().unwrap().stderr,
        )
        .unwrap()
    };
    let said = check("").await;
    assert!(
        said.contains("agents.a: the tool show of mcp:two is hidden by that of mcp:one"),
        "{said}"
    );
    let said = check("prefix = \"two_\"\n").await;
    assert!(!said.contains("is hidden"), "{said}");
}

#[tokio::test]
async fn a_check_online_names_the_tools_of_mcp_servers_with_their_pages_and_those_that_are_down() {
    let folder = tempfile::tempdir().unwrap();
    let command = serde_json::json!(["node", fake_script(), "apps", folder.path().join("record")]);
    let config = folder.path().join("my.toml");
    let check = async |text: String| {
        std::fs::write(&config, text).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_agui-server"))
            .args(["check", "--online"])
            .arg(&config)
            .output();
        let output = tokio::time::timeout(TEST_TIMEOUT, command).await.unwrap().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = check(format!("[mcp.weather]\ncommand = {command}\napps = true\n")).await;
    assert_eq!(code, Some(0), "{said}");
    let line = said.lines().find(|line| line.starts_with("mcp:weather: ")).unwrap();
    assert!(
        line.contains("show (page ui://weather)") && line.contains("(only for pages)"),
        "{line}"
    );
    let (code, said) =
        check(format!("[mcp.a]\ncommand = [\"/is/not/there\"]\n[mcp.b]\ncommand = {command}\n"))
            .await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("mcp:a: not connected: "), "{said}");
    assert!(said.contains("show (page ui://weather, not shown without `apps = true`)"), "{said}");
}
