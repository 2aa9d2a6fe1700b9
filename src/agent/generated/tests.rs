use serde_json::{Value, json};

use super::*;
use crate::{
    agent::{RunIdentity, emit::ToolCallEvents, events},
    protocol::{ToolDefinition, event::ToolCallChunk, patch},
};

fn offering(tool: &str) -> RunAgentInput {
    let mut input = RunAgentInput::new("t", "r", vec![]);
    input.tools.push(ToolDefinition {
        name: tool.to_owned(),
        description: String::new(),
        parameters: None,
        metadata: None,
    });
    input
}

async fn play(agent: impl Agent, input: RunAgentInput) -> Vec<Value> {
    let identity = RunIdentity { thread_id: "t".into(), run_id: "r".into(), agent: "a".into(), principal: None };
    let events = run(&agent, input, RunContext::new(identity));
    events.map(|event| event.map_or_else(|error| json!(error.code()), |event| json!(event))).collect().await
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().or(event.as_str()).unwrap()).collect()
}

/// Returns the content of an activity after all its events.
fn content(events: &[Value], id: &str) -> Value {
    let mut content = Value::Null;
    for event in events.iter().filter(|event| event["messageId"] == id) {
        if event["type"] == "ACTIVITY_SNAPSHOT" {
            content.clone_from(&event["content"]);
        } else {
            let patch: Vec<_> = serde_json::from_value(event["patch"].clone()).unwrap();
            drop(patch::apply(&mut content, &patch).unwrap());
        }
    }
    content
}

/// Calls a tool with arguments in pieces of `size` bytes.
fn calling(tool: &str, arguments: &Value, size: usize) -> Vec<Event> {
    let call = ToolCallEvents::with_id("c", tool);
    let text = arguments.to_string();
    let pieces = text.as_bytes().chunks(size).map(|piece| call.delta(String::from_utf8_lossy(piece)));
    [call.start()].into_iter().chain(pieces).chain([call.end()]).collect()
}

#[tokio::test]
async fn html_of_a_call_is_an_activity_that_grows_while_the_arguments_stream_in() {
    let arguments = json!({
        "initialHeight": 120, "css": "p {}", "html": "<p>\"Hi\"</p>", "jsFunctions": "", "jsExpressions": ["a()", "b()"],
        "placeholderMessages": ["Wait"], "other": [1],
    });
    for size in [1, 3, 1000] {
        let calls = calling("generateSandboxedUi", &arguments, size);
        let played = play(move |_, _| events(calls.clone()), offering("generateSandboxedUi")).await;
        let of_call = types(&played);
        assert_eq!(of_call[..2], ["ACTIVITY_SNAPSHOT", "TOOL_CALL_START"]);
        assert_eq!(of_call[of_call.len() - 2..], ["ACTIVITY_DELTA", "TOOL_CALL_END"]);
        let mut content = content(&played, "c-activity");
        let html = content["html"].take();
        let html: String = html.as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect();
        assert_eq!(html, "<p>\"Hi\"</p>");
        let expected = json!({
            "generating": false, "initialHeight": 120, "css": "p {}", "cssComplete": true, "html": null,
            "htmlComplete": true, "jsFunctions": "", "jsFunctionsComplete": true, "jsExpressions": ["a()", "b()"],
            "jsExpressionsComplete": true, "placeholderMessages": ["Wait"],
        });
        assert_eq!(content, expected);
    }
}

#[tokio::test]
async fn nothing_is_made_of_a_call_if_the_page_does_not_offer_the_tool_or_its_app_asks() {
    let calls = calling("generateSandboxedUi", &json!({ "html": "x" }), 9);
    let agent = move |_: RunAgentInput, _: RunContext| events(calls.clone());
    let mut of_app = offering("generateSandboxedUi");
    of_app.forwarded_props = Some(json!({ "__proxiedMCPRequest": {} }));
    for input in [offering("other"), of_app] {
        let played = play(agent.clone(), input).await;
        assert!(types(&played).iter().all(|kind| kind.starts_with("TOOL_CALL")));
    }
}

#[tokio::test]
async fn an_activity_ends_with_its_chunks_and_with_a_failure() {
    let chunk = |id: Option<&str>, name: Option<&str>, delta: &str| {
        let (tool_call_id, tool_call_name) = (id.map(Into::into), name.map(str::to_owned));
        Event::from(ToolCallChunk { tool_call_id, tool_call_name, delta: Some(delta.to_owned()), ..Default::default() })
    };
    let agent = move |_: RunAgentInput, _: RunContext| {
        let first = [
            chunk(Some("c"), Some("generateSandboxedUi"), r#"{"html":"#),
            chunk(None, None, r#""<b>"#),
            chunk(Some("c"), None, r#"x"}"#),
            chunk(Some("d"), Some("generateSandboxedUi"), r#"{"html":"half"#),
        ];
        let failed = Err(super::super::AgentError::new("broken", "it broke"));
        event_stream(futures::stream::iter(first.map(Ok).into_iter().chain([failed])))
    };
    let played = play(agent, offering("generateSandboxedUi")).await;
    assert_eq!(types(&played).last(), Some(&"broken"));
    assert_eq!(
        content(&played, "c-activity"),
        json!({ "generating": false, "html": ["<b>", "x"], "htmlComplete": true })
    );
    assert_eq!(content(&played, "d-activity"), json!({ "generating": false, "html": ["half"] }));
}

#[tokio::test]
async fn arguments_of_other_types_leave_the_page_as_it_is() {
    let arguments = json!({ "html": null, "css": 1, "jsFunctions": [], "jsExpressions": "a", "initialHeight": "1" });
    let calls = calling("generateSandboxedUi", &arguments, 5);
    let played = play(move |_, _| events(calls.clone()), offering("generateSandboxedUi")).await;
    assert_eq!(content(&played, "c-activity"), json!({ "generating": false }));
}
