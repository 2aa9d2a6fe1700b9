//! Stored detached runs as recordings: `agui-server export`, and other commands on its files.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
};

use serde_json::{Value, json};

use super::desk::{Desk, command, post};
use crate::support::{
    recordings::{lines, names, recordings},
    server::Process,
};

const SCRIPT: &str = r#"
[[answer]]
when.user = "order"
play = [
    { state = { step = 1 } },
    { text = "Let me look." },
    { wait_ms = 400 },
    { call = "find", args = { order = 7 }, result = "found" },
    { text = "It was sent." },
]

[[answer]]
when.user = "mail"
play = [
    { state = { step = 2 } },
    { call = "send_email", args = { to = "Ann" } },
    { interrupts = [{ call = "send_email", message = "Send it?" }] },
]

[[answer]]
when.replies = "send_email"
play = [{ result_of = "send_email", approved = "sent", declined = "declined" }, { text = "Done." }]
"#;

fn desk() -> Desk {
    Desk::with_script(SCRIPT)
}

/// Starts a server on the database in the folder.
fn serve(desk: &Desk, arguments: &[&str]) -> Process {
    desk.serve(&format!("sqlite://{}", desk.path("threads.db")), arguments)
}

fn ask(run: &str, message: &str, text: &str) -> Value {
    json!({
        "threadId": "orders",
        "runId": run,
        "messages": [{ "id": message, "role": "user", "content": text }],
        "tools": [{ "name": "show", "description": "Shows", "parameters": { "type": "object" } }],
        "context": [{ "description": "page", "value": "orders" }],
        "forwardedProps": { "onDisconnect": "continue", "a": [1] },
    })
}

/// Runs a conversation of three detached runs: a pause, an interrupt, its answer.
async fn converse(process: &Process) {
    let mut first = ask("r1", "m1", "order");
    first["state"] = json!({ "begun": true });
    post(process, &first).await;
    let asked = post(process, &ask("r2", "m2", "mail")).await;
    let interrupt = &asked[asked.len() - 1]["outcome"]["interrupts"][0]["id"];
    let mut answer = ask("r3", "m3", "");
    answer["messages"] = json!([]);
    answer["resume"] = json!([{ "interruptId": interrupt, "status": "resolved", "payload": { "approved": true } }]);
    let done = post(process, &answer).await;
    assert_eq!(done[done.len() - 1]["outcome"]["type"], "success", "{done:?}");
}

fn read(folder: &str) -> Vec<Vec<Value>> {
    names(Path::new(folder))
        .iter()
        .map(|name| lines(&fs::read_to_string(Path::new(folder).join(name)).unwrap()))
        .collect()
}

#[tokio::test]
async fn exported_runs_are_the_recordings_of_the_same_runs() {
    let desk = desk();
    let process = serve(&desk, &["--record", &desk.path("recorded")]);
    converse(&process).await;
    let recorded = recordings(Path::new(&desk.path("recorded")), 3).await;
    drop(process);
    // The runs were made by another process.
    let process = serve(&desk, &[]);
    let (code, output, errors) =
        command(&["export", "orders", "--from", &process.url, "--out", &desk.path("exported/")]);
    assert_eq!((code, output.lines().count()), (Some(0), 3), "{output}{errors}");
    let exported = read(&desk.path("exported"));
    assert_eq!(exported.len(), 3);
    for (recorded, exported) in recorded.iter().zip(&exported) {
        let (mut head, same) = (exported[0].clone(), &recorded[0]);
        let started_at =
            [&head["startedAt"], &same["startedAt"]].map(|time| time.as_i64().unwrap());
        assert!(started_at[0].abs_diff(started_at[1]) < 10_000, "{started_at:?}");
        head["startedAt"] = same["startedAt"].clone();
        assert_eq!(head, *same);
        let all =
            |lines: &[Value]| lines.iter().map(|line| line["event"].clone()).collect::<Vec<_>>();
        assert_eq!(all(exported), all(recorded));
        assert_eq!(exported[exported.len() - 1]["end"], recorded[recorded.len() - 1]["end"]);
        let times = |lines: &[Value]| {
            lines[1..].iter().map(|line| line["ms"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        let (times, same) = (times(exported), times(recorded));
        assert!(times.is_sorted(), "{times:?}");
        // Less than the pause of the first run. The two clocks do not start at the same moment.
        let is_near =
            |(time, same_time): (&u64, &u64)| (time - times[0]).abs_diff(same_time - same[0]) < 300;
        assert!(times.iter().zip(&same).all(is_near), "{times:?} {same:?}");
    }
    assert!(exported[0][exported[0].len() - 1]["ms"].as_u64().unwrap() >= 400);

    let (code, output, errors) =
        command(&["test", &desk.path("exported"), "--config", &desk.path("my.toml")]);
    assert!(
        code == Some(0) && output.contains("3 passed, 0 failed, 0 skipped"),
        "{output}{errors}"
    );
    desk.write("my.toml", "[agents.desk]\nkind = \"replay\"\ndir = \"exported\"\npace = 0.0\n");
    drop(process);
    let replay = serve(&desk, &[]);
    let mut again = ask("r9", "m9", "order");
    again["threadId"] = "other".into();
    let played = post(&replay, &again).await;
    assert!(played.iter().any(|event| event["delta"] == "It was sent."), "{played:?}");
}

#[tokio::test]
async fn one_run_is_written_to_the_output_or_to_a_file() {
    let desk = desk();
    let process = serve(&desk, &[]);
    converse(&process).await;
    let (code, output, errors) = command(&["export", "orders", "r2", "--from", &process.url]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(lines(&output)[0]["request"]["runId"], "r2");
    let file = desk.path("two.jsonl");
    let (code, printed, errors) =
        command(&["export", "orders", "r2", "--from", &process.url, "-o", &file]);
    assert_eq!((code, printed), (Some(0), format!("{file}\n")), "{errors}");
    assert_eq!(fs::read_to_string(&file).unwrap(), output);
    for (arguments, problem) in [
        (
            &["export", "orders"][..],
            "the thread has 3 detached runs: name one, or name a folder with --out",
        ),
        (&["export", "orders", "r7"], "unknown_run"),
        (&["export", "nothing"], "unknown_thread"),
    ] {
        let (code, output, errors) = command(&[arguments, &["--from", &process.url]].concat());
        assert_eq!((code, &*output), (Some(1), ""), "{errors}");
        assert!(errors.contains(problem), "{errors}");
    }
    let (code, _, errors) = command(&["export", "orders", "--from", "localhost"]);
    assert!(code == Some(1) && errors.contains("--from: expected a URL"), "{errors}");
}

#[tokio::test]
async fn the_key_for_the_server_is_read_from_a_variable() {
    let desk = desk();
    desk.write(
        "my.toml",
        "[auth]\nmode = \"api_key\"\napi_keys = [{ name = \"desk\", env = \"DESK_KEY\" }]\n[agents.desk]\nkind = \"script\"\nscript = \"desk.script\"\n",
    );
    let config = desk.path("my.toml");
    let process = Process::start(
        &["--config", &config],
        &[("AGUI_STORE__URL", "memory:"), ("DESK_KEY", "secret")],
    );
    let (code, _, errors) = command(&["export", "orders", "--from", &process.url]);
    assert!(code == Some(1) && errors.contains("unauthenticated"), "{errors}");
    let (code, _, errors) =
        command(&["export", "orders", "--from", &process.url, "--key-env", "DESK_KEY"]);
    assert!(code == Some(1) && errors.contains("unknown_thread"), "{errors}");
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        assert!(connection.read(&mut [0; 4096]).unwrap() > 0);
        let body = "\x1b[2J\u{9b}31mbroken";
        write!(connection, "HTTP/1.1 500 Error\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .unwrap();
    });
    let (code, output, errors) = command(&["export", "orders", "r1", "--from", &url]);
    assert_eq!((code, &*output), (Some(1), ""), "{errors:?}");
    assert!(
        errors.contains("broken") && !errors.trim_end().contains(char::is_control),
        "{errors:?}"
    );
    server.join().unwrap();
}
