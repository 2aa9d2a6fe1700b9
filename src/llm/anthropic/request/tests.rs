use std::sync::Arc;

use super::*;
use crate::{
    llm::ToolResult,
    protocol::{ContentPart, MediaPart, MessageContent, PartSource, ToolCall},
    tools::ToolSpec,
};

fn options() -> AnthropicOptions {
    AnthropicOptions { model: "m".to_owned(), cache: false, ..AnthropicOptions::default() }
}

fn messages(turns: Vec<Turn>) -> Value {
    body(&options(), &ModelRequest { turns, ..ModelRequest::default() }).json["messages"].take()
}

fn user(said: &str) -> Turn {
    Turn::User(vec![ContentPart::text(said)])
}

fn assistant(blocks: Vec<Block>) -> Turn {
    Turn::Assistant(AssistantTurn { blocks })
}

fn call(id: &str, arguments: &str) -> Block {
    Block::Call(ToolCall::new(id, "f", arguments))
}

fn reasoning(artefact: Option<&str>, redacted: bool, provider: Option<&str>) -> Block {
    Block::Reasoning(ReasoningBlock {
        text: if redacted { String::new() } else { "hm".to_owned() },
        artefact: artefact.map(str::to_owned),
        redacted,
        provider: provider.map(str::to_owned),
    })
}

fn result(id: &str, content: impl Into<MessageContent>) -> Turn {
    Turn::ToolResults(vec![ToolResult {
        call_id: id.into(),
        name: "f".to_owned(),
        content: content.into(),
        failed: false,
    }])
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
    let failed = ToolResult { call_id: "b".into(), name: "f".to_owned(), content: "bad".into(), failed: true };
    let fine = ToolResult { call_id: "a".into(), name: "f".to_owned(), content: "one".into(), failed: false };
    let request = ModelRequest {
        system: vec!["be kind".to_owned(), " ".to_owned()],
        turns: vec![
            Turn::Instructions("be brief".to_owned()),
            user("hi"),
            assistant(vec![
                reasoning(Some("sig"), false, None),
                reasoning(Some("blob"), true, Some("anthropic")),
                Block::Text("well".to_owned()),
                call("a", "{\"x\": 1}"),
                call("b", "{"),
            ]),
            Turn::ToolResults(vec![fine, failed]),
            Turn::Instructions("be good".to_owned()),
            user("go on"),
            user("now"),
        ],
        tools: Arc::new([tool]),
        thinking: None,
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
    let body = body(&options(), &request);
    assert_eq!(body.json, expected);
    assert!(!body.has_files);
}

#[test]
fn only_parts_that_the_model_can_read_are_sent() {
    let url = PartSource::Url { value: "https://a/b".to_owned(), mime_type: None };
    let mut named = data("application/pdf");
    named.metadata = Some(json!({"filename": "a.pdf"}));
    let parts = vec![
        ContentPart::text("see"),
        ContentPart::text(" \n"),
        ContentPart::Image(data("image/JPG")),
        ContentPart::Image(data("image/tiff")),
        ContentPart::image(url.clone()),
        ContentPart::Image(file(Some("anthropic"))),
        ContentPart::Image(file(Some("openai"))),
        ContentPart::Audio(data("audio/wav")),
        ContentPart::Video(data("video/mp4")),
        ContentPart::Document(named),
        ContentPart::Document(url.into()),
        ContentPart::Document(data("application/zip")),
        ContentPart::Document(file(None)),
    ];
    let request = ModelRequest { turns: vec![Turn::User(parts)], ..ModelRequest::default() };
    let body = body(&options(), &request);
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://a/b"}},
        {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "url", "url": "https://a/b"}},
    ]}]);
    assert_eq!(body.json["messages"], expected);
    assert!(body.has_files);
    let nothing = messages(vec![Turn::User(vec![ContentPart::Video(data("video/mp4"))])]);
    assert_eq!(nothing[0]["content"], json!([{"type": "text", "text": UNREADABLE_TEXT}]));
}

#[test]
fn results_may_have_images_and_may_be_empty() {
    let content = |content: MessageContent| {
        messages(vec![user("hi"), assistant(vec![call("a", "{}")]), result("a", content)])[2]["content"].take()
    };
    let block = |content: Value| json!([{"type": "tool_result", "tool_use_id": "a", "content": content}]);
    let image = || ContentPart::Image(data("image/png"));
    let sent = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let text = json!({"type": "text", "text": "see"});
    assert_eq!(content(vec![ContentPart::text("see"), image()].into()), block(json!([text, sent])));
    assert_eq!(content(vec![ContentPart::Video(data("video/mp4"))].into()), block(UNREADABLE_TEXT.into()));
    assert_eq!(content("".into()), json!([{"type": "tool_result", "tool_use_id": "a"}]));
    assert_eq!(content(Vec::new().into()), json!([{"type": "tool_result", "tool_use_id": "a"}]));
}

#[test]
fn a_conversation_begins_with_the_user_and_has_no_blank_text() {
    let beginning = json!({"role": "user", "content": [{"type": "text", "text": FIRST_USER_TEXT}]});
    assert_eq!(messages(Vec::new()), json!([beginning]));
    let sent = messages(vec![
        assistant(vec![Block::Text("hello".to_owned())]),
        assistant(vec![Block::Text(" ".to_owned())]),
        assistant(vec![Block::Text("you".to_owned())]),
    ]);
    let said = json!([{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]);
    assert_eq!(sent, json!([beginning, {"role": "assistant", "content": said}]));
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
fn thinking_is_switched_on_by_the_request_or_the_configuration() {
    let sent = |options: &AnthropicOptions, thinking, turns: &[Turn]| {
        let request = ModelRequest { thinking, turns: turns.to_vec(), ..ModelRequest::default() };
        body(options, &request).json
    };
    let budget = json!({"type": "enabled", "budget_tokens": 4096});
    let warm = AnthropicOptions { temperature: Some(0.5), ..options() };
    for (think, thinking, on) in
        [(false, None, false), (false, Some(true), true), (true, None, true), (true, Some(false), false)]
    {
        let json = sent(&AnthropicOptions { think, ..warm.clone() }, thinking, &[user("hi")]);
        assert_eq!(json.get("thinking"), on.then_some(&budget), "{think} {thinking:?}");
        assert_eq!(json.get("temperature"), (!on).then_some(&json!(0.5)), "{think} {thinking:?}");
        assert_eq!(json["max_tokens"], 8192);
    }
    let small = AnthropicOptions { max_tokens: 1000, thinking: Thinking::Budget(5), ..options() };
    let json = sent(&AnthropicOptions { max_tokens: 4096, ..options() }, Some(true), &[user("hi")]);
    assert_eq!(json["max_tokens"], 8192, "the budget leaves room for an answer");
    let json = sent(&small, Some(true), &[user("hi")]);
    assert_eq!((&json["max_tokens"], &json["thinking"]["budget_tokens"]), (&json!(2024), &json!(1024)));
    let adaptive = AnthropicOptions { thinking: Thinking::Adaptive { effort: Some("low".to_owned()) }, ..options() };
    let json = sent(&adaptive, Some(true), &[user("hi")]);
    assert_eq!(json["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(json["output_config"], json!({"effort": "low"}));
    // Between tool calls, a budget requires the thinking before them.
    let gone = [user("hi"), assistant(vec![reasoning(None, false, None), call("a", "{}")]), result("a", "one")];
    assert_eq!(sent(&options(), Some(true), &gone).get("thinking"), None);
    assert!(sent(&adaptive, Some(true), &gone).get("thinking").is_some());
    let there = [
        user("hi"),
        assistant(vec![reasoning(Some("s"), false, None), call("a", "{}")]),
        result("a", "one"),
        assistant(vec![call("b", "{}")]),
        result("b", "two"),
    ];
    assert_eq!(sent(&options(), Some(true), &there)["thinking"], budget);
    let since = [&gone[..], &[assistant(vec![Block::Text("one".to_owned())]), user("thanks")]].concat();
    assert_eq!(sent(&options(), Some(true), &since)["thinking"], budget);
}

#[test]
fn calls_without_tools_are_sent_with_declared_tools_and_calls_forbidden() {
    let turns = vec![user("hi"), assistant(vec![call("a", "{}"), call("b", "{}")]), result("a", "one")];
    let sent = body(&options(), &ModelRequest { turns, ..ModelRequest::default() }).json;
    assert_eq!(sent["tools"], json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}]));
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
    let sent = body(&options(), &ModelRequest::default()).json;
    assert!(sent.get("tools").is_none() && sent.get("tool_choice").is_none() && sent.get("system").is_none());
}

#[test]
fn the_front_and_the_end_of_the_conversation_are_marked_for_the_cache() {
    let options = AnthropicOptions { cache: true, ..options() };
    let tool = |name: &str| ToolSpec { name: name.to_owned(), description: String::new(), parameters: json!({}) };
    let sent = |system: &[&str]| {
        let request = ModelRequest {
            system: system.iter().map(|text| (*text).to_owned()).collect(),
            turns: vec![user("hi"), user("you")],
            tools: Arc::new([tool("f"), tool("g")]),
            thinking: None,
        };
        body(&options, &request).json
    };
    let mark = json!({"type": "ephemeral"});
    let json = sent(&["a", "b"]);
    assert_eq!(json["system"][1]["cache_control"], mark);
    assert_eq!(json["messages"][0]["content"][1]["cache_control"], mark);
    assert_eq!(json.to_string().matches("cache_control").count(), 2);
    let json = sent(&[]);
    assert_eq!(json["tools"][1]["cache_control"], mark);
    assert_eq!(json.to_string().matches("cache_control").count(), 2);
}
