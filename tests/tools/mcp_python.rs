//! MCP servers made with the official Python SDK (`tests/py/sdk_mcp.py`), which speaks all revisions.

use std::{net::TcpListener, path::Path, process::Stdio};

use agui_server::tools::mcp::McpServerOptions;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::tools::support::{McpFixture, context, text};

const PYTHON: &str = "tests/.venv-mcp/bin/python";

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
    let (python, script) = (root.join(PYTHON), root.join("tests/py/sdk_mcp.py"));
    let script = script.to_str().unwrap();
    if !python.exists() {
        assert!(std::env::var_os("CI").is_none(), "{PYTHON} is missing: see tests/run.sh");
        eprintln!("left out: {PYTHON} is missing, see tests/run.sh");
        return;
    }
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
