//! The model that answers: the agent's own, one that the request chooses, or a fallback.

use serde_json::{Value, json};

use super::{
    Models, ask, chunk, finish, input,
    provider::{Answer, Provider},
    text_and_error,
};

fn hello() -> Answer {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    Answer::openai(&[chunk(json!({ "content": "Hello." })), finish("stop"), usage])
}

fn backup(provider: &Provider) -> String {
    format!(
        "fallback = [\"backup\"]\n[agents.backup]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"n\"\n\
         base_url = \"{}/v1\"\nfallback = [\"assistant\"]\n",
        provider.url()
    )
}

#[tokio::test]
async fn a_fallback_answers_if_the_first_model_is_unavailable() {
    let (first, second) = (Provider::start().await, Provider::start().await);
    let models = Models::start(&first, &backup(&second));
    let unavailable = || Answer::new(503, ["{}"]).header("retry-after", "0");
    // The first attempt and its retry.
    first.answer(unavailable());
    first.answer(unavailable());
    second.answer(hello());
    let events = models.ask("Hi").await;
    assert_eq!(text_and_error(&events), ("Hello.".to_owned(), None));
    let usage = &events.last().unwrap()["usage"];
    assert_eq!((usage.as_array().unwrap().len(), &usage[0]["model"]), (1, &json!("n")));
    first.answer(Answer::new(400, ["{}"]));
    assert_eq!(text_and_error(&models.ask("Hi").await).1.as_deref(), Some("model_rejected"));
    assert_eq!((first.requests().len(), second.requests().len()), (3, 1));
    let Models { process, .. } = models;
    process.signal("-TERM");
    let log = process.ended().1;
    assert!(log.contains("trying its fallback") && log.contains("model_unavailable"), "{log}");
}

#[tokio::test]
async fn a_fallback_has_its_own_context_window() {
    let (first, second) = (Provider::start().await, Provider::start().await);
    let context = "context = { window = 500, policy = \"fail\" }\n";
    let models = Models::start(&first, &format!("{}{context}", backup(&second)));
    for _ in 0..2 {
        first.answer(Answer::new(503, ["{}"]).header("retry-after", "0"));
    }
    let events = models.ask(&"long ".repeat(10_000)).await;
    assert_eq!(text_and_error(&events).1.as_deref(), Some("context_too_long"));
    assert_eq!((first.requests().len(), second.requests().len()), (2, 0));
}

#[tokio::test]
async fn a_request_chooses_among_the_configured_models() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "models = [\"fast\", \"smart\"]");
    let url = &models.process.url;
    let choosing = |model: &str| {
        let mut input = input("Hi");
        input["forwardedProps"] = json!({ "model": model });
        input
    };
    for model in ["smart", "m"] {
        provider.answer(hello());
        let events = ask(url, choosing(model)).await;
        assert_eq!(text_and_error(&events), ("Hello.".to_owned(), None));
        assert_eq!(events.last().unwrap()["usage"][0]["model"], model);
        assert_eq!(provider.requests().last().unwrap().body["model"], model);
    }
    let refused = ask(url, choosing("slow")).await;
    let error = refused.last().unwrap();
    assert_eq!(error["code"], "model_not_allowed");
    assert!(
        error["message"].as_str().unwrap().ends_with("choose one of m, fast, smart"),
        "{error}"
    );
    assert_eq!(provider.requests().len(), 2);
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    let capabilities =
        client.get(format!("{url}/agents/assistant/capabilities")).send().await.unwrap();
    let capabilities: Value = serde_json::from_str(&capabilities.text().await.unwrap()).unwrap();
    assert_eq!(capabilities["custom"]["models"], json!(["m", "fast", "smart"]), "{capabilities}");
    models.process.signal("-TERM");
    let (_, log) = models.process.ended();
    assert!(log.contains("model_not_allowed") && !log.contains("ERROR"), "a client's error: {log}");
}
