use std::sync::Arc;

use super::*;
use crate::{llm::ReasoningBlock, protocol::ToolCallId};

const PLAIN: Dialect = Dialect { completion_tokens: false, return_reasoning: false };

fn options() -> OpenAiOptions {
    OpenAiOptions { model: "m".to_owned(), ..OpenAiOptions::default() }
}

fn messages(turns: Vec<Turn>, dialect: Dialect) -> Value {
    let request = ModelRequest { turns, ..ModelRequest::default() };
    body(&options(), dialect, &request)["messages"].take()
}

fn data(mime_type: &str) -> MediaPart {
    PartSource::Data { value: "AA==".to_owned(), mime_type: mime_type.to_owned() }.into()
}

fn file(provider: Option<&str>) -> MediaPart {
    PartSource::File { value: "file-1".to_owned(), provider: provider.map(str::to_owned), mime_type: None }.into()
}

#[test]
fn a_request_has_model_conversation_and_tools() {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    let tool = ToolSpec { name: "f".to_owned(), description: "does".to_owned(), parameters: parameters.clone() };
    let mut call = ToolCall::new("call_1", "f", "{\"x\": 1}");
    call.encrypted_value = Some(r#"{"google":{"thought_signature":"s=="}}"#.to_owned());
    let result = ToolResult { call_id: "call_1".into(), name: "f".to_owned(), content: "one".into(), failed: false };
    let request = ModelRequest {
        system: vec!["be kind".to_owned()],
        turns: vec![
            Turn::User(vec![ContentPart::text("hi"), ContentPart::text("you")]),
            Turn::Assistant(AssistantTurn { blocks: vec![Block::Text("well".to_owned()), Block::Call(call)] }),
            Turn::ToolResults(vec![result]),
            Turn::Instructions("be brief".to_owned()),
            Turn::Assistant(AssistantTurn { blocks: vec![Block::Text("one".to_owned())] }),
        ],
        tools: Arc::new([tool]),
        thinking: None,
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
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {"name": "f", "description": "does", "parameters": parameters}}],
    });
    assert_eq!(body(&options(), PLAIN, &request), expected);
}

#[test]
fn options_are_sent_only_if_they_are_set() {
    let set = OpenAiOptions { max_tokens: Some(9), temperature: Some(0.5), ..options() };
    let plain = body(&set, PLAIN, &ModelRequest::default());
    assert_eq!((&plain["max_tokens"], &plain["temperature"]), (&json!(9), &json!(0.5)));
    let newer = body(&set, Dialect { completion_tokens: true, ..PLAIN }, &ModelRequest::default());
    assert_eq!((&newer["max_tokens"], &newer["max_completion_tokens"]), (&json!(null), &json!(9)));
    let high = OpenAiOptions { reasoning_effort: Some("high".to_owned()), ..options() };
    for (options, thinking, effort) in [
        (&set, None, json!(null)),
        (&set, Some(true), json!("medium")),
        (&set, Some(false), json!(null)),
        (&high, None, json!("high")),
        (&high, Some(true), json!("high")),
        (&high, Some(false), json!(null)),
    ] {
        let request = ModelRequest { thinking, ..ModelRequest::default() };
        let body = body(options, PLAIN, &request);
        assert_eq!(body.get("reasoning_effort").unwrap_or(&Value::Null), &effort, "{thinking:?}");
        assert!(body.get("tools").is_none());
    }
}

#[test]
fn only_parts_that_the_model_can_read_are_sent() {
    let mut named = data("application/pdf");
    named.metadata = Some(json!({"filename": "a.pdf"}));
    let url = PartSource::Url { value: "https://a/b.png".to_owned(), mime_type: None };
    let parts = vec![
        ContentPart::text("see"),
        ContentPart::text(""),
        ContentPart::Image(data("image/png; x=y")),
        ContentPart::image(url.clone()),
        ContentPart::Audio(data("audio/x-wav")),
        ContentPart::Audio(data("audio/mpeg")),
        ContentPart::Audio(data("audio/ogg")),
        ContentPart::Video(data("video/mp4")),
        ContentPart::Document(named),
        ContentPart::Document(data("application/pdf")),
        ContentPart::Document(data("application/zip")),
        ContentPart::Document(url.into()),
        ContentPart::Document(file(Some("openai"))),
        ContentPart::Document(file(Some("anthropic"))),
        ContentPart::Document(file(None)),
    ];
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]}]);
    assert_eq!(messages(vec![Turn::User(parts)], PLAIN), expected);
    let nothing =
        vec![Turn::User(vec![ContentPart::Video(data("video/mp4"))]), Turn::User(vec![ContentPart::text("")])];
    let placeholder = json!({"role": "user", "content": UNREADABLE_TEXT});
    assert_eq!(messages(nothing, PLAIN), json!([placeholder, placeholder]));
}

#[test]
fn invalid_ids_and_arguments_of_calls_are_replaced() {
    let calls = ["", "{", "[1]", "{\"a\": 1}"].map(|text| Block::Call(ToolCall::new("a:b", "f", text)));
    let sent = messages(vec![Turn::Assistant(AssistantTurn { blocks: calls.to_vec() })], PLAIN);
    assert_eq!(sent[0]["content"], Value::Null);
    let arguments: Vec<_> = (0..4).map(|at| sent[0]["tool_calls"][at]["function"]["arguments"].clone()).collect();
    assert_eq!(arguments, ["{}", "{}", "{}", "{\"a\": 1}"]);
    assert_eq!(sent[0]["tool_calls"][0]["id"], call_id(&"a:b".into()));
    let mut call = ToolCall::new("a", "f", "{}");
    call.encrypted_value = Some("opaque".to_owned());
    let sent = messages(vec![Turn::Assistant(AssistantTurn { blocks: vec![Block::Call(call)] })], PLAIN);
    assert!(sent[0]["tool_calls"][0].get("extra_content").is_none());
}

#[test]
fn reasoning_is_sent_back_with_calls_if_the_provider_requires_it() {
    let thought = |artefact: Option<&str>, provider: Option<&str>| {
        Block::Reasoning(ReasoningBlock {
            text: "hm".to_owned(),
            artefact: artefact.map(str::to_owned),
            redacted: false,
            provider: provider.map(str::to_owned),
        })
    };
    let call = || Block::Call(ToolCall::new("a", "f", "{}"));
    let sent = |block: Block, more: Block, return_reasoning| {
        let turn = Turn::Assistant(AssistantTurn { blocks: vec![block, more] });
        messages(vec![turn], Dialect { return_reasoning, ..PLAIN })[0]["reasoning_content"].take()
    };
    assert_eq!(sent(thought(None, None), call(), true), "hm");
    assert_eq!(sent(thought(None, Some("openai")), call(), true), "hm");
    assert_eq!(sent(thought(None, None), call(), false), Value::Null);
    assert_eq!(sent(thought(None, None), Block::Text("a".to_owned()), true), Value::Null);
    assert_eq!(sent(thought(Some("x"), None), call(), true), Value::Null);
    assert_eq!(sent(thought(None, Some("anthropic")), call(), true), Value::Null);
}

#[test]
fn images_of_a_result_follow_in_a_message_that_names_the_tool() {
    let result = |id: &str, parts: Vec<ContentPart>| ToolResult {
        call_id: ToolCallId::from(id),
        name: "shot".to_owned(),
        content: parts.into(),
        failed: false,
    };
    let image = || ContentPart::Image(data("image/png"));
    let results = vec![
        result("a", vec![ContentPart::text("one "), image(), ContentPart::text("two")]),
        result("b", vec![image()]),
        result("c", vec![ContentPart::Video(data("video/mp4"))]),
        result("d", Vec::new()),
    ];
    let sent_image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let expected = json!([
        {"role": "tool", "tool_call_id": "a", "content": "one two"},
        {"role": "tool", "tool_call_id": "b", "content": "(The result follows in the next message.)"},
        {"role": "tool", "tool_call_id": "c", "content": UNREADABLE_TEXT},
        {"role": "tool", "tool_call_id": "d", "content": ""},
        {"role": "user", "content": [
            {"type": "text", "text": "Returned by shot (a):"}, sent_image,
            {"type": "text", "text": "Returned by shot (b):"}, sent_image,
        ]},
    ]);
    assert_eq!(messages(vec![Turn::ToolResults(results)], PLAIN), expected);
}
