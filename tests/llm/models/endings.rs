//! Answers that end before the model is done, answers with a schema, and runs after a failed one.

use serde_json::{Value, json};

use super::{
    Models, call, chunk, finish, input,
    provider::{Answer, Provider},
    text_and_error,
};
use crate::llm::providers::events;

fn custom<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    let events = events.iter().filter(|event| event["type"] == "CUSTOM" && event["name"] == name);
    events.map(|event| &event["value"]).collect()
}

#[tokio::test]
async fn a_truncated_answer_says_why() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    provider.answer(Answer::openai(&[chunk(json!({ "content": "It is" })), finish("length")]));
    let events = models.ask("?").await;
    let message = events.iter().find(|event| event["type"] == "TEXT_MESSAGE_START").unwrap();
    let told = json!({ "reason": "length", "messageId": message["messageId"], "step": 1 });
    assert_eq!(custom(&events, "agui-server.truncated"), [&told]);
    let end = events.last().unwrap();
    assert_eq!(
        (&end["type"], &end["result"]),
        (&json!("RUN_FINISHED"), &json!({ "truncated": told }))
    );
    provider.answer(Answer::openai(&[chunk(json!({ "reasoning": "Well" })), finish("length")]));
    assert_eq!(
        text_and_error(&models.ask("?").await),
        (String::new(), Some("model_truncated".to_owned()))
    );
}

#[tokio::test]
async fn a_call_with_cut_off_arguments_is_not_run() {
    let provider = Provider::start().await;
    let models =
        Models::start(&provider, &format!("tools = [\"calculator\"]\n{}", provider.calculator()));
    let complete = call(0, "calculator", r#"{"expression":"1+1"}"#);
    let cut = call(1, "calculator", r#"{"expression":"2*"#);
    let text = chunk(json!({ "content": "Let me see." }));
    provider.answer(Answer::openai(&[text, complete, cut, finish("length")]));
    let events = models.ask("?").await;
    let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    let results: Vec<_> = results.map(|event| event["content"].as_str().unwrap()).collect();
    assert!(
        results.len() == 2
            && results.iter().all(|text| text.starts_with("Error: the call was not run"))
    );
    assert_eq!(events.last().unwrap()["result"]["truncated"]["reason"], "length");
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_is_checked_against_the_schema_and_corrected_once() {
    let provider = Provider::start().await;
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let file = [("answer.json", schema)];
    let models =
        Models::start_with_files(&provider, "response_schema_file = \"answer.json\"", &file);
    let answer = |text: &str| Answer::openai(&[chunk(json!({ "content": text })), finish("stop")]);
    for text in ["two", r#"{"n":2}"#, "two", "two"] {
        provider.answer(answer(text));
    }
    let events = models.ask("1+1?").await;
    assert_eq!(events.last().unwrap()["result"], json!({ "n": 2 }));
    let rejected = custom(&events, "agui-server.response_rejected");
    assert!(
        rejected.len() == 1 && rejected[0]["problem"].as_str().unwrap().contains("not JSON"),
        "{rejected:?}"
    );
    assert_eq!(text_and_error(&models.ask("1+1?").await).1.as_deref(), Some("response_invalid"));
    assert_eq!(provider.requests().len(), 4);
}

#[tokio::test]
async fn a_failed_run_does_not_spoil_its_thread() {
    let provider = Provider::start().await;
    let claude = format!(
        "[agents.claude]\nkind = \"llm\"\nprovider = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        provider.url()
    );
    let models = Models::start(&provider, &claude);
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    for (agent, answer) in [
        ("assistant", Answer::openai(&[chunk(json!({ "content": "Hello." })), finish("stop")])),
        ("claude", Answer::anthropic(&events("Hello."))),
    ] {
        provider.answer(Answer::new(400, ["{}"]));
        provider.answer(answer);
        let mut run = input("first");
        let url = format!("{}/agents/{agent}/send-message", models.process.url);
        let send = async |input: &Value| {
            client.post(&url).json(input).send().await.unwrap().text().await.unwrap()
        };
        assert!(send(&run).await.contains("model_rejected"), "{agent}");
        run["runId"] = "r2".into();
        run["messages"] = json!([{ "id": "m2", "role": "user", "content": "second" }]);
        assert!(send(&run).await.contains("Hello."), "{agent}");
        let sent = provider.requests().last().unwrap().body["messages"].clone();
        let texts: Vec<_> =
            sent.as_array().unwrap().iter().map(|message| message["content"].to_string()).collect();
        assert!(
            texts.first().unwrap().contains("first") && texts.last().unwrap().contains("second"),
            "{sent}"
        );
        // Anthropic merges; chat completions do so where the server needs it.
        assert!(agent == "assistant" || texts.len() == 1, "{sent}");
    }
}
