mod media;
mod thinking_of_servers;
mod tools;

use std::sync::Arc;

use super::*;
use crate::{
    KnownModels, ModelReasoning, ProviderClient, Thinking, ToolResult,
    providers::wire::{FIRST_USER_TEXT, LAST_USER_TEXT},
};
use agui_protocol::{ContentPart, MessageContent, ToolCall};
use agui_tools::ToolSpec;

fn body(options: &ModelOptions, request: &ModelRequest, is_official: bool) -> ClaudeRequestBody {
    super::body(options, request, &MessagesServer::default(), is_official)
}

fn options(model: &str) -> ModelOptions {
    ModelOptions::new(model, ProviderClient::default())
}

/// The request without the marks for the cache, which have a test of their own.
fn sent(options: &ModelOptions, request: &ModelRequest) -> Value {
    fn unmark(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("cache_control");
                members.values_mut().for_each(unmark);
            }
            Value::Array(list) => list.iter_mut().for_each(unmark),
            _ => {}
        }
    }
    let mut json = body(options, request, true).sent.json;
    unmark(&mut json);
    json
}

fn messages(steps: Vec<ModelStep>) -> Value {
    sent(&options("m"), &ModelRequest { steps, ..ModelRequest::default() })["messages"].take()
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: String::new(), parameters: json!({}) }
}

fn user(said: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(said)])
}

fn assistant(blocks: Vec<Block>) -> ModelStep {
    ModelStep::Assistant(blocks)
}

fn call(id: &str, arguments: &str) -> Block {
    Block::Call(ToolCall::new(id, "f", arguments))
}

fn reasoning(artefact: Option<&str>, redacted: bool, provider: Option<&str>) -> Block {
    Block::Reasoning(ModelReasoning {
        text: if redacted { String::new() } else { "hm".to_owned() },
        artefact: artefact.map(str::to_owned),
        redacted,
        provider: provider.map(str::to_owned),
    })
}

fn result(id: &str, content: impl Into<MessageContent>) -> ModelStep {
    ModelStep::ToolResults(vec![ToolResult {
        call_id: id.into(),
        name: "f".to_owned(),
        content: content.into(),
        failed: false,
    }])
}

#[test]
fn a_request_has_model_conversation_and_tools() {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    let tool = ToolSpec {
        name: "f".to_owned(),
        description: "does".to_owned(),
        parameters: parameters.clone(),
    };
    let failed = ToolResult {
        call_id: "b".into(),
        name: "f".to_owned(),
        content: "bad".into(),
        failed: true,
    };
    let fine = ToolResult {
        call_id: "a".into(),
        name: "f".to_owned(),
        content: "one".into(),
        failed: false,
    };
    let request = ModelRequest {
        system: vec!["be kind".to_owned(), " ".to_owned()],
        steps: vec![
            ModelStep::Instructions("be brief".to_owned()),
            user("hi"),
            assistant(vec![
                reasoning(Some("sig"), false, None),
                reasoning(Some("blob"), true, Some("anthropic")),
                Block::Text("well".to_owned()),
                call("a", "{\"x\": 1}"),
                call("b", "{"),
            ]),
            ModelStep::ToolResults(vec![fine, failed]),
            ModelStep::Instructions("be good".to_owned()),
            user("go on"),
            user("now"),
        ],
        tools: Arc::new([tool]),
        ..ModelRequest::default()
    };
    let expected = json!({
        "model": "m",
        "max_tokens": 8192,
        "stream": true,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "blob"},
                {"type": "text", "text": "well"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": "bad", "is_error": true},
                {"type": "text", "text": "<system-instructions>\nbe good\n</system-instructions>"},
                {"type": "text", "text": "go on"},
                {"type": "text", "text": "now"},
            ]},
        ],
        "system": [{"type": "text", "text": "be kind"}, {"type": "text", "text": "be brief"}],
        "tools": [{"name": "f", "description": "does", "input_schema": parameters}],
    });
    assert_eq!(sent(&options("m"), &request), expected);
    assert!(body(&options("m"), &request, true).betas.is_empty());
}

#[test]
fn a_conversation_begins_and_ends_with_the_user_and_has_no_blank_text() {
    let beginning = json!({"role": "user", "content": [{"type": "text", "text": FIRST_USER_TEXT}]});
    assert_eq!(messages(Vec::new()), json!([beginning]));
    let sent = messages(vec![
        assistant(vec![Block::Text("hello".to_owned())]),
        assistant(vec![Block::Text(" ".to_owned())]),
        assistant(vec![Block::Text("you".to_owned())]),
    ]);
    let words = json!([{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]);
    let end = json!({"role": "user", "content": [{"type": "text", "text": LAST_USER_TEXT}]});
    assert_eq!(sent, json!([beginning, {"role": "assistant", "content": words}, end]));
}

#[test]
fn thinking_is_sent_back_only_to_its_provider() {
    let sent = |block: Block| {
        messages(vec![user("hi"), assistant(vec![block, Block::Text("a".to_owned())])])[1]["content"][0]["type"].take()
    };
    assert_eq!(sent(reasoning(Some("s"), false, Some("anthropic"))), "thinking");
    assert_eq!(sent(reasoning(Some("s"), true, None)), "redacted_thinking");
    assert_eq!(sent(reasoning(Some("s"), false, Some("openai"))), "text");
    assert_eq!(sent(reasoning(None, false, Some("anthropic"))), "text");
    assert_eq!(sent(reasoning(Some(""), false, None)), "text");
}

#[test]
fn a_budget_needs_the_thinking_before_its_calls_and_no_forced_call() {
    let thinking = |model: &str, steps: &[ModelStep], tool_choice: ToolChoice| {
        let options = ModelOptions { thinking: Some(Thinking::On), ..options(model) };
        let tools = Arc::new([tool("f")]);
        sent(
            &options,
            &ModelRequest { steps: steps.to_vec(), tools, tool_choice, ..ModelRequest::default() },
        )
    };
    let budget = json!({"type": "enabled", "budget_tokens": 4096});
    let gone = [
        user("hi"),
        assistant(vec![reasoning(None, false, None), call("a", "{}")]),
        result("a", "one"),
    ];
    let there = [
        user("hi"),
        assistant(vec![reasoning(Some("s"), false, None), call("a", "{}")]),
        result("a", "one"),
        assistant(vec![call("b", "{}")]),
        result("b", "two"),
    ];
    let since =
        [&gone[..], &[assistant(vec![Block::Text("one".to_owned())]), user("thanks")]].concat();
    assert_eq!(thinking("claude-haiku-4-5", &gone, ToolChoice::Auto).get("thinking"), None);
    assert_eq!(thinking("claude-haiku-4-5", &there, ToolChoice::Auto)["thinking"], budget);
    assert_eq!(thinking("claude-haiku-4-5", &since, ToolChoice::Auto)["thinking"], budget);
    assert_eq!(
        thinking("claude-opus-4-7", &gone, ToolChoice::Auto)["thinking"]["type"],
        "adaptive"
    );
    let forced = thinking("claude-haiku-4-5", &since, ToolChoice::Required);
    assert_eq!((forced.get("thinking"), &forced["tool_choice"]), (None, &json!({"type": "any"})));
    let forced = thinking("claude-opus-4-7", &since, ToolChoice::Tool("f".to_owned()));
    assert_eq!(
        (&forced["thinking"]["type"], &forced["tool_choice"]["name"]),
        (&json!("adaptive"), &json!("f"))
    );
}

#[test]
fn other_options_have_their_members() {
    let options = ModelOptions {
        stop: vec!["END".to_owned(), " ".to_owned()],
        service_tier: Some("auto".to_owned()),
        metadata: [("user_id".to_owned(), "u".to_owned())].into_iter().collect(),
        strict_tools: Some(true),
        reasoning_effort: Some("low".to_owned()),
        ..options("claude-opus-4-7")
    };
    let Value::Object(schema) = json!({"type": "object", "properties": {"a": {"type": "string"}}})
    else {
        unreachable!()
    };
    let request = ModelRequest {
        model: Some("claude-opus-4-8".to_owned()),
        steps: vec![user("hi")],
        tools: Arc::new([tool("f")]),
        response_schema: Some(Arc::new(schema.clone())),
        ..ModelRequest::default()
    };
    let json = sent(&options, &request);
    let mut closed = schema;
    closed.insert("additionalProperties".to_owned(), false.into());
    let expected = json!({"effort": "low", "format": {"type": "json_schema", "schema": closed}});
    assert_eq!((&json["model"], &json["output_config"]), (&json!("claude-opus-4-8"), &expected));
    assert_eq!((&json["stop_sequences"], &json["service_tier"]), (&json!(["END"]), &json!("auto")));
    assert_eq!(
        (&json["metadata"], &json["tools"][0]["strict"]),
        (&json!({"user_id": "u"}), &json!(true))
    );
    // A model without grammars is told the schema.
    let json = sent(
        &ModelOptions { model: "m".to_owned(), ..options },
        &ModelRequest { model: None, ..request },
    );
    assert!(
        json["output_config"].get("format").is_none() && json["tools"][0].get("strict").is_none()
    );
    assert!(json["system"][0]["text"].as_str().unwrap().contains(r#"{"type":"object""#), "{json}");
}

#[test]
fn context_and_state_stand_behind_the_marks_for_the_cache() {
    let mark = json!({"type": "ephemeral"});
    let looped = vec![
        ModelStep::Instructions("be brief".to_owned()),
        user("hi"),
        assistant(vec![call("a", "{}")]),
        result("a", "one"),
        assistant(vec![call("b", "{}")]),
        result("b", "two"),
    ];
    let request = |steps: &[ModelStep]| ModelRequest {
        steps: steps.to_vec(),
        tools: Arc::new([tool("f"), tool("g")]),
        current: vec!["page 1".to_owned(), "state 2".to_owned()],
        ..ModelRequest::default()
    };
    let json = body(&options("m"), &request(&looped), true).sent.json;
    assert_eq!(json["system"][0]["cache_control"], mark);
    assert_eq!(json["messages"][0]["content"][0]["cache_control"], mark);
    assert_eq!(json["messages"][2]["content"][0]["cache_control"], mark);
    assert_eq!(json["messages"][4]["content"][0]["cache_control"], mark);
    assert_eq!(json.to_string().matches("cache_control").count(), 4);
    let current = "<system-instructions>\npage 1\n\nstate 2\n</system-instructions>";
    assert_eq!(json["messages"][4]["content"][1], json!({"type": "text", "text": current}));
    let json = body(&options("m"), &request(&looped[1..2]), true).sent.json;
    assert_eq!((json.get("system"), &json["tools"][1]["cache_control"]), (None, &mark));
    assert_eq!(json.to_string().matches("cache_control").count(), 2);
    let system =
        json!({"role": "system", "content": [{"type": "text", "text": "page 1\n\nstate 2"}]});
    let json = body(&options("claude-opus-4-8"), &request(&looped), true).sent.json;
    assert_eq!(json["messages"][5], system);
    // If thinking is bound to its context, the place does not move while the model calls tools.
    let json = body(&options("claude-opus-5-5"), &request(&looped), true).sent.json;
    assert_eq!(json["messages"][1], system);
    let json = body(&options("claude-haiku-5-5"), &request(&looped), true).sent.json;
    assert_eq!(json["messages"][0]["content"][1], json!({"type": "text", "text": current}));
}

#[test]
fn bound_thinking_is_dropped_by_the_provider_or_left_out() {
    let steps = vec![
        user("hi"),
        assistant(vec![reasoning(Some("s"), false, None), call("a", "{}")]),
        result("a", "one"),
    ];
    let request = |current: &[&str], thinking| ModelRequest {
        steps: steps.clone(),
        current: current.iter().map(|text| (*text).to_owned()).collect(),
        thinking,
        ..ModelRequest::default()
    };
    let sends_thinking = |json: &Value| json["messages"].to_string().contains("signature");
    let official = body(&options("claude-opus-5-5"), &request(&["state"], None), true);
    assert_eq!(
        official.sent.json["thinking"]["block_binding"],
        json!({"prefix_mismatch_behavior": "drop_block"})
    );
    assert_eq!(official.betas, [BINDING_BETA]);
    assert!(sends_thinking(&official.sent.json));
    let elsewhere = body(&options("claude-opus-5-5"), &request(&["state"], None), false);
    assert!(
        elsewhere.sent.json["thinking"].get("block_binding").is_none()
            && elsewhere.betas.is_empty()
    );
    assert!(
        !sends_thinking(&elsewhere.sent.json)
            && !elsewhere.sent.json["messages"].to_string().contains("\"system\"")
    );
    assert!(sends_thinking(
        &body(&options("claude-opus-5-5"), &request(&[], None), false).sent.json
    ));
    let off = body(&options("claude-sonnet-5-5"), &request(&[], Some(false)), true);
    assert_eq!(off.sent.json["thinking"], json!({"type": "between_tools"}));
    assert!(!sends_thinking(&off.sent.json) && off.betas.is_empty());
    let older = body(&options("claude-opus-5"), &request(&["state"], None), true);
    assert!(
        older.sent.json["thinking"].get("block_binding").is_none()
            && sends_thinking(&older.sent.json)
    );
}
