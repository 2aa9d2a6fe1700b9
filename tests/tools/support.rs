//! MCP servers that are processes, and calls to their tools.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::{
    protocol::MessageContent,
    tools::{
        OfferedTool, ToolContext, ToolError, Toolbox,
        mcp::{McpOptions, McpServer, McpTransport},
    },
};
use serde_json::Value;

/// Longer than anything here takes; a test that waits for it has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn context() -> ToolContext {
    ToolContext::for_test("tool")
}

pub async fn call(tool: &OfferedTool, arguments: Value) -> Result<MessageContent, ToolError> {
    let arguments = tool.validator.check(&arguments.to_string()).unwrap();
    tokio::time::timeout(PATIENCE, tool.tool.call(arguments, &context())).await.unwrap()
}

pub fn text(result: Result<MessageContent, ToolError>) -> String {
    match result.unwrap() {
        MessageContent::Text(text) => text,
        parts => panic!("{parts:?}"),
    }
}

pub fn message(result: Result<MessageContent, ToolError>) -> String {
    result.unwrap_err().message().to_owned()
}

/// An MCP server with a word in its command line that no other process has.
pub struct Mcp {
    pub server: Arc<McpServer>,
    pub toolbox: Toolbox,
    pub word: String,
}

impl Mcp {
    pub fn node(script: &Path, arguments: &[&str], change: impl FnOnce(&mut McpOptions)) -> Self {
        let word = format!("agui-test-{}", agui_server::protocol::RunId::random().as_str());
        let arguments = [&[script.to_str().unwrap()], arguments, &[&word]].concat();
        let arguments = arguments.into_iter().map(ToOwned::to_owned).collect();
        let transport = McpTransport::Command { program: "node".to_owned(), arguments, environment: vec![] };
        Self::new(transport, word, change)
    }

    pub fn new(transport: McpTransport, word: String, change: impl FnOnce(&mut McpOptions)) -> Self {
        let mut options = McpOptions::new("test", transport);
        change(&mut options);
        let server = Arc::new(McpServer::new(options));
        Self { toolbox: Toolbox::new().source(server.clone()), server, word }
    }

    pub async fn ready(self) -> Self {
        tokio::time::timeout(PATIENCE, self.toolbox.ready()).await.unwrap();
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

    /// The processes of this server.
    pub fn processes(&self) -> Vec<u32> {
        processes(&self.word)
    }
}

/// The processes, but for dead ones, that have a word in their command line.
pub fn processes(word: &str) -> Vec<u32> {
    let listed = std::process::Command::new("ps").args(["-eo", "pid=,stat=,args="]).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    let found = listed.lines().filter(|line| line.contains(word)).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (pid, state) = (fields.next()?.parse().ok()?, fields.next()?);
        (!state.starts_with('Z')).then_some(pid)
    });
    found.collect()
}

pub fn kill(pid: u32) {
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// Waits until something is so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn everything() -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/js/node_modules");
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    assert!(script.exists(), "install the npm packages of the tests first: npm --prefix tests/js ci");
    script
}

pub fn fake() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/fake-mcp.mjs")
}
