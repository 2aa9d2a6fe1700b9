//! Calls of MCP servers of the revision 2026-07-28 that outlive the server that began them: with questions to a person, and as
//! tasks.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    ask, ask_detached,
    client::Replica,
    poll::poll_until,
    postgres::Postgres,
    provider::{Answer, Provider},
};
use crate::support::running::events;

/// An MCP server over HTTP, and the file that records its calls.
struct McpProcess {
    url: String,
    record: PathBuf,
    process: Child,
}

impl McpProcess {
    fn start(folder: &Path, command: &[&str], order: impl Fn(&str, &str) -> Vec<String>) -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let record = folder.join("record");
        fs::write(&record, "").unwrap();
        let arguments = order(&port, record.to_str().unwrap());
        let mut process = Command::new(command[0]);
        process.args(&command[1..]).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
        let process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { url: format!("http://127.0.0.1:{port}/mcp"), record, process }
    }

    /// The server of `tests/js/modern-mcp.mjs`.
    fn start_sdk(folder: &Path) -> Self {
        let order =
            |port: &str, record: &str| ["http", port, "record", record].map(str::to_owned).to_vec();
        Self::start(folder, &["node", "tests/js/modern-mcp.mjs"], order)
    }

    /// The server of `tests/py/tasks_mcp.py`; `None` without its packages.
    fn start_tasks(folder: &Path) -> Option<Self> {
        const PYTHON: &str = "tests/.venv-mcp/bin/python";
        if !Path::new(env!("CARGO_MANIFEST_DIR")).join(PYTHON).exists() {
            assert!(std::env::var_os("CI").is_none(), "{PYTHON} is missing: see tests/run.sh");
            eprintln!("left out: {PYTHON} is missing, see tests/run.sh");
            return None;
        }
        let order = |port: &str, record: &str| vec![port.to_owned(), record.to_owned()];
        Some(Self::start(folder, &[PYTHON, "tests/py/tasks_mcp.py"], order))
    }

    fn count(&self, text: &str) -> usize {
        fs::read_to_string(&self.record).unwrap().lines().filter(|line| line.contains(text)).count()
    }

    async fn until_recorded(&self, text: &str) {
        poll_until(text, async || (self.count(text) > 0).then_some(())).await;
    }
}

impl Drop for McpProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a server with an agent that has the tools of an MCP server, once the agent has them.
async fn start(
    folder: &Path,
    provider: &Provider,
    mcp: &McpProcess,
    store: Option<&str>,
) -> Replica {
    start_with(folder, provider, &[("works", mcp)], store).await
}

/// Like [`start`], with several MCP servers by their names, in the order of the agent's list.
async fn start_with(
    folder: &Path,
    provider: &Provider,
    servers: &[(&str, &McpProcess)],
    store: Option<&str>,
) -> Replica {
    let file = folder.join("config.toml");
    let provider = provider.url();
    let tools: Vec<_> = servers.iter().map(|(name, _)| format!("mcp:{name}")).collect();
    let mut config = format!(
        "[agents.clerk]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{provider}\"\n\
         api_key_env = \"AGUI_KEY_CLERK\"\ntools = {tools:?}\n"
    );
    for (name, mcp) in servers {
        config +=
            &format!("[mcp.{name}]\nurl = \"{}\"\nrequired = true\nrepeat = \"keyed\"\n", mcp.url);
    }
    fs::write(&file, config).unwrap();
    let (data, file) = (folder.to_str().unwrap(), file.to_str().unwrap());
    let mut environment = vec![("AGUI_SERVER__DRAIN_SECS", "0"), ("AGUI_KEY_CLERK", "key")];
    environment.push(store.map_or(("AGUI_SERVER__DATA_DIR", data), |url| ("AGUI_STORE__URL", url)));
    let server = Replica::start_with(&["--config", file], &environment);
    server.until_answered("/readyz", 200).await;
    server
}

fn answer_of_call(name: &str, arguments: &Value) -> Answer {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let calls = json!([{ "index": 0, "id": "c0", "type": "function", "function": function }]);
    let choice =
        json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" });
    Answer::openai(&[json!({ "choices": [choice] })])
}

fn answer_of_text(text: &str) -> Answer {
    Answer::openai(&[
        json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": "stop" }] }),
    ])
}

async fn run(server: &Replica, input: &Value) -> Vec<Value> {
    events(&server.post(input).await.text().await.unwrap())
}

fn interrupts(events: &[Value]) -> &[Value] {
    let outcome = &events.last().unwrap()["outcome"];
    outcome["interrupts"].as_array().unwrap_or_else(|| panic!("{events:?}"))
}

fn result(events: &[Value]) -> &str {
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT");
    result.unwrap_or_else(|| panic!("{events:?}"))["content"].as_str().unwrap()
}

/// Returns a request that resolves interrupts.
fn resume(run: &str, replies: &[(&Value, Value)]) -> Value {
    let entry = |(interrupt, payload): &(&Value, Value)| json!({ "interruptId": interrupt["id"], "status": "resolved", "payload": payload });
    json!({ "threadId": "t", "runId": run, "messages": [], "resume": replies.iter().map(entry).collect::<Vec<_>>() })
}

/// Each answer comes to a server that was started after the question was asked.
async fn answer_on_other_servers(store: Option<&str>) {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let mcp = McpProcess::start_sdk(folder.path());
    provider.answer(answer_of_call("book", &json!({ "day": "Monday" })));
    let server = start(folder.path(), &provider, &mcp, store).await;
    let asked = run(&server, &ask("r1", "Book a trip.")).await;
    let [terms, who] = interrupts(&asked) else { panic!("{asked:?}") };
    assert_eq!(
        (&who["message"], &who["reason"]),
        (&json!("works asks: Who travels?"), &json!("input_required"))
    );
    assert_eq!(who["responseSchema"]["required"], json!(["name"]));
    assert_eq!(who["metadata"]["agui-server.mcpServer"], "works");
    assert_eq!(
        (&terms["message"], &terms["reason"]),
        (&json!("works asks: Read the terms"), &json!("authorization"))
    );
    assert_eq!(terms["metadata"]["agui-server.visitUrl"], "https://example.com/terms");
    server.kill();

    let server = start(folder.path(), &provider, &mcp, store).await;
    let replies = [(who, json!({ "name": "Ada" })), (terms, json!({}))];
    let asked = run(&server, &resume("r2", &replies)).await;
    let [meal] = interrupts(&asked) else { panic!("{asked:?}") };
    assert_eq!(meal["message"], "works asks: Which meal for Ada?");
    server.kill();

    let server = start(folder.path(), &provider, &mcp, store).await;
    provider.answer(answer_of_text("Booked."));
    let done = run(&server, &resume("r3", &[(meal, json!({ "meal": "soup" }))])).await;
    assert_eq!(result(&done), "booked: Monday, Ada, soup");
    assert_eq!(
        (mcp.count("\"begin\""), mcp.count("\"end\""), mcp.count("\"tools/call\"")),
        (1, 1, 3)
    );
}

#[tokio::test]
async fn an_answer_after_a_restart_continues_the_call_that_asked() {
    answer_on_other_servers(None).await;
}

#[tokio::test]
async fn an_answer_on_another_replica_continues_the_call_that_asked() {
    let Some(postgres) = Postgres::shared() else { return };
    answer_on_other_servers(Some(&postgres.database("mcp_rounds").await)).await;
}

#[tokio::test]
async fn a_detached_run_waits_for_a_task_over_the_loss_of_its_server() {
    for signal in ["-KILL", "-TERM"] {
        let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
        let Some(mcp) = McpProcess::start_tasks(folder.path()) else { return };
        provider.answer(answer_of_call("crunch", &json!({ "seconds": 4 })));
        let server = start(folder.path(), &provider, &mcp, None).await;
        let mut started = server.run(&ask_detached("r", "Crunch.")).await;
        // The task's id is in the log before its progress is shown. Without the id, the call is
        // made again.
        while started.next().await.is_some_and(|received| received.name() != "ACTIVITY_SNAPSHOT") {}
        server.process.signal(signal);
        server.end();
        drop(started);

        provider.answer(answer_of_text("It is done."));
        let server = start(folder.path(), &provider, &mcp, None).await;
        let thread = server.until_status("finished").await;
        let texts =
            thread["messages"].as_array().unwrap().iter().filter(|it| it["role"] != "activity");
        let texts: Vec<_> = texts.map(|it| it["content"].as_str()).collect();
        assert_eq!(
            texts,
            [Some("Crunch."), None, Some("crunched"), Some("It is done.")],
            "{signal}"
        );
        assert_eq!(
            (mcp.count("begin"), mcp.count("end"), mcp.count("cancelled")),
            (1, 1, 0),
            "{signal}"
        );
    }
}

#[tokio::test]
async fn a_call_of_a_lost_server_is_not_made_at_another_mcp_server_whose_tool_has_the_name_now() {
    let (folder, other_folder, provider) =
        (tempdir().unwrap(), tempdir().unwrap(), Provider::start().await);
    let (works, other) =
        (McpProcess::start_sdk(folder.path()), McpProcess::start_sdk(other_folder.path()));
    provider.answer(answer_of_call("steps", &json!({ "count": 500, "millis": 20 })));
    let server = start(folder.path(), &provider, &works, None).await;
    let started = server.post(&ask_detached("r", "Step.")).await;
    works.until_recorded("tools/call").await;
    server.kill();
    drop(started);

    provider.answer(answer_of_text("It is over."));
    let server =
        start_with(folder.path(), &provider, &[("other", &other), ("works", &works)], None).await;
    let thread = server.until_status("finished").await;
    let texts = thread["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    let texts: Vec<_> = texts.map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Error: there is no tool \"steps\" any more"]);
    assert_eq!((works.count("tools/call"), other.count("tools/call")), (1, 0));
}

#[tokio::test]
async fn a_task_that_asks_continues_with_the_answer_of_a_server_that_was_started_later() {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let Some(mcp) = McpProcess::start_tasks(folder.path()) else { return };
    provider.answer(answer_of_call("choose", &json!({})));
    let server = start(folder.path(), &provider, &mcp, None).await;
    let asked = run(&server, &ask("r1", "Choose.")).await;
    let [grain] = interrupts(&asked) else { panic!("{asked:?}") };
    assert_eq!(
        (&grain["message"], &grain["reason"]),
        (&json!("works asks: Which grain?"), &json!("input_required"))
    );
    server.kill();

    let server = start(folder.path(), &provider, &mcp, None).await;
    let asked = run(&server, &resume("r2", &[(grain, json!({ "value": "rye" }))])).await;
    let [amount] = interrupts(&asked) else { panic!("{asked:?}") };
    assert_eq!(amount["message"], "works asks: How much rye?");
    provider.answer(answer_of_text("Ground."));
    let done = run(&server, &resume("r3", &[(amount, json!({ "value": "a sack" }))])).await;
    assert_eq!(result(&done), "a sack of rye");
    assert_eq!((mcp.count("asked"), mcp.count("ground"), mcp.count("cancelled")), (2, 1, 0));

    provider.answer(answer_of_call("choose", &json!({})));
    let asked = run(&server, &ask("r4", "Choose again.")).await;
    let entry = json!([{ "interruptId": interrupts(&asked)[0]["id"], "status": "cancelled" }]);
    provider.answer(answer_of_text("Then not."));
    let declined =
        run(&server, &json!({ "threadId": "t", "runId": "r5", "messages": [], "resume": entry }))
            .await;
    assert_eq!(result(&declined), "nothing: decline");
}

#[tokio::test]
async fn a_task_shows_its_status_and_is_cancelled_with_its_run() {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let Some(mcp) = McpProcess::start_tasks(folder.path()) else { return };
    let server = start(folder.path(), &provider, &mcp, None).await;
    provider.answer(answer_of_call("crunch", &json!({ "seconds": 2 })));
    provider.answer(answer_of_text("Done."));
    let events = run(&server, &ask("r1", "Crunch.")).await;
    assert_eq!(result(&events), "crunched");
    let progress =
        events.iter().filter(|event| event["activityType"] == "agui-server.tool_progress");
    let shown: Vec<_> =
        progress.map(|event| event["content"]["message"].as_str().unwrap()).collect();
    assert!(shown.len() > 2 && shown.iter().all(|text| text.starts_with("step ")), "{shown:?}");

    provider.answer(answer_of_call("fail", &json!({})));
    provider.answer(answer_of_text("Sorry."));
    let events = run(&server, &ask("r2", "Fail.")).await;
    assert!(result(&events).contains("no grain"), "{}", result(&events));

    provider.answer(answer_of_call("crunch", &json!({ "seconds": 60 })));
    let started = server.post(&ask("r3", "Crunch more.")).await;
    poll_until("the second task begins", async || (mcp.count("begin") == 2).then_some(())).await;
    server.request(Method::POST, "/threads/t/runs/r3/cancel").send().await.unwrap();
    drop(started);
    mcp.until_recorded("cancelled").await;
}
