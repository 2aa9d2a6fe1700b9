//! `agui-server test`: recordings as tests of an agent.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::desk::{Desk, command, post};
use crate::support::{
    provider::{Answer, Provider},
    recordings::{lines, names, recordings},
    running::input,
    server::{BINARY, Process},
};

/// An agent that calls a tool and answers; `{…}` are replaced.
const SCRIPT: &str = r#"
[[answer]]
when.user = "order"
play = [
    { state = { step = 1 } },
    { think = "thinking {reply}" },
    { text = ["Let me ", "look."] },
    { call = "find", args = { order = 7, by = "{by}" }, result = "{result}", within = true },
    { text = "{reply}" },
    { custom = "note", value = { shown = {shown} } },
]

[[answer]]
when.user = "mail"
play = [
    { call = "send_email", args = { to = "Ann" } },
    { interrupts = [{ call = "send_email", message = "Send it?" }] },
]

[[answer]]
when.replies = "send_email"
play = [{ result_of = "send_email", approved = "sent", declined = "declined" }, { text = "Done." }]
"#;

impl Desk {
    fn new() -> Self {
        let desk = Self::with_script("");
        desk.says("id", "found", "It was sent.", "1");
        desk
    }

    fn says(&self, by: &str, result: &str, answer: &str, shown: &str) {
        let script = SCRIPT.replace("{by}", by).replace("{result}", result);
        self.write("desk.script", &script.replace("{reply}", answer).replace("{shown}", shown));
    }

    fn recordings(&self) -> PathBuf {
        self.path("recordings").into()
    }

    fn serve_in_memory(&self, arguments: &[&str]) -> Process {
        self.serve("memory:", arguments)
    }

    /// Records one run.
    async fn record(&self, input: &Value) {
        let process = self.serve_in_memory(&["--record", &self.path("recordings")]);
        post(&process, input).await;
        recordings(&self.recordings(), 1).await;
    }

    fn expect(&self, rules: &str) {
        fs::write(self.recordings().join("expect.toml"), rules).unwrap();
    }

    /// Runs the tests of the folder. Returns the exit code and the output.
    fn test(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let config = self.path("my.toml");
        let own = ["--config", &*config];
        let own: &[&str] = if arguments.contains(&"--against") { &[] } else { &own };
        test(&self.path("recordings"), &[own, arguments].concat())
    }
}

fn test(folder: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let (code, output, errors) = command(&[&["test", folder], arguments].concat());
    (code, output + &errors)
}

#[tokio::test]
async fn recordings_of_a_thread_with_an_approval_pass_in_the_process_and_against_a_url() {
    let desk = Desk::new();
    let process = desk.serve_in_memory(&["--record", &desk.path("recordings")]);
    let mut request = input("order");
    let first = post(&process, &request).await;
    let answer: String = first.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert!(answer.contains("It was sent."), "{first:?}");
    (request["runId"], request["messages"]) =
        ("r2".into(), json!([{ "id": "m2", "role": "user", "content": "mail" }]));
    let asked = post(&process, &request).await;
    let interrupt = &asked[asked.len() - 1]["outcome"]["interrupts"][0]["id"];
    let entry =
        json!({ "interruptId": interrupt, "status": "resolved", "payload": { "approved": true } });
    (request["runId"], request["messages"], request["resume"]) =
        ("r3".into(), json!([]), json!([entry]));
    let done = post(&process, &request).await;
    assert_eq!(done[done.len() - 1]["outcome"]["type"], "success", "{done:?}");
    recordings(&desk.recordings(), 3).await;
    drop(process);

    let (code, output) = desk.test(&[]);
    assert_eq!(
        (code, output.contains("3 passed, 0 failed, 0 skipped")),
        (Some(0), true),
        "{output}"
    );
    let process = desk.serve_in_memory(&[]);
    for url in [process.url.clone(), format!("{}/send-message", process.url)] {
        let (code, output) = desk.test(&["--against", &url]);
        assert_eq!(
            (code, output.contains("3 passed, 0 failed, 0 skipped")),
            (Some(0), true),
            "{url}: {output}"
        );
    }
}

#[tokio::test]
async fn each_kind_of_difference_is_found_and_shown() {
    let desk = Desk::new();
    desk.record(&input("order")).await;
    for (by, result, answer, shown, difference) in [
        ("name", "found", "It was sent.", "1", r#""arguments":{"order":7,"by":"name"}"#),
        ("id", "lost", "It was sent.", "1", r#""content":"lost""#),
        ("id", "found", "It was <lost>.", "1", r#""text":"It was <lost>.""#),
        ("id", "found", "It was sent.", "2", r#""value":{"shown":2}"#),
    ] {
        desk.says(by, result, answer, shown);
        let junit = desk.path("junit.xml");
        let (code, output) = desk.test(&["--junit", &junit]);
        assert_eq!(code, Some(1), "{output}");
        assert!(
            output.lines().any(|line| line.contains("+ {") && line.contains(difference)),
            "{output}"
        );
        assert!(output.contains("0 passed, 1 failed, 0 skipped"), "{output}");
        let xml = fs::read_to_string(junit).unwrap();
        assert!(xml.contains("tests=\"1\" failures=\"1\" skipped=\"0\""), "{xml}");
        assert!(!xml.contains("<lost>") && xml.contains("<failure message=\"- {"), "{xml}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_terminal_would_obey_is_not_printed() {
    let desk = Desk::new();
    desk.record(&input("order")).await;
    let server = Provider::start().await;
    server.answer(Answer::stream([format!("data: {}\n\n", json!({ "type": "\x1b[2J" }))]));
    let (code, output) = desk.test(&["--against", &server.url()]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("`␛[2J`") && !output.contains('\x1b'), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_beginning_of_a_refusal_is_read() {
    let desk = Desk::new();
    desk.record(&input("order")).await;
    let server = Provider::start().await;
    server.answer(Answer::new(500, ["\x1b[2Jno".to_owned(), "x".repeat(70 << 20)]));
    let (code, output) = desk.test(&["--against", &server.url()]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("500 Internal Server Error: ␛[2Jnoxx"), "{output}");
}

#[tokio::test]
async fn rules_say_what_has_to_be_equal() {
    let desk = Desk::new();
    desk.record(&input("order")).await;
    let passes = |rules: &str| {
        desk.expect(rules);
        let (code, output) = desk.test(&[]);
        assert!(matches!(code, Some(0 | 1)), "{rules}: {output}");
        (code == Some(0), output)
    };
    desk.says("name", "lost", "it is sent", "2");
    let rest =
        "arguments = \"any\"\nresults = \"any\"\nreasoning = \"any\"\nignore = [\"CUSTOM\"]\n";
    for (rule, expected) in [
        ("text = \"any\"", true),
        ("text = { contains = [\"Let me\", \"sent\"] }", true),
        ("text = { contains = [\"never\"] }", false),
        ("text = { matches = 'is (sent|lost)$' }", true),
        ("text = { matches = '^sent' }", false),
        ("text = \"any\"\nmax_output_tokens = 0\nmax_ms = 60000", true),
        ("text = \"exact\"", false),
    ] {
        let (passed, output) = passes(&format!("{rest}{rule}"));
        assert_eq!(passed, expected, "{rule}: {output}");
    }
    for without in ["arguments", "results", "reasoning", "ignore"] {
        let others: String = rest
            .lines()
            .filter(|line| !line.starts_with(without))
            .map(|line| format!("{line}\n"))
            .collect();
        let (passed, output) = passes(&format!("{others}text = \"any\""));
        assert!(!passed, "without {without}: {output}");
    }
    // A file for one recording replaces members of the common one.
    let name = names(&desk.recordings()).into_iter().find(|name| name.ends_with(".jsonl")).unwrap();
    let own = desk.recordings().join(name.replace(".jsonl", ".expect.toml"));
    fs::write(own, "text = { contains = [\"never\"] }").unwrap();
    assert!(!passes(&format!("{rest}text = \"any\"")).0);
}

#[tokio::test]
async fn a_text_can_be_checked_by_a_schema_and_a_run_by_its_time() {
    let desk = Desk::new();
    let script = "[[answer]]\nplay = [{ wait_ms = 20 }, { text = '{{\"sent\": true}}' }]";
    desk.write("desk.script", script);
    desk.record(&input("order")).await;
    for (rules, code, shown) in [
        ("text = { schema = { required = [\"sent\"] } }", 0, "1 passed"),
        ("text = { schema = { required = [\"lost\"] } }", 1, "does not fit the schema"),
        ("text = { schema = { type = \"nonsense\" } }", 2, "expect.toml: text.schema"),
        ("text = { matches = '(' }", 2, "expect.toml: text.matches"),
        ("max_ms = 1", 1, "milliseconds; at most 1 are allowed"),
        ("max_millis = 1", 2, "expect.toml: unknown field `max_millis`"),
    ] {
        desk.expect(rules);
        let (found, output) = desk.test(&[]);
        assert_eq!((found, output.contains(shown)), (Some(code), true), "{rules}: {output}");
    }
}

#[tokio::test]
async fn update_accepts_what_came_but_not_what_a_rule_refuses() {
    let desk = Desk::new();
    desk.record(&input("order")).await;
    let file = desk.recordings().join(&names(&desk.recordings())[0]);
    let before = fs::read_to_string(&file).unwrap();
    desk.says("id", "found", "It was lost.", "1");
    let (code, output) = desk.test(&["--update"]);
    assert_eq!((code, output.contains("updated  ")), (Some(0), true), "{output}");
    assert_eq!(desk.test(&[]).0, Some(0));
    // Only texts and times differ: the ids are the recorded ids.
    let plain = |text: &str| {
        let mut lines = lines(text);
        lines.iter_mut().for_each(|line| line["ms"] = 0.into());
        lines
    };
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(plain(&before.replace("It was sent.", "It was lost.")), plain(&after));
    assert_ne!(plain(&before), plain(&after));

    desk.expect("text = { contains = [\"never\"] }");
    let (code, output) = desk.test(&["--update"]);
    assert_eq!((code, output.contains("does not contain")), (Some(1), true), "{output}");
}

#[tokio::test]
async fn what_cannot_be_tested_is_no_success() {
    let desk = Desk::new();
    desk.record(&input("order")).await;
    let refused = desk.serve_in_memory(&[]).url.clone();
    let (code, output) = desk.test(&["--against", &refused]);
    assert_eq!((code, output.contains("cannot be reached")), (Some(1), true), "{output}");
    let (code, output) = desk.test(&["--agent", "nobody"]);
    assert_eq!((code, output.contains("404")), (Some(1), true), "{output}");
    let (code, output) = test(&desk.path(""), &[]);
    assert_eq!((code, output.contains("has no recordings")), (Some(2), true), "{output}");
    // A recording that is cut is no test.
    let file = desk.recordings().join(&names(&desk.recordings())[0]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.lines().take(4).map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
    let (code, output) = desk.test(&[]);
    assert_eq!(
        (code, output.contains("0 passed, 0 failed, 1 skipped")),
        (Some(1), true),
        "{output}"
    );
}

#[test]
fn a_command_whose_output_nobody_reads_does_not_panic() {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/config/recordings");
    for arguments in [&["check"][..], &["test", recordings]] {
        let mut command = Command::new(BINARY)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(command.stdout.take());
        let output = command.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
