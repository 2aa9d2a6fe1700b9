//! The real thing: npm's `@modelcontextprotocol/server-everything`, over stdio and over streamable HTTP.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use agui_server::{
    protocol::{ContentPart, MessageContent, PartSource},
    tools::mcp::McpTransport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::support::{Mcp, call, everything, kill, message, text, until};

/// What it can do, whichever way it is reached.
async fn answers_everything(mcp: &Mcp) {
    assert!(mcp.names().len() > 5, "{:?}", mcp.names());
    assert_eq!(text(mcp.call("echo", json!({ "message": "Grüße\n✓" })).await), "Echo: Grüße\n✓");
    let sum = text(mcp.call("get-sum", json!({ "a": 2, "b": 3 })).await);
    assert!(sum.contains('5'), "{sum}");
    let wrong = mcp.tool("get-sum").validator.check(r#"{"a":"two"}"#).unwrap_err();
    assert!(wrong.contains("/a: ") && wrong.contains("\"b\" is a required property"), "{wrong}");
    let MessageContent::Parts(parts) = mcp.call("get-tiny-image", json!({})).await.unwrap() else { panic!() };
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
async fn over_stdio_it_answers() {
    let mcp = Mcp::node(&everything(), &["stdio"], |_| {}).ready().await;
    answers_everything(&mcp).await;
}

#[tokio::test]
async fn its_environment_is_its_own() {
    let mcp = Mcp::node(&everything(), &["stdio"], |options| {
        if let McpTransport::Command { environment, .. } = &mut options.transport {
            environment.push(("GREETING".into(), "hello".into()));
        }
    });
    let mcp = mcp.ready().await;
    let environment: Value = serde_json::from_str(&text(mcp.call("get-env", json!({})).await)).unwrap();
    let environment = environment.as_object().unwrap();
    assert_eq!(environment["GREETING"], "hello");
    assert!(environment.contains_key("PATH"));
    // cargo gives this to every test.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let known = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "GREETING"];
    for name in environment.keys() {
        assert!(known.contains(&name.as_str()), "{name} is not for others");
    }
}

#[tokio::test]
async fn killed_during_a_call_it_is_started_again() {
    let mcp = Mcp::node(&everything(), &["stdio"], |_| {}).ready().await;
    let long = mcp.tool("trigger-long-running-operation");
    let echo = mcp.tool("echo");
    let running = tokio::spawn(async move { call(&long, json!({ "duration": 60, "steps": 60 })).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!running.is_finished());
    let killed = mcp.processes();
    assert_eq!(killed.len(), 1);
    let begin = Instant::now();
    kill(killed[0]);
    let error = message(running.await.unwrap());
    assert_eq!(
        error,
        "The connection to the MCP server `test` broke during the call; whether it was done is not known."
    );
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    until("it is started again", || mcp.processes().len() == 1).await;
    let begin = Instant::now();
    let mut answer = call(&echo, json!({ "message": "again" })).await;
    while answer.is_err() && begin.elapsed() < Duration::from_secs(15) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = call(&echo, json!({ "message": "again" })).await;
    }
    assert_eq!(text(answer), "Echo: again");
    assert_ne!(mcp.processes(), killed);
}

#[tokio::test]
async fn dropped_it_is_gone() {
    let mcp = Mcp::node(&everything(), &["stdio"], |_| {}).ready().await;
    let word = mcp.word.clone();
    assert_eq!(mcp.processes().len(), 1);
    drop(mcp);
    until("it is gone", || crate::support::processes(&word).is_empty()).await;
}

async fn serve(port: u16) -> Child {
    let mut child = Command::new("node")
        .args([everything().to_str().unwrap(), "streamableHttp"])
        .env("PORT", port.to_string())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("listening") {
            // Reads on, so that it can write on.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return child;
        }
    }
    panic!("it does not start");
}

#[tokio::test]
async fn over_http_it_answers_and_is_found_again_after_it_was_gone() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut process = serve(port).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let transport = McpTransport::Http { url, headers: Default::default() };
    let mcp = Mcp::new(transport, String::new(), |_| {}).ready().await;
    answers_everything(&mcp).await;

    let echo = mcp.tool("echo");
    process.kill().await.unwrap();
    message(call(&echo, json!({ "message": "anybody?" })).await);
    let _again = serve(port).await;
    let begin = Instant::now();
    let mut answer = call(&echo, json!({ "message": "again" })).await;
    while answer.is_err() && begin.elapsed() < Duration::from_secs(15) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = call(&echo, json!({ "message": "again" })).await;
    }
    assert_eq!(text(answer), "Echo: again");
}
