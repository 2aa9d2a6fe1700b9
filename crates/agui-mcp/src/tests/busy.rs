//! A process that answers no ping while it works on a call.

use std::{sync::Arc, time::Duration};

use rmcp::model::{CallToolRequest, CallToolRequestParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    sync::watch,
    time::sleep,
};

use crate::{McpServerOptions, call::McpCaller, session::McpSession, supervisor::Supervisor};
use agui_tools::{ToolContext, host::Secrets};

/// A server that reads no message for 100 seconds after a call of `work`, which it then answers. It answers no other call.
async fn serve(stream: DuplexStream) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let mut result = match request["method"].as_str().unwrap_or_default() {
            "server/discover" => {
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
            }
            "tools/list" => json!({ "tools": [] }),
            "tools/call" if request["params"]["name"] == "work" => {
                sleep(Duration::from_secs(100)).await;
                json!({ "content": "worked" })
            }
            _ => continue,
        };
        result["resultType"] = "complete".into();
        (result["ttlMs"], result["cacheScope"]) = (0.into(), "private".into());
        let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        output.write_all(format!("{response}\n").as_bytes()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_answers_no_ping_keeps_its_calls_and_is_used_again() {
    let (ours, theirs) = tokio::io::duplex(4096);
    tokio::spawn(serve(theirs));
    let mut options = McpServerOptions::command(["x"]);
    options.timeout = Duration::from_secs(120);
    let transport = options.transport(None).unwrap();
    let caller =
        Arc::new(McpCaller::new("test".into(), options, Secrets::default(), None).unwrap());
    let supervisor =
        Supervisor { caller: caller.clone(), transport, tools: watch::Sender::default() };
    let mut session = McpSession::over(ours).await;
    let call = async |name: &'static str, after: u64| {
        sleep(Duration::from_secs(after)).await;
        let request = CallToolRequest::new(CallToolRequestParams::new(name));
        caller
            .send_once(request.into(), &ToolContext::for_test("tool"))
            .await
            .map(|(value, _)| value)
    };
    let calls = async {
        // The first call times out at 121 s, while the server works on the second: it answers no ping from 121 s to 131 s.
        let (hanging, worked, late) =
            tokio::join!(call("hang", 1), call("work", 60), call("work", 135));
        assert!(hanging.unwrap_err().message().contains("did not answer within 120 s"));
        assert_eq!(worked.unwrap()["content"], "worked");
        assert!(late.unwrap_err().message().contains("is not available"));
        call("work", 60).await.unwrap()
    };
    tokio::select! {
        reason = supervisor.follow(&mut session) => panic!("the session is given up: {reason}"),
        again = calls => assert_eq!(again["content"], "worked"),
    }
}
