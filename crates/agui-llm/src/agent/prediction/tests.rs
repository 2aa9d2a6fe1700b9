use serde_json::{Value, json};

use super::*;
use crate::{
    BlockStart, LlmAgent, ModelEvent,
    agent::{
        AgentOptions,
        tests::{Scripted, ask, call, done, increment, play, text},
    },
};
use agui_protocol::{RunAgentInput, ToolDefinition};
use agui_tools::Approval;

fn predicting(key: &str, tool: &str, argument: &str) -> AgentOptions {
    let [key, tool, argument] = [key, tool, argument].map(str::to_owned);
    let predict_state = vec![StatePrediction { key, tool, argument }];
    AgentOptions { predict_state, ..AgentOptions::default() }
}

/// A call whose arguments come in pieces.
fn pieces(name: &str, pieces: &[&str]) -> Vec<ModelEvent> {
    let block = BlockStart::Call { id: "c".into(), name: name.to_owned() };
    let deltas =
        pieces.iter().map(|piece| ModelEvent::Delta { index: 0, text: (*piece).to_owned() });
    let start = [ModelEvent::Start { index: 0, block }];
    start.into_iter().chain(deltas).chain([ModelEvent::End { index: 0, artefact: None }]).collect()
}

/// An input of a page that has a tool.
fn with_tool(name: &str, state: Value) -> RunAgentInput {
    let tool: ToolDefinition =
        serde_json::from_value(json!({ "name": name, "description": "Writes." })).unwrap();
    RunAgentInput { tools: vec![tool], state: Some(state), ..ask("?") }
}

fn state_events(events: &[String]) -> Vec<&str> {
    events.iter().filter(|line| line.starts_with("STATE_")).map(String::as_str).collect()
}

#[test]
fn a_text_moves_the_state_while_the_model_writes_it() {
    let call = pieces(
        "write",
        &[
            "{\"title\":\"x\",\"text\":\"Once ",
            "upon a time ",
            "there",
            " was a dog called Rex.",
            "\"}",
        ],
    );
    let model = Scripted::new([done([call])]);
    let agent =
        LlmAgent::new(model.clone()).options(predicting("story/1", "write", "text")).unwrap();
    let played = play(agent, with_tool("write", json!({ "kept": 1 })));
    assert!(
        model.requests()[0].current[0].ends_with("as JSON:\n{\"kept\":1}"),
        "the model is told the state"
    );
    let told = r#"CUSTOM "PredictState""#;
    assert_eq!(played.events[0], told);
    assert!(played.events[1].starts_with("TOOL_CALL_START"));
    let add =
        |text: &str| format!(r#"STATE_DELTA [{{"op":"add","path":"/story~11","value":"{text}"}}]"#);
    assert_eq!(
        state_events(&played.events),
        [add("Once upon a time "), add("Once upon a time there was a dog called Rex."),]
    );
    assert_eq!(
        played.state,
        json!({ "kept": 1, "story/1": "Once upon a time there was a dog called Rex." })
    );
}

#[test]
fn an_object_moves_the_state_before_it_is_whole_and_ends_as_the_model_wrote_it() {
    let recipe = r#"{"recipe":{"title":"Carrot soup","ingredients":[{"name":"Carrots","amount":"3 large"}],"serves":4}}"#;
    let steps: Vec<_> =
        recipe.as_bytes().chunks(5).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    let model = Scripted::new([done([pieces("cook", &steps)])]);
    let played = play(
        LlmAgent::new(model).options(predicting("recipe", "cook", "recipe")).unwrap(),
        with_tool("cook", Value::Null),
    );
    let changes = state_events(&played.events);
    assert!(changes.len() > 3, "{changes:?}");
    assert!(
        changes[0].starts_with(r#"STATE_SNAPSHOT {"recipe":{"#),
        "the state was no object: {}",
        changes[0]
    );
    let written: Value = serde_json::from_str(recipe).unwrap();
    assert_eq!(played.state, written);
}

#[test]
fn what_a_call_predicted_is_taken_back_if_it_fails_and_kept_if_it_succeeds() {
    let run = |n: i64, state: Value| {
        let arguments = json!({ "n": n }).to_string();
        let model =
            Scripted::new([done([call(0, "c", "increment", &arguments)]), done([text(0, "So.")])]);
        let agent = LlmAgent::new(model).tools(increment(Approval::NotNeeded));
        let agent = agent.options(predicting("n", "increment", "n")).unwrap();
        play(agent, RunAgentInput { state: Some(state), ..ask("?") }).state
    };
    assert_eq!(run(1, json!({})), json!({ "n": 1 }));
    assert_eq!(run(13, json!({})), json!({}));
    assert_eq!(run(13, json!({ "n": 7, "m": 1 })), json!({ "n": 7, "m": 1 }));
}

#[test]
fn other_tools_and_broken_arguments_change_nothing() {
    for (name, arguments) in [
        ("draw", r#"{"text":"A long text of another tool."}"#),
        ("write", r#"["text","A long text"]"#),
    ] {
        let model = Scripted::new([done([call(0, "c", name, arguments)])]);
        let agent = LlmAgent::new(model).options(predicting("text", "write", "text")).unwrap();
        let played = play(agent, with_tool(name, json!({})));
        assert_eq!((state_events(&played.events).len(), played.state), (0, json!({})), "{name}");
    }
}

#[test]
fn the_changes_of_a_long_text_are_few() {
    let word = "and so on ";
    let words: Vec<_> = std::iter::once("{\"text\":\"")
        .chain(std::iter::repeat_n(word, 4000))
        .chain(["\"}"])
        .collect();
    let model = Scripted::new([done([pieces("write", &words)])]);
    let agent = LlmAgent::new(model).options(predicting("text", "write", "text")).unwrap();
    let played = play(agent, with_tool("write", json!({})));
    let bytes: usize = state_events(&played.events).iter().map(|line| line.len()).sum();
    assert!(bytes < 10 * 4000 * word.len(), "{bytes}");
    assert_eq!(played.state["text"], word.repeat(4000));
}
