use serde_json::json;

use super::{
    super::tests::{
        Scripted, ask, call, calls, done, increment, play, result, results, says, text,
    },
    is_complete,
};
use crate::{LlmAgent, ModelEvent, ModelStep, StopReason};
use agui_protocol::{ContentPart, JsonObject, ToolCall};
use agui_tools::Approval;

const CUT_OFF: &str = "Error: the call was not run, because the answer was cut off at its limit of tokens. Make fewer or shorter calls.";

fn stopped(
    reason: StopReason,
    blocks: impl IntoIterator<Item = Vec<ModelEvent>>,
) -> Vec<ModelEvent> {
    let mut events = blocks.into_iter().collect::<Vec<_>>().concat();
    events.push(ModelEvent::Stop(reason));
    events
}

#[test]
fn a_call_is_complete_if_its_arguments_cannot_continue() {
    for (arguments, is_last, expected) in [
        (r#"{"a":1}"#, true, true),
        (r#"{"a":"#, true, false),
        (r#"{"a":"#, false, false),
        ("{}", true, false),
        ("", true, false),
        ("{}", false, true),
        (" ", false, true),
        ("1", true, false),
    ] {
        assert_eq!(
            is_complete(&ToolCall::new("c", "f", arguments), is_last),
            expected,
            "{arguments:?} {is_last}"
        );
    }
}

const TRUNCATED: &str = "CUSTOM \"agui-server.truncated\"";

#[test]
fn an_answer_that_ended_early_is_told_with_its_reason() {
    for (stop, reason) in [
        (StopReason::Length, "length"),
        (StopReason::ContextFull, "context_full"),
        (StopReason::Filtered, "filtered"),
        (StopReason::Refused, "refused"),
        (StopReason::Aborted, "aborted"),
    ] {
        let model = Scripted::new([stopped(stop, [text(0, "It is")])]);
        let played = play(LlmAgent::new(model), ask("?"));
        assert_eq!(played.events, [says("It is"), vec![TRUNCATED.to_owned()]].concat());
        let told = json!({ "reason": reason, "messageId": played.messages[1].id(), "step": 1 });
        assert_eq!(played.end["result"], json!({ "truncated": told }));
        assert_eq!(played.end["outcome"], json!({ "type": "success" }));
    }
}

#[test]
fn an_answer_without_text_that_ended_early_is_an_error() {
    for (stop, code) in [
        (StopReason::Length, "model_truncated"),
        (StopReason::ContextFull, "context_too_long"),
        (StopReason::Filtered, "model_filtered"),
        (StopReason::Refused, "model_refused"),
        (StopReason::Aborted, "model_truncated"),
    ] {
        for answer in [vec![], text(0, " \n")] {
            let played =
                play(LlmAgent::new(Scripted::new([stopped(stop.clone(), [answer])])), ask("?"));
            assert_eq!(
                (&played.end["type"], &played.end["code"]),
                (&json!("RUN_ERROR"), &json!(code))
            );
            assert!(
                !played.events.iter().any(|event| event.starts_with("CUSTOM")),
                "{:?}",
                played.events
            );
        }
    }
}

#[test]
fn a_cut_off_call_is_neither_run_nor_asked_for_again() {
    let complete = || call(1, "c", "increment", r#"{"n":1}"#);
    let cut = || call(2, "d", "increment", r#"{"n":"#);
    let model = Scripted::new([
        stopped(StopReason::Length, [text(0, "Let me see."), complete(), cut()]),
        stopped(StopReason::Length, [cut()]),
        stopped(StopReason::Length, [call(0, "e", "increment", "")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
    let played = play(agent.clone(), ask("?"));
    let expected = [
        says("Let me see."),
        calls("increment", r#"{"n":1}"#),
        calls("increment", r#"{"n":"#),
        vec![TRUNCATED.to_owned()],
        result(CUT_OFF),
        result(CUT_OFF),
    ];
    assert_eq!(played.events, expected.concat());
    assert_eq!(played.end["result"]["truncated"]["reason"], "length");
    for _ in 0..2 {
        let played = play(agent.clone(), ask("?"));
        assert_eq!(played.end["code"], "model_truncated");
        assert_eq!(played.events.last(), result(CUT_OFF).last());
    }
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn the_complete_calls_of_a_truncated_answer_run() {
    let model = Scripted::new([
        stopped(StopReason::Length, [call(0, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "2")]),
    ]);
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), ask("?"));
    let expected =
        [calls("increment", r#"{"n":1}"#), vec![TRUNCATED.to_owned()], result("2"), says("2")];
    assert_eq!(played.events, expected.concat());
    assert_eq!(played.end.get("result"), None);
}

#[test]
fn no_call_of_a_refused_or_filtered_answer_runs() {
    for stop in [StopReason::Refused, StopReason::Filtered] {
        let model = Scripted::new([stopped(stop, [call(0, "c", "increment", r#"{"n":1}"#)])]);
        let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), ask("?"));
        assert!(played.events[3].contains("Error: the call was not run"), "{:?}", played.events);
        assert_eq!(played.end["type"], "RUN_ERROR");
    }
}

#[test]
fn the_incomplete_answer_of_a_subagent_is_told_to_the_model() {
    let helper = LlmAgent::new(Scripted::new([stopped(StopReason::Length, [text(0, "It is")])]));
    let model =
        Scripted::new([done([call(0, "c", "helper", r#"{"task":"?"}"#)]), done([text(0, "So.")])]);
    let agent =
        LlmAgent::new(model.clone()).subagent("helper", "Helps.", std::sync::Arc::new(helper));
    play(agent, ask("?"));
    let text = "It is\n(The answer is incomplete: length.)".to_owned();
    assert_eq!(results(&model.requests()[1]), [(text, false)]);
}

fn agent_with_schema(model: &Scripted) -> LlmAgent {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    LlmAgent::new(model.clone())
        .response_schema(serde_json::from_value::<JsonObject>(schema).unwrap())
        .unwrap()
}

#[test]
fn the_final_answer_that_fits_the_schema_is_the_result() {
    let model = Scripted::new([
        done([call(0, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, r#"{"n":2}"#)]),
    ]);
    let played = play(agent_with_schema(&model).tools(increment(Approval::NotNeeded)), ask("1+1?"));
    assert_eq!(played.end["result"], json!({ "n": 2 }));
    let schema = model.requests()[0].response_schema.clone().unwrap();
    assert_eq!(schema["required"], json!(["n"]));
}

#[test]
fn an_answer_that_does_not_fit_is_corrected_once() {
    let wrong = || done([text(0, r#"{"n":"two"}"#)]);
    let model = Scripted::new([wrong(), done([text(0, r#"{"n":2}"#)]), wrong(), wrong(), wrong()]);
    let played = play(agent_with_schema(&model), ask("1+1?"));
    assert_eq!(played.end["result"], json!({ "n": 2 }));
    let rejected = played
        .events
        .iter()
        .filter(|event| event.starts_with("CUSTOM \"agui-server.response_rejected\""));
    assert_eq!(rejected.count(), 1, "{:?}", played.events);
    let Some(ModelStep::User(parts)) = model.requests()[1].steps.last().cloned() else { panic!() };
    let [ContentPart::Text(request)] = &parts[..] else { panic!("{parts:?}") };
    assert!(request.text.contains("/n: the value is not of type \"integer\""), "{}", request.text);
    // The request for the correction is not stored.
    assert_eq!(played.messages.len(), 3);
    assert_eq!(play(agent_with_schema(&model), ask("1+1?")).end["code"], "response_invalid");
    assert_eq!(
        play(agent_with_schema(&model).max_steps(1), ask("1+1?")).end["code"],
        "response_invalid"
    );
    assert_eq!(model.requests().len(), 5);
}

#[test]
fn a_truncated_answer_never_fits_the_schema() {
    let model = Scripted::new([stopped(StopReason::Length, [text(0, r#"{"n":2}"#)])]);
    assert_eq!(play(agent_with_schema(&model), ask("1+1?")).end["code"], "model_truncated");
}
