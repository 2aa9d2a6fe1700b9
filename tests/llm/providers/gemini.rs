//! The Gemini API: many kinds of requests against its published shape, and its answers.

use std::sync::Arc;

use agui_server::{
    llm::{
        Artefact, Block, BlockStart, Gemini, Model, ModelError, ModelEvent, ModelOptions,
        ModelReasoning, ModelRequest, ModelStep, ProviderClient, StopReason, Thinking, ToolChoice,
        ToolResult,
    },
    protocol::{ContentPart, JsonObject, MediaPart, MessageContent, PartSource, ToolCall},
    tools::ToolSpec,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{
    KEY, client, hi,
    provider::{Answer, Provider},
    published::gemini::check,
};

const MODELS: &[&str] = &[
    "gemini-2.0-flash",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
    "gemini-3-pro-preview",
    "gemini-3-flash-preview",
    "gemini-3.1-pro-preview",
    "gemini-3.5-flash",
    "gemini-3.5-flash-lite",
    "gemini-3.6-flash",
    "gemini-3.8-flash",
    "gemini-4-argon",
];

fn response(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}], "usageMetadata": {"promptTokenCount": 3}})
}

fn fine() -> Answer {
    Answer::gemini(&[response(json!([{"text": "fine"}])), finish("STOP")])
}

fn options(model: &str, provider: &Provider) -> ModelOptions {
    ModelOptions::new(model, ProviderClient { max_retries: 0, ..client(provider.url()) })
}

async fn send(options: ModelOptions, request: ModelRequest) -> Result<Vec<ModelEvent>, ModelError> {
    send_to(&Gemini::new(options).unwrap(), request).await
}

async fn send_to(model: &Gemini, request: ModelRequest) -> Result<Vec<ModelEvent>, ModelError> {
    let mut stream = model.stream(request);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event?);
    }
    Ok(events)
}

fn user(parts: impl IntoIterator<Item = ContentPart>) -> ModelStep {
    ModelStep::User(parts.into_iter().collect())
}

fn said(text: &str) -> ModelStep {
    user([ContentPart::text(text)])
}

fn model(blocks: impl IntoIterator<Item = Block>) -> ModelStep {
    ModelStep::Assistant(blocks.into_iter().collect())
}

fn call(id: &str, signature: Option<&str>) -> Block {
    let mut call = ToolCall::new(id, "f", "{\"x\": 1}");
    call.encrypted_value = signature.map(|signature| format!("gemini:call:{signature}"));
    Block::Call(call)
}

fn result(id: &str, content: impl Into<MessageContent>) -> ToolResult {
    ToolResult { call_id: id.into(), name: "f".to_owned(), content: content.into(), failed: false }
}

fn data(mime_type: &str) -> MediaPart {
    PartSource::Data { value: "AA==".to_owned(), mime_type: mime_type.to_owned() }.into()
}

fn url(value: &str) -> MediaPart {
    PartSource::Url { value: value.to_owned(), mime_type: None }.into()
}

fn tools() -> Arc<[ToolSpec]> {
    let schema = json!({
        "type": "object",
        "properties": {"x": {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/y"}]}},
        "$defs": {"y": {"type": "string", "pattern": "^a"}},
        "additionalProperties": false,
    });
    let spec = |name: &str, description: &str, parameters: Value| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    };
    Arc::new([spec("f", "does", schema), spec("server__g", "", json!({}))])
}

fn object(value: Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

/// Requests of every kind, with a name for messages.
fn requests() -> Vec<(&'static str, ModelRequest)> {
    let of = |steps: Vec<ModelStep>| ModelRequest { steps, ..ModelRequest::default() };
    let with_tools = |steps: Vec<ModelStep>| ModelRequest { tools: tools(), ..of(steps) };
    let images = vec![ContentPart::text("see"), ContentPart::Image(data("image/png"))];
    let both = |content: MessageContent| {
        vec![
            said("hi"),
            model([call("a", None), call("b", None)]),
            ModelStep::ToolResults(vec![result("a", content.clone()), result("b", content)]),
        ]
    };
    let choice = |tool_choice| ModelRequest { tool_choice, ..with_tools(vec![said("hi")]) };
    let schema =
        Some(Arc::new(object(json!({"type": "object", "properties": {"a": {"type": "string"}}}))));
    vec![
        ("a message", hi()),
        ("nothing", of(Vec::new())),
        (
            "instructions everywhere",
            ModelRequest {
                system: vec!["be kind".to_owned(), " ".to_owned()],
                current: vec!["state: 1".to_owned()],
                ..of(vec![
                    ModelStep::Instructions("a".to_owned()),
                    said("hi"),
                    ModelStep::Instructions("b".to_owned()),
                    said("now"),
                ])
            },
        ),
        (
            "the model's own steps first and last",
            of(vec![
                model([Block::Text("a".to_owned())]),
                said("hi"),
                model([Block::Text("b".to_owned())]),
                model([Block::Text("c".to_owned())]),
            ]),
        ),
        (
            "a conversation that ends with a call",
            with_tools(vec![
                said("hi"),
                model([call("a", None)]),
                ModelStep::ToolResults(vec![result("a", "one")]),
            ]),
        ),
        ("text after results", with_tools([both("one".into()), vec![said("and?")]].concat())),
        ("calls without tools", of(both("one".into()))),
        (
            "current after results",
            ModelRequest { current: vec!["state: 1".to_owned()], ..with_tools(both("one".into())) },
        ),
        ("images in results", with_tools(both(images.clone().into()))),
        ("empty results", with_tools(both("".into()))),
        (
            "media",
            of(vec![user([
                ContentPart::Image(data("image/JPG")),
                ContentPart::Document(data("application/pdf")),
                ContentPart::Audio(data("audio/wav")),
                ContentPart::Video(data("video/mp4; codecs=x")),
            ])]),
        ),
        (
            "media at URLs",
            of(vec![user([
                ContentPart::Image(url("https://a/b.png")),
                ContentPart::Document(url("https://a/b.pdf")),
                ContentPart::Video(url("https://youtu.be/x")),
                ContentPart::Audio(url("https://a/b.mp3")),
                ContentPart::Image(url("https://generativelanguage.googleapis.com/v1beta/files/x")),
            ])]),
        ),
        (
            "text files",
            of(vec![user([
                ContentPart::Document(data("text/csv")),
                ContentPart::Document(data("image/svg+xml")),
            ])]),
        ),
        (
            "media that no model reads",
            of(vec![user([
                ContentPart::Image(data("image/tiff")),
                ContentPart::Document(data("application/zip")),
            ])]),
        ),
        ("blank text", of(vec![said(" "), model([Block::Text(String::new())]), said("hi")])),
        ("a tool has to be called", choice(ToolChoice::Required)),
        ("one tool has to be called", choice(ToolChoice::Tool("f".to_owned()))),
        ("no tool may be called", choice(ToolChoice::None)),
        ("a schema", ModelRequest { response_schema: schema.clone(), ..hi() }),
        (
            "a schema with tools",
            ModelRequest { response_schema: schema, ..with_tools(vec![said("hi")]) },
        ),
        ("thinking", ModelRequest { thinking: Some(true), ..hi() }),
        ("no thinking", ModelRequest { thinking: Some(false), ..hi() }),
    ]
}

#[tokio::test]
async fn every_model_takes_every_kind_of_request() {
    let provider = Provider::start_checked(check).await;
    let model = Gemini::new(options("", &provider)).unwrap();
    for name in MODELS {
        for (kind, request) in requests() {
            provider.answer(fine());
            let answer =
                send_to(&model, ModelRequest { model: Some((*name).to_owned()), ..request }).await;
            assert!(
                answer.is_ok(),
                "{name}, {kind}: {answer:?} {}",
                provider.requests().last().unwrap().body
            );
        }
    }
}

type Change = fn(&mut ModelOptions);

#[tokio::test]
async fn every_model_takes_every_option() {
    let provider = Provider::start_checked(check).await;
    let changes: &[(&str, Change)] = &[
        ("sampling", |options| {
            (options.temperature, options.top_p, options.top_k) = (Some(0.5), Some(0.9), Some(40));
            (options.seed, options.max_tokens) = (Some(-7), Some(100));
            options.stop = vec!["END".to_owned()];
        }),
        ("penalties", |options| {
            (options.frequency_penalty, options.presence_penalty) = (Some(0.5), Some(-0.5))
        }),
        ("effort", |options| options.reasoning_effort = Some("high".to_owned())),
        ("the least effort", |options| options.reasoning_effort = Some("minimal".to_owned())),
        ("no effort", |options| options.reasoning_effort = Some("none".to_owned())),
        ("another effort", |options| options.reasoning_effort = Some("xhigh".to_owned())),
        ("a budget", |options| options.thinking_budget = Some(1)),
        ("a large budget", |options| options.thinking_budget = Some(1 << 20)),
        ("thinking", |options| options.thinking = Some(Thinking::On)),
        ("no thinking", |options| options.thinking = Some(Thinking::Off)),
        ("adaptive thinking", |options| options.thinking = Some(Thinking::Adaptive)),
        ("all of thinking", |options| {
            options.thinking = Some(Thinking::On);
            options.thinking_budget = Some(4096);
            options.reasoning_effort = Some("medium".to_owned());
        }),
        ("a tier", |options| options.service_tier = Some("flex".to_owned())),
        ("detail", |options| options.image_detail = Some("high".to_owned())),
        ("any detail", |options| options.image_detail = Some("auto".to_owned())),
        ("strict tools", |options| options.strict_tools = Some(true)),
        ("further members", |options| {
            options.extra_body = object(json!({
                "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
                "generationConfig": {"responseModalities": ["TEXT"]},
            }));
        }),
    ];
    for (kind, change) in changes {
        let mut options = options("", &provider);
        change(&mut options);
        let model = Gemini::new(options).unwrap();
        for name in MODELS {
            provider.answer(fine());
            let request = ModelRequest { model: Some((*name).to_owned()), tools: tools(), ..hi() };
            let answer = send_to(&model, request).await;
            assert!(
                answer.is_ok(),
                "{name}, {kind}: {answer:?} {}",
                provider.requests().last().unwrap().body
            );
        }
    }
    let body = provider.requests().last().unwrap().body.clone();
    assert_eq!(body["generationConfig"], json!({"responseModalities": ["TEXT"]}));
}

#[tokio::test]
async fn the_check_refuses_what_the_api_refuses() {
    let provider = Provider::start_checked(check).await;
    for (name, extra, reason) in [
        ("gemini-3.8-flash", json!({"stream": true}), "Unknown name \"stream\""),
        (
            "gemini-3.8-flash",
            json!({"generationConfig": {"candidateCount": 2}}),
            "Multiple candidates",
        ),
        (
            "gemini-3.8-flash",
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "MINIMAL"}}}),
            "not supported",
        ),
        (
            "gemini-4-argon",
            json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 100}}}),
            "not supported",
        ),
        ("gemini-2.5-flash", json!({"generationConfig": {"frequencyPenalty": 0.1}}), "Penalty"),
        (
            "gemini-2.5-flash",
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}),
            "not supported",
        ),
        (
            "gemini-2.0-flash",
            json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
            "Thinking",
        ),
        (
            "gemini-3.8-flash",
            json!({"contents": [{"role": "model", "parts": [{"text": "a"}]}]}),
            "user turn",
        ),
        ("gemini-3.8-flash", json!({"contents": false}), "no list"),
        (
            "gemini-3.8-flash",
            json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
            "without function",
        ),
    ] {
        let mut options = options(name, &provider);
        options.extra_body = object(extra.clone());
        let error = send(options, hi()).await.expect_err("a refusal");
        assert_eq!(error.code(), "model_rejected", "{name} {extra}");
        assert!(format!("{error:?}").contains(reason), "{name} {extra}: {error:?}");
    }
}

#[tokio::test]
async fn each_request_has_the_path_and_the_key_of_the_api() {
    let provider = Provider::start().await;
    for (base, name, path) in [
        ("", "m", "/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("/", "models/m", "/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("/v1beta/", "tunedModels/t", "/v1beta/tunedModels/t:streamGenerateContent?alt=sse"),
        ("/v1alpha/models", "m", "/v1alpha/models/m:streamGenerateContent?alt=sse"),
        ("/proxy", "m", "/proxy/v1beta/models/m:streamGenerateContent?alt=sse"),
        (
            "/v1/publishers/google",
            "m",
            "/v1/publishers/google/models/m:streamGenerateContent?alt=sse",
        ),
        ("/v1?key=x", "m", "/v1/models/m:streamGenerateContent?key=x&alt=sse"),
    ] {
        provider.answer(fine());
        let options = ModelOptions::new(name, client(format!("{}{base}", provider.url())));
        send(options, hi()).await.unwrap();
        let request = provider.requests().pop().unwrap();
        assert_eq!(request.path, path);
        assert_eq!(request.headers["x-goog-api-key"], KEY);
        assert!(!request.headers.contains_key("authorization"));
        assert_eq!(
            request.body,
            json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
        );
    }
    provider.answer(fine());
    let request = ModelRequest { model: Some("other".to_owned()), ..hi() };
    send(options("m", &provider), request).await.unwrap();
    assert!(provider.requests().pop().unwrap().path.contains("/models/other:"));
}

#[tokio::test]
async fn signatures_come_back_on_their_parts() {
    let provider = Provider::start_checked(check).await;
    provider.answer(Answer::gemini(&[
        response(json!([{"text": "hm", "thought": true, "thoughtSignature": "signed thought hm"}])),
        response(json!([{"text": "I look."}])),
        response(json!([{"text": "", "thoughtSignature": "signed text "}])),
        response(json!([{"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "signed call f"}])),
        response(json!([{"functionCall": {"id": "2", "name": "f", "args": {}}}])),
        finish("STOP"),
    ]));
    let events = send(options("gemini-3.8-flash", &provider), hi()).await.unwrap();
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::Calls)));
    let results = ModelStep::ToolResults(vec![result("1", "one"), result("2", "two")]);
    let request = ModelRequest {
        steps: vec![said("hi"), model(blocks(&events)), results],
        ..ModelRequest::default()
    };
    provider.answer(fine());
    send(options("gemini-3.8-flash", &provider), request).await.unwrap();
    let body = provider.requests().pop().unwrap().body;
    let expected = json!([
        {"text": "hm", "thoughtSignature": "signed thought hm", "thought": true},
        {"text": "I look."},
        {"text": "", "thoughtSignature": "signed text "},
        {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "signed call f"},
        {"functionCall": {"id": "2", "name": "f", "args": {}}},
    ]);
    assert_eq!(body["contents"][1]["parts"], expected);
}

fn value(artefact: &Option<Artefact>) -> Option<String> {
    artefact.as_ref().map(|artefact| artefact.value.clone())
}

/// Returns the blocks of an answer, with the artefact of a text behind it, as the agent keeps them.
fn blocks(events: &[ModelEvent]) -> Vec<Block> {
    let mut blocks: Vec<(Block, Option<Block>)> = Vec::new();
    for event in events {
        match event {
            ModelEvent::Start { block, .. } => {
                let block = match block {
                    BlockStart::Text => Block::Text(String::new()),
                    BlockStart::Call { id, name } => {
                        Block::Call(ToolCall::new(id.clone(), name, ""))
                    }
                    _ => Block::Reasoning(ModelReasoning::default()),
                };
                blocks.push((block, None));
            }
            ModelEvent::Delta { index, text: delta } => match &mut blocks[*index].0 {
                Block::Text(text) => text.push_str(delta),
                Block::Call(call) => call.function.arguments.push_str(delta),
                Block::Reasoning(block) => block.text.push_str(delta),
                _ => {}
            },
            ModelEvent::End { index, artefact } => match &mut blocks[*index] {
                (Block::Call(call), _) => call.encrypted_value = value(artefact),
                (Block::Reasoning(block), _) => block.artefact = value(artefact),
                (_, behind) if artefact.is_some() => {
                    let mut hidden = ModelReasoning::default();
                    (hidden.artefact, hidden.redacted) = (value(artefact), true);
                    *behind = Some(Block::Reasoning(hidden));
                }
                _ => {}
            },
            _ => {}
        }
    }
    blocks.into_iter().flat_map(|(block, behind)| [Some(block), behind]).flatten().collect()
}

#[tokio::test]
async fn what_a_model_cannot_read_is_told() {
    let provider = Provider::start_checked(check).await;
    let mut zip = data("application/zip");
    zip.metadata = Some(json!({"filename": "a.zip"}));
    let parts = [
        ContentPart::text("see"),
        ContentPart::Document(zip),
        ContentPart::Audio(url("https://a/b.mp3")),
        ContentPart::Image(
            PartSource::File {
                value: "f".to_owned(),
                provider: Some("openai".to_owned()),
                mime_type: None,
            }
            .into(),
        ),
    ];
    provider.answer(fine());
    let request = ModelRequest { steps: vec![user(parts)], ..ModelRequest::default() };
    let events = send(options("gemini-3.8-flash", &provider), request).await.unwrap();
    let skipped: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Skipped(skipped) => Some((skipped.kind, skipped.name.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(skipped, [("document", Some("a.zip")), ("audio", None), ("image", None)]);
    let body = provider.requests().pop().unwrap().body;
    let told = &body["contents"][0]["parts"][1]["text"];
    assert!(
        told.as_str().is_some_and(|told| told.contains("a.zip") && told.contains("cannot read it")),
        "{body}"
    );
    // A text file becomes text.
    let csv = PartSource::Data { value: "YSxi".to_owned(), mime_type: "text/csv".to_owned() };
    let parts = [ContentPart::Document(csv.into()), ContentPart::Image(data("image/png"))];
    provider.answer(fine());
    let request = ModelRequest { steps: vec![user(parts)], ..ModelRequest::default() };
    let events = send(options("gemini-3.8-flash", &provider), request).await.unwrap();
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::Skipped(_))), "{events:?}");
    let parts = provider.requests().pop().unwrap().body["contents"][0]["parts"].take();
    assert!(parts[0]["text"].as_str().is_some_and(|text| text.contains("a,b")), "{parts}");
    assert_eq!(parts[1], json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}}));
}

#[tokio::test]
async fn instructions_about_now_come_last() {
    let provider = Provider::start_checked(check).await;
    let current = vec!["state: 1".to_owned()];
    let marked = "<system-instructions>\nstate: 1\n</system-instructions>";
    provider.answer(fine());
    let request =
        ModelRequest { current: current.clone(), system: vec!["be kind".to_owned()], ..hi() };
    send(options("gemini-3.8-flash", &provider), request).await.unwrap();
    let body = provider.requests().pop().unwrap().body;
    assert_eq!(
        body["contents"],
        json!([{"role": "user", "parts": [{"text": "hi"}, {"text": marked}]}])
    );
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "be kind"}]}));
    let steps = vec![
        said("hi"),
        model([call("a", None)]),
        ModelStep::ToolResults(vec![result("a", "one")]),
    ];
    provider.answer(fine());
    send(
        options("gemini-3.8-flash", &provider),
        ModelRequest { steps, current, ..ModelRequest::default() },
    )
    .await
    .unwrap();
    let body = provider.requests().pop().unwrap().body;
    let response = &body["contents"][2]["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"output": format!("one\n\n{marked}")}));
}

#[test]
fn options_that_the_model_refuses_or_ignores_are_named() {
    let warnings = |model: &str, change: fn(&mut ModelOptions)| {
        let mut options = ModelOptions::new(model, ProviderClient::default());
        change(&mut options);
        Gemini::new(options).unwrap().warnings().join("; ")
    };
    let penalty = |options: &mut ModelOptions| options.presence_penalty = Some(0.5);
    let sampling = |options: &mut ModelOptions| options.top_k = Some(4);
    let budget = |options: &mut ModelOptions| options.thinking_budget = Some(4096);
    assert_eq!(warnings("gemini-2.0-flash", penalty), "");
    let refused = "`presence_penalty`: gemini-2.5-flash refuses penalties; it is not sent";
    assert_eq!(warnings("gemini-2.5-flash", penalty), refused);
    assert_eq!(warnings("gemini-3.5-flash", sampling), "");
    assert!(warnings("gemini-3.8-flash", sampling).contains("ignores"));
    assert!(warnings("gemini-3.8-flash", budget).contains("reasoning_effort"));
    assert_eq!(warnings("gemini-3.8-flash", |options| options.seed = Some(1)), "");
}
