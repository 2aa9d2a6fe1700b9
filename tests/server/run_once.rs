//! `agui-server run`: one message and its answer, with the real command.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::support::server::{BINARY, Process};

/// Returns the exit code, the standard output and the standard error.
fn run(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(BINARY);
    command.args(["run"]).args(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn an_agent_of_this_process_answers_a_message_of_the_command_line_or_of_a_pipe() {
    let count = (Some(0), "1 2 3 4 5\n".to_owned(), String::new());
    assert_eq!(run(&["demo", "count to 5"], ""), count);
    assert_eq!(run(&["demo"], "count to 5"), count);
    assert_eq!(run(&["demo", "-"], "count to 5"), count);
}

#[test]
fn a_run_that_does_not_succeed_says_why_and_its_exit_code_is_1() {
    let (code, out, problem) = run(&["demo", "approve"], "");
    assert_eq!((code, out.lines().count()), (Some(1), 1), "{out}");
    assert!(problem.contains("the agent asks: "), "{problem}");
    let (code, _, problem) = run(&["demo", "fail"], "");
    assert_eq!(code, Some(1));
    assert!(problem.contains("the run failed: "), "{problem}");
    let (code, out, problem) = run(&["nobody", "hello"], "");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(problem.contains("404 Not Found: ") && problem.contains("unknown_agent"), "{problem}");
}

#[tokio::test]
async fn the_document_of_a_run_on_a_server_has_the_thread_that_it_continues() {
    let server = Process::start(&[], &[]);
    let ask = |text: &str| {
        run(&["demo", text, "--server", &server.url, "--thread", "orders", "--json"], "")
    };
    let ids = ["count to 5", "count to 2"].map(|text| {
        let (code, out, problem) = ask(text);
        assert_eq!((code, problem.as_str()), (Some(0), ""));
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (&document["threadId"], &document["status"]),
            (&"orders".into(), &"finished".into())
        );
        document["runId"].clone()
    });
    assert_ne!(ids[0], ids[1]);
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let thread = client
        .get(format!("{}/threads/orders", server.url))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    assert_eq!(thread["messages"].as_array().unwrap().len(), 4);
}
