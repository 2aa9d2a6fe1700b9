//! Providers that break off, stall, send invalid data, refuse, or cannot be reached.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    KEY, Models, chunk, data, input,
    provider::{Answer, Provider, Step},
    text_and_error,
};

fn word(text: &str) -> String {
    data(&chunk(json!({ "content": text })))
}

#[tokio::test]
async fn each_failure_of_a_provider_ends_the_run_with_its_own_code() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let invalid =
        |text: &str| Answer::stream([word("a"), text.to_owned(), "data: [DONE]\n\n".to_owned()]);
    let long = format!("data: {}", "x".repeat(1 << 22));
    for (answer, text, code) in [
        // Aborts within a token, between two tokens, and with a regular end of the body.
        (
            Answer::stream([word("a"), word("b")[..12].to_owned()]).then(Step::Abort),
            "a",
            "model_interrupted",
        ),
        (Answer::stream([word("a")]).then(Step::Abort), "a", "model_interrupted"),
        (Answer::stream([word("a")]), "a", "model_interrupted"),
        (Answer::stream([word("a")]).then(Step::Stall), "a", "model_timeout"),
        (invalid("data: {\"choices\":\n\n"), "a", "model_protocol"),
        (invalid("data: hello\n\n"), "a", "model_protocol"),
        (invalid(&long), "a", "model_protocol"),
        (invalid("data: {\"error\":{\"message\":\"overloaded\"}}\n\n"), "a", "model_failed"),
        (Answer::new(200, ["{}"]).header("content-type", "application/json"), "", "model_protocol"),
        (
            Answer::new(401, [format!("{{\"error\":{{\"message\":\"bad key {KEY}\"}}}}")]),
            "",
            "model_unauthorized",
        ),
        (Answer::new(400, ["{\"error\":{\"message\":\"no such model\"}}"]), "", "model_rejected"),
    ] {
        let shown = format!("{answer:.300?}");
        provider.answer(answer);
        let events = models.ask("?").await;
        assert_eq!(text_and_error(&events), (text.to_owned(), Some(code.to_owned())), "{shown}");
        assert!(!json!(events).to_string().contains(KEY), "{shown}");
    }
    assert_eq!(provider.requests().len(), 11, "there were retries");
    let Models { process, .. } = models;
    process.signal("-TERM");
    assert!(!process.ended().1.contains(KEY), "the key is in the log");
}

#[tokio::test]
async fn a_failure_before_the_first_token_is_retried_as_often_as_configured() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let success = || Answer::openai(&[chunk(json!({ "content": "fine" }))]);
    provider.answer(Answer::new(500, ["{}"]));
    provider.answer(success());
    assert_eq!(text_and_error(&models.ask("?").await), ("fine".to_owned(), None));
    for (status, code) in [(429, "model_rate_limited"), (503, "model_unavailable")] {
        provider.answer(Answer::new(status, ["{}"]).header("retry-after", "0"));
        provider.answer(Answer::new(status, ["{}"]).header("retry-after", "0"));
        assert_eq!(text_and_error(&models.ask("?").await).1.as_deref(), Some(code));
    }
    assert_eq!(provider.requests().len(), 6);
}

#[tokio::test]
async fn a_client_that_leaves_and_a_cancel_end_the_request_to_the_provider() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let url = &models.process.url;
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    for detached in [false, true] {
        let slow =
            (0..3000).flat_map(|_| [word("a").into(), Step::Pause(Duration::from_millis(20))]);
        provider.answer(Answer::stream(slow));
        let mut input = input("?");
        if detached {
            input["forwardedProps"] = json!({ "onDisconnect": "continue" });
        }
        let before = provider.hang_ups();
        let mut response =
            client.post(format!("{url}/send-message")).json(&input).send().await.unwrap();
        let mut seen = String::new();
        while !seen.contains("TEXT_MESSAGE_CONTENT") {
            seen.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
        }
        let stopped = Instant::now();
        if detached {
            let thread = input["threadId"].as_str().unwrap();
            client.post(format!("{url}/threads/{thread}/runs/r/cancel")).send().await.unwrap();
        } else {
            drop(response);
        }
        let took = provider.until_hang_ups(before + 1).await.duration_since(stopped);
        assert!(took < Duration::from_secs(5), "{took:?}, detached: {detached}");
    }
}
