//! The members that ask for thinking.

use super::*;
use crate::Thinking;

#[test]
fn thinking_is_asked_for_in_the_servers_own_way() {
    let none = json!({});
    let effort = |effort: &str| json!({"reasoning_effort": effort});
    let kwargs = |is_on: bool| json!({"enable_thinking": is_on, "thinking": is_on});
    // By default, off and on; with an effort of its own, off and on.
    for (profile, model, expected) in [
        (
            "compatible",
            "m",
            [
                none.clone(),
                none.clone(),
                effort("medium"),
                effort("high"),
                none.clone(),
                effort("high"),
            ],
        ),
        ("openai", "gpt-4o", [(); 6].map(|()| none.clone())),
        (
            "openai",
            "gpt-5",
            [
                none.clone(),
                effort("minimal"),
                effort("medium"),
                effort("high"),
                effort("minimal"),
                effort("high"),
            ],
        ),
        (
            "openai",
            "gpt-5.6",
            [
                none.clone(),
                effort("none"),
                effort("medium"),
                effort("high"),
                effort("none"),
                effort("high"),
            ],
        ),
        (
            "openai",
            "o3",
            [
                none.clone(),
                effort("low"),
                effort("medium"),
                effort("high"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            "ollama",
            "m",
            [
                none.clone(),
                effort("none"),
                effort("medium"),
                effort("high"),
                effort("none"),
                effort("high"),
            ],
        ),
        (
            "groq",
            "qwen/qwen3-32b",
            [
                none.clone(),
                effort("none"),
                effort("default"),
                effort("high"),
                effort("none"),
                effort("high"),
            ],
        ),
        (
            "mistral",
            "mistral-small-latest",
            [
                none.clone(),
                effort("none"),
                effort("high"),
                effort("high"),
                effort("none"),
                effort("high"),
            ],
        ),
        (
            "mistral",
            "codestral-latest",
            [
                none.clone(),
                none.clone(),
                effort("high"),
                effort("high"),
                none.clone(),
                effort("high"),
            ],
        ),
        (
            "openrouter",
            "m",
            [
                none.clone(),
                json!({"reasoning": {"effort": "none"}}),
                json!({"reasoning": {"enabled": true}}),
                json!({"reasoning": {"effort": "high"}}),
                json!({"reasoning": {"effort": "none"}}),
                json!({"reasoning": {"effort": "high"}}),
            ],
        ),
        (
            "together",
            "m",
            [
                none.clone(),
                json!({"reasoning": {"enabled": false}}),
                json!({"reasoning": {"enabled": true}}),
                json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"}),
                json!({"reasoning": {"enabled": false}}),
                json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"}),
            ],
        ),
        (
            "zai",
            "m",
            [
                none.clone(),
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled"}}),
                json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            ],
        ),
        (
            "qwen",
            "m",
            [
                none.clone(),
                json!({"enable_thinking": false}),
                json!({"enable_thinking": true}),
                json!({"enable_thinking": true}),
                json!({"enable_thinking": false}),
                json!({"enable_thinking": true}),
            ],
        ),
        (
            "vllm",
            "m",
            [
                none.clone(),
                json!({"chat_template_kwargs": kwargs(false)}),
                json!({"chat_template_kwargs": kwargs(true)}),
                json!({"chat_template_kwargs": kwargs(true), "reasoning_effort": "high"}),
                json!({"chat_template_kwargs": kwargs(false)}),
                json!({"chat_template_kwargs": kwargs(true), "reasoning_effort": "high"}),
            ],
        ),
    ] {
        let plain = ModelOptions::new(model, Default::default());
        let high = ModelOptions { reasoning_effort: Some("high".to_owned()), ..plain.clone() };
        let mut expected = expected.into_iter();
        for options in [&plain, &high] {
            for thinking in [None, Some(false), Some(true)] {
                let request = ModelRequest { thinking, ..ModelRequest::default() };
                let mut sent = body(options, profile, &request);
                let members = sent.as_object_mut().unwrap();
                for base in ["model", "messages", "stream", "stream_options"] {
                    members.shift_remove(base);
                }
                let set = options.reasoning_effort.is_some();
                assert_eq!(sent, expected.next().unwrap(), "{profile} {model} {thinking:?} {set}");
            }
        }
    }
}

#[test]
fn a_configured_effort_of_none_stays_unless_a_request_asks_for_thinking() {
    let none = ModelOptions { reasoning_effort: Some("none".to_owned()), ..options() };
    for (profile, thinking, expected) in [
        ("compatible", None, json!("none")),
        ("compatible", Some(false), json!("none")),
        ("compatible", Some(true), json!("medium")),
        ("azure", Some(false), json!("none")),
    ] {
        let request = ModelRequest { thinking, ..ModelRequest::default() };
        assert_eq!(
            body(&none, profile, &request)["reasoning_effort"],
            expected,
            "{profile} {thinking:?}"
        );
    }
    let configured = ModelOptions { thinking: Some(Thinking::Off), ..options() };
    let sent = |thinking| {
        body(&configured, "zai", &ModelRequest { thinking, ..ModelRequest::default() })["thinking"]
            ["type"]
            .take()
    };
    assert_eq!((sent(None), sent(Some(true))), (json!("disabled"), json!("enabled")));
}

#[test]
fn a_budget_is_sent_where_the_server_has_one() {
    let budget = ModelOptions { thinking_budget: Some(100), ..options() };
    let sent = |profile: &str, thinking| {
        body(&budget, profile, &ModelRequest { thinking, ..ModelRequest::default() })
    };
    assert_eq!(sent("openrouter", None)["reasoning"], json!({"max_tokens": 100}));
    assert_eq!(sent("openrouter", Some(false))["reasoning"], json!({"effort": "none"}));
    assert_eq!(sent("qwen", None)["thinking_budget"], 100);
    assert!(sent("qwen", Some(false)).get("thinking_budget").is_none());
    assert_eq!(sent("vllm", Some(true))["thinking_token_budget"], 100);
}

#[test]
fn gpt_5_4_and_later_get_tools_without_effort_only() {
    for (model, effort) in [
        ("gpt-5.2", json!("high")),
        ("gpt-5.4-mini", json!("none")),
        ("gpt-5.6-terra", json!("none")),
    ] {
        let options = ModelOptions {
            reasoning_effort: Some("high".to_owned()),
            ..ModelOptions::new(model, Default::default())
        };
        let request = ModelRequest { tools: Arc::new([spec("f")]), ..ModelRequest::default() };
        assert_eq!(body(&options, "openai", &request)["reasoning_effort"], effort, "{model}");
        assert_eq!(
            body(&options, "openai", &ModelRequest::default())["reasoning_effort"],
            "high",
            "{model}"
        );
    }
}

#[test]
fn adaptive_thinking_is_thinking() {
    let adaptive = ModelOptions { thinking: Some(Thinking::Adaptive), ..options() };
    let sent = |profile: &str, thinking| {
        body(&adaptive, profile, &ModelRequest { thinking, ..ModelRequest::default() })
    };
    assert_eq!(sent("zai", None)["thinking"]["type"], "enabled");
    assert_eq!(sent("compatible", Some(true))["reasoning_effort"], "medium");
    assert_eq!(sent("zai", Some(false))["thinking"]["type"], "disabled");
}
