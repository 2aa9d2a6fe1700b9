use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::json;

use super::super::{
    tests::{Scripted, ask, call, done, increment, play, results, says, text},
    tool_meter::tests::counted,
};
use super::*;
use crate::{LlmAgent, SkippedAttachment};
use agui_protocol::TokenUsage;
use agui_tools::Approval;

/// Fails with this code after these events.
struct FailingModel(&'static str, Vec<ModelEvent>);

impl Model for FailingModel {
    fn provider(&self) -> &str {
        "failing"
    }

    fn name(&self) -> &str {
        "f"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let error = Err(ModelError::new(self.0, "it failed"));
        stream::iter(self.1.clone().into_iter().map(Ok).chain([error])).boxed()
    }
}

#[test]
fn the_next_model_answers_if_one_is_unavailable() {
    for code in UNAVAILABLE.map(RunErrorCode::as_str) {
        let (first, second) = (Scripted::new([]), Scripted::new([done([text(0, "Hello!")])]));
        let early = vec![
            ModelEvent::Skipped(SkippedAttachment::default()),
            ModelEvent::Trimmed,
            ModelEvent::Usage(TokenUsage::default()),
        ];
        let agent = LlmAgent::new(FailingModel(code, early))
            .fallback(FailingModel("model_timeout", vec![]))
            .fallback(second.clone())
            .fallback(first.clone());
        let played = play(agent, ask("Hi"));
        assert_eq!(played.events, says("Hello!"), "{code}");
        assert_eq!((first.requests().len(), second.requests().len()), (0, 1));
    }
}

#[test]
fn the_next_model_answers_if_the_key_may_not_use_the_first() {
    struct WithoutAccess;
    impl Model for WithoutAccess {
        fn provider(&self) -> &str {
            "failing"
        }
        fn name(&self) -> &str {
            "f"
        }
        fn stream(&self, _: ModelRequest) -> ModelStream {
            let error = ModelError::new("model_unauthorized", "no access").without_access();
            stream::iter([Err(error)]).boxed()
        }
    }
    let agent = LlmAgent::new(WithoutAccess).fallback(Scripted::new([done([text(0, "Hello!")])]));
    assert_eq!(play(agent, ask("Hi")).events, says("Hello!"));
}

#[test]
fn other_errors_and_begun_answers_have_no_fallback() {
    let mut begun = text(0, "I think");
    begun.pop();
    for (code, events) in [
        ("model_rejected", vec![]),
        ("model_unauthorized", vec![]),
        ("context_too_long", vec![]),
        ("model_timeout", begun),
    ] {
        let model = Scripted::new([]);
        let played =
            play(LlmAgent::new(FailingModel(code, events)).fallback(model.clone()), ask("Hi"));
        assert_eq!(played.end["code"], code);
        assert!(model.requests().is_empty(), "{code}");
    }
}

#[test]
fn a_run_stays_with_its_fallback() {
    struct Once(std::sync::atomic::AtomicBool);
    impl Model for Once {
        fn provider(&self) -> &str {
            "once"
        }
        fn name(&self) -> &str {
            "o"
        }
        fn stream(&self, request: ModelRequest) -> ModelStream {
            assert!(!self.0.swap(true, std::sync::atomic::Ordering::Relaxed), "it was asked again");
            FailingModel("model_unavailable", vec![]).stream(request)
        }
    }
    let second =
        Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)]), done([text(0, "2")])]);
    let agent = LlmAgent::new(Once(false.into()))
        .fallback(second.clone())
        .tools(increment(Approval::NotNeeded));
    assert_eq!(play(agent, ask("1+1?")).end["outcome"]["type"], "success");
    assert_eq!(results(&second.requests()[1]), [("2".to_owned(), false)]);
}

#[test]
fn a_request_chooses_among_the_allowed_models() {
    let choosing = |model: Value| {
        let mut input = ask("Hi");
        input.forwarded_props = Some(json!({ "model": model }));
        input
    };
    let model = Scripted::new((0..4).map(|_| done([text(0, "Hello!")])));
    let agent = LlmAgent::new(model.clone()).models(["fast", "m", "smart"]);
    for (chosen, expected) in
        [(json!("smart"), Some("smart")), (json!("m"), None), (Value::Null, None)]
    {
        assert_eq!(play(agent.clone(), choosing(chosen)).events, says("Hello!"));
        assert_eq!(model.requests().last().unwrap().model.as_deref(), expected);
    }
    for chosen in [json!("slow"), json!({ "name": "m" }), json!("x".repeat(1000))] {
        let played = play(agent.clone(), choosing(chosen));
        assert_eq!(played.end["code"], "model_not_allowed");
        let message = played.end["message"].as_str().unwrap();
        assert!(
            message.ends_with("choose one of m, fast, smart") && message.len() < 200,
            "{message}"
        );
    }
    let unavailable = LlmAgent::new(FailingModel("model_timeout", vec![]))
        .models(["smart"])
        .fallback(model.clone());
    play(unavailable, choosing(json!("smart")));
    assert_eq!(model.requests().last().unwrap().model, None, "the fallback has models of its own");
}

#[test]
fn the_choice_is_not_passed_to_a_subagent() {
    let inner = Scripted::new([done([text(0, "2")])]);
    let model =
        Scripted::new([done([call(0, "c", "adder", r#"{"task":"1+1"}"#)]), done([text(0, "2!")])]);
    let helper = LlmAgent::new(inner);
    let agent =
        LlmAgent::new(model.clone()).models(["smart"]).subagent("adder", "Adds.", Arc::new(helper));
    let mut input = ask("1+1?");
    input.forwarded_props = Some(json!({ "model": "smart" }));
    play(agent, input);
    assert_eq!(results(&model.requests()[1]), [("2".to_owned(), false)]);
}

#[test]
fn the_models_are_among_the_capabilities() {
    use agui_agent::Agent as _;
    let agent = LlmAgent::new(Scripted::new([]));
    assert_eq!(agent.capabilities().custom, None);
    let custom = agent.models(["fast"]).capabilities().custom.unwrap();
    assert_eq!(custom["models"], json!(["m", "fast"]));
}

#[test]
fn every_call_is_counted_with_its_outcome() {
    let usage = ModelEvent::Usage(TokenUsage { input_tokens: Some(5), ..TokenUsage::default() });
    let agent = LlmAgent::new(FailingModel("model_timeout", vec![usage]))
        .fallback(Scripted::new([done([text(0, "Hello!")])]))
        .fallback(Scripted::new([]));
    let calls = counted(&agent, ask("Hi"), usize::MAX);
    for series in [
        r#"calls_total{provider="failing",model="f",outcome="error"} 1"#,
        r#"errors_total{provider="failing",model="f",code="model_timeout"} 1"#,
        r#"tokens_total{provider="failing",model="f",kind="input"} 5"#,
        r#"calls_total{provider="scripted",model="m",outcome="ok"} 1"#,
        r#"first_token_seconds_count{provider="scripted",model="m"} 1"#,
    ] {
        assert!(calls.contains(&format!("agui_model_{series}\n")), "{series}\n{calls}");
    }
    // The run ends after the step's start and the message's.
    let calls = counted(&LlmAgent::new(Scripted::new([done([text(0, "Hello!")])])), ask("Hi"), 2);
    let stopped = r#"agui_model_calls_total{provider="scripted",model="m",outcome="stopped"} 1"#;
    assert!(calls.contains(stopped), "{calls}");
}
