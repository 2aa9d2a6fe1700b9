//! Providers that break off, stall, talk nonsense, refuse, or are not there.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    KEY, Models, chunk, data, heard, input,
    provider::{Answer, Provider, Step},
};

fn word(text: &str) -> String {
    data(&chunk(json!({ "content": text })))
}

#[tokio::test]
async fn whatever_a_provider_does_ends_in_an_error_that_the_client_can_tell_apart() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let nonsense = |text: &str| Answer::stream([word("a"), text.to_owned(), "data: [DONE]\n\n".to_owned()]);
    let long = format!("data: {}", "x".repeat(1 << 22));
    for (answer, said, code) in [
        // Cut in the middle of a token, between two, and as if it were the end.
        (Answer::stream([word("a"), word("b")[..12].to_owned()]).then(Step::Abort), "a", "model_interrupted"),
        (Answer::stream([word("a")]).then(Step::Abort), "a", "model_interrupted"),
        (Answer::stream([word("a")]), "a", "model_interrupted"),
        (Answer::stream([word("a")]).then(Step::Stall), "a", "model_timeout"),
        (nonsense("data: {\"choices\":\n\n"), "a", "model_protocol"),
        (nonsense("data: hello\n\n"), "a", "model_protocol"),
        (nonsense(&long), "a", "model_protocol"),
        (nonsense("data: {\"error\":{\"message\":\"overloaded\"}}\n\n"), "a", "model_failed"),
        (Answer::new(200, ["{}"]).header("content-type", "application/json"), "", "model_protocol"),
        (Answer::new(401, [format!("{{\"error\":{{\"message\":\"bad key {KEY}\"}}}}")]), "", "model_unauthorized"),
        (Answer::new(400, ["{\"error\":{\"message\":\"no such model\"}}"]), "", "model_rejected"),
    ] {
        let shown = format!("{answer:.300?}");
        provider.answer(answer);
        let events = models.ask("?").await;
        assert_eq!(heard(&events), (said.to_owned(), Some(code.to_owned())), "{shown}");
        assert!(!json!(events).to_string().contains(KEY), "{shown}");
    }
    assert_eq!(provider.requests().len(), 11, "what has begun, or was refused, is not tried again");
    let Models { process, .. } = models;
    process.signal("-TERM");
    assert!(!process.ended().1.contains(KEY), "the key is in the log");
}

#[tokio::test]
async fn what_fails_before_the_first_token_is_tried_again_when_the_provider_says() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let fine = || Answer::openai(&[chunk(json!({ "content": "fine" }))]);
    provider.answer(Answer::new(429, ["{}"]).header("retry-after", "1"));
    provider.answer(fine());
    let begun = Instant::now();
    assert_eq!(heard(&models.ask("?").await), ("fine".to_owned(), None));
    assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
    provider.answer(Answer::new(500, ["{}"]));
    provider.answer(fine());
    assert_eq!(heard(&models.ask("?").await).0, "fine");
    for (status, code) in [(429, "model_rate_limited"), (503, "model_unavailable")] {
        provider.answer(Answer::new(status, ["{}"]).header("retry-after", "0"));
        provider.answer(Answer::new(status, ["{}"]).header("retry-after", "0"));
        assert_eq!(heard(&models.ask("?").await).1.as_deref(), Some(code));
    }
    assert_eq!(provider.requests().len(), 8);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_an_error_too() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    drop(provider);
    assert_eq!(heard(&models.ask("?").await).1.as_deref(), Some("model_unreachable"));
}

#[tokio::test]
async fn a_client_that_leaves_and_a_cancel_end_the_request_to_the_provider_within_a_tenth_of_a_second() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let url = &models.process.url;
    let client = agui_server::upstream::client(&Default::default()).unwrap();
    for detached in [false, true] {
        let slow = (0..1000).flat_map(|_| [word("a").into(), Step::Pause(Duration::from_millis(20))]);
        provider.answer(Answer::stream(slow));
        let mut input = input("?");
        if detached {
            input["forwardedProps"] = json!({ "onDisconnect": "continue" });
        }
        let before = provider.hang_ups();
        let mut response = client.post(format!("{url}/send-message")).json(&input).send().await.unwrap();
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
        while provider.hang_ups() == before {
            assert!(stopped.elapsed() < Duration::from_secs(5), "the request goes on");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = stopped.elapsed();
        assert!(took < Duration::from_millis(100), "{took:?}, detached: {detached}");
    }
}
