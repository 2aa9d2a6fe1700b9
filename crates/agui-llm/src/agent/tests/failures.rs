//! Failed calls, answers and runs.

use super::*;
use crate::ModelError;
use agui_protocol::TokenUsage;

#[test]
fn the_model_is_told_the_problem_of_a_call() {
    for (name, arguments, problem) in [
        ("increment", "{", "Error: "),
        ("increment", r#"{"n":"one"}"#, "Error: "),
        ("decrement", r#"{"n":1}"#, "Error: there is no tool \"decrement\""),
        ("increment", r#"{"n":13}"#, "Error: unlucky"),
        ("increment", r#"{"n":99}"#, "Error: the tool took longer than 60 s and was stopped"),
    ] {
        let model =
            Scripted::new([done([call(0, "c", name, arguments)]), done([text(0, "Sorry.")])]);
        let played =
            play(LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded)), ask("?"));
        assert_eq!(played.end["outcome"], json!({ "type": "success" }));
        let [(text, failed)] = &results(&model.requests()[1])[..] else { panic!() };
        assert!(text.starts_with(problem) && *failed, "{name} {arguments}: {text}");
    }
}

#[test]
fn a_broken_answer_and_a_refusal_are_errors() {
    let mut cut = text(0, "I think");
    cut.pop();
    for (answer, code) in
        [(cut, "model_interrupted"), (vec![ModelEvent::Stop(StopReason::Refused)], "model_refused")]
    {
        let played = play(LlmAgent::new(Scripted::new([answer])), ask("?"));
        assert_eq!((&played.end["type"], &played.end["code"]), (&json!("RUN_ERROR"), &json!(code)));
    }
}

#[test]
fn an_error_of_the_model_ends_the_run() {
    struct Failing;
    impl Model for Failing {
        fn provider(&self) -> &str {
            "failing"
        }
        fn name(&self) -> &str {
            "m"
        }
        fn stream(&self, _: ModelRequest) -> ModelStream {
            let error =
                ModelError::new("model_rate_limited", "too many questions").caused_by("secret");
            futures::future::ready(Err(error)).into_stream().boxed()
        }
    }
    let played = play(LlmAgent::new(Failing), ask("?"));
    assert_eq!(
        played.end,
        json!({ "type": "RUN_ERROR", "message": "too many questions", "code": "model_rate_limited" })
    );
}

#[test]
fn usage_is_counted_once_also_when_the_run_fails() {
    let cost = |output| {
        ModelEvent::Usage(TokenUsage {
            model: Some("m".into()),
            input_tokens: Some(5),
            output_tokens: Some(output),
            ..TokenUsage::default()
        })
    };
    let mut first = vec![cost(1)];
    first.extend(call(0, "c", "increment", r#"{"n":1}"#));
    first.extend([cost(7), ModelEvent::Stop(StopReason::Calls)]);
    let model = Scripted::new([first, vec![cost(2)]]);
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), ask("?"));
    assert_eq!(played.end["type"], "RUN_ERROR");
    assert_eq!(
        played.end["usage"],
        json!([{ "model": "m", "inputTokens": 10, "outputTokens": 9 }])
    );
}
