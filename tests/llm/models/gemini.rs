//! An agent with the Gemini API: signatures come back on their parts, over two runs of a stored
//! thread.

use serde_json::{Value, json};

use crate::llm::providers::published::gemini::check;

use super::{
    Models, ask, input,
    provider::{Answer, Provider},
    text_and_error,
};

fn parts(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] })
}

fn finish() -> Value {
    json!({ "candidates": [{ "content": { "parts": [{ "text": "" }] }, "finishReason": "STOP", "index": 0 }] })
}

#[tokio::test]
async fn signatures_return_through_the_thread() {
    let provider = Provider::start_checked(check).await;
    let config = format!(
        "provider = \"gemini\"\nmodel = \"gemini-3.8-flash\"\nbase_url = \"{}\"\ntools = [\"calculator\"]\nthinking = true\n{}",
        provider.url(),
        provider.calculator()
    );
    let models = Models::start_with(&config);
    provider.answer(Answer::gemini(&[
        parts(json!([{ "text": "hm", "thought": true }])),
        parts(json!([{ "text": "I calculate." }])),
        parts(json!([{
            "functionCall": { "id": "c1", "name": "calculator", "args": { "expression": "6*7" } },
            "thoughtSignature": "signed call calculator",
        }])),
        finish(),
    ]));
    provider.answer(Answer::gemini(&[
        parts(json!([{ "text": "It is" }])),
        parts(json!([{ "text": " 42." }])),
        parts(json!([{ "text": "", "thoughtSignature": "signed text " }])),
        finish(),
    ]));
    let first = input("6*7?");
    let events = ask(&models.process.url, first.clone()).await;
    assert_eq!(text_and_error(&events), ("I calculate.It is 42.".to_owned(), None));
    let sealed = events.iter().filter(|event| event["type"] == "REASONING_ENCRYPTED_VALUE");
    let types: Vec<_> = sealed.map(|event| &event["encryptedValueType"]).collect();
    assert_eq!(types, ["gemini.thought_signature"; 2]);
    let body = provider.requests().pop().unwrap().body;
    let call = json!({ "functionCall": { "id": "c1", "name": "calculator", "args": { "expression": "6*7" } },
        "thoughtSignature": "signed call calculator" });
    assert_eq!(body["contents"][1]["parts"], json!([{ "text": "I calculate." }, call]));
    assert_eq!(body["generationConfig"]["thinkingConfig"], json!({ "includeThoughts": true }));

    provider.answer(Answer::gemini(&[parts(json!([{ "text": "Yes." }])), finish()]));
    let mut second = first;
    second["runId"] = "r2".into();
    second["messages"] = json!([{ "id": "m2", "role": "user", "content": "Sure?" }]);
    let events = ask(&models.process.url, second).await;
    assert_eq!(text_and_error(&events), ("Yes.".to_owned(), None));
    let body = provider.requests().pop().unwrap().body;
    let signed =
        json!([{ "text": "It is 42." }, { "text": "", "thoughtSignature": "signed text " }]);
    assert_eq!(body["contents"][3]["parts"], signed, "{body}");
    assert_eq!(body["contents"][1]["parts"][1], call);
}
