//! A real MCP server, npm's `@modelcontextprotocol/server-everything`, over stdio and over streamable HTTP.

use std::process::Stdio;

use agui_server::{
    protocol::{ContentPart, MessageContent, PartSource},
    tools::mcp::McpServerOptions,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{
    support::running::eventually,
    tools::support::{
        McpFixture, call, call_until_success, error_message, everything_script, processes, text,
    },
};

/// Calls tools with each kind of result.
async fn assert_answers(mcp: &McpFixture) {
    assert!(mcp.names().len() > 5, "{:?}", mcp.names());
    assert_eq!(text(mcp.call("echo", json!({ "message": "Grüße\n✓" })).await), "Echo: Grüße\n✓");
    let sum = text(mcp.call("get-sum", json!({ "a": 2, "b": 3 })).await);
    assert!(sum.contains('5'), "{sum}");
    let wrong = mcp.tool("get-sum").validator.check(r#"{"a":"two"}"#).await.unwrap_err();
    assert!(wrong.contains("/a: ") && wrong.contains("\"b\" is a required property"), "{wrong}");
    let MessageContent::Parts(parts) = mcp.call("get-tiny-image", json!({})).await.unwrap() else {
        panic!()
    };
    let image = parts.iter().find_map(|part| match part {
        ContentPart::Image(image) => Some(&image.source),
        _ => None,
    });
    match image {
        Some(PartSource::Data { value, mime_type }) => {
            assert_eq!(mime_type, "image/png");
            assert!(value.starts_with("iVBORw0KGgo"), "{value}");
        }
        other => panic!("{other:?}"),
    }
    let links = text(mcp.call("get-resource-links", json!({ "count": 2 })).await);
    assert!(links.matches("](").count() == 2, "{links}");
    let weather = text(mcp.call("get-structured-content", json!({ "location": "New York" })).await);
    assert!(weather.contains("temperature"), "{weather}");
}

#[tokio::test]
async fn a_real_server_answers_over_stdio() {
    let mcp = McpFixture::node(&everything_script(), &["stdio"], |_| {}).ready().await;
    assert_answers(&mcp).await;
}

#[tokio::test]
async fn a_process_inherits_only_the_variables_that_programs_need() {
    let mcp = McpFixture::node(&everything_script(), &["stdio"], |options| {
        options.env.insert("GREETING".to_owned(), "hello".to_owned());
    });
    let mcp = mcp.ready().await;
    let environment: Value =
        serde_json::from_str(&text(mcp.call("get-env", json!({})).await)).unwrap();
    let environment = environment.as_object().unwrap();
    assert_eq!(environment["GREETING"], "hello");
    assert!(environment.contains_key("PATH"));
    // Cargo sets this variable for tests.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let known = [
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "GREETING",
    ];
    for name in environment.keys() {
        assert!(known.contains(&name.as_str()), "{name} was inherited");
    }
}

#[tokio::test]
async fn dropping_a_server_ends_its_process() {
    let mcp = McpFixture::node(&everything_script(), &["stdio"], |_| {}).ready().await;
    let word = mcp.word.clone();
    assert_eq!(mcp.processes().len(), 1);
    drop(mcp);
    eventually("the process has ended", || processes(&word).is_empty()).await;
}

async fn serve_http(port: u16) -> Child {
    let mut child = Command::new("node")
        .args([everything_script().to_str().unwrap(), "streamableHttp"])
        .env("PORT", port.to_string())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("listening") {
            // A full pipe would block the server.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return child;
        }
    }
    panic!("the server does not start");
}

#[tokio::test]
async fn a_server_over_http_is_connected_again_after_a_restart() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut process = serve_http(port).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mcp = McpFixture::new(McpServerOptions::url(url)).ready().await;
    assert_answers(&mcp).await;

    let echo = mcp.tool("echo");
    process.kill().await.unwrap();
    error_message(call(&echo, json!({ "message": "lost" })).await);
    let _again = serve_http(port).await;
    let answer = call_until_success(&echo, json!({ "message": "again" })).await;
    assert_eq!(answer.text(), "Echo: again");
}
