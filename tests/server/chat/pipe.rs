//! The chat in a pipe: the answers alone on standard output.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use agui_server::auth::ApiKey;
use axum::{Router, http::HeaderMap, routing::post};

use super::{agents::Desk, server::BINARY, support::Running};

pub struct Output {
    pub code: Option<i32>,
    pub answers: String,
    pub notes: String,
}

/// Runs a chat with these lines.
pub async fn chat(arguments: &[&str], lines: impl AsRef<[u8]>) -> Output {
    let mut command = Command::new(BINARY);
    command
        .arg("chat")
        .args(arguments)
        .env("AGUI_TEST_KEY", "s3cret")
        .env("AGUI_TEST_SECRET", "s".repeat(32))
        .env_remove("RUST_LOG");
    let (stdin, stdout, stderr) = (Stdio::piped(), Stdio::piped(), Stdio::piped());
    let mut child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    // A command that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(lines.as_ref());
    let output =
        tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Output { code: output.status.code(), answers: text(output.stdout), notes: text(output.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_is_answered_in_one_conversation() {
    let desk = Desk::default();
    let server = desk.serve().await;
    for (arguments, texts) in [
        (vec![server.url("")], ["1: one", "2: two"]),
        (vec![server.url("/"), "--agent".into(), "desk".into()], ["3: one", "4: two"]),
        (vec![server.url("/agents/desk/send-message")], ["5: one", "6: two"]),
    ] {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let output = chat(&arguments, "one\n\ntwo").await;
        let answers = texts.map(|text| format!("{text}\n")).concat();
        assert_eq!(
            (output.code, &output.answers),
            (Some(0), &answers),
            "{arguments:?}: {}",
            output.notes
        );
        assert_eq!(desk.texts(desk.runs() - 1), ["one", texts[0], "two"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_output_has_the_answers_alone_and_standard_error_the_rest() {
    let server = Desk::default().serve().await;
    let output = chat(&[&server.url("")], "work\nmixed\n").await;
    assert_eq!(output.answers, "Let me look.\nIt is in the hall.\nfirst\nsecond\n");
    let notes: Vec<_> = output.notes.lines().filter(|line| !line.ends_with(" s")).collect();
    let expected = [
        "thinking: Where may it be?",
        "call find {\"order\":7}",
        "result of find: in the hall",
        "state: {\"step\":1}",
    ];
    assert_eq!(notes, expected);
    assert_eq!(output.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_agents_answer_in_this_process() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("my.toml");
    let agents = ["one", "two"]
        .map(|name| format!("[agents.{name}]\nkind = \"script\"\nscript = \"{name}.script\"\n"));
    std::fs::write(&config, format!("default_agent = \"one\"\n{}", agents.concat())).unwrap();
    for name in ["one", "two"] {
        let script = format!("[[answer]]\nplay = [{{ text = \"I am {name}.\" }}]");
        std::fs::write(folder.path().join(format!("{name}.script")), script).unwrap();
    }
    let config = config.to_str().unwrap();
    assert_eq!(chat(&["--config", config], "hello\n").await.answers, "I am one.\n");
    assert_eq!(
        chat(&["--config", config, "--agent", "two"], "hello\n").await.answers,
        "I am two.\n"
    );
    let output = chat(&["--config", config, "--agent", "three"], "hello\n").await;
    assert_eq!((output.code, output.notes.contains("404")), (Some(1), true), "{}", output.notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_agents_get_the_claims_of_the_command() {
    let config = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    let rule = |claim: &str, value: &str| {
        format!("[[allow]]\nagents = [\"echo\"]\nclaim = {claim:?}\nvalues = [{value:?}]\n")
    };
    let auth =
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nsecret_env = \"AGUI_TEST_SECRET\"\naudience = []\n";
    let rules = rule("tenant", "Acme") + &rule("groups", "admins");
    std::fs::write(config.path(), format!("[agents.echo]\nkind = \"echo\"\n{auth}{rules}"))
        .unwrap();
    let config = ["--config", config.path().to_str().unwrap()];
    for (claims, expected) in [
        (vec!["--claim", "tenant=Acme"], "hello\n"),
        (vec!["--claim", "tenant=Other", "--claim", "groups=[\"admins\"]"], "hello\n"),
        (vec!["--claim", "tenant=Other"], ""),
    ] {
        let output = chat(&[&config[..], &claims].concat(), "hello\n").await;
        assert_eq!(
            (output.code, &*output.answers),
            (Some(i32::from(expected.is_empty())), expected),
            "{}",
            output.notes
        );
    }
    let output = chat(&["http://h", "--claim", "a=b"], "").await;
    assert_eq!(
        (output.code, output.notes.contains("cannot be used with")),
        (Some(2), true),
        "{}",
        output.notes
    );
}

/// Other users of the machine reach the port as well.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_port_of_the_configured_agents_needs_the_key_of_the_command() {
    use std::io::BufRead as _;

    let config = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(config.path(), "[agents.echo]\nkind = \"echo\"\n").unwrap();
    let mut command = Command::new(BINARY);
    command.args(["chat", "--config", config.path().to_str().unwrap()]).env_remove("RUST_LOG");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    let mut answer = String::new();
    std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    assert_eq!(answer, "hello\n");
    let url = format!("http://127.0.0.1:{}/send-message", listening_port(child.id()));
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let run = serde_json::json!({ "threadId": "t", "runId": "r", "messages": [] });
    assert_eq!(client.post(&url).json(&run).send().await.unwrap().status(), 401);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
fn listening_port(process: u32) -> u16 {
    let links = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let open: Vec<_> =
        links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok()).collect();
    let sockets = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
    let port = sockets.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_own =
            open.iter().any(|file| file.to_str() == Some(&format!("socket:[{}]", fields[9])));
        let port = fields[1].rsplit_once(':')?.1;
        (fields[3] == "0A" && is_own).then(|| u16::from_str_radix(port, 16).unwrap())
    });
    port.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_in_the_exit_code_and_later_lines_are_answered() {
    let server = Desk::default().serve().await;
    let output = chat(&[&server.url("")], "fail\ntwo\n").await;
    assert_eq!((output.code, output.answers.as_str()), (Some(1), "2: two\n"));
    assert!(
        output.notes.contains("The run failed: desk_closed: the desk is closed"),
        "{}",
        output.notes
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_the_chat_because_a_pipe_approves_nothing() {
    let desk = Desk::default();
    let server = desk.serve().await;
    let output = chat(&[&server.url("")], "approve\nyes\n").await;
    assert_eq!((output.code, output.answers.as_str(), desk.runs()), (Some(1), "", 1));
    assert!(
        output.notes.contains("The agent asks: Send it?\n  send_email {\"to\":\"Ann\"}\n"),
        "{}",
        output.notes
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_of_a_server_do_not_come_out() {
    let server = Desk::default().serve().await;
    for message in ["hostile", "hostile failure"] {
        let output = chat(&[&server.url("")], message).await;
        for text in [&output.answers, &output.notes] {
            let is_obeyed =
                |char: &char| (char.is_control() && *char != '\n') || *char == '\u{202e}';
            assert_eq!(text.chars().find(is_obeyed), None, "{text:?}");
        }
        assert_eq!(output.code, Some(1));
        assert!(output.notes.contains("begin␛[2J␛]52;c;AAAA␇"), "{}", output.notes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_that_of_the_environment_variable() {
    let keys = [ApiKey::from_secret("ann", "s3cret")];
    let server = Running::start(Desk::default().server().api_keys(keys)).await;
    let output = chat(&[&server.url(""), "--key-env", "AGUI_TEST_KEY"], "one\n").await;
    assert_eq!((output.code, output.answers.as_str()), (Some(0), "1: one\n"), "{}", output.notes);
    let output = chat(&[&server.url("")], "one\n").await;
    assert_eq!((output.code, output.notes.contains("401")), (Some(1), true), "{}", output.notes);
}

/// Some endpoints have no start and end events, some send their answers in a snapshot, and some are of old versions.
#[tokio::test(flavor = "multi_thread")]
async fn endpoints_of_other_kinds_are_understood() {
    let events = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"THINKING_START"}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"Hm."}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_END"}"#,
        r#"{"type":"THINKING_END"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"a","delta":"in "}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"pieces"}"#,
        r#"{"type":"SOMETHING_NEW"}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"x"},{"id":"a","role":"assistant","content":"in pieces"},{"id":"b","role":"assistant","content":"whole"}]}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    ];
    let body = events.map(|event| format!("data: {event}\n\n")).concat();
    let respond = post(move |headers: HeaderMap| async move {
        assert!(headers["accept"].to_str().unwrap().contains("text/event-stream"));
        ([("content-type", "text/event-stream")], body)
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let server =
        tokio::spawn(axum::serve(listener, Router::new().route("/agent", respond)).into_future());
    let output = chat(&[&url], "one\n").await;
    server.abort();
    assert_eq!(
        (output.code, output.answers.as_str()),
        (Some(0), "in pieces\nwhole\n"),
        "{}",
        output.notes
    );
    assert!(output.notes.starts_with("thinking: Hm.\n"), "{}", output.notes);
}

#[tokio::test]
async fn what_cannot_begin_says_why() {
    for (arguments, expected) in [
        (vec!["nowhere"], "URL: expected a URL such as http://localhost:8080"),
        (
            vec!["http://h", "--key-env", "AGUI_NOT_SET"],
            "the environment variable AGUI_NOT_SET is not set",
        ),
        (vec!["--config", "/nowhere.toml"], "/nowhere.toml"),
        (vec!["http://h", "--config", "x"], "cannot be used with"),
        (vec!["--key-env", "X"], "required"),
    ] {
        let output = chat(&arguments, "").await;
        assert_eq!(
            (output.code, output.notes.contains(expected)),
            (Some(2), true),
            "{arguments:?}: {}",
            output.notes
        );
    }
    let output = chat(&[], b"\xff\n").await;
    assert_eq!(
        (output.code, output.notes.contains("standard input: ")),
        (Some(1), true),
        "{}",
        output.notes
    );
    // Nothing listens on the discard port of this machine.
    let output = chat(&["http://127.0.0.1:9"], "one\n").await;
    assert_eq!(
        (output.code, output.notes.contains("cannot be reached")),
        (Some(1), true),
        "{}",
        output.notes
    );
}
