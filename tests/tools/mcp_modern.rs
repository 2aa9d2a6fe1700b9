//! MCP servers of the revision 2026-07-28 alone, made with the official SDK (`tests/js/modern-mcp.mjs`): no `initialize`, no
//! session, no `ping`.

use std::{path::PathBuf, process::Stdio};

use agui_server::tools::{
    Toolbox,
    mcp::{McpServer, McpServerOptions},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{
    support::running::{TEST_TIMEOUT, eventually},
    tools::support::{McpFixture, context, error_message, text},
};

const MODES: [&str; 3] = ["stdio", "http", "json"];

/// A server, as a process of the fixture or over HTTP, and the file with its requests.
struct Modern {
    mode: &'static str,
    script: PathBuf,
    folder: tempfile::TempDir,
    port: String,
    process: Option<Child>,
}

impl Modern {
    async fn start(mode: &'static str) -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/js/modern-mcp.mjs");
        let folder = tempfile::tempdir().unwrap();
        let mut modern = Self { mode, script, folder, port: "0".to_owned(), process: None };
        if mode != "stdio" {
            modern.restart().await;
        }
        modern
    }

    fn command(&self) -> Vec<String> {
        let script = self.script.to_str().unwrap();
        let record = self.folder.path().join("record");
        let words = ["node", script, self.mode, &self.port, "record", record.to_str().unwrap()];
        words.map(str::to_owned).into()
    }

    /// Starts the server over HTTP, again on its port.
    async fn restart(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.unwrap();
        }
        let command = self.command();
        let mut child = Command::new(&command[0]);
        let mut process =
            child.args(&command[1..]).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        self.port =
            tokio::time::timeout(TEST_TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
        self.process = Some(process);
    }

    fn options(&self) -> McpServerOptions {
        match self.mode {
            "stdio" => McpServerOptions::command(self.command()),
            _ => McpServerOptions::url(format!("http://127.0.0.1:{}/mcp", self.port)),
        }
    }

    async fn connect(&self) -> McpFixture {
        let mut options = self.options();
        options.apps = true;
        McpFixture::new(options).ready().await
    }

    /// Returns the requests of a method.
    fn received(&self, method: &str) -> Vec<Value> {
        let record = std::fs::read_to_string(self.folder.path().join("record")).unwrap_or_default();
        let entries = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["method"] == method).collect()
    }
}

#[tokio::test]
async fn a_server_without_initialize_session_and_ping_is_used() {
    for mode in MODES {
        let modern = Modern::start(mode).await;
        let mcp = modern.connect().await;
        assert_eq!(text(mcp.call("echo", json!({ "text": "ahoy" })).await), "ahoy", "{mode}");
        assert_eq!(modern.received("server/discover").len(), 1, "{mode}");
        for never in ["initialize", "notifications/initialized", "ping", "GET", "DELETE"] {
            assert_eq!(modern.received(never), Vec::<Value>::new(), "{mode}");
        }
        let call = &modern.received("tools/call")[0];
        let meta = |key: &str| &call["params"]["_meta"][format!("io.modelcontextprotocol/{key}")];
        assert_eq!(meta("protocolVersion"), "2026-07-28", "{mode}");
        assert_eq!(meta("clientInfo")["name"], "agui-server");
        let capabilities = meta("clientCapabilities");
        assert!(capabilities["elicitation"]["form"].is_object(), "{capabilities}");
        assert!(
            capabilities["extensions"]["io.modelcontextprotocol/ui"].is_object(),
            "{capabilities}"
        );
        if mode != "stdio" {
            let headers = &call["headers"];
            assert_eq!(headers["mcp-protocol-version"], "2026-07-28", "{headers}");
            assert_eq!(
                (&headers["mcp-method"], &headers["mcp-name"]),
                (&json!("tools/call"), &json!("echo"))
            );
            assert_eq!(headers["mcp-session-id"], Value::Null);
        }
    }
}

#[tokio::test]
async fn a_change_of_the_tools_is_heard_on_the_stream_of_a_subscription() {
    for mode in MODES {
        let modern = Modern::start(mode).await;
        let mcp = modern.connect().await;
        eventually("changes are listened to", || {
            !modern.received("subscriptions/listen").is_empty()
        })
        .await;
        assert!(!mcp.names().contains(&"leaf".to_owned()));
        text(mcp.call("grow", json!({})).await);
        eventually("the new tool is offered", || mcp.names().contains(&"leaf".to_owned())).await;
        let filter = &modern.received("subscriptions/listen")[0]["params"]["notifications"];
        assert_eq!(filter, &json!({ "toolsListChanged": true }), "{mode}");
    }
}

#[tokio::test]
async fn progress_and_cancellation_need_no_session() {
    for mode in ["stdio", "http"] {
        let modern = Modern::start(mode).await;
        let mcp = modern.connect().await;
        let steps = json!({ "count": 3, "millis": 20 });
        assert_eq!(text(mcp.call("steps", steps).await), "done", "{mode}");
        let endless = mcp.call("steps", json!({ "count": 500, "millis": 20 }));
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(500), endless).await.is_err()
        );
        eventually("the call is cancelled", || !modern.received("aborted").is_empty()).await;
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_is_used_again_without_a_handshake() {
    let mut modern = Modern::start("http").await;
    let mcp = modern.connect().await;
    modern.restart().await;
    // On a slow machine the server's end is noticed, and it is connected to again.
    let mcp = mcp.connected().await;
    assert_eq!(text(mcp.call("echo", json!({ "text": "again" })).await), "again");
    assert_eq!(modern.received("initialize").len(), 0);
}

#[tokio::test]
async fn a_server_without_ping_that_takes_too_long_for_a_call_stays_connected() {
    for mode in ["stdio", "json"] {
        let modern = Modern::start(mode).await;
        let mut options = modern.options();
        options.timeout = std::time::Duration::from_millis(1500);
        let mcp = McpFixture::new(options).ready().await;
        let error = error_message(mcp.call("steps", json!({ "count": 1, "millis": 4000 })).await);
        assert!(error.contains("did not answer within"), "{error}");
        eventually("the server is asked if it responds", || {
            modern.received("tools/list").len() == 2
        })
        .await;
        assert_eq!(text(mcp.call("echo", json!({ "text": "still here" })).await), "still here");
        assert_eq!(modern.received("server/discover").len(), 1, "{mode}");
    }
}

#[tokio::test]
async fn a_busy_server_gets_its_state_back_until_it_has_ended_the_call() {
    let modern = Modern::start("json").await;
    let mcp = modern.connect().await;
    assert_eq!(text(mcp.call("busy", json!({})).await), "done in round 3");
    let error = error_message(mcp.call("endless", json!({})).await);
    assert_eq!(error, "The MCP server `test` did not end the call in 16 rounds.");
    // This server offers no model.
    let error = error_message(mcp.call("sample", json!({})).await);
    assert!(error.contains("sampling"), "{error}");
}

#[tokio::test]
async fn a_prompt_can_ask_and_a_server_that_may_not_ask_is_told_so() {
    let modern = Modern::start("http").await;
    let mcp = modern.connect().await;
    let toolbox = Toolbox::new().source(McpServer::prompts(&mcp.server));
    let prompts = McpFixture { toolbox, ..mcp };
    let arguments = json!({ "name": "greet", "arguments": { "who": "Ada" } });
    let (tool, cx) = (prompts.tool("test_get_prompt"), context());
    let asked = tool.tool.call(arguments.as_object().unwrap().clone(), &cx).await.unwrap_err();
    assert!(asked.is_question(), "{asked:?}");
    assert_eq!(cx.take_questions()[0].message.as_deref(), Some("test asks: How?"));

    let mut options = modern.options();
    options.elicitation = false;
    let mcp = McpFixture::new(options).ready().await;
    assert!(!mcp.call("book", json!({ "day": "Monday" })).await.unwrap_err().is_question());
}

#[tokio::test]
async fn a_process_that_starts_too_slowly_for_the_library_is_asked_for_its_revisions_again() {
    let modern = Modern::start("stdio").await;
    let mcp = McpFixture::new(McpServerOptions::command(
        modern.command().into_iter().chain(["slow".to_owned()]),
    ));
    let mcp = mcp.connected().await;
    assert_eq!(text(mcp.call("echo", json!({ "text": "late" })).await), "late");
    let count = |method: &str| modern.received(method).len();
    // On a busy machine, the second process can be late as well.
    assert!(count("server/discover") >= 2, "{}", count("initialize"));
}

#[tokio::test]
async fn a_call_of_an_unknown_resource_is_refused_as_in_older_revisions() {
    let modern = Modern::start("http").await;
    let mcp = modern.connect().await;
    let toolbox = Toolbox::new().source(McpServer::resources(&mcp.server));
    let mcp = McpFixture { toolbox, ..mcp };
    let rules = text(mcp.call("test_read_resource", json!({ "uri": "house://rules" })).await);
    assert_eq!(rules, "house://rules:\nNo shoes.");
    let missing =
        error_message(mcp.call("test_read_resource", json!({ "uri": "house://attic" })).await);
    assert!(missing.starts_with("The MCP server `test` refuses the call"), "{missing}");
}
