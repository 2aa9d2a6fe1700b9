//! The log of a server that starts.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_agui-server");

/// Starts the command and returns its first two log lines.
fn first_lines(environment: &[(&str, &str)]) -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.args(["--listen", "127.0.0.1:0"]).env("AGUI_SERVER__DATA_DIR", data.path()).env_remove("RUST_LOG");
    let mut child = command.envs(environment.iter().copied()).stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let lines = log.lines().map(Result::unwrap).take(2).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

#[test]
fn the_start_is_logged_with_address_agents_authentication_store_and_a_command_to_try() {
    let lines = first_lines(&[]);
    for part in ["listening on http://127.0.0.1:", "agents=demo", "authentication=\"none\"", "agui-server.sqlite"] {
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
    let [start, hint] = [&lines[0], &lines[1]].map(|line| serde_json::from_str::<Value>(line).unwrap());
    let expected = [("agents", "demo"), ("authentication", "bearer"), ("store", "memory")];
    for (field, value) in expected {
        assert_eq!(start[field], value, "{start}");
    }
    assert!(start["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{start}");
    assert!(hint["command"].as_str().unwrap().contains("Authorization: Bearer $KEY"), "{hint}");
    assert!(!hint.to_string().contains("s3cr3t"), "{hint}");
}
