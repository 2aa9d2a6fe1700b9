//! The chat in a terminal: `script` of util-linux runs it in a pseudo-terminal.

use std::{
    io::{Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use agui_server::options::{OnDisconnect, ThreadOptions};
use axum::{Json, Router, routing::post};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    agents::{Desk, HOSTILE},
    server::BINARY,
    support::{Running, eventually, eventually_async},
};

/// A command in a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
    /// The number of bytes that [`until`](Self::until) has found something in.
    seen: usize,
}

impl Terminal {
    fn open(server: &Running, has_colours: bool) -> Self {
        Self::run(&format!("{BINARY} chat {}", server.url("")), "xterm", has_colours)
    }

    /// Runs a command of the shell in a terminal of a type.
    pub(crate) fn run(chat: &str, terminal: &str, has_colours: bool) -> Self {
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--flush", "--command"]);
        // Without `exec`, some shells wait for the chat, and Ctrl-C ends them.
        command.arg(format!("exec {chat}")).arg("/dev/null").env("TERM", terminal);
        command.env_remove("NO_COLOR").envs((!has_colours).then_some(("NO_COLOR", "1")));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keyboard, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = out.read(&mut piece) {
                shown.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Self { child, keyboard, screen, seen: 0 }
    }

    /// Waits until a text is shown after the one that was waited for before. Returns what is between them.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let screen = self.screen.clone();
        let find = |seen: usize| {
            let screen = screen.lock().unwrap();
            screen[seen..]
                .windows(text.len())
                .position(|part| part == text.as_bytes())
                .map(|at| seen + at)
        };
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        let end = loop {
            if let Some(end) = find(self.seen) {
                break end;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{text:?} is not shown: {}",
                self.shown()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let between =
            String::from_utf8_lossy(&screen.lock().unwrap()[self.seen..end]).replace("\r\n", "\n");
        self.seen = end + text.len();
        between
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits for the prompt and types a line.
    async fn say(&mut self, line: &str) {
        self.until("> ").await;
        self.press(&format!("{line}\n"));
        self.until("\n").await;
    }

    /// Waits for a question and types the answer.
    pub(crate) async fn reply(&mut self, question: &str, line: &str) {
        self.until(question).await;
        self.press(&format!("{line}\n"));
        self.until("\n").await;
    }

    pub(crate) async fn exit_code(mut self) -> Option<i32> {
        let mut code = None;
        eventually("the chat ends", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        })
        .await;
        code.unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn get(server: &Running, path: &str) -> Value {
    server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
}

async fn thread_of(server: &Running) -> String {
    let threads = get(server, "/threads").await;
    threads["threads"][0]["threadId"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_with_reasoning_calls_and_state() {
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("work").await;
    let shown = terminal.until(" s\r\n").await;
    let expected = "thinking: Where may it be?\nLet me look.\ncall find {\"order\":7}\nresult of find: in the hall\n\
                    state: {\"step\":1}\nIt is in the hall.\n";
    assert!(shown.starts_with(expected), "{shown}");
    terminal.say("/nonsense").await;
    terminal.until("\"/nonsense\" is no command").await;
    terminal.say("//slash").await;
    terminal.until("2: /slash").await;
    terminal.say("/quit").await;
    assert_eq!(terminal.exit_code().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_and_forms_are_asked_for() {
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("approve").await;
    terminal.until("The agent asks: Send it?\r\n  send_email {\"to\":\"Ann\"}").await;
    let question = "Approve? (yes, no or edit): ";
    terminal.reply(question, "perhaps").await;
    terminal.reply(question, "edit").await;
    terminal.reply("Arguments (a JSON object on one line): ", "[]").await;
    terminal.until("not a JSON object").await;
    terminal.reply(question, "edit").await;
    // Ctrl-U clears the line, which begins with the arguments.
    terminal.reply("Arguments (a JSON object on one line): ", "\x15{\"to\":\"Bob\"}").await;
    terminal.until("answered {\"approved\":true,\"editedArgs\":{\"to\":\"Bob\"}}").await;
    terminal.say("approve").await;
    terminal.reply(question, "no").await;
    terminal.reply("Reason (Enter for none): ", "too late").await;
    terminal.until("answered {\"approved\":false,\"reason\":\"too late\"}").await;
    terminal.say("approve").await;
    terminal.reply(question, "/cancel").await;
    terminal.until("cancelled null").await;

    terminal.say("form").await;
    terminal.until("The agent asks: Which one?").await;
    terminal.until("  1. S\r\n  2. L\r\n").await;
    terminal.reply("size (1 to 2): ", "3").await;
    terminal.until("expected the number of a choice, or its text").await;
    terminal.reply("size (1 to 2): ", "2").await;
    terminal.reply("gift (yes or no): ", "y").await;
    terminal.reply("number (whole number): ", "0").await;
    terminal.reply("to.city (text): ", "Paris").await;
    terminal.reply("tags (JSON; Enter for none): ", "[\"a\"]").await;
    // The schema as a whole is checked, too, and the form is asked for again.
    terminal.until("/number ").await;
    for (question, answer) in
        [("size", "S"), ("gift", "no"), ("number", "2"), ("to.city", "Rome"), ("tags", "")]
    {
        terminal.reply(&format!("{question} ("), answer).await;
    }
    let expected =
        "answered {\"size\":\"S\",\"gift\":false,\"number\":2,\"to\":{\"city\":\"Rome\"}}";
    terminal.until(expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_begin_as_those_that_were_asked_about() {
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("approve").await;
    terminal.reply("Approve? (yes, no or edit): ", "edit").await;
    let backspace = "\x7f".repeat("Ann\"}".len());
    terminal.reply("Arguments (a JSON object on one line): ", &format!("{backspace}Bob\"}}")).await;
    terminal.until("answered {\"approved\":true,\"editedArgs\":{\"to\":\"Bob\"}}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quit_in_a_question_ends_the_chat_and_the_question_stays() {
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("approve").await;
    terminal.reply("Approve? (yes, no or edit): ", "/quit").await;
    assert_eq!(terminal.exit_code().await, Some(0));
    let thread = get(&server, &format!("/threads/{}", thread_of(&server).await)).await;
    assert_eq!(thread["interrupts"].as_array().unwrap().len(), 1, "{thread}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cursor_keys_edit_a_line_and_bring_messages_back() {
    const UP: &str = "\x1b[A";
    const LEFT: &str = "\x1b[D";
    let desk = Desk::default();
    let server = desk.serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say(&format!("helo{LEFT}l")).await;
    terminal.until("1: hello").await;
    terminal.say(&format!("{UP} again")).await;
    terminal.until("2: hello again").await;
    // Answers are not brought back.
    terminal.say("approve").await;
    terminal.reply("Approve? (yes, no or edit): ", "no").await;
    terminal.reply("Reason (Enter for none): ", "a secret").await;
    terminal.until("answered").await;
    terminal.say(&format!("{UP}{UP}")).await;
    terminal.until("5: hello again").await;
    // A paste of several lines is one message.
    terminal.say("\x1b[200~one\ntwo\x1b[201~").await;
    terminal.until("6: one\r\ntwo").await;
    // Two lines that come at once are two.
    terminal.say("three\nfour").await;
    terminal.until("7: three").await;
    terminal.until("8: four").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_typed_during_a_run_do_not_answer_its_question() {
    let desk = Desk::default();
    let server = desk.serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("approve later").await;
    terminal.press("yes\n");
    terminal.until("yes").await;
    desk.question.notify_one();
    terminal.until("What was typed before the question is not used.").await;
    terminal.reply("Approve? (yes, no or edit): ", "no").await;
    terminal.reply("Reason (Enter for none): ", "").await;
    terminal.until("answered {\"approved\":false}").await;
    // An answer that comes together with the message is not used either.
    terminal.say("approve\nyes").await;
    terminal.reply("Approve? (yes, no or edit): ", "/cancel").await;
    terminal.until("cancelled null").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_is_for_the_terminal_and_the_answers_for_the_output() {
    let server = Desk::default().serve().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers");
    let chat = format!("{BINARY} chat {} > {}", server.url(""), file.display());
    let mut terminal = Terminal::run(&chat, "xterm", false);
    terminal.say("hello").await;
    terminal.say("/quit").await;
    assert_eq!(terminal.exit_code().await, Some(0));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "1: hello\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_cannot_move_its_cursor_gets_no_escape_sequences() {
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::run(&format!("{BINARY} chat {}", server.url("")), "dumb", false);
    terminal.say("hello").await;
    terminal.until("1: hello").await;
    terminal.until("> ").await;
    assert!(!terminal.shown().contains('\x1b'), "{:?}", terminal.shown());
    terminal.press("\x03");
    assert_eq!(terminal.exit_code().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_the_run_and_then_ends_the_chat() {
    // A closed connection alone would not cancel it.
    let mut options = ThreadOptions::default();
    options.runs.on_disconnect = OnDisconnect::Continue;
    let server = Running::start(Desk::default().server().thread_options(options)).await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("endless").await;
    terminal.until("It begins").await;
    terminal.press("\x03");
    terminal.until("The run was cancelled.").await;
    let thread = thread_of(&server).await;
    let status =
        async || get(&server, &format!("/threads/{thread}")).await["runs"][0]["status"].clone();
    eventually_async("the run is cancelled", async || status().await == "cancelled").await;
    terminal.say("next").await;
    terminal.until("2: next").await;
    terminal.until("> ").await;
    terminal.press("\x03");
    assert_eq!(terminal.exit_code().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_and_retry_make_branches_and_threads_can_be_continued() {
    let desk = Desk::default();
    let server = desk.serve().await;
    let mut terminal = Terminal::open(&server, false);
    terminal.say("/retry").await;
    terminal.until("No message has been sent yet.").await;
    for text in ["one", "two", "/edit three", "/retry"] {
        terminal.say(text).await;
        terminal.until(" s\r\n").await;
    }
    terminal.say("/edit").await;
    terminal.until("Your last message: three").await;
    terminal.reply("The new text (Enter keeps the old one): ", "four").await;
    terminal.until("5: four").await;
    assert_eq!(desk.texts(2), ["one", "1: one", "three"]);
    assert_eq!(desk.texts(3), ["one", "1: one", "three"]);
    assert_eq!(desk.texts(4), ["one", "1: one", "four"]);
    // The server has kept the other branches.
    let thread = thread_of(&server).await;
    let page = get(&server, &format!("/threads/{thread}/messages")).await;
    let current = page["messages"][2]["id"].as_str().unwrap();
    assert_eq!(page["alternatives"][current].as_array().unwrap().len(), 3, "{page}");

    terminal.say("/new").await;
    terminal.say("other").await;
    terminal.until("6: other").await;
    terminal.say("/threads").await;
    let list = terminal.until("Number of the thread to continue (Enter for none): ").await;
    assert!(list.contains("  1. other (desk, 20") && list.contains("  2. one (desk, 20"), "{list}");
    terminal.press("2\n");
    terminal.until("> four\r\n5: four\r\n").await;
    terminal.say("five").await;
    terminal.until("7: five").await;
    assert_eq!(desk.texts(6), ["one", "1: one", "four", "5: four", "five"]);
    terminal.say("/threads").await;
    terminal.reply("Number of the thread to continue (Enter for none): ", "9").await;
    terminal.until("/threads: there is no thread of this number").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_waits_for_an_answer_is_continued_with_its_question() {
    let server = Desk::default().serve().await;
    let mut first = Terminal::open(&server, false);
    first.say("approve").await;
    first.until("Approve? ").await;
    first.press("\x04");
    assert_eq!(first.exit_code().await, Some(0));
    let mut second = Terminal::open(&server, false);
    second.say("/threads").await;
    second.reply("Number of the thread to continue (Enter for none): ", "1").await;
    second.until("The agent asks: Send it?\r\n  send_email {\"to\":\"Ann\"}").await;
    second.reply("Approve? (yes, no or edit): ", "yes").await;
    second.until("answered {\"approved\":true}").await;
}

/// Only the colours of the chat itself are escape sequences.
#[tokio::test(flavor = "multi_thread")]
async fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::open(&server, true);
    terminal.say("hostile").await;
    terminal.until("(1 to 1; Enter for none): ").await;
    terminal.press("/cancel\n");
    terminal.until("cancelled").await;
    terminal.say("hostile failure").await;
    terminal.until("The run failed").await;
    terminal.say("/threads").await;
    terminal.until("Number of the thread").await;
    let shown = terminal.shown();
    let own = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"];
    assert!(own.iter().all(|code| shown.contains(code)), "{shown:?}");
    let others = own.iter().fold(shown, |shown, code| shown.replace(code, ""));
    // The line editor marks pastes and updates, clears the line, and moves the cursor behind the prompt.
    let moves = (1..80).map(|column| format!("\r\x1b[{column}C"));
    let edits =
        ["\x1b[?2004h", "\x1b[?2004l", "\x1b[?2026h", "\x1b[?2026l", "\r\x1b[K"].map(str::to_owned);
    let others =
        edits.into_iter().chain(moves).fold(others, |others, code| others.replace(&code, ""));
    let is_obeyed =
        |char: &char| (char.is_control() && !"\r\n".contains(*char)) || *char == '\u{202e}';
    assert_eq!(others.chars().find(is_obeyed), None, "{others:?}");
    assert!(others.contains("begin␛[2J␛]52;c;AAAA␇") && !others.contains(HOSTILE), "{others}");
    assert!(!others.replace("\r\n", "").contains('\r'), "{others:?}");
}

/// The beginning of a PNG of 2 x 3 pixels, and more.
fn png(bytes: usize) -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06".to_vec();
    picture.resize(bytes, 7);
    picture
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_attached_to_the_next_message_and_those_of_the_agent_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("chart"), png(2400)).unwrap();
    std::fs::write(path("my notes.txt"), "hello").unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::File::create(path("large")).unwrap().set_len(21 << 20).unwrap();
    let server = Desk::default().serve().await;
    let mut terminal = Terminal::open(&server, false);
    for (typed, problem) in [
        ("/attach".to_owned(), "expected the path of a file"),
        (format!("/attach {}", path("absent")), "No such file or directory"),
        (format!("/attach {}", path("")), "a directory cannot be attached"),
        ("/attach /dev/zero".to_owned(), "expected a regular file"),
        (format!("/attach {}", path("empty")), "the file is empty"),
        (format!("/attach {}", path("large")), "file_too_large"),
        (format!("/attach {}", path("chart")), "chart, 2.4 KB"),
        (format!("/attach '{}'", path("my notes.txt")), "my notes.txt, 5 B"),
    ] {
        terminal.say(&typed).await;
        terminal.until(problem).await;
    }
    terminal.say("look").await;
    terminal.until("1: look").await;
    terminal.say("chart").await;
    terminal.until(&format!("file: chart.csv, 4 B, {}", server.url("/files/file_"))).await;
    terminal.until("Here it is.").await;

    let thread = get(&server, &format!("/threads/{}", thread_of(&server).await)).await;
    let parts = thread["messages"][0]["content"].as_array().unwrap();
    let described: Vec<_> = parts[1..]
        .iter()
        .map(|part| [&part["type"], &part["source"]["mimeType"], &part["metadata"]["filename"]])
        .collect();
    assert_eq!(
        described,
        [["image", "image/png", "chart"], ["document", "text/plain", "my notes.txt"]],
        "{thread}"
    );
    let url = parts[1]["source"]["value"].as_str().unwrap();
    assert_eq!(server.client.get(url).send().await.unwrap().bytes().await.unwrap(), png(2400));
    // The next message has no files.
    assert_eq!(thread["messages"][2]["content"], "chart");

    terminal.say("/threads").await;
    terminal.reply("Number of the thread to continue (Enter for none): ", "1").await;
    terminal.until("file: chart.csv, 4 B, http").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_without_files_gets_them_in_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("chart.png"), png(2400)).unwrap();
    std::fs::write(path("large.png"), png(7 << 20)).unwrap();
    let body: Arc<Mutex<Value>> = Arc::default();
    let seen = body.clone();
    let answer = move |Json(input): Json<Value>| async move {
        let [thread, run] = [&input["threadId"], &input["runId"]];
        let events = ["RUN_STARTED", "RUN_FINISHED"]
            .map(|event| json!({ "type": event, "threadId": thread, "runId": run }));
        let text = events.map(|event| format!("data: {event}\n\n")).concat();
        *seen.lock().unwrap() = input;
        ([("content-type", "text/event-stream")], text)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let server = tokio::spawn(
        axum::serve(listener, Router::new().route("/agent", post(answer))).into_future(),
    );
    let mut terminal = Terminal::run(&format!("{BINARY} chat {url}"), "xterm", false);
    terminal.say(&format!("/attach {}", path("large.png"))).await;
    terminal
        .until("large.png, 7.3 MB: too large, because this server has no files and 6.3 MB fit into a message")
        .await;
    terminal.say(&format!("/attach {}", path("chart.png"))).await;
    terminal.until("chart.png, 2.4 KB").await;
    terminal.say("look").await;
    terminal.until(" s\r\n").await;
    server.abort();
    let content = body.lock().unwrap()["messages"][0]["content"].clone();
    let source =
        json!({ "type": "data", "value": STANDARD.encode(png(2400)), "mimeType": "image/png" });
    assert_eq!(
        content[1],
        json!({ "type": "image", "source": source, "metadata": { "filename": "chart.png" } })
    );
}
