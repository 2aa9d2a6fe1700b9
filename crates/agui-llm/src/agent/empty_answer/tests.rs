use serde_json::json;

use super::{
    super::tests::{Scripted, ask, call, calls, done, increment, play, result, says, text},
    *,
};
use crate::{BlockStart, LlmAgent, ModelEvent, ModelStep};
use agui_protocol::{ContentPart, JsonObject};
use agui_tools::Approval;

fn thinks(thought: &str) -> Vec<ModelEvent> {
    vec![
        ModelEvent::Start { index: 0, block: BlockStart::Reasoning { redacted: false } },
        ModelEvent::Delta { index: 0, text: thought.to_owned() },
        ModelEvent::End { index: 0, artefact: None },
    ]
}

fn stopped(
    reason: StopReason,
    blocks: impl IntoIterator<Item = Vec<ModelEvent>>,
) -> Vec<ModelEvent> {
    let mut events = blocks.into_iter().collect::<Vec<_>>().concat();
    events.push(ModelEvent::Stop(reason));
    events
}

/// Returns the note at the end of each request.
fn notes(model: &Scripted) -> Vec<Option<String>> {
    let note = |step: Option<&ModelStep>| match step {
        Some(ModelStep::User(parts)) => match &parts[..] {
            [ContentPart::Text(text)] if text.text.starts_with("[Note") => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    };
    model.requests().iter().map(|request| note(request.steps.last())).collect()
}

#[test]
fn an_empty_answer_is_asked_for_again_once_in_the_same_step() {
    for empty in [done([]), done([text(0, " \n")]), stopped(StopReason::Calls, [])] {
        let model = Scripted::new([empty.clone(), done([text(0, "Hello.")]), empty.clone(), empty]);
        let played = play(LlmAgent::new(model.clone()).max_steps(1), ask("?"));
        assert_eq!(played.end["type"], "RUN_FINISHED");
        assert!(played.events.ends_with(&says("Hello.")), "{:?}", played.events);
        let played = play(LlmAgent::new(model.clone()).max_steps(1), ask("?"));
        assert_eq!(
            (&played.end["type"], &played.end["code"]),
            (&json!("RUN_ERROR"), &json!("model_empty"))
        );
        assert_eq!(model.requests().len(), 4);
        assert_eq!(model.requests()[0].steps, model.requests()[1].steps);
    }
}

#[test]
fn thoughts_alone_are_no_answer_and_do_not_return_to_the_model() {
    let model = Scripted::new([
        done([thinks("Hm.")]),
        done([text(0, "Yes.")]),
        done([thinks("Hm.")]),
        done([thinks("Hm.")]),
    ]);
    let played = play(LlmAgent::new(model.clone()), ask("?"));
    assert!(played.events.ends_with(&says("Yes.")), "{:?}", played.events);
    assert_eq!(notes(&model), [None, Some(WRITE_THE_ANSWER.to_owned())]);
    assert_eq!(model.requests()[1].steps.len(), 2);
    assert_eq!(play(LlmAgent::new(model), ask("?")).end["code"], "model_empty");
}

#[test]
fn after_a_result_the_answer_is_asked_for_and_an_empty_end_is_told() {
    let one = || done([call(0, "c", "increment", r#"{"n":1}"#)]);
    let model =
        Scripted::new([one(), done([]), done([text(0, "Two.")]), one(), done([]), done([])]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded));
    let played = play(agent.clone(), ask("?"));
    assert!(played.events.ends_with(&says("Two.")), "{:?}", played.events);
    let played = play(agent, ask("?"));
    assert_eq!(played.end["outcome"], json!({ "type": "success" }));
    let expected =
        [calls("increment", r#"{"n":1}"#), result("2"), vec![format!("CUSTOM {ANSWER_EMPTY:?}")]];
    assert_eq!(played.events, expected.concat());
    let write = Some(WRITE_THE_ANSWER.to_owned());
    assert_eq!(notes(&model), [None, None, write.clone(), None, None, write]);
    // The request for the answer is not stored.
    assert_eq!(played.messages.len(), 3);
}

#[test]
fn an_empty_end_after_calls_that_failed_is_an_error() {
    let model =
        Scripted::new([done([call(0, "c", "increment", r#"{"n":13}"#)]), done([]), done([])]);
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), ask("?"));
    assert_eq!(played.end["code"], "model_empty");
}

#[test]
fn an_agent_with_a_schema_needs_an_answer() {
    let schema: JsonObject = serde_json::from_value(json!({ "type": "object" })).unwrap();
    let model =
        Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)]), done([]), done([])]);
    let agent =
        LlmAgent::new(model).tools(increment(Approval::NotNeeded)).response_schema(schema).unwrap();
    assert_eq!(play(agent, ask("?")).end["code"], "model_empty");
}

#[test]
fn a_call_that_could_not_be_read_is_asked_for_again_once() {
    let malformed = || stopped(StopReason::MalformedCall, []);
    let model = Scripted::new([
        malformed(),
        done([call(0, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "2")]),
        malformed(),
        malformed(),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded));
    let played = play(agent.clone(), ask("?"));
    assert_eq!(played.events, [calls("increment", r#"{"n":1}"#), result("2"), says("2")].concat());
    assert_eq!(notes(&model), [None, Some(CALL_AGAIN.to_owned()), None]);
    assert_eq!(play(agent, ask("?")).end["code"], "model_call_malformed");
}

#[test]
fn calls_beside_one_that_could_not_be_read_do_not_run() {
    let model = Scripted::new([
        stopped(
            StopReason::MalformedCall,
            [text(0, "Let me see."), call(1, "c", "increment", r#"{"n":1}"#)],
        ),
        done([text(0, "2")]),
    ]);
    let played = play(LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded)), ask("?"));
    let expected =
        [says("Let me see."), calls("increment", r#"{"n":1}"#), result(NOT_READ), says("2")];
    assert_eq!(played.events, expected.concat());
    assert_eq!(
        model.requests()[1].steps.len(),
        4,
        "the text and the call stay in the conversation"
    );
}
