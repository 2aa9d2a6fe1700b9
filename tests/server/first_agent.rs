//! The first agent with a model, without an editor: `agui-server --model`, and `agui-server init`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::json;

use super::chat::terminal::Terminal;
use crate::support::{
    provider::{Answer, Provider},
    running::{events, input},
    server::{BINARY, Process},
};

/// A command in a folder, without the keys that this process may have.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(arguments);
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        command.env_remove(key);
    }
    command
}

/// Returns the exit code and all output.
fn output(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn greeting() -> Answer {
    Answer::openai(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello"}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ])
}

#[tokio::test]
async fn a_model_of_the_command_line_answers_without_a_file() {
    let provider = Provider::start().await;
    provider.answer(greeting());
    let url = format!("{}/v1", provider.url());
    let process =
        Process::start(&["--model", "ollama/qwen3"], &[("AGUI_AGENTS__ASSISTANT__BASE_URL", &url)]);
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let response = client
        .post(format!("{}/send-message", process.url))
        .json(&input("Hi"))
        .send()
        .await
        .unwrap();
    let events = events(&response.text().await.unwrap());
    assert!(events.iter().any(|event| event["delta"] == "Hello"), "{events:?}");
    let [request] = &provider.requests()[..] else { panic!("one request") };
    assert_eq!(request.body["model"], "qwen3");
}

#[test]
fn a_model_of_the_command_line_needs_its_key_and_a_known_provider() {
    let folder = tempfile::tempdir().unwrap();
    let check = |model: &str| command(folder.path(), &["check", "--model", model]);
    let (code, text) = output(check("claude-sonnet-5-5"));
    assert_eq!(code, Some(2));
    assert!(
        text.contains(
            "agents.assistant.api_key_env: the environment variable ANTHROPIC_API_KEY is not set"
        ),
        "{text}"
    );
    let mut with_key = check("claude-sonnet-5-5");
    with_key.env("ANTHROPIC_API_KEY", "key");
    let (code, text) = output(with_key);
    assert_eq!((code, text.contains("agents assistant")), (Some(0), true), "{text}");
    let (code, text) = output(check("qwen3"));
    assert_eq!((code, text.contains("ollama/MODEL")), (Some(2), true), "{text}");
}

#[test]
fn init_writes_a_configuration_and_a_private_file_for_the_key_once() {
    let folder = tempfile::tempdir().unwrap();
    let init = ["init", "--model", "gpt-4o", "--name", "clerk", "--tools", "current_time,ask_user"];
    let (code, text) = output(command(folder.path(), &init));
    assert_eq!(code, Some(0), "{text}");
    let (configuration, keys) = (folder.path().join("my.toml"), folder.path().join(".env"));
    assert_eq!(fs::read_to_string(&keys).unwrap(), "OPENAI_API_KEY=\n");
    assert_eq!(fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    let mut check = command(folder.path(), &["check", "my.toml"]);
    check.env("OPENAI_API_KEY", "key");
    let (code, text) = output(check);
    assert_eq!((code, text.contains("agents clerk")), (Some(0), true), "{text}");

    let written = fs::read_to_string(&configuration).unwrap();
    let (code, text) = output(command(folder.path(), &["init", "--provider", "gemini"]));
    assert_eq!((code, text.contains("my.toml exists")), (Some(2), true), "{text}");
    let (code, text) =
        output(command(folder.path(), &["init", "--provider", "gemini", "other.toml"]));
    assert_eq!(
        (code, text.contains(".env exists and is left as it is: it needs GEMINI_API_KEY")),
        (Some(0), true)
    );
    assert_eq!(fs::read_to_string(&configuration).unwrap(), written);
    assert_eq!(fs::read_to_string(&keys).unwrap(), "OPENAI_API_KEY=\n");
}

#[test]
fn init_writes_nothing_if_it_cannot_know_the_provider_or_a_name_is_invalid() {
    for (arguments, problem) in [
        (&["init"][..], "--provider or --model is missing"),
        (&["init", "--provider", "mistral"], "expected one of openai, anthropic, gemini, ollama"),
        (&["init", "--provider", "ollama", "--name", "a b"], "a b"),
        (&["init", "--provider", "openai", "--tools", "current_tim"], "current_tim"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (code, text) = output(command(folder.path(), arguments));
        assert_eq!((code, text.contains(problem)), (Some(2), true), "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn init_asks_in_a_terminal_and_does_not_show_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!(
        "env -u ANTHROPIC_API_KEY {BINARY} init {}",
        folder.path().join("my.toml").display()
    );
    let mut terminal = Terminal::run(&line, "xterm", false);
    terminal.reply("provider: openai, anthropic, gemini, ollama [", "anthropic").await;
    terminal.reply("model [claude-sonnet-5-5]: ", "").await;
    terminal.reply("name of the agent [assistant]: ", "").await;
    terminal.reply("tools, with commas [current_time]: ", "").await;
    terminal.reply("ANTHROPIC_API_KEY, not shown, may be left empty []: ", "sk-ant-secret").await;
    let shown = terminal.until("agui-server --config").await;
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(terminal.exit_code().await, Some(0));
    assert_eq!(
        fs::read_to_string(folder.path().join(".env")).unwrap(),
        "ANTHROPIC_API_KEY=sk-ant-secret\n"
    );
    let (code, text) = output({
        let mut check = command(folder.path(), &["check", "my.toml"]);
        check.env("ANTHROPIC_API_KEY", "sk-ant-secret");
        check
    });
    assert_eq!((code, text.contains("agents assistant")), (Some(0), true), "{text}");
}
