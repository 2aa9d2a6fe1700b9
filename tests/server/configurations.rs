//! The configurations that come with the server: each starts and answers, and reports a missing key.

use std::{fs, process::Command};

use serde_json::json;

use crate::{
    llm::{
        models::{ask, chunk, input, text_and_error},
        providers::events,
    },
    support::{
        provider::{Answer, Provider},
        server::{BINARY, Process},
    },
};

fn path(name: &str) -> String {
    format!("{}/config/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn each_configuration_starts_and_answers() {
    let everything = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/js/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    );
    let command = format!("[\"node\", {everything:?}, \"stdio\"]");
    for (name, tools) in [
        ("openai", &["current_time"][..]),
        ("anthropic", &["current_time"]),
        ("gemini", &["current_time"]),
        ("ollama", &["current_time"]),
        ("mcp", &["echo"]),
        ("approval", &["get_weather", "book_trip", "writer"]),
        ("named_events", &["current_time"]),
        ("dojo", &["get_weather"]),
    ] {
        // If commands cannot be isolated, this configuration refuses to start; tests/run.sh reports that.
        if name == "named_events" && std::env::var_os("AGUI_SKIP_SANDBOX").is_some() {
            continue;
        }
        let provider = Provider::start().await;
        // Only the provider's URL is replaced, and the command of the MCP server, which npx would
        // download.
        let is_openai = !["anthropic", "gemini"].contains(&name);
        let base = if is_openai { format!("{}/v1", provider.url()) } else { provider.url() };
        let base_url = if name == "dojo" {
            "AGUI_AGENTS__AGENTIC_CHAT__BASE_URL"
        } else {
            "AGUI_AGENTS__ASSISTANT__BASE_URL"
        };
        let mut environment = vec![
            (base_url, &*base),
            ("OPENAI_API_KEY", "sk-1"),
            ("ANTHROPIC_API_KEY", "sk-2"),
            ("GEMINI_API_KEY", "sk-3"),
        ];
        if name == "mcp" {
            environment.push(("AGUI_MCP__EVERYTHING__COMMAND", &command));
        }
        let server = Process::start(&["--config", &path(name)], &environment);
        let hello = chunk(json!({ "content": "Hello." }));
        provider.answer(match name {
            "anthropic" => Answer::anthropic(&events("Hello.")),
            "gemini" => Answer::gemini(&[json!({ "candidates": [{
                "content": { "role": "model", "parts": [{ "text": "Hello." }] },
                "finishReason": "STOP",
            }] })]),
            _ => Answer::openai(&[hello]),
        });
        assert_eq!(
            text_and_error(&ask(&server.url, input("Hi")).await),
            ("Hello.".to_owned(), None),
            "{name}"
        );
        let offered = provider.requests()[0].body["tools"].to_string();
        for tool in tools {
            assert!(offered.contains(&format!("\"{tool}\"")), "{name}: {tool} of {offered}");
        }
    }
}

#[test]
fn a_missing_key_is_reported_with_its_place_in_the_file() {
    for (name, variable) in [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("mcp", "OPENAI_API_KEY"),
        ("approval", "OPENAI_API_KEY"),
        ("dojo", "OPENAI_API_KEY"),
    ] {
        let text = fs::read_to_string(path(name)).unwrap();
        let line = 1 + text.lines().position(|line| line.starts_with("api_key_env")).unwrap();
        let mut command = Command::new(BINARY);
        let output =
            command.args(["check", "--config", &path(name)]).env_remove(variable).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        let place = format!("{name}.toml:{line}:1");
        assert!(
            stderr.contains(&place) && stderr.contains(&format!("{variable} is not set")),
            "{name}: {stderr}"
        );
    }
}
