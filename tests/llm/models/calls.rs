//! Tool calls in all forms that providers send, and their results.

use serde_json::{Value, json};

use super::{
    Models, chunk,
    provider::{Answer, Provider},
    says, text_and_error,
};

/// Returns the options of an agent with a tool, and the tool.
fn calculator(provider: &Provider) -> String {
    format!("tools = [\"calculator\"]\n{}", provider.calculator())
}

/// One piece of a call.
fn piece(index: Option<usize>, id: Option<&str>, name: Option<&str>, arguments: Value) -> Value {
    let mut piece = json!({ "function": {} });
    if let Some(index) = index {
        piece["index"] = index.into();
    }
    if let Some(id) = id {
        piece["id"] = id.into();
    }
    if let Some(name) = name {
        piece["function"]["name"] = name.into();
    }
    if !arguments.is_null() {
        piece["function"]["arguments"] = arguments;
    }
    chunk(json!({ "tool_calls": [piece] }))
}

fn results(events: &[Value]) -> Vec<&str> {
    let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    let mut results: Vec<_> = results.map(|event| event["content"].as_str().unwrap()).collect();
    results.sort_unstable();
    results
}

#[tokio::test]
async fn calls_in_all_forms_are_run() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, &calculator(&provider));
    let (name, one, two) =
        (Some("calculator"), r#"{"expression":"1+1"}"#, r#"{"expression":"2*3"}"#);
    let half = |text: &str| (Value::from(&text[..9]), Value::from(&text[9..]));
    let ((a, b), (c, d)) = (half(one), half(two));
    for (form, chunks, expected) in [
        ("whole", vec![piece(Some(0), Some("x"), name, one.into())], vec!["2"]),
        (
            "without an id",
            vec![piece(Some(0), None, name, a.clone()), piece(Some(0), None, None, b.clone())],
            vec!["2"],
        ),
        ("an empty id", vec![piece(Some(0), Some(""), name, one.into())], vec!["2"]),
        (
            "an object",
            vec![piece(Some(0), Some("x"), name, json!({ "expression": "1+1" }))],
            vec!["2"],
        ),
        (
            "without an index",
            vec![
                piece(None, Some("x"), name, one.into()),
                piece(None, Some("y"), name, two.into()),
            ],
            vec!["2", "6"],
        ),
        (
            "interleaved",
            vec![
                piece(Some(0), Some("x"), name, a.clone()),
                piece(Some(1), Some("y"), name, c.clone()),
                piece(Some(0), None, None, b.clone()),
                piece(Some(1), None, None, d.clone()),
            ],
            vec!["2", "6"],
        ),
        ("not finished", vec![piece(Some(0), Some("x"), name, a.clone())], vec!["Error"]),
    ] {
        provider.answer(Answer::openai(&chunks));
        says(&provider, "So.");
        let events = models.ask(form).await;
        assert_eq!(text_and_error(&events), ("So.".to_owned(), None), "{form}");
        let results = results(&events);
        let results: Vec<_> = results
            .iter()
            .map(|result| if result.starts_with("Error") { "Error" } else { result })
            .collect();
        assert_eq!(results, expected, "{form}");
        // The provider gets each result with its call's id.
        let requests = provider.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
        let calls =
            messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
        let calls: Vec<_> = calls.map(|call| call["id"].as_str().unwrap()).collect();
        let answered: Vec<_> =
            messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        assert_eq!(calls, answered, "{form}");
        assert!(!calls.contains(&""), "{form}");
    }
}

#[tokio::test]
async fn an_agent_that_always_calls_is_stopped_at_its_limit_of_steps() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, &format!("max_steps = 3\n{}", calculator(&provider)));
    for _ in 0..3 {
        let call = piece(Some(0), Some("same"), Some("calculator"), r#"{"expression":"1"}"#.into());
        provider.answer(Answer::openai(&[call]));
    }
    let events = models.ask("?").await;
    assert_eq!(text_and_error(&events).1.as_deref(), Some("max_steps"));
    assert_eq!(results(&events), ["1", "1", "1"]);
}
