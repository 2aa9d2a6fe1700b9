use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;

use super::super::tests::{Scripted, ask, call, done, increment, next, play, text};
use crate::LlmAgent;
use agui_agent::{
    Agent,
    host::{ContextParts, RunIdentity},
};
use agui_observe::{
    RunObserver,
    metrics::{Metrics, TextFormat},
};
use agui_protocol::RunAgentInput;
use agui_tools::{Approval, builtin::ask_user};

/// Runs an agent until its stream has yielded a number of events, and returns what was counted.
pub(in crate::agent) fn counted(agent: &LlmAgent, input: RunAgentInput, events: usize) -> String {
    let metrics = Metrics::default();
    let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
    let identity = RunIdentity { thread_id, run_id, agent: "a".into(), principal: None };
    let observer = RunObserver { metrics: metrics.clone(), recording: None };
    let mut parts = ContextParts::new(identity);
    parts.observer = Some(observer);
    let cx = parts.into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(agent.run(input, cx).take(events).collect::<Vec<_>>());
    metrics.to_text(TextFormat::Prometheus)
}

fn tool_calls(text: &str) -> Vec<&str> {
    let mut series: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("agui_tool_calls_total")).collect();
    series.sort_unstable();
    series
}

#[test]
fn each_call_is_counted_by_its_tool_and_its_outcome() {
    let calls = [
        call(0, "a", "increment", r#"{"n":1}"#),
        call(1, "b", "increment", r#"{"n":13}"#),
        call(2, "c", "increment", r#"{"n":99}"#),
        call(3, "d", "increment", r#"{"n":"one"}"#),
        call(4, "e", "ask_user", r#"{"question":"Which?"}"#),
        call(5, "f", "made_up", "{}"),
        call(6, "g", "update_state", r#"{"patch":[]}"#),
        call(7, "h", "helper", "{}"),
        // One more than the limit.
        call(8, "i", "increment", r#"{"n":1}"#),
    ];
    let agent = LlmAgent::new(Scripted::new([done(calls)]))
        .tools(increment(Approval::NotNeeded).tool(ask_user()))
        .subagent("helper", "Helps.", std::sync::Arc::new(LlmAgent::new(Scripted::new([]))))
        .updates_state(true)
        .tool_timeout(Duration::from_secs(1))
        .max_calls_per_step(8);
    let text = counted(&agent, ask("?"), usize::MAX);
    let expected = [
        r#"{tool="agent:helper",outcome="refused"} 1"#,
        r#"{tool="ask_user",outcome="question"} 1"#,
        r#"{tool="increment",outcome="error"} 1"#,
        r#"{tool="increment",outcome="ok"} 1"#,
        r#"{tool="increment",outcome="refused"} 2"#,
        r#"{tool="increment",outcome="timeout"} 1"#,
        r#"{tool="other",outcome="refused"} 1"#,
        r#"{tool="update_state",outcome="ok"} 1"#,
    ];
    assert_eq!(tool_calls(&text), expected);
}

#[test]
fn a_call_that_a_person_declines_is_counted_by_its_tool() {
    let model =
        Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)]), done([text(0, "So.")])]);
    let agent = LlmAgent::new(model).tools(increment(Approval::Needed));
    let asked = play(agent.clone(), ask("1+1?"));
    let id = &asked.end["outcome"]["interrupts"][0]["id"];
    let answer =
        json!([{ "interruptId": id, "status": "resolved", "payload": { "approved": false } }]);
    let text = counted(&agent, next(&asked, answer), usize::MAX);
    assert_eq!(tool_calls(&text), [r#"{tool="increment",outcome="refused"} 1"#]);
}
