//! MCP servers that hang, talk nonsense, die, or never answer: none of them costs more than its own tools.

use std::time::{Duration, Instant};

use agui_server::tools::mcp::McpOptions;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Mcp, fake, message, processes, text, until};

struct Fake {
    mcp: Mcp,
    folder: TempDir,
}

impl Fake {
    fn new(mode: &str, change: impl FnOnce(&mut McpOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        Self { mcp: Mcp::node(&fake(), &[mode, record.to_str().unwrap()], change), folder }
    }

    async fn ready(mode: &str) -> Self {
        let Self { mcp, folder } = Self::new(mode, |_| {});
        Self { mcp: mcp.ready().await, folder }
    }

    /// What it got.
    fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn got(&self, method: &str) -> Vec<Value> {
        self.record().into_iter().filter(|message| message["method"] == method).collect()
    }
}

#[tokio::test]
async fn tools_of_all_pages_are_listed_but_for_broken_ones() {
    let fake = Fake::ready("normal").await;
    let mut names = fake.mcp.names();
    names.sort();
    assert_eq!(names, ["die", "echo", "fail", "grow", "huge", "odd_name__", "refuse", "slow", "spawn", "unknown"]);
    assert_eq!(text(fake.mcp.call("echo", json!({ "a": ["é"] })).await), r#"{"a":["é"]}"#);
    // Asked for by a name that models could not use.
    let _ = tokio::time::timeout(Duration::from_millis(200), fake.mcp.call("odd_name__", json!({}))).await;
    until("it is called by its own name", || {
        fake.got("tools/call").iter().any(|call| call["params"]["name"] == "odd name/é")
    })
    .await;
}

#[tokio::test]
async fn only_the_tools_that_are_allowed_are_there_under_their_prefix() {
    let fake = Fake::new("normal", |options| {
        options.tools = Some(vec!["echo".into(), "fail".into(), "not there".into()]);
        options.prefix = "my_".into();
    });
    let mcp = fake.mcp.ready().await;
    assert_eq!(mcp.names(), ["my_fail", "my_echo"]);
    assert_eq!(text(mcp.call("my_echo", json!({})).await), "{}");
}

#[tokio::test]
async fn errors_are_told_as_the_server_tells_them() {
    let fake = Fake::ready("normal").await;
    assert_eq!(message(fake.mcp.call("fail", json!({})).await), "no such file");
    let refused = message(fake.mcp.call("refuse", json!({})).await);
    assert_eq!(refused, "The MCP server `test` refuses the call: never heard of it");
    let strange = text(fake.mcp.call("unknown", json!({})).await);
    assert_eq!(strange, "[something of the unknown type \"hologram\"]\nand text");
    let huge = text(fake.mcp.call("huge", json!({})).await);
    assert!(huge.len() < 1_100_000 && huge.ends_with("[cut here: the result is larger than 1048576 bytes]"));
}

#[tokio::test]
async fn tools_that_are_added_later_are_there_and_the_others_stay_the_same() {
    let fake = Fake::ready("normal").await;
    let before = fake.mcp.tool("echo");
    text(fake.mcp.call("grow", json!({})).await);
    until("the new tool is listed", || fake.mcp.names().contains(&"grown".to_owned())).await;
    let after = fake.mcp.tool("echo");
    assert!(std::sync::Arc::ptr_eq(&before.validator, &after.validator));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let fake = Fake::ready("normal").await;
    let dropped = tokio::time::timeout(Duration::from_millis(300), fake.mcp.call("slow", json!({}))).await;
    assert!(dropped.is_err());
    until("the server is told", || !fake.got("notifications/cancelled").is_empty()).await;
    assert!(!fake.got("notifications/cancelled")[0]["params"]["requestId"].is_null());
    // Others go on.
    assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}");
    assert_eq!(fake.got("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn a_call_that_is_not_answered_times_out_and_is_cancelled() {
    let fake = Fake::new("normal", |options| options.timeout = Duration::from_millis(300));
    let fake = Fake { mcp: fake.mcp.ready().await, ..fake };
    let error = message(fake.mcp.call("slow", json!({})).await);
    assert_eq!(error, "The MCP server `test` did not answer within 0.3 s.");
    until("the server is told", || !fake.got("notifications/cancelled").is_empty()).await;
    // It answers the ping, and so is left alone.
    until("the server is asked", || !fake.got("ping").is_empty()).await;
    assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}");
    assert_eq!(fake.record().iter().filter(|line| line["pid"].is_number()).count(), 1);
}

#[tokio::test]
async fn a_server_that_answers_nothing_any_more_is_started_again() {
    let fake = Fake::new("silent", |options| options.timeout = Duration::from_millis(300));
    let fake = Fake { mcp: fake.mcp.ready().await, ..fake };
    message(fake.mcp.call("echo", json!({})).await);
    until("it is started again", || fake.record().iter().filter(|line| line["pid"].is_number()).count() == 2).await;
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_is_started_again() {
    let fake = Fake::ready("normal").await;
    let begin = Instant::now();
    let error = message(fake.mcp.call("die", json!({})).await);
    assert!(error.contains("`test` broke during the call"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(2));
    // Its tools are still known.
    let echo = fake.mcp.tool("echo");
    until("it is noticed", || fake.mcp.processes().is_empty()).await;
    let error = message(crate::support::call(&echo, json!({})).await);
    assert!(error.contains("not available") || error.contains("broke"), "{error}");
    until("it is there again", || !fake.got("tools/list").is_empty() && fake.mcp.processes().len() == 1).await;
    let begin = Instant::now();
    let answer = loop {
        match crate::support::call(&echo, json!({})).await {
            Ok(answer) => break answer,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        assert!(begin.elapsed() < Duration::from_secs(10));
    };
    assert_eq!(answer.text(), "{}");
}

#[tokio::test]
async fn a_server_that_fails_to_start_is_started_again_later() {
    let fake = Fake::ready("once").await;
    assert!(fake.mcp.names().is_empty());
    until("it has come up", || !fake.mcp.names().is_empty()).await;
}

#[tokio::test]
async fn what_cannot_be_started_does_not_keep_anybody_waiting() {
    let begin = Instant::now();
    assert!(Fake::ready("exit").await.mcp.names().is_empty());
    let nothing = agui_server::tools::mcp::McpTransport::Command {
        program: "/does/not/exist".into(),
        arguments: vec![],
        environment: vec![],
    };
    assert!(Mcp::new(nothing, "nothing".into(), |_| {}).ready().await.names().is_empty());
    let nobody = agui_server::tools::mcp::McpTransport::Http {
        url: "http://127.0.0.1:1/mcp".into(),
        headers: Default::default(),
    };
    assert!(Mcp::new(nobody, "nobody".into(), |_| {}).ready().await.names().is_empty());
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_server_that_hangs_is_waited_for_only_so_long_and_ends_when_it_is_dropped() {
    let fake = Fake::new("hang", |_| {});
    let waited = tokio::time::timeout(Duration::from_millis(800), fake.mcp.toolbox.ready()).await;
    assert!(waited.is_err() && fake.mcp.names().is_empty());
    until("it hangs", || !fake.got("initialize").is_empty()).await;
    let word = fake.mcp.word.clone();
    assert_eq!(processes(&word).len(), 1);
    drop(fake);
    until("it is killed", || processes(&word).is_empty()).await;
}

#[tokio::test]
async fn nonsense_between_the_messages_is_not_minded() {
    for mode in ["garbage", "noise"] {
        let fake = Fake::ready(mode).await;
        assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}", "{mode}");
    }
}

#[tokio::test]
async fn a_server_with_endless_tools_has_as_many_as_there_may_be() {
    let names = Fake::ready("endless").await.mcp.names();
    assert!((100..=256).contains(&names.len()), "{}", names.len());
}

#[tokio::test]
async fn nothing_outlives_a_server_that_is_stopped_or_dropped() {
    for (mode, stop) in [("normal", true), ("normal", false), ("deaf", true), ("deaf", false)] {
        let fake = Fake::ready(mode).await;
        let grandchild = text(fake.mcp.call("spawn", json!({})).await);
        let (word, server) = (fake.mcp.word.clone(), fake.mcp.server.clone());
        let alive =
            |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(alive(&grandchild));
        if stop {
            server.stop().await;
            assert!(processes(&word).is_empty());
            let error = message(fake.mcp.call("echo", json!({})).await);
            assert!(error.contains("not available"), "{error}");
            server.stop().await;
        }
        drop((fake, server));
        until("it is gone", || processes(&word).is_empty() && !alive(&grandchild)).await;
    }
}
