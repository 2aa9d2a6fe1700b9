//! The log of a server that starts.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use agui_server::prelude::*;
use serde_json::Value;

use crate::support::running::input;

const BINARY: &str = env!("CARGO_BIN_EXE_agui-server");

/// Starts the command and returns its first two log lines.
fn first_lines(environment: &[(&str, &str)]) -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command
        .args(["--listen", "127.0.0.1:0"])
        .env("AGUI_SERVER__DATA_DIR", data.path())
        .env_remove("RUST_LOG");
    let mut child =
        command.envs(environment.iter().copied()).stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let lines = log.lines().map(Result::unwrap).take(2).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

#[test]
fn the_start_is_logged_with_address_agents_authentication_store_and_a_command_to_try() {
    let lines = first_lines(&[]);
    for part in [
        "listening on http://127.0.0.1:",
        "agents=demo",
        "authentication=\"none\"",
        "agui-server.sqlite",
    ] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    assert!(lines[1].contains("curl -N http://127.0.0.1:"), "{lines:?}");
}

#[test]
fn a_json_log_has_them_as_fields() {
    let lines = first_lines(&[
        ("AGUI_LOG__FORMAT", "json"),
        ("AGUI_STORE__URL", "memory:"),
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", "[{ name = \"web\", env = \"AGUI_KEY_WEB\" }]"),
        ("AGUI_KEY_WEB", "s3cr3t-key"),
    ]);
    let [start, hint] =
        [&lines[0], &lines[1]].map(|line| serde_json::from_str::<Value>(line).unwrap());
    let expected = [("agents", "demo"), ("authentication", "api_key"), ("store", "memory")];
    for (field, value) in expected {
        assert_eq!(start[field], value, "{start}");
    }
    assert!(start["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{start}");
    assert!(hint["command"].as_str().unwrap().contains("Authorization: Bearer $KEY"), "{hint}");
    assert!(!hint.to_string().contains("s3cr3t"), "{hint}");
}

/// Tells the program below that it is started by the test.
const IS_STARTED: &str = "AGUI_TEST_PROGRAM_WITHOUT_LOG";

/// A program that sets no subscriber, as README's.
#[tokio::test]
async fn a_program_without_a_subscriber() {
    async fn failing(_: RunAgentInput, _: Emitter) -> Result<(), AgentError> {
        Err(AgentError::new("sold_out", "Nothing left").caused_by("the shelf is empty"))
    }
    if std::env::var_os(IS_STARTED).is_some() {
        Server::new().agent("clerk", agent_fn(failing)).serve("127.0.0.1:0").await.unwrap();
    }
}

#[tokio::test]
async fn a_program_without_a_subscriber_logs_where_it_listens_and_why_a_run_fails() {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["server::library::start::a_program_without_a_subscriber", "--exact", "--nocapture"])
        .env_remove("RUST_LOG");
    let mut child = program.env(IS_STARTED, "1").stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.find(|line| line.contains("listening on http://")).unwrap();
    let address = listening.split("listening on ").nth(1).unwrap().split(' ').next().unwrap();
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let sent =
        client.post(format!("{address}/send-message")).json(&input("Hello")).send().await.unwrap();
    assert!(sent.text().await.unwrap().contains("sold_out"));
    let failure = lines.find(|line| line.contains("the shelf is empty")).unwrap();
    assert!(failure.contains("clerk"), "{failure}");
    child.kill().unwrap();
    child.wait().unwrap();
}
