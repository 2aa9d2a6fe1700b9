//! Partners without a fake: these tests run the programs that people use, because a fake could only
//! repeat assumptions about them.
//!
//! The endpoints in Python are in `endpoints.py`. llama.cpp is started by `llama.py`, LiteLLM by `litellm_proxy.py`.
//! `tests/run.sh --all` installs their packages (`requirements.txt`, `llama.txt`, `litellm.txt`).

mod models;

use std::{path::Path, process::Stdio, time::Duration};

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        builtin::{Remote, RemoteOptions, ThreadIds},
        emit::TextMessage,
        events as known,
    },
    auth::ApiKey,
    protocol::{Message, RunAgentInput},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::support::{
    conversation::{ask, said},
    running::Running,
};

/// The frameworks take several seconds to be read, on a loaded machine a minute.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Starts a server in Python. Returns the URL that it prints, and its process, which ends when it is dropped; `None` if its
/// packages are not installed.
async fn start_python(
    environment: &str,
    script: &str,
    arguments: &[&str],
) -> Option<(String, Child)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("tests").join(environment).join("bin/python");
    if !python.exists() {
        assert!(std::env::var_os("CI").is_none(), "{python:?} is missing: see tests/run.sh");
        eprintln!("left out: {python:?} is missing, see tests/run.sh");
        return None;
    }
    let mut command = Command::new(python);
    command
        .arg(root.join("tests/real").join(script))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let url = timeout(START_TIMEOUT, lines.next_line())
        .await
        .expect("it starts")
        .unwrap()
        .expect("it prints its URL");
    Some((url, process))
}

async fn frameworks() -> Option<(String, Child)> {
    start_python(".venv-real", "endpoints.py", &[]).await
}

/// Two callers of a server whose agent is another endpoint.
struct Callers(Running);

impl Callers {
    async fn new(url: &str, ids: ThreadIds) -> Self {
        let mut options = RemoteOptions::new(url);
        options.thread_ids = ids;
        options.headers = vec![("Authorization".to_owned(), "Bearer ours".into())];
        let keys = [ApiKey::from_secret("ann", "ann"), ApiKey::from_secret("bob", "bob")];
        Self(
            Running::start(
                Server::new().agent("remote", Remote::new(options).unwrap()).api_keys(keys),
            )
            .await,
        )
    }

    async fn thread(&self, key: &str) -> Value {
        let request = self.0.client.get(self.0.url("/threads/t")).bearer_auth(key);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Runs the agent on the thread `t` of a caller. Returns the answer.
    async fn answer(&self, key: &str, input: &Value) -> String {
        let response =
            self.0.post("/send-message").bearer_auth(key).json(input).send().await.unwrap();
        let events = response.text().await.unwrap();
        assert!(events.contains(r#""outcome":{"type":"success"}"#), "{events}");
        assert!(events.contains(r#""type":"RUN_STARTED","threadId":"t""#), "{events}");
        said(&self.thread(key).await).pop().unwrap()
    }

    /// Says something after all that the thread has.
    async fn say(&self, key: &str, run: &str, text: &str) -> String {
        self.answer(key, &ask("t", run, &format!("{key}-{text}"), text)).await
    }
}

/// An endpoint that remembers by thread: owners share no memory, and an edited message is
/// forgotten.
async fn remembers_each_branch_of_each_owner_alone(url: &str) {
    let callers = Callers::new(url, ThreadIds::Client).await;
    callers.say("ann", "r", "apple").await;
    let bob = callers.say("bob", "r", "pear").await;
    assert_eq!(
        bob, "assistant: I remember: apple, pear",
        "{url} remembers by the thread id, or this test sees nothing"
    );

    let callers = Callers::new(url, ThreadIds::Branch).await;
    assert_eq!(callers.say("ann", "r", "apple").await, "assistant: I remember: apple", "{url}");
    assert_eq!(callers.say("bob", "r", "pear").await, "assistant: I remember: pear", "{url}");
    assert_eq!(
        callers.say("ann", "r2", "plum").await,
        "assistant: I remember: apple, plum",
        "{url}"
    );
    assert_eq!(callers.say("bob", "r2", "fig").await, "assistant: I remember: pear, fig", "{url}");

    let stored = callers.thread("ann").await;
    let kept = stored["messages"].as_array().unwrap()[..2].iter().cloned();
    let edited = json!({ "id": "edited", "role": "user", "content": "cherry" });
    let edited = json!({ "threadId": "t", "runId": "r3", "state": {}, "messages": kept.chain([edited]).collect::<Vec<_>>() });
    assert_eq!(
        callers.answer("ann", &edited).await,
        "assistant: I remember: apple, cherry",
        "{url}"
    );
    assert_eq!(
        callers.say("ann", "r4", "kiwi").await,
        "assistant: I remember: apple, cherry, kiwi",
        "{url}"
    );
}

#[tokio::test]
async fn a_graph_of_langgraph_remembers_each_branch_of_each_owner_alone() {
    let Some((url, _process)) = frameworks().await else { return };
    remembers_each_branch_of_each_owner_alone(&format!("{url}/langgraph")).await;
}

/// A tool of a graph asks before it pays: the question is the thread's, and the payment is the result of the call that was
/// announced before it, which the resumed graph announces again.
#[tokio::test]
async fn a_question_within_a_tool_of_langgraph_is_answered_and_its_call_has_one_result() {
    let Some((url, _process)) = frameworks().await else { return };
    let callers = Callers::new(&format!("{url}/payment"), ThreadIds::Branch).await;
    let run = async |input: &Value| -> Value {
        let request = callers.0.post("/send-message").bearer_auth("ann").json(input);
        let text = request.send().await.unwrap().text().await.unwrap();
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(last).unwrap()
    };
    for (number, (approved, said)) in
        [(true, "paid 5"), (false, "not paid")].into_iter().enumerate()
    {
        let asked = run(&ask("t", &format!("ask-{number}"), &format!("m-{number}"), "Pay")).await;
        let interrupts = &asked["outcome"]["interrupts"];
        assert_eq!(interrupts[0]["message"], "Pay 5?", "{asked}");
        let mut reply = ask("t", &format!("reply-{number}"), "", "");
        reply["messages"] = json!([]);
        reply["resume"] = json!([{ "interruptId": interrupts[0]["id"], "status": "resolved", "payload": { "approved": approved } }]);
        // The graph would take the client's own command for the reply.
        reply["forwardedProps"] = json!({ "command": { "resume": { "approved": !approved } } });
        let replied = run(&reply).await;
        assert_eq!(replied["outcome"]["type"], "success", "{replied}");
        let thread = callers.thread("ann").await;
        let stored = thread["messages"].as_array().unwrap();
        assert_eq!(said_by_agent(stored), format!("The tool says: {said}"), "{thread}");
        let is_call = |message: &&Value| message.get("toolCalls").is_some();
        let is_result = |message: &&Value| message["role"] == "tool";
        let counts =
            (stored.iter().filter(is_call).count(), stored.iter().filter(is_result).count());
        assert_eq!(counts, (number + 1, number + 1), "{thread}");
    }
}

fn said_by_agent(messages: &[Value]) -> &str {
    messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn an_agent_of_googles_adk_remembers_each_branch_of_each_owner_alone() {
    let Some((url, _process)) = frameworks().await else { return };
    remembers_each_branch_of_each_owner_alone(&format!("{url}/adk")).await;
}

#[tokio::test]
async fn another_server_of_ours_remembers_each_branch_of_each_owner_alone() {
    let recall = |input: RunAgentInput, _: RunContext| -> EventStream {
        let users = input.messages.iter().filter_map(|message| match message {
            Message::User(message) => Some(message.content.text().into_owned()),
            _ => None,
        });
        known(TextMessage::whole(format!("I remember: {}", users.collect::<Vec<_>>().join(", "))))
    };
    let server =
        Server::new().agent("recall", recall).api_keys([ApiKey::from_secret("front", "ours")]);
    let upstream = Running::start(server).await;
    remembers_each_branch_of_each_owner_alone(&upstream.url("/send-message")).await;
}
