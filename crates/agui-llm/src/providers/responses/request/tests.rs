use std::sync::Arc;

use serde_json::{Value, json};

use super::{body as request_body, *};
use crate::{Block, ModelReasoning, ModelStep, ProviderClient, Thinking, ToolResult};
use agui_protocol::{ContentPart, PartSource, ToolCall};

const ARTEFACT: &str = r#"{"id":"rs_1","encrypted_content":"gAAA"}"#;

fn body(options: &ModelOptions, request: &ModelRequest) -> Value {
    request_body(options, request).json
}

fn options(model: &str) -> ModelOptions {
    ModelOptions::new(model, ProviderClient::default())
}

fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

fn request(steps: Vec<ModelStep>) -> ModelRequest {
    ModelRequest { steps, ..ModelRequest::default() }
}

fn input(steps: Vec<ModelStep>) -> Value {
    body(&options("m"), &request(steps))["input"].clone()
}

fn thought(text: &str, artefact: Option<&str>, provider: Option<&str>) -> Block {
    let (artefact, provider) = (artefact.map(str::to_owned), provider.map(str::to_owned));
    Block::Reasoning(ModelReasoning { text: text.to_owned(), artefact, redacted: false, provider })
}

fn assistant(blocks: Vec<Block>) -> ModelStep {
    ModelStep::Assistant(blocks)
}

fn call(id: &str, arguments: &str) -> Block {
    Block::Call(ToolCall::new(id, "f", arguments))
}

fn tools() -> Arc<[ToolSpec]> {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    let spec = |name: &str, parameters| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters,
    };
    [spec("closed", parameters), spec("open", json!({}))].into()
}

#[test]
fn a_request_is_stateless_and_context_is_at_its_end() {
    let request = ModelRequest {
        system: vec!["Be kind.".to_owned(), "Be short.".to_owned()],
        current: vec!["page: orders".to_owned()],
        steps: vec![user("hi"), ModelStep::Instructions("Now in French.".to_owned())],
        ..ModelRequest::default()
    };
    let part = |text: &str| json!([{"type": "input_text", "text": text}]);
    let expected = json!({
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": part("hi")},
            {"type": "message", "role": "developer", "content": part("Now in French.")},
            {"type": "message", "role": "developer", "content": part("page: orders")},
        ],
        "stream": true,
        "store": false,
        "instructions": "Be kind.\n\nBe short.",
    });
    assert_eq!(body(&options("m"), &request), expected);
    assert_eq!(
        input(Vec::new()).as_array().map(Vec::len),
        Some(1),
        "the API refuses an empty input"
    );
}

#[test]
fn reasoning_returns_in_its_place_before_calls_and_text() {
    let steps = vec![
        user("hi"),
        assistant(vec![
            thought("I think.", Some(ARTEFACT), Some("openai")),
            Block::Text("I look.".to_owned()),
            call("c1", "{\"x\": 1}"),
            call("c2", "{"),
        ]),
        ModelStep::ToolResults(vec![ToolResult {
            call_id: "c1".into(),
            name: "f".to_owned(),
            content: "12".into(),
            failed: false,
        }]),
        assistant(vec![thought("", Some(ARTEFACT), None), Block::Text("Twelve.".to_owned())]),
    ];
    let items = input(steps);
    let expected = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I think."}], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"x\": 1}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "12"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": "Twelve."},
    ]);
    assert_eq!(items.as_array().unwrap()[1..], expected.as_array().unwrap()[..]);
}

#[test]
fn reasoning_that_the_service_would_refuse_is_left_out() {
    let text = || Block::Text("a".to_owned());
    for blocks in [
        vec![thought("x", Some(ARTEFACT), Some("anthropic")), text()],
        vec![thought("x", Some("c2lnbmVk"), Some("openai")), text()],
        vec![thought("x", Some("{\"id\":\"rs_1\"}"), Some("openai")), text()],
        vec![thought("x", None, Some("openai")), text()],
        // The item that followed the reasoning is missing.
        vec![text(), thought("x", Some(ARTEFACT), Some("openai"))],
    ] {
        let items = input(vec![user("hi"), assistant(blocks.clone())]);
        assert_eq!(items.as_array().map(Vec::len), Some(2), "{blocks:?}");
    }
}

#[test]
fn messages_have_a_phase_for_models_that_want_it() {
    let steps = vec![
        assistant(vec![Block::Text("I look.".to_owned()), call("c", "{}")]),
        assistant(vec![Block::Text("So.".to_owned()), Block::Text("Twelve.".to_owned())]),
    ];
    let phases = |model: &str| -> Vec<Value> {
        let body = body(&options(model), &request(steps.clone()));
        let items = body["input"].as_array().unwrap().clone();
        items
            .iter()
            .filter(|item| item["type"] == "message")
            .map(|item| item["phase"].clone())
            .collect()
    };
    assert_eq!(phases("gpt-5.4"), ["commentary", "commentary", "final_answer"]);
    assert_eq!(phases("gpt-5.1"), [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn images_and_files_are_parts() {
    let data = |value: &str, mime_type: &str| PartSource::Data {
        value: value.to_owned(),
        mime_type: mime_type.to_owned(),
    };
    let url = |value: &str| PartSource::Url { value: value.to_owned(), mime_type: None };
    let file = |provider: &str| PartSource::File {
        value: "file-1".to_owned(),
        provider: Some(provider.to_owned()),
        mime_type: None,
    };
    let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let steps = vec![ModelStep::User(vec![
        ContentPart::image(data("AAAA", "IMAGE/png; x=y")),
        ContentPart::image(url("https://example.com/a.png")),
        ContentPart::image(file("openai")),
        ContentPart::image(file("anthropic")),
        ContentPart::Document(data("BBBB", "application/pdf").into()),
        ContentPart::Document(data("CCCC", docx).into()),
        ContentPart::Document(url("https://example.com/a.pdf").into()),
        ContentPart::Document(file("openai").into()),
        ContentPart::Document(data("DDDD", "application/x-unknown").into()),
    ])];
    let options = ModelOptions { image_detail: Some("low".to_owned()), ..options("m") };
    let body = body(&options, &request(steps));
    let expected = json!([
        {"type": "input_image", "detail": "low", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_image", "detail": "low", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "detail": "low", "file_id": "file-1"},
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,BBBB"},
        {"type": "input_file", "filename": "document.docx", "file_data": format!("data:{docx};base64,CCCC")},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
    ]);
    let content = body["input"][0]["content"].as_array().unwrap();
    let (unreadable, sent): (Vec<_>, Vec<_>) =
        content.iter().cloned().partition(|part| part["type"] == "input_text");
    assert_eq!(Value::from(sent), expected);
    assert_eq!(
        unreadable.len(),
        2,
        "the model is told of the other provider's file and of the unknown type"
    );
}

#[test]
fn a_tool_says_whether_it_is_strict() {
    let strict = |options: &ModelOptions| -> Vec<Value> {
        let body = body(options, &ModelRequest { tools: tools(), ..request(Vec::new()) });
        body["tools"].as_array().unwrap().iter().map(|tool| tool["strict"].clone()).collect()
    };
    assert_eq!(
        strict(&options("m")),
        [false, false],
        "tools of this API are strict unless they say otherwise"
    );
    let strict_tools = ModelOptions { strict_tools: Some(true), ..options("m") };
    assert_eq!(
        strict(&strict_tools),
        [true, false],
        "the service refuses a strict tool with an open schema"
    );
}

#[test]
fn tool_choice_needs_tools() {
    let choice = |tool_choice, tools| {
        let options = ModelOptions { parallel_tool_calls: Some(false), ..options("m") };
        let body = body(&options, &ModelRequest { tool_choice, tools, ..request(Vec::new()) });
        (body["tool_choice"].clone(), body["parallel_tool_calls"].clone())
    };
    let off = Value::Bool(false);
    assert_eq!(choice(ToolChoice::Auto, tools()), (Value::Null, off.clone()));
    assert_eq!(choice(ToolChoice::None, tools()), ("none".into(), off.clone()));
    assert_eq!(choice(ToolChoice::Required, tools()), ("required".into(), off.clone()));
    let named = json!({"type": "function", "name": "open"});
    assert_eq!(choice(ToolChoice::Tool("open".to_owned()), tools()), (named, off));
    assert_eq!(choice(ToolChoice::Required, Arc::default()), (Value::Null, Value::Null));
}

#[test]
fn the_effort_follows_the_model_and_the_request() {
    let effort = |model: &str, configured: Option<&str>, thinks| {
        let options =
            ModelOptions { reasoning_effort: configured.map(str::to_owned), ..options(model) };
        let body = body(&options, &ModelRequest { thinking: thinks, ..request(Vec::new()) });
        (body["reasoning"].clone(), body["include"].is_array())
    };
    let shown = |effort: &str| json!({"effort": effort, "summary": "auto"});
    assert_eq!(
        effort("gpt-5.4", None, None),
        (Value::Null, true),
        "reasoning may come without being asked for"
    );
    assert_eq!(effort("gpt-5.4", Some("none"), Some(false)), (json!({"effort": "none"}), true));
    assert_eq!(effort("gpt-5", None, Some(false)), (json!({"effort": "minimal"}), true));
    assert_eq!(effort("gpt-5.4", None, Some(true)), (shown("medium"), true));
    assert_eq!(effort("gpt-4o", None, Some(true)), (Value::Null, false), "it does not reason");
    assert_eq!(effort("local", None, None), (Value::Null, false));
    assert_eq!(effort("local", Some("high"), None), (shown("high"), true));
}

#[test]
fn sampling_is_left_out_where_the_model_refuses_it() {
    let sampling = |model: &str, thinks, chosen: Option<&str>| {
        let options = ModelOptions { temperature: Some(0.5), top_p: Some(0.9), ..options(model) };
        let model = chosen.map(str::to_owned);
        let body = body(&options, &ModelRequest { thinking: thinks, model, ..request(Vec::new()) });
        body["temperature"] == 0.5 && body["top_p"] == 0.9
    };
    assert!(sampling("gpt-4o", Some(true), None));
    assert!(sampling("gpt-5.1", None, None));
    assert!(!sampling("gpt-5.1", Some(true), None));
    assert!(!sampling("gpt-5", None, None));
    assert!(sampling("local", None, None));
    assert!(!sampling("gpt-4o", None, Some("gpt-5")));
}

#[test]
fn options_that_a_model_refuses_are_left_out_or_replaced_by_the_nearest() {
    let sent = |model: &str, effort: &str| {
        let options = ModelOptions {
            reasoning_effort: Some(effort.to_owned()),
            verbosity: Some("low".to_owned()),
            ..options(model)
        };
        let body = body(&options, &request(Vec::new()));
        (body["reasoning"]["effort"].clone(), body["text"].clone())
    };
    let low = json!({"verbosity": "low"});
    assert_eq!(sent("gpt-5.4", "minimal"), (json!("low"), low.clone()));
    assert_eq!(sent("gpt-6-astra", "none"), (json!("low"), low.clone()));
    assert_eq!(sent("o3", "xhigh"), (json!("high"), Value::Null));
    assert_eq!(sent("gpt-5", "none"), (json!("minimal"), low.clone()));
    assert_eq!(
        sent("gpt-7-nova", "huge"),
        (json!("huge"), low.clone()),
        "its efforts are not known"
    );
    assert_eq!(sent("gpt-4o", "high"), (Value::Null, Value::Null));
    assert_eq!(sent("local", "huge"), (json!("huge"), low), "another server's model may take it");
}

#[test]
fn options_have_the_names_of_this_api() {
    let Value::Object(schema) = json!({"type": "object", "properties": {"n": {"type": "number"}}})
    else {
        unreachable!()
    };
    let options = ModelOptions {
        max_tokens: Some(100),
        verbosity: Some("low".to_owned()),
        service_tier: Some("flex".to_owned()),
        cache_key: Some("k".to_owned()),
        metadata: [("a".to_owned(), "b".to_owned())].into(),
        thinking: Some(Thinking::Off),
        ..options("gpt-5.4")
    };
    let body = body(
        &options,
        &ModelRequest { response_schema: Some(Arc::new(schema.clone())), ..request(Vec::new()) },
    );
    let format =
        json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": false});
    assert_eq!(body["text"], json!({"verbosity": "low", "format": format}));
    assert_eq!(body["max_output_tokens"], 100);
    assert_eq!(body["service_tier"], "flex");
    assert_eq!(body["prompt_cache_key"], "k");
    assert_eq!(body["metadata"], json!({"a": "b"}));
    assert_eq!(body["reasoning"], json!({"effort": "none"}));
}

#[test]
fn extra_members_are_added_and_only_they_store_a_response() {
    let with = |extra: Value| {
        let Value::Object(extra_body) = extra else { unreachable!() };
        let options = ModelOptions { extra_body, ..options("gpt-5.4") };
        body(&options, &ModelRequest { tools: tools(), ..request(Vec::new()) })
    };
    let body = with(json!({"truncation": "auto", "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources"], "reasoning": {"summary": "detailed"}}));
    assert_eq!(body["truncation"], "auto");
    assert_eq!(body["tools"].as_array().unwrap().len(), 3);
    assert_eq!(body["tools"][2], json!({"type": "web_search"}));
    assert_eq!(
        body["include"],
        json!(["reasoning.encrypted_content", "web_search_call.action.sources"])
    );
    assert_eq!(body["reasoning"], json!({"summary": "detailed"}));
    let no_summary = json!({"reasoning": {"summary": false, "effort": "low"}});
    assert_eq!(with(no_summary)["reasoning"], json!({"effort": "low"}));
    assert_eq!(with(json!({"reasoning": {"summary": false}}))["reasoning"], json!({}));
    assert_eq!(with(json!({"store": true}))["store"], true);
    assert_eq!(
        with(json!({"store": false}))["store"],
        false,
        "`false` removes a member, and the default is to store"
    );
}

#[test]
fn a_text_file_is_given_as_text_and_what_cannot_be_read_is_reported() {
    let data = |mime_type: &str| PartSource::Data {
        value: "YSxi".to_owned(),
        mime_type: mime_type.to_owned(),
    };
    let parts = vec![
        ContentPart::Document(data("text/csv").into()),
        ContentPart::Audio(data("audio/wav").into()),
    ];
    let ProviderRequest { json, skipped, .. } =
        request_body(&options("m"), &request(vec![ModelStep::User(parts)]));
    let content = &json["input"][0]["content"];
    assert!(content[0]["text"].as_str().unwrap().contains("a,b"), "{content}");
    assert!(content[1]["text"].as_str().unwrap().contains("takes no audio"), "{content}");
    let kinds: Vec<_> = skipped.iter().map(|attachment| attachment.kind).collect();
    assert_eq!(kinds, ["audio"]);
}
