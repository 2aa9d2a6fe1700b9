//! MCP servers as processes, and calls to tools.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agui_server::{
    agent::{Principal, RunContext},
    protocol::{MessageContent, RunId},
    tools::{
        OfferedTool, ToolContext, ToolError, Toolbox,
        mcp::{McpServer, McpServerOptions},
    },
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::running::TEST_TIMEOUT;

/// Returns the surroundings of a call by a caller with these request headers.
pub fn context_of(principal: Option<Principal>, headers: &[(&str, &str)]) -> ToolContext {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ToolContext::new(
        RunContext::new("t", "r", "a").with_caller(principal, headers),
        json!({}),
        "c",
        "tool",
    )
}

pub fn context() -> ToolContext {
    ToolContext::for_test("tool")
}

/// Checks the arguments against the schema, and calls a tool.
pub async fn call(tool: &OfferedTool, arguments: Value) -> Result<MessageContent, ToolError> {
    let arguments = tool.validator.check(&arguments.to_string()).await.unwrap();
    tokio::time::timeout(TEST_TIMEOUT, tool.tool.call(arguments, &context())).await.unwrap()
}

/// Calls a tool until it succeeds: a server that was started again needs some time.
pub async fn call_until_success(tool: &OfferedTool, arguments: Value) -> MessageContent {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        match call(tool, arguments.clone()).await {
            Ok(content) => return content,
            Err(error) => assert!(Instant::now() < deadline, "the call never succeeds: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn text(result: Result<MessageContent, ToolError>) -> String {
    match result.unwrap() {
        MessageContent::Text(text) => text,
        parts => panic!("{parts:?}"),
    }
}

pub fn error_message(result: Result<MessageContent, ToolError>) -> String {
    result.unwrap_err().message().to_owned()
}

/// Returns a word for a command line that no other process has.
pub fn unique_word() -> String {
    format!("agui-test-{}", RunId::random().as_str())
}

/// An MCP server named `test`, whose process has a unique word in its command line.
pub struct McpFixture {
    pub server: Arc<McpServer>,
    pub toolbox: Toolbox,
    pub word: String,
}

impl McpFixture {
    /// A server that is a Node script.
    pub fn node(
        script: &Path,
        arguments: &[&str],
        change: impl FnOnce(&mut McpServerOptions),
    ) -> Self {
        let word = unique_word();
        let command = ["node", script.to_str().unwrap()]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain([&*word]);
        let mut options = McpServerOptions::command(command);
        change(&mut options);
        Self { word, ..Self::new(options) }
    }

    pub fn new(options: McpServerOptions) -> Self {
        let server = Arc::new(McpServer::new("test", options).unwrap());
        Self { toolbox: Toolbox::new().source(server.clone()), server, word: String::new() }
    }

    pub async fn ready(self) -> Self {
        tokio::time::timeout(TEST_TIMEOUT, self.toolbox.ready()).await.unwrap();
        self
    }

    /// Waits until the server is connected, which takes some that are slow to start more than 10 seconds.
    pub async fn connected(self) -> Self {
        self.server.start();
        let connected = async {
            while !self.server.is_connected() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT * 4, connected)
            .await
            .expect("the server is not connected");
        self
    }

    pub fn names(&self) -> Vec<String> {
        self.toolbox.tools().iter().map(|tool| tool.name().to_owned()).collect()
    }

    pub fn tool(&self, name: &str) -> OfferedTool {
        let found = self.toolbox.tools().into_iter().find(|tool| tool.name() == name);
        found.unwrap_or_else(|| panic!("there is no {name} among {:?}", self.names()))
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Result<MessageContent, ToolError> {
        call(&self.tool(name), arguments).await
    }

    /// Returns the ids of this server's processes.
    pub fn processes(&self) -> Vec<u32> {
        processes(&self.word)
    }
}

/// Returns the ids of the processes, except zombies, that have a word in their command line.
pub fn processes(word: &str) -> Vec<u32> {
    let listed =
        std::process::Command::new("ps").args(["-eo", "pid=,stat=,args="]).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    let found = listed.lines().filter(|line| line.contains(word)).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (pid, state) = (fields.next()?.parse().ok()?, fields.next()?);
        (!state.starts_with('Z')).then_some(pid)
    });
    found.collect()
}

pub fn kill(pid: u32) {
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Returns the script of npm's `@modelcontextprotocol/server-everything`.
pub fn everything_script() -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/js/node_modules");
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    assert!(
        script.exists(),
        "install the npm packages of the tests first: npm --prefix tests/js ci"
    );
    script
}

/// Returns the script of the server that misbehaves.
pub fn fake_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/fake-mcp.mjs")
}
