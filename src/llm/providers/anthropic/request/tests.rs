mod thinking_of_servers;

use std::sync::Arc;

use super::*;
use crate::{
    llm::{
        Connection, KnownModels, ModelReasoning, Thinking, ToolResult,
        providers::wire::{FIRST_USER_TEXT, LAST_USER_TEXT},
    },
    protocol::{ContentPart, MediaPart, MessageContent, PartSource, ToolCall},
    tools::ToolSpec,
};

fn body(options: &ModelOptions, request: &ModelRequest, is_official: bool) -> ClaudeRequestBody {
    super::body(options, request, &MessagesServer::default(), is_official)
}

fn options(model: &str) -> ModelOptions {
    ModelOptions::new(model, Connection::default())
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

fn messages(turns: Vec<Turn>) -> Value {
    sent(&options("m"), &ModelRequest { turns, ..ModelRequest::default() })["messages"].take()
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: String::new(), parameters: json!({}) }
}

fn user(said: &str) -> Turn {
    Turn::User(vec![ContentPart::text(said)])
}

fn assistant(blocks: Vec<Block>) -> Turn {
    Turn::Assistant(blocks)
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
    PartSource::File {
        value: "file-1".to_owned(),
        provider: provider.map(str::to_owned),
        mime_type: None,
    }
    .into()
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
fn files_are_blocks_and_text_files_are_documents() {
    let url = |mime_type: Option<&str>| PartSource::Url {
        value: "https://a/b".to_owned(),
        mime_type: mime_type.map(str::to_owned),
    };
    let named = |mut media: MediaPart, name: &str| {
        media.metadata = Some(json!({"filename": name}));
        media
    };
    let of = |value: &str, mime_type: &str| {
        MediaPart::from(PartSource::Data {
            value: value.to_owned(),
            mime_type: mime_type.to_owned(),
        })
    };
    let parts = vec![
        ContentPart::text("see"),
        ContentPart::text(" \n"),
        ContentPart::Image(data("image/JPG")),
        ContentPart::image(url(None)),
        ContentPart::Image(file(Some("anthropic"))),
        ContentPart::Document(named(data("application/pdf"), "a.pdf")),
        ContentPart::Document(url(Some("application/pdf")).into()),
        ContentPart::Document(named(of("YSxi", "text/csv; charset=utf-8"), "a.csv")),
        ContentPart::Document(named(of("YSA9IDE=", "application/octet-stream"), "a.py")),
        ContentPart::Document(named(of("4Q==", "text/plain; charset=latin1"), "a.txt")),
    ];
    let request = ModelRequest { turns: vec![Turn::User(parts)], ..ModelRequest::default() };
    let document = |text: &str, name: &str| {
        let source = json!({"type": "text", "media_type": "text/plain", "data": text});
        json!({"type": "document", "source": source, "title": name})
    };
    let expected = json!([
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://a/b"}},
        {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "url", "url": "https://a/b"}},
        document("a,b", "a.csv"),
        document("a = 1", "a.py"),
        document("á", "a.txt"),
    ]);
    assert_eq!(sent(&options("m"), &request)["messages"][0]["content"], expected);
    let body = body(&options("m"), &request, true);
    assert_eq!((body.betas, body.sent.skipped), (vec![FILES_BETA], Vec::new()));
}

#[test]
fn a_long_text_file_is_cut_and_a_blank_one_is_text() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let content = |text: &str| {
        let source =
            PartSource::Data { value: STANDARD.encode(text), mime_type: "text/plain".to_owned() };
        let turns = vec![Turn::User(vec![ContentPart::Document(source.into())])];
        let body = body(&options("m"), &ModelRequest { turns, ..ModelRequest::default() }, true);
        (body.sent.json["messages"][0]["content"][0].clone(), body.sent.skipped.len())
    };
    let (document, skipped) = content(&"x".repeat(1 << 20));
    let text = document["source"]["data"].as_str().unwrap();
    assert!(text.len() < 300_000 && text.ends_with("is cut.)"), "{} bytes", text.len());
    assert_eq!(skipped, 1);
    // The API refuses a document of white space.
    assert_eq!((content(" \n").0["type"].as_str(), content(" \n").1), (Some("text"), 0));
}

#[test]
fn what_the_model_cannot_read_is_told_to_it_and_reported() {
    let url =
        PartSource::Url { value: "https://a/b".to_owned(), mime_type: Some("text/csv".to_owned()) };
    let mut sound = data("audio/wav");
    sound.metadata = Some(json!({"filename": "a.wav"}));
    let parts = vec![
        ContentPart::Image(data("image/tiff")),
        ContentPart::Image(file(Some("openai"))),
        ContentPart::Audio(sound),
        ContentPart::Video(data("video/mp4")),
        ContentPart::Document(data("application/zip")),
        ContentPart::Document(url.into()),
    ];
    let request = ModelRequest { turns: vec![Turn::User(parts)], ..ModelRequest::default() };
    let answered =
        [&request.turns[..], &[assistant(vec![Block::Text("a".to_owned())]), user("and")]].concat();
    let later = ModelRequest { turns: answered, ..ModelRequest::default() };
    assert!(body(&options("m"), &later, true).sent.skipped.is_empty(), "reported again");
    let body = body(&options("m"), &request, true);
    let skipped: Vec<_> = body
        .sent
        .skipped
        .iter()
        .map(|skipped| (skipped.kind, skipped.mime_type.as_deref()))
        .collect();
    let expected = [
        ("image", Some("image/tiff")),
        ("image", None),
        ("audio", Some("audio/wav")),
        ("video", Some("video/mp4")),
        ("document", Some("application/zip")),
        ("document", Some("text/csv")),
    ];
    assert_eq!(skipped, expected);
    assert_eq!(body.sent.skipped[2].name.as_deref(), Some("a.wav"));
    let notes = body.sent.json["messages"][0]["content"].as_array().unwrap();
    for (note, skipped) in notes.iter().zip(&body.sent.skipped) {
        let note = note["text"].as_str().unwrap();
        assert!(note.contains("You cannot read it") && note.contains(&skipped.reason), "{note}");
    }
    assert_eq!(notes.len(), skipped.len());
}

#[test]
fn results_may_have_images_and_may_be_empty() {
    let content = |content: MessageContent| {
        messages(vec![user("hi"), assistant(vec![call("a", "{}")]), result("a", content)])[2]["content"].take()
    };
    let block =
        |content: Value| json!([{"type": "tool_result", "tool_use_id": "a", "content": content}]);
    let image = || ContentPart::Image(data("image/png"));
    let sent = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let text = json!({"type": "text", "text": "see"});
    assert_eq!(content(vec![ContentPart::text("see"), image()].into()), block(json!([text, sent])));
    let note = content(vec![ContentPart::Video(data("video/mp4"))].into());
    assert!(
        note[0]["content"][0]["text"].as_str().unwrap().contains("this model takes no videos"),
        "{note}"
    );
    assert_eq!(content("".into()), json!([{"type": "tool_result", "tool_use_id": "a"}]));
    assert_eq!(content(Vec::new().into()), json!([{"type": "tool_result", "tool_use_id": "a"}]));
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
    let thinking = |model: &str, turns: &[Turn], tool_choice: ToolChoice| {
        let options = ModelOptions { thinking: Some(Thinking::On), ..options(model) };
        let tools = Arc::new([tool("f")]);
        sent(
            &options,
            &ModelRequest { turns: turns.to_vec(), tools, tool_choice, ..ModelRequest::default() },
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
fn a_model_that_refuses_forced_calls_is_asked_for_one() {
    let choice = |model: &str, tool_choice: ToolChoice, parallel_tool_calls| {
        let options = ModelOptions { parallel_tool_calls, ..options(model) };
        let request = ModelRequest {
            turns: vec![user("hi")],
            tools: Arc::new([tool("f")]),
            tool_choice,
            ..ModelRequest::default()
        };
        let mut json = sent(&options, &request);
        (json["tool_choice"].take(), json["messages"].take())
    };
    let named = || ToolChoice::Tool("f".to_owned());
    assert_eq!(choice("claude-opus-5", named(), None).0, json!({"type": "tool", "name": "f"}));
    let (member, messages) = choice("claude-opus-5-5", named(), None);
    assert_eq!(member, Value::Null);
    assert_eq!(messages[1]["role"], "system");
    assert!(messages[1].to_string().contains("Call the tool `f` now"), "{messages}");
    assert_eq!(choice("m", ToolChoice::Auto, None).0, Value::Null);
    assert_eq!(choice("m", ToolChoice::None, Some(false)).0, json!({"type": "none"}));
    assert_eq!(
        choice("m", ToolChoice::Auto, Some(false)).0,
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    assert_eq!(
        choice("m", ToolChoice::Required, Some(false)).0,
        json!({"type": "any", "disable_parallel_tool_use": true})
    );
    assert_eq!(choice("m", ToolChoice::Tool("gone".to_owned()), None).0, Value::Null);
}

#[test]
fn calls_without_tools_are_sent_with_declared_tools_and_calls_forbidden() {
    let turns =
        vec![user("hi"), assistant(vec![call("a", "{}"), call("b", "{}")]), result("a", "one")];
    let json = sent(&options("m"), &ModelRequest { turns, ..ModelRequest::default() });
    assert_eq!(
        json["tools"],
        json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}])
    );
    assert_eq!(json["tool_choice"], json!({"type": "none"}));
    let json = sent(&options("m"), &ModelRequest::default());
    assert!(
        json.get("tools").is_none()
            && json.get("tool_choice").is_none()
            && json.get("system").is_none()
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
        turns: vec![user("hi")],
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
fn tools_of_the_provider_are_added_and_their_blocks_are_sent_back() {
    let Value::Object(extra_body) =
        json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})
    else {
        unreachable!()
    };
    let options = ModelOptions { extra_body, ..options("m") };
    let own = |block: &Value| reasoning(Some(&block.to_string()), true, Some("anthropic"));
    let server_call =
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let request = |turns: &[Turn]| ModelRequest {
        turns: turns.to_vec(),
        tools: Arc::new([tool("f")]),
        current: vec!["state".to_owned()],
        ..ModelRequest::default()
    };
    let whole = [
        user("hi"),
        assistant(vec![own(&server_call), own(&found), Block::Text("a".to_owned())]),
        user("and"),
    ];
    let json = sent(&options, &request(&whole));
    assert_eq!(json["tools"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["messages"][1]["content"],
        json!([server_call, found, {"type": "text", "text": "a"}])
    );
    assert!(body(&options, &request(&whole), true).has_server_tools);
    // The API makes the call when it gets the results of the others, and nothing else.
    let open =
        [user("hi"), assistant(vec![own(&server_call), call("a", "{}")]), result("a", "one")];
    let json = sent(&options, &request(&open));
    assert_eq!(json["messages"][1]["content"][0], server_call);
    assert_eq!(json["messages"][2]["content"].as_array().unwrap().len(), 1);
    let left = [&open[..], &[user("never mind")]].concat();
    assert_eq!(
        sent(&options, &request(&left))["messages"][1]["content"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn context_and_state_stand_behind_the_marks_for_the_cache() {
    let mark = json!({"type": "ephemeral"});
    let looped = vec![
        Turn::Instructions("be brief".to_owned()),
        user("hi"),
        assistant(vec![call("a", "{}")]),
        result("a", "one"),
        assistant(vec![call("b", "{}")]),
        result("b", "two"),
    ];
    let request = |turns: &[Turn]| ModelRequest {
        turns: turns.to_vec(),
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
    // Where thinking is bound to what comes before it, the place stays the same while the model calls tools.
    let json = body(&options("claude-opus-5-5"), &request(&looped), true).sent.json;
    assert_eq!(json["messages"][1], system);
    let json = body(&options("claude-haiku-5-5"), &request(&looped), true).sent.json;
    assert_eq!(json["messages"][0]["content"][1], json!({"type": "text", "text": current}));
}

#[test]
fn bound_thinking_is_dropped_by_the_provider_or_left_out() {
    let turns = vec![
        user("hi"),
        assistant(vec![reasoning(Some("s"), false, None), call("a", "{}")]),
        result("a", "one"),
    ];
    let request = |current: &[&str], thinking| ModelRequest {
        turns: turns.clone(),
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
