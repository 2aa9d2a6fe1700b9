use super::*;
use crate::{KnownModels, host::OpenAiApi};

fn effort_for(model: &str, configured: Option<&str>, thinks: Option<bool>) -> Option<String> {
    let rules = KnownModels::default().openai(model);
    let options =
        ModelOptions { reasoning_effort: configured.map(str::to_owned), ..ModelOptions::default() };
    effort(rules.as_ref(), &options, thinks).map(str::to_owned)
}

fn efforts(model: &str) -> String {
    KnownModels::default().openai(model).unwrap().efforts.join(" ")
}

#[test]
fn each_model_has_its_efforts() {
    for (model, expected) in [
        ("gpt-4o", ""),
        ("gpt-4.1-mini-2025-04-14", ""),
        ("ft:gpt-4.1-2025-04-14:acme::x", ""),
        ("o3-mini", "low medium high"),
        ("o4-mini-2025-04-16", "low medium high"),
        ("gpt-5", "minimal low medium high"),
        ("gpt-5-mini-2025-08-07", "minimal low medium high"),
        ("gpt-5-pro-2025-10-06", "high"),
        ("gpt-5-codex", "low medium high"),
        ("gpt-5-chat-latest", ""),
        ("gpt-5.1", "none low medium high"),
        ("gpt-5.1-codex-max", "low medium high xhigh"),
        ("gpt-5.2-chat-latest", "medium"),
        ("gpt-5.2-pro", "medium high xhigh"),
        ("gpt-5.3-codex", "low medium high xhigh"),
        ("gpt-5.4-mini-2026-03-17", "none low medium high xhigh"),
        ("gpt-5.5-2026-04-23", "none low medium high xhigh"),
        ("gpt-5.6-terra", "none low medium high xhigh max"),
        ("gpt-6-luna", "none low medium high xhigh max"),
        ("gpt-6-astra", "low medium high xhigh max"),
        ("gpt-6.1-sol", "low medium high xhigh max"),
        ("gpt-6.1-terra", "none low medium high xhigh max"),
        ("gpt-6.2-sol", "low medium high xhigh max"),
        ("gpt-7-nova", ""),
    ] {
        assert_eq!(efforts(model), expected, "{model}");
    }
    for other in ["gpt-oss-120b", "openai/gpt-5", "ollama", "o", "o-x", "claude-opus-5-5", "gpt-"] {
        assert_eq!(KnownModels::default().openai(other), None, "{other}");
    }
}

#[test]
fn openais_current_models_get_the_responses_api_at_openai() {
    let api =
        |model: &str, url: Option<&str>| OpenAiApi::for_model(&KnownModels::default(), model, url);
    for model in [
        "o1",
        "o3-pro",
        "o4-mini",
        "codex-mini-latest",
        "gpt-5",
        "gpt-5-chat-latest",
        "gpt-6.2-sol",
        "gpt-7",
    ] {
        assert_eq!(api(model, None), OpenAiApi::Responses, "{model}");
        assert_eq!(api(model, Some("https://api.openai.com/v1")), OpenAiApi::Responses, "{model}");
        assert_eq!(
            api(model, Some("https://eu.api.openai.com/v1")),
            OpenAiApi::Responses,
            "{model}"
        );
        for other in [
            "http://localhost:11434/v1",
            "https://x.openai.azure.com/openai/v1",
            "https://notapi.openai.com",
        ] {
            assert_eq!(api(model, Some(other)), OpenAiApi::Chat, "{model} at {other}");
        }
    }
    for model in
        ["gpt-4o", "gpt-4.1", "gpt-3.5-turbo", "gpt-oss-120b", "gpt-5-search-api", "llama3.2", ""]
    {
        assert_eq!(api(model, None), OpenAiApi::Chat, "{model}");
    }
}

#[test]
fn without_thinking_a_model_gets_its_lowest_effort() {
    let off = |model: &str, configured| effort_for(model, configured, Some(false));
    assert_eq!(off("gpt-5", Some("high")).as_deref(), Some("minimal"));
    assert_eq!(off("gpt-5.4", None).as_deref(), Some("none"));
    assert_eq!(off("gpt-6-astra", None).as_deref(), Some("low"));
    assert_eq!(off("gpt-5-pro", None).as_deref(), Some("high"));
    assert_eq!(off("gpt-7-nova", None).as_deref(), Some("low"));
    assert_eq!(off("gpt-4o", None).as_deref(), None);
    assert_eq!(off("local", None).as_deref(), None);
    assert_eq!(off("local", Some("high")).as_deref(), Some("low"));
    for (model, sent) in
        [("gpt-5", "minimal"), ("gpt-6-astra", "low"), ("gpt-5.4", "none"), ("gpt-7-nova", "none")]
    {
        assert_eq!(off(model, Some("none")).as_deref(), Some(sent), "{model}");
    }
    assert_eq!(off("local", Some("none")).as_deref(), Some("none"));
}

#[test]
fn with_thinking_a_model_gets_an_effort_that_thinks() {
    let on = |model: &str, configured| effort_for(model, configured, Some(true));
    assert_eq!(on("gpt-5.4", None).as_deref(), Some("medium"));
    assert_eq!(on("gpt-5.4", Some("none")).as_deref(), Some("medium"));
    assert_eq!(on("gpt-5.4", Some("xhigh")).as_deref(), Some("xhigh"));
    assert_eq!(on("gpt-5-pro", None).as_deref(), Some("high"));
    assert_eq!(on("gpt-4o", None).as_deref(), None);
    assert_eq!(on("local", None).as_deref(), Some("medium"));
    assert_eq!(effort_for("local", Some("low"), None).as_deref(), Some("low"));
}
