mod thinking;

use std::sync::Arc;

use super::*;
use crate::{Block, KnownModels, ModelStep, ProfileOptions, ToolResult};
use agui_protocol::{ContentPart, MediaPart, PartSource, ToolCall, ToolCallId};

pub(in crate::providers::chat) fn known(name: &str) -> Arc<Profile> {
    let url = reqwest::Url::parse("http://host").unwrap();
    KnownModels::default().profile(Some(&ProfileOptions::named(name)), &url).unwrap()
}

pub(in crate::providers::chat) fn options() -> ModelOptions {
    ModelOptions { model: "m".to_owned(), ..ModelOptions::default() }
}

pub(in crate::providers::chat) fn body(
    options: &ModelOptions,
    profile: &str,
    request: &ModelRequest,
) -> Value {
    super::body(options, &known(profile), request).json
}

pub(in crate::providers::chat) fn messages(steps: Vec<ModelStep>, profile: &str) -> Value {
    body(&options(), profile, &ModelRequest { steps, ..ModelRequest::default() })["messages"].take()
}

pub(in crate::providers::chat) fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

pub(in crate::providers::chat) fn answer(blocks: impl Into<Vec<Block>>) -> ModelStep {
    ModelStep::Assistant(blocks.into())
}

pub(in crate::providers::chat) fn result(
    id: &str,
    content: impl Into<agui_protocol::MessageContent>,
) -> ToolResult {
    ToolResult {
        call_id: ToolCallId::from(id),
        name: "shot".to_owned(),
        content: content.into(),
        failed: false,
    }
}

pub(in crate::providers::chat) fn data(mime_type: &str) -> MediaPart {
    PartSource::Data { value: "AA==".to_owned(), mime_type: mime_type.to_owned() }.into()
}

pub(in crate::providers::chat) fn file(provider: Option<&str>) -> MediaPart {
    PartSource::File {
        value: "file-1".to_owned(),
        provider: provider.map(str::to_owned),
        mime_type: None,
    }
    .into()
}

pub(in crate::providers::chat) fn spec(name: &str) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    ToolSpec { name: name.to_owned(), description: "does".to_owned(), parameters }
}

#[test]
fn a_request_has_model_conversation_and_tools() {
    let parameters = spec("f").parameters;
    let mut call = ToolCall::new("call_1", "f", "{\"x\": 1}");
    call.encrypted_value = Some(r#"{"google":{"thought_signature":"s=="}}"#.to_owned());
    let request = ModelRequest {
        system: vec!["be kind".to_owned()],
        current: vec!["it is noon".to_owned()],
        steps: vec![
            ModelStep::User(vec![ContentPart::text("hi"), ContentPart::text("you")]),
            answer([Block::Text("well".to_owned()), Block::Call(call)]),
            ModelStep::ToolResults(vec![result("call_1", "one")]),
            ModelStep::Instructions("be brief".to_owned()),
            answer([Block::Text("one".to_owned())]),
        ],
        tools: Arc::new([spec("f")]),
        ..ModelRequest::default()
    };
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi\nyou"},
            {"role": "assistant", "content": "well", "tool_calls": [{
                "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"},
                "extra_content": {"google": {"thought_signature": "s=="}},
            }]},
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
            {"role": "system", "content": "be brief"},
            {"role": "assistant", "content": "one"},
            {"role": "system", "content": "it is noon"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {"name": "f", "description": "does", "parameters": parameters}}],
    });
    assert_eq!(body(&options(), "compatible", &request), expected);
}

#[test]
fn all_options_are_sent_if_they_are_set() {
    let set = ModelOptions {
        max_tokens: Some(9),
        temperature: Some(0.5),
        top_p: Some(0.25),
        top_k: Some(3),
        seed: Some(-4),
        frequency_penalty: Some(1.0),
        presence_penalty: Some(-1.0),
        stop: vec!["END".to_owned()],
        parallel_tool_calls: Some(false),
        strict_tools: Some(true),
        verbosity: Some("low".to_owned()),
        service_tier: Some("flex".to_owned()),
        cache_key: Some("key".to_owned()),
        metadata: [("a".to_owned(), "b".to_owned())].into_iter().collect(),
        ..options()
    };
    let request = ModelRequest { tools: Arc::new([spec("f")]), ..ModelRequest::default() };
    let mut sent = body(&set, "compatible", &request);
    let expected = json!({
        "max_tokens": 9, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "seed": -4, "frequency_penalty": 1.0,
        "presence_penalty": -1.0, "stop": ["END"], "parallel_tool_calls": false, "verbosity": "low",
        "service_tier": "flex", "prompt_cache_key": "key", "metadata": {"a": "b"},
    });
    let members = sent.as_object_mut().unwrap();
    for base in ["model", "messages", "stream", "stream_options", "tools"] {
        assert!(members.shift_remove(base).is_some(), "{base}");
    }
    assert_eq!(sent, expected);
    let without_tools = body(&set, "compatible", &ModelRequest::default());
    assert!(without_tools.get("parallel_tool_calls").is_none());
    assert_eq!(body(&set, "mistral", &request)["random_seed"], -4);
    assert_eq!(body(&set, "openai", &request)["store"], true);
    assert_eq!(body(&set, "groq", &request)["max_completion_tokens"], 9);
    assert!(body(&set, "mistral", &request).get("stream_options").is_none());
    let extra = json!({"min_p": 0.1, "stream_options": false});
    let set = ModelOptions { extra_body: extra.as_object().unwrap().clone(), ..options() };
    let sent = body(&set, "compatible", &request);
    assert_eq!((sent.get("stream_options"), &sent["min_p"]), (None, &json!(0.1)));
}

#[test]
fn the_choice_of_tools_is_said_as_the_server_takes_it() {
    let sent = |profile: &str, choice: ToolChoice| {
        let tools = Arc::new([spec("f"), spec("g")]);
        let body = body(
            &options(),
            profile,
            &ModelRequest { tools, tool_choice: choice, ..ModelRequest::default() },
        );
        let names = body["tools"].as_array().map_or(0, Vec::len);
        (names, body.get("tool_choice").cloned().unwrap_or_default())
    };
    let g = || ToolChoice::Tool("g".to_owned());
    let named = json!({"type": "function", "function": {"name": "g"}});
    assert_eq!(sent("compatible", ToolChoice::Auto), (2, Value::Null));
    assert_eq!(sent("compatible", ToolChoice::None), (2, json!("none")));
    assert_eq!(sent("compatible", ToolChoice::Required), (2, json!("required")));
    assert_eq!(sent("compatible", g()), (2, named));
    assert_eq!(sent("lm-studio", g()), (1, json!("required")));
    assert_eq!(sent("zai", g()), (1, Value::Null));
    assert_eq!(sent("zai", ToolChoice::None), (0, Value::Null));
    let request = ModelRequest { tool_choice: ToolChoice::Required, ..ModelRequest::default() };
    assert!(body(&options(), "compatible", &request).get("tool_choice").is_none());
}

#[test]
fn a_call_that_the_server_cannot_force_is_asked_for_in_words() {
    let last = |profile: &str, tool_choice: ToolChoice| {
        let steps = vec![user("hi")];
        let request = ModelRequest {
            tools: Arc::new([spec("f")]),
            tool_choice,
            steps,
            ..ModelRequest::default()
        };
        let sent = body(&options(), profile, &request);
        sent["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    for profile in ["ollama", "zai"] {
        let required = last(profile, ToolChoice::Required);
        assert!(
            required.ends_with("Call a tool now, before you write anything else."),
            "{profile}: {required}"
        );
        let named = last(profile, ToolChoice::Tool("f".to_owned()));
        assert!(
            named.ends_with("Call the tool `f` now, before you write anything else."),
            "{profile}: {named}"
        );
        for choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Tool("g".to_owned())] {
            assert_eq!(last(profile, choice.clone()), "hi", "{profile} {choice:?}");
        }
    }
    for profile in ["compatible", "lm-studio"] {
        assert_eq!(last(profile, ToolChoice::Required), "hi", "{profile}");
    }
}

#[test]
fn the_schema_of_an_answer_is_given_as_the_server_takes_it() {
    let strict = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let sent = |profile: &str, schema: &Value| {
        let response_schema = Some(Arc::new(schema.as_object().unwrap().clone()));
        body(&options(), profile, &ModelRequest { response_schema, ..ModelRequest::default() })
    };
    let format = sent("openai", &strict)["response_format"].take();
    assert_eq!(
        format,
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": strict, "strict": true}})
    );
    let format = sent("openai", &open)["response_format"].take();
    assert_eq!(
        format,
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": open}})
    );
    let deepseek = sent("deepseek", &open);
    assert_eq!(deepseek["response_format"], json!({"type": "json_object"}));
    let instructions = deepseek["messages"][0]["content"].as_str().unwrap();
    assert!(instructions.contains(&open.to_string()), "{instructions}");
    let groq = sent("groq", &open);
    assert!(
        groq.get("response_format").is_none() && groq["messages"][0]["role"] == "system",
        "{groq}"
    );
}

#[test]
fn tools_are_strict_if_their_schemas_allow_it() {
    let mut closed = spec("f");
    closed.parameters["required"] = json!(["x"]);
    closed.parameters["additionalProperties"] = false.into();
    let request = ModelRequest { tools: Arc::new([closed, spec("g")]), ..ModelRequest::default() };
    let strict = ModelOptions { strict_tools: Some(true), ..options() };
    let sent = body(&strict, "openai", &request);
    assert_eq!(sent.pointer("/tools/0/function/strict"), Some(&json!(true)));
    assert_eq!(sent.pointer("/tools/1/function/strict"), None);
    assert_eq!(body(&options(), "openai", &request).pointer("/tools/0/function/strict"), None);
}
