//! MCP servers made with the official Python SDK (`tests/py/sdk_mcp.py`), which speaks all revisions.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
};

use agui_server::tools::mcp::{McpRevision, McpServerOptions};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::tools::support::{McpFixture, context, error_message, text};

const PYTHON: &str = "tests/.venv-mcp/bin/python";

/// Returns the Python with the packages of the tests; `None` to leave a test out.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(PYTHON);
    if python.exists() {
        return Some(python);
    }
    assert!(std::env::var_os("CI").is_none(), "{PYTHON} is missing: see tests/run.sh");
    eprintln!("left out: {PYTHON} is missing, see tests/run.sh");
    None
}

/// Starts a server over HTTP. Returns its options and its process.
fn start(script: &str, mode: &str) -> (McpServerOptions, Child) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(PYTHON));
    command
        .args([script, mode, &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    (McpServerOptions::url(format!("http://127.0.0.1:{port}/mcp")), command.spawn().unwrap())
}

#[tokio::test]
async fn the_python_sdk_is_used_over_each_transport() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(python) = python() else { return };
    let script = root.join("tests/py/sdk_mcp.py");
    let script = script.to_str().unwrap();
    for mode in ["stdio", "http", "json"] {
        let (options, _process) = match mode {
            "stdio" => {
                (McpServerOptions::command([python.to_str().unwrap(), script, "stdio"]), None)
            }
            mode => {
                let (options, process) = start(script, mode);
                (options, Some(process))
            }
        };
        let mcp = McpFixture::new(options).connected().await;
        assert_eq!(text(mcp.call("echo", json!({ "text": "ahoy" })).await), "ahoy", "{mode}");
        assert_eq!(text(mcp.call("steps", json!({ "count": 3 })).await), "done", "{mode}");
        let (greet, cx) = (mcp.tool("greet"), context());
        assert!(
            greet.tool.call(Default::default(), &cx).await.unwrap_err().is_question(),
            "{mode}"
        );
        assert_eq!(
            cx.take_questions()[0].message.as_deref(),
            Some("test asks: Who is there?"),
            "{mode}"
        );
    }
}

/// `ctx.elicit` of FastMCP is refused on connections of 2026-07-28, after the tool has begun.
#[tokio::test]
async fn a_tool_of_fastmcp_that_asks_while_it_runs_needs_the_option_revision() {
    if python().is_none() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/py/elicit_mcp.py");
    let (mut options, _process) = start(script.to_str().unwrap(), "http");
    let mcp = McpFixture::new(options.clone()).connected().await;
    let error = error_message(mcp.call("book", json!({})).await);
    assert!(error.contains("`revision = \"2025-11-25\"` of [mcp.test]"), "{error}");
    assert_eq!(text(mcp.call("count", json!({})).await), "1");

    options.revision = Some(McpRevision::V2025_11_25);
    let mcp = McpFixture::new(options).connected().await;
    let (book, cx) = (mcp.tool("book"), context());
    assert!(book.tool.call(Default::default(), &cx).await.unwrap_err().is_question());
    assert_eq!(cx.take_questions()[0].message.as_deref(), Some("test asks: Which day?"));
}
