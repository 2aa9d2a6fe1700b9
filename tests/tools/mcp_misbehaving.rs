//! MCP servers that hang, send invalid messages, end, or never answer. Only their own tools are affected.

use std::time::{Duration, Instant};

use agui_server::{
    agent::Principal,
    protocol::{JsonObject, MessageContent},
    tools::{ToolContext, ToolError, Toolbox, mcp::McpServerOptions},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    support::running::{TEST_TIMEOUT, eventually},
    tools::support::{
        McpFixture, call, call_until_success, context, context_of, error_message, fake_script,
        kill, processes, text,
    },
};

/// The server `fake-mcp.mjs`, which records the messages that it receives.
struct FakeServer {
    mcp: McpFixture,
    folder: TempDir,
}

impl FakeServer {
    fn new(mode: &str, change: impl FnOnce(&mut McpServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        Self {
            mcp: McpFixture::node(&fake_script(), &[mode, record.to_str().unwrap()], change),
            folder,
        }
    }

    async fn ready(mode: &str) -> Self {
        Self::ready_with(mode, |_| {}).await
    }

    async fn ready_with(mode: &str, change: impl FnOnce(&mut McpServerOptions)) -> Self {
        let Self { mcp, folder } = Self::new(mode, change);
        Self { mcp: mcp.ready().await, folder }
    }

    /// Returns the messages that the server has received, and a `pid` for each of its starts.
    fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    async fn call_in(&self, tool: &str, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let tool = self.mcp.tool(tool);
        tokio::time::timeout(TEST_TIMEOUT, tool.tool.call(JsonObject::new(), cx)).await.unwrap()
    }

    fn received(&self, method: &str) -> Vec<Value> {
        self.record().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Returns whether the server has received a call of a tool.
    fn was_called(&self, tool: &str) -> bool {
        self.received("tools/call").iter().any(|call| call["params"]["name"] == tool)
    }

    fn starts(&self) -> usize {
        self.record().iter().filter(|line| line["pid"].is_number()).count()
    }
}

#[tokio::test]
async fn tools_of_all_pages_are_listed_except_those_with_invalid_schemas() {
    let fake = FakeServer::ready("normal").await;
    let mut names = fake.mcp.names();
    names.sort();
    // The schema of `bomb` describes 2^36 checks.
    assert_eq!(
        names,
        [
            "die",
            "echo",
            "email",
            "fail",
            "grow",
            "huge",
            "no_schema-PY30Loe23qAf",
            "nulls",
            "odd_name__-3DpJNcYYTBER",
            "refuse",
            "slow",
            "spawn",
            "unknown"
        ]
    );
    assert_eq!(text(fake.mcp.call("echo", json!({ "a": ["é"] })).await), r#"{"a":["é"]}"#);
    tokio::select! {
        _ = fake.mcp.call("odd_name__-3DpJNcYYTBER", json!({})) => panic!("the fake server does not answer this"),
        () = eventually("the tool is called by the server's name for it", || fake.was_called("odd name/é")) => {}
    }
}

#[tokio::test]
async fn only_configured_tools_are_offered_with_their_prefix() {
    let fake = FakeServer::ready_with("normal", |options| {
        options.tools = Some(vec!["echo".into(), "fail".into(), "not there".into()]);
        options.prefix = "my_".into();
    });
    let fake = fake.await;
    assert_eq!(fake.mcp.names(), ["my_fail", "my_echo"]);
    assert_eq!(text(fake.mcp.call("my_echo", json!({})).await), "{}");
}

#[tokio::test]
async fn errors_and_unusual_results_are_passed_to_the_model() {
    let fake = FakeServer::ready("normal").await;
    assert_eq!(error_message(fake.mcp.call("fail", json!({})).await), "no such file");
    let refused = error_message(fake.mcp.call("refuse", json!({})).await);
    assert_eq!(refused, "The MCP server `test` refuses the call: never heard of it");
    let strange = text(fake.mcp.call("unknown", json!({})).await);
    assert_eq!(strange, "[content of the unknown type \"hologram\"]\nand text");
    let huge = text(fake.mcp.call("huge", json!({})).await);
    assert!(
        huge.len() < 1_100_000
            && huge.ends_with("[cut here: the result is larger than 1048576 bytes]")
    );
}

#[tokio::test]
async fn an_added_tool_is_listed_and_the_others_keep_their_schemas() {
    let fake = FakeServer::ready("normal").await;
    let before = fake.mcp.tool("echo");
    text(fake.mcp.call("grow", json!({})).await);
    eventually("the new tool is listed", || fake.mcp.names().contains(&"grown".to_owned())).await;
    let after = fake.mcp.tool("echo");
    assert!(std::sync::Arc::ptr_eq(&before.validator, &after.validator));
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let fake = FakeServer::ready("normal").await;
    tokio::select! {
        _ = fake.mcp.call("slow", json!({})) => panic!("the fake server does not answer this"),
        () = eventually("the call arrives", || fake.was_called("slow")) => {}
    }
    eventually("the call is cancelled", || !fake.received("notifications/cancelled").is_empty())
        .await;
    assert!(!fake.received("notifications/cancelled")[0]["params"]["requestId"].is_null());
    // Other calls are not affected.
    assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}");
    assert_eq!(fake.received("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let fake =
        FakeServer::ready_with("normal", |options| options.timeout = Duration::from_secs(2)).await;
    let error = error_message(fake.mcp.call("slow", json!({})).await);
    assert_eq!(error, "The MCP server `test` did not answer within 2 s.");
    eventually("the call is cancelled", || !fake.received("notifications/cancelled").is_empty())
        .await;
    // The server answers the ping, so it is not started again.
    eventually("the server is pinged", || !fake.received("ping").is_empty()).await;
    assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}");
    assert_eq!(fake.starts(), 1);
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_ping_is_started_again() {
    let fake =
        FakeServer::ready_with("silent", |options| options.timeout = Duration::from_secs(2)).await;
    error_message(fake.mcp.call("echo", json!({})).await);
    eventually("the server is started again", || fake.starts() == 2).await;
}

#[tokio::test]
async fn a_server_that_ends_during_a_call_is_started_again() {
    let fake = FakeServer::ready("normal").await;
    let error = error_message(fake.mcp.call("die", json!({})).await);
    assert!(error.contains("`test` failed during the call"), "{error}");
    // Its tools stay listed.
    let echo = fake.mcp.tool("echo");
    eventually("the process has ended", || fake.mcp.processes().is_empty()).await;
    // The call waits for the next start, which can take too long on a slow machine.
    assert_eq!(call_until_success(&echo, json!({})).await.text(), "{}");
    assert_eq!(fake.starts(), 2);
}

#[tokio::test]
async fn a_server_that_is_killed_during_a_call_is_started_again() {
    let fake = FakeServer::ready("normal").await;
    let killed = fake.mcp.processes();
    let kill_when_called = async {
        eventually("the call arrives", || fake.was_called("slow")).await;
        killed.iter().for_each(|pid| kill(*pid));
    };
    let (result, ()) = tokio::join!(fake.mcp.call("slow", json!({})), kill_when_called);
    assert_eq!(
        error_message(result),
        "The MCP server `test` failed during the call; it is unknown if the call was carried out."
    );
    assert_eq!(call_until_success(&fake.mcp.tool("echo"), json!({})).await.text(), "{}");
    assert_ne!(fake.mcp.processes(), killed);
}

#[tokio::test]
async fn a_server_that_fails_to_start_is_started_again() {
    let fake = FakeServer::ready("once").await;
    eventually("the second start succeeds", || !fake.mcp.names().is_empty()).await;
}

#[tokio::test]
async fn only_first_runs_wait_for_servers_that_cannot_be_started() {
    let without_program = McpFixture::new(McpServerOptions::command(["/does/not/exist"]));
    let without_listener = McpFixture::new(McpServerOptions::url("http://127.0.0.1:1/mcp"));
    let ends = FakeServer::new("exit", |_| {}).mcp;
    let servers = [without_program, without_listener, ends];
    futures::future::join_all(servers.iter().map(|mcp| mcp.toolbox.ready())).await;
    let begin = Instant::now();
    for mcp in servers {
        assert!(mcp.ready().await.names().is_empty());
    }
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_server_that_hangs_at_start_is_killed_when_it_is_dropped() {
    let fake = FakeServer::new("hang", |_| {});
    tokio::select! {
        () = fake.mcp.toolbox.ready() => panic!("the server does not answer"),
        () = eventually("the server is asked", || !fake.received("server/discover").is_empty()) => {}
    }
    assert!(fake.mcp.names().is_empty());
    let word = fake.mcp.word.clone();
    assert_eq!(processes(&word).len(), 1);
    drop(fake);
    eventually("the process is killed", || processes(&word).is_empty()).await;
}

#[tokio::test]
async fn an_older_server_that_ends_when_it_is_asked_for_its_revisions_is_asked_once() {
    let fake = FakeServer::ready("picky").await;
    assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}");
    for pid in fake.mcp.processes() {
        kill(pid);
    }
    let echo = fake.mcp.tool("echo");
    call_until_success(&echo, json!({})).await;
    let count = |method: &str| fake.received(method).len();
    assert_eq!(
        (count("server/discover"), count("initialize")),
        (1, 2),
        "the revision is remembered"
    );
}

#[tokio::test]
async fn tools_of_two_servers_with_names_that_look_alike_answer_for_themselves() {
    let servers = ["latin", "cyrillic"].map(|letters| FakeServer::new(letters, |_| {}));
    let toolbox = servers
        .iter()
        .fold(Toolbox::new(), |toolbox, fake| toolbox.source(fake.mcp.server.clone()));
    tokio::time::timeout(TEST_TIMEOUT, toolbox.ready()).await.unwrap();
    let offered = toolbox.tools();
    let mut answers = Vec::new();
    for tool in &offered {
        answers.push(text(call(tool, json!({})).await));
    }
    let expected = ["pay", "send_mail", "café", "р\u{430}у", "send.mail", "cafe\u{301}"];
    assert_eq!(
        answers,
        expected,
        "{:?}",
        offered.iter().map(|tool| tool.name()).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn invalid_lines_and_much_stderr_do_not_break_a_session() {
    for mode in ["garbage", "noise"] {
        let fake = FakeServer::ready(mode).await;
        assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}", "{mode}");
    }
}

#[tokio::test]
async fn the_number_of_tools_of_one_server_is_limited() {
    let names = FakeServer::ready("endless").await.mcp.names();
    assert!((100..=256).contains(&names.len()), "{}", names.len());
}

#[tokio::test]
async fn no_process_outlives_a_server_that_is_stopped_or_dropped() {
    for (mode, stop) in [("normal", true), ("normal", false), ("deaf", true), ("deaf", false)] {
        let fake = FakeServer::ready(mode).await;
        let grandchild = text(fake.mcp.call("spawn", json!({})).await);
        let (word, server) = (fake.mcp.word.clone(), fake.mcp.server.clone());
        let alive = |pid: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z "))
        };
        assert!(alive(&grandchild));
        if stop {
            server.stop().await;
            assert!(processes(&word).is_empty());
            let error = error_message(fake.mcp.call("echo", json!({})).await);
            assert!(error.contains("not available"), "{error}");
            server.stop().await;
        }
        drop((fake, server));
        eventually("all processes have ended", || {
            processes(&word).is_empty() && !alive(&grandchild)
        })
        .await;
    }
}

#[tokio::test]
async fn a_list_of_tools_is_limited_in_bytes() {
    let names = FakeServer::ready("fat").await.mcp.names();
    // 8 MiB of tools with half a megabyte each.
    assert_eq!(names.len(), 16);
}

#[tokio::test]
async fn endless_progress_takes_neither_time_nor_memory() {
    let fake = FakeServer::ready_with("asking", |options| {
        options.timeout = Duration::from_secs(3);
        options.max_timeout = Duration::from_secs(6);
    });
    let fake = fake.await;
    let flood = context();
    let error = error_message(fake.call_in("flood", &flood).await);
    assert_eq!(error, "The MCP server `test` did not answer within 6 s.");
    let events = flood.take_events();
    assert!((1..=13).contains(&events.len()), "{}", events.len());
    let bytes = serde_json::to_string(&events).unwrap().len();
    assert!(bytes < 10_000, "{bytes} bytes");
    let still = context();
    let error = error_message(fake.call_in("still", &still).await);
    assert_eq!(
        error, "The MCP server `test` did not answer within 3 s.",
        "progress that does not increase"
    );
    assert_eq!(still.take_events().len(), 1);
}

#[tokio::test]
async fn a_server_that_sends_in_a_loop_is_disconnected() {
    let fake = FakeServer::ready("asking").await;
    let error = error_message(fake.call_in("storm", &context()).await);
    assert!(error.contains("`test` failed during the call"), "{error}");
    eventually("the server is started again", || fake.starts() == 2).await;
}

#[tokio::test]
async fn a_flood_of_questions_is_one_question_and_the_others_are_cancelled() {
    let fake = FakeServer::ready("asking").await;
    let cx = context();
    let asked = fake.call_in("pester", &cx).await.unwrap_err();
    assert!(asked.is_question());
    let questions = cx.take_questions();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].message.as_deref(), Some("test asks: Question 0?"));
    eventually("all questions are answered", || {
        fake.record().iter().filter(|message| message["result"]["action"] == "cancel").count()
            == 1000
    })
    .await;
    let record = fake.record();
    let cancelled =
        record.iter().position(|message| message["method"] == "notifications/cancelled").unwrap();
    let first = record
        .iter()
        .position(|message| message["id"] == "q0" && !message["result"].is_null())
        .unwrap();
    assert!(cancelled < first, "the call is cancelled before its question is");
    assert_eq!(text(fake.mcp.call("echo", json!({})).await), "{}");
}

#[tokio::test]
async fn questions_that_are_too_long_are_not_asked() {
    let fake =
        FakeServer::ready_with("asking", |options| options.timeout = Duration::from_secs(2)).await;
    for tool in ["essay", "maze"] {
        let cx = context();
        error_message(fake.call_in(tool, &cx).await);
        assert!(cx.take_questions().is_empty(), "{tool}");
    }
    eventually("both questions are cancelled", || {
        fake.record().iter().filter(|message| message["result"]["action"] == "cancel").count() == 2
    })
    .await;
}

#[tokio::test]
async fn a_question_that_could_be_of_several_calls_is_not_asked() {
    let fake =
        FakeServer::ready_with("asking", |options| options.timeout = Duration::from_secs(2)).await;
    let (first, second) = (context(), context());
    // `still` never answers.
    let calls = futures::future::join(fake.call_in("still", &first), async {
        eventually("the first call arrives", || fake.was_called("still")).await;
        fake.call_in("moody", &second).await
    });
    let (still, moody) = calls.await;
    error_message(still);
    error_message(moody);
    assert!(first.take_questions().is_empty() && second.take_questions().is_empty());
    // From then on, its calls run one at a time, and the question has one owner.
    let asked = fake.call_in("moody", &second).await.unwrap_err();
    assert!(asked.is_question());
    assert_eq!(second.take_questions().len(), 1);
}

#[tokio::test]
async fn a_late_question_of_a_cancelled_call_does_not_reach_another_user() {
    let fake =
        FakeServer::ready_with("asking", |options| options.timeout = Duration::from_secs(2)).await;
    let of = |name: &str| context_of(Some(Principal::new("key", name)), &[]);
    let (ada, bob) = (of("ada"), of("bob"));
    tokio::select! {
        _ = fake.call_in("late", &ada) => panic!("the fake server does not answer this"),
        () = eventually("the call arrives", || fake.was_called("late")) => {}
    }
    let error = error_message(fake.call_in("still", &bob).await);
    assert!(error.contains("did not answer within 2 s"), "{error}");
    assert!(bob.take_questions().is_empty());
    eventually("the question is cancelled", || {
        fake.record().iter().any(|message| message["result"]["action"] == "cancel")
    })
    .await;
}
