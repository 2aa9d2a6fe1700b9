//! Anthropic's models against a provider that refuses what the published API refuses.

use std::{sync::Arc, time::Duration};

use agui_server::{
    llm::{
        Anthropic, Block, BlockStart, Model, ModelError, ModelEvent, ModelOptions, ModelReasoning,
        ModelRequest, ModelStep, ProviderClient, StopReason, Thinking, ToolChoice, ToolResult,
    },
    protocol::{ContentPart, JsonObject, MediaPart, PartSource, ToolCall},
    tools::ToolSpec,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{
    client, events,
    provider::{Answer, Provider},
    published::anthropic::{check, models},
};

const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

fn options(model: &str, provider: &Provider) -> ModelOptions {
    ModelOptions::new(model, client(provider.url()))
}

/// A model whose server takes the beta features of Anthropic's own one.
fn official(mut options: ModelOptions) -> Anthropic {
    options.client.headers.push(("anthropic-beta".to_owned(), BINDING_BETA.into()));
    Anthropic::new(options).unwrap()
}

fn object(json: Value) -> JsonObject {
    let Value::Object(members) = json else { unreachable!() };
    members
}

fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

fn assistant(blocks: Vec<Block>) -> ModelStep {
    ModelStep::Assistant(blocks)
}

fn call(id: &str) -> Block {
    Block::Call(ToolCall::new(id, "f", "{\"a\":1}"))
}

fn result(id: &str) -> ModelStep {
    let content = "done".into();
    ModelStep::ToolResults(vec![ToolResult {
        call_id: id.into(),
        name: "f".to_owned(),
        content,
        failed: false,
    }])
}

fn thought(artefact: &str, redacted: bool) -> Block {
    let text = if redacted { String::new() } else { "hm".to_owned() };
    let provider = Some("anthropic".to_owned());
    Block::Reasoning(ModelReasoning {
        text,
        artefact: Some(artefact.to_owned()),
        redacted,
        provider,
    })
}

fn own(block: Value) -> Block {
    thought(&block.to_string(), true)
}

fn tool(name: &str) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "required": ["a"]});
    ToolSpec { name: name.to_owned(), description: "does".to_owned(), parameters }
}

async fn ask(model: &dyn Model, request: ModelRequest) -> (Vec<ModelEvent>, Option<ModelError>) {
    let all: Vec<_> = model.stream(request).collect().await;
    let (mut events, mut error) = (Vec::new(), None);
    for event in all {
        match event {
            Ok(event) => events.push(event),
            Err(failure) => error = Some(failure),
        }
    }
    (events, error)
}

/// Conversations of every kind.
fn conversations() -> Vec<Vec<ModelStep>> {
    let csv = PartSource::Data { value: "YSxi".to_owned(), mime_type: "text/csv".to_owned() };
    let pdf = PartSource::Url { value: "https://a/b.pdf".to_owned(), mime_type: None };
    let wav = PartSource::Data { value: "AA==".to_owned(), mime_type: "audio/wav".to_owned() };
    let file = PartSource::File {
        value: "f".to_owned(),
        provider: Some("anthropic".to_owned()),
        mime_type: None,
    };
    let server_call =
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    vec![
        vec![],
        vec![user("hi")],
        vec![ModelStep::Instructions("be brief".to_owned()), user("hi"), user("you")],
        vec![assistant(vec![Block::Text("hello".to_owned())])],
        vec![user("hi"), assistant(vec![thought("s", false), call("a")]), result("a")],
        vec![
            user("hi"),
            assistant(vec![call("a")]),
            result("a"),
            ModelStep::Instructions("be good".to_owned()),
            user("on"),
        ],
        vec![
            user("hi"),
            assistant(vec![
                thought("s", false),
                thought("x", true),
                Block::Text("a".to_owned()),
                call("a:1"),
                call("b"),
            ]),
            ModelStep::ToolResults(vec![
                ToolResult {
                    call_id: "a:1".into(),
                    name: "f".to_owned(),
                    content: "".into(),
                    failed: true,
                },
                ToolResult {
                    call_id: "b".into(),
                    name: "f".to_owned(),
                    content: vec![ContentPart::Audio(wav.clone().into())].into(),
                    failed: false,
                },
            ]),
        ],
        vec![
            ModelStep::User(vec![
                ContentPart::Document(csv.into()),
                ContentPart::Document(pdf.into()),
                ContentPart::Audio(MediaPart::from(wav)),
                ContentPart::image(file),
            ]),
            assistant(vec![thought("s", false)]),
            user(" "),
        ],
        vec![
            user("hi"),
            assistant(vec![own(server_call.clone()), own(found), Block::Text("a".to_owned())]),
            user("b"),
        ],
        vec![user("hi"), assistant(vec![own(server_call.clone()), call("a")]), result("a")],
        vec![
            user("hi"),
            assistant(vec![own(server_call), call("a")]),
            result("a"),
            user("never mind"),
        ],
    ]
}

/// Requests of every kind, with each conversation.
fn requests() -> Vec<ModelRequest> {
    let schema =
        object(json!({"type": "object", "properties": {"n": {"type": "number", "maximum": 3}}}));
    let plain = ModelRequest {
        system: vec!["be kind".to_owned(), " ".to_owned()],
        ..ModelRequest::default()
    };
    let tools: Arc<[ToolSpec]> =
        (0..20).map(|n| tool(&format!("f{n}"))).chain([tool("f")]).collect();
    let with_tools = ModelRequest { tools, current: vec!["the state".to_owned()], ..plain.clone() };
    let kinds = [
        plain.clone(),
        ModelRequest { thinking: Some(true), ..with_tools.clone() },
        ModelRequest { thinking: Some(false), tool_choice: ToolChoice::None, ..with_tools.clone() },
        ModelRequest { tool_choice: ToolChoice::Required, ..with_tools.clone() },
        ModelRequest {
            tool_choice: ToolChoice::Tool("f".to_owned()),
            thinking: Some(true),
            ..with_tools
        },
        ModelRequest {
            response_schema: Some(Arc::new(schema)),
            current: vec!["now".to_owned()],
            ..plain
        },
    ];
    let all = conversations();
    let with = |steps: &Vec<ModelStep>| {
        kinds.clone().map(|kind| ModelRequest { steps: steps.clone(), ..kind })
    };
    all.iter().flat_map(with).collect()
}

/// Options of every kind, also such that do not fit the model.
fn configurations() -> Vec<ModelOptions> {
    let of = |thinking, effort: Option<&str>| {
        let mut options = ModelOptions::default();
        options.thinking = thinking;
        options.reasoning_effort = effort.map(str::to_owned);
        options
    };
    let mut full = of(Some(Thinking::On), Some("max"));
    full.temperature = Some(0.5);
    full.top_p = Some(0.5);
    full.top_k = Some(5);
    full.thinking_budget = Some(200_000);
    full.max_tokens = Some(200_000);
    full.parallel_tool_calls = Some(false);
    full.strict_tools = Some(true);
    full.stop = vec!["END".to_owned(), "\n".to_owned()];
    full.service_tier = Some("standard_only".to_owned());
    full.metadata.insert("user_id".to_owned(), "u".to_owned());
    let mut cool = of(None, None);
    cool.temperature = Some(0.5);
    cool.top_p = Some(0.99);
    let mut small = of(Some(Thinking::On), None);
    small.max_tokens = Some(100);
    small.top_p = Some(0.97);
    vec![
        of(None, None),
        of(Some(Thinking::Off), Some("xhigh")),
        of(Some(Thinking::Off), None),
        of(Some(Thinking::Adaptive), Some("minimal")),
        full,
        cool,
        small,
    ]
}

#[tokio::test]
async fn no_model_refuses_what_it_is_sent() {
    for name in models() {
        let provider = Provider::start_checked(check).await;
        for (at, configured) in configurations().into_iter().enumerate() {
            let mut options = configured.clone();
            options.model = name.to_owned();
            options.client =
                ProviderClient { idle_timeout: Duration::from_secs(20), ..client(provider.url()) };
            let model = official(options);
            // Each option meets a third of the requests, each request a third of the options.
            let requests =
                requests().into_iter().enumerate().filter(|(n, _)| (n + n / 6 + at) % 3 == 0);
            let sent = stream::iter(requests).map(async |(_, request)| {
                provider.answer(Answer::anthropic(&events("a")));
                let (_, error) = ask(&model, request.clone()).await;
                assert!(error.is_none(), "{name}: {error:?}\n{configured:?}\n{request:?}");
            });
            sent.buffer_unordered(8).collect::<Vec<()>>().await;
        }
    }
}

#[tokio::test]
async fn the_check_refuses_what_the_models_refuse() {
    let provider = Provider::start_checked(check).await;
    for (name, extra) in [
        ("claude-opus-4-7", json!({"thinking": {"type": "enabled", "budget_tokens": 2000}})),
        ("claude-opus-4-7", json!({"temperature": 0.5})),
        ("claude-haiku-4-5", json!({"thinking": {"type": "adaptive"}})),
        (
            "claude-haiku-4-5",
            json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "temperature": 0.5}),
        ),
        ("claude-haiku-4-5", json!({"output_config": {"effort": "low"}})),
        ("claude-opus-5-5", json!({"thinking": {"type": "disabled"}})),
        (
            "claude-opus-5",
            json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}}),
        ),
        ("claude-opus-5-5", json!({"tool_choice": {"type": "any"}})),
        (
            "claude-opus-4-6",
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}),
        ),
        (
            "claude-opus-4-6",
            json!({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]}),
        ),
        ("claude-opus-4-6", json!({"seed": 1})),
        ("claude-opus-4-6", json!({"max_tokens": 1_000_000})),
        ("claude-9", json!({})),
    ] {
        let mut options = options(name, &provider);
        options.extra_body = object(extra.clone());
        let request = ModelRequest {
            steps: vec![user("hi")],
            tools: Arc::new([tool("f")]),
            ..ModelRequest::default()
        };
        let (_, error) = ask(&official(options), request).await;
        assert_eq!(error.map(|error| error.code()), Some("model_rejected"), "{name} {extra}");
    }
}

/// Returns the bytes that the provider caches: tools, instructions and messages up to the last mark.
fn cached(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| {
        message["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |block| (message["role"].clone(), block.clone()))
    });
    let front = ["tools", "system"].into_iter().flat_map(|name| {
        body[name]
            .as_array()
            .into_iter()
            .flatten()
            .map(move |block| (Value::from(name), block.clone()))
    });
    let mut all: Vec<_> = front.chain(blocks).collect();
    let marks: Vec<_> =
        (0..all.len()).filter(|at| all[*at].1.get("cache_control").is_some()).collect();
    assert!((1..=4).contains(&marks.len()), "{marks:?}");
    all.truncate(marks[marks.len() - 1] + 1);
    for (_, block) in &mut all {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    all.iter().map(|(place, block)| format!("{place}{block}")).collect()
}

#[tokio::test]
async fn a_changed_context_or_state_leaves_the_cached_bytes_as_they_were() {
    let provider = Provider::start_checked(check).await;
    let sent = async |name: &str, steps: &[ModelStep], current: &[&str]| {
        provider.answer(Answer::anthropic(&events("a")));
        let request = ModelRequest {
            system: vec!["be kind".to_owned()],
            steps: steps.to_vec(),
            current: current.iter().map(|text| (*text).to_owned()).collect(),
            tools: Arc::new([tool("f")]),
            ..ModelRequest::default()
        };
        let (_, error) = ask(&official(options(name, &provider)), request).await;
        assert!(error.is_none(), "{error:?}");
        provider.requests().pop().unwrap().body
    };
    let first = [user("hi")];
    let looped = [user("hi"), assistant(vec![thought("s", false), call("a")]), result("a")];
    let longer =
        [&looped[..], &[assistant(vec![thought("t", false), call("b")]), result("b")]].concat();
    for name in models().filter(|name| {
        !["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1"]
            .contains(name)
    }) {
        for steps in [&first[..], &looped, &longer] {
            let one = sent(name, steps, &["page 1", "state 1"]).await;
            let other = sent(name, steps, &["page 2, which is longer", "state 2"]).await;
            assert_ne!(one, other);
            assert_eq!(cached(&one), cached(&other), "{name}");
        }
        let before = cached(&sent(name, &looped, &["state 1"]).await);
        let after = cached(&sent(name, &longer, &["state 2"]).await);
        assert!(
            after.starts_with(&before) && after.len() > before.len(),
            "{name}\n{before}\n{after}"
        );
    }
    // These bind their thinking to all that was sent before it, so context and state stay behind the user's step: a
    // step of the run only adds to the request before.
    for name in ["claude-opus-5-5", "claude-haiku-5-5"] {
        let one = sent(name, &first, &["page 1"]).await;
        assert_eq!(cached(&one), cached(&sent(name, &first, &["page 2"]).await), "{name}");
        let all = |body: &Value| {
            let mut body = body["messages"].clone();
            for block in body
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .flat_map(|m| m["content"].as_array_mut().unwrap())
            {
                block.as_object_mut().unwrap().remove("cache_control");
            }
            body.to_string()
        };
        let (one, next) = (all(&one), all(&sent(name, &looped, &["page 1"]).await));
        assert!(next.starts_with(one.trim_end_matches(']')), "{name}\n{one}\n{next}");
    }
}

/// A paused answer: a thought, a call to the provider's search, its result, and some text.
fn paused(id: &str, text: &str) -> Vec<Value> {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
        start(1, json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"query\": \"a\"}"})),
        stop(1),
        start(
            2,
            json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [{"encrypted_content": "e"}]}),
        ),
        stop(2),
        start(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "text_delta", "text": text})),
        delta(3, json!({"type": "citations_delta", "citation": {"url": "https://a"}})),
        stop(3),
        json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]
}

fn with_search(name: &str, provider: &Provider) -> Anthropic {
    let mut options = options(name, provider);
    options.extra_body =
        object(json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}));
    official(options)
}

#[tokio::test]
async fn a_paused_answer_is_continued_as_one() {
    let provider = Provider::start_checked(check).await;
    provider.answer(Answer::anthropic(&paused("s1", "one ")));
    provider.answer(Answer::anthropic(&paused("s2", "two ")));
    provider.answer(Answer::anthropic(&events("three")));
    let video = PartSource::Data { value: "AA==".to_owned(), mime_type: "video/mp4".to_owned() };
    let request = ModelRequest {
        steps: vec![ModelStep::User(vec![ContentPart::Video(video.into())])],
        current: vec!["state".to_owned()],
        tools: Arc::new([tool("f")]),
        ..ModelRequest::default()
    };
    let (events, error) = ask(&with_search("claude-opus-4-6", &provider), request).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events.iter().filter(|event| matches!(event, ModelEvent::Skipped(_))).count(), 1);
    let texts = events.iter().filter_map(|event| match event {
        ModelEvent::Delta { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), "hmone hmtwo three");
    let mut starts = Vec::new();
    for event in &events {
        if let ModelEvent::Start { index, block } = event {
            assert_eq!(*index, starts.len(), "{events:?}");
            starts.push(block.clone());
        }
    }
    let hidden = BlockStart::Reasoning { redacted: true };
    let part =
        [BlockStart::Reasoning { redacted: false }, hidden.clone(), hidden, BlockStart::Text];
    assert_eq!(starts, [&part[..], &part[..], &[BlockStart::Text]].concat());
    let cited: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Citation { index: 3 | 7, .. }))
        .collect();
    assert_eq!(cited.len(), 2);
    let stops: Vec<_> =
        events.iter().filter(|event| matches!(event, ModelEvent::Stop(_))).collect();
    assert_eq!(stops, [&ModelEvent::Stop(StopReason::Done)]);
    let usages: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Usage(usage) => {
                Some((usage.input_tokens, usage.output_tokens, usage.cached_input_tokens))
            }
            _ => None,
        })
        .collect();
    assert_eq!(usages.first(), Some(&(Some(15), Some(1), Some(5))));
    assert_eq!(usages.last(), Some(&(Some(33), Some(45), Some(10))));
    // The paused content goes back as it came, and all else stays.
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    let content = |id: &str, text: &str| {
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "a"}},
            {"type": "web_search_tool_result", "tool_use_id": id, "content": [{"encrypted_content": "e"}]},
            {"type": "text", "text": text, "citations": [{"url": "https://a"}]},
        ])
    };
    let messages = |at: usize| requests[at].body["messages"].as_array().unwrap().clone();
    assert_eq!(messages(1)[1], json!({"role": "assistant", "content": content("s1", "one ")}));
    let both = [content("s1", "one "), content("s2", "two ")]
        .map(|part| part.as_array().unwrap().clone())
        .concat();
    assert_eq!(messages(2)[1], json!({"role": "assistant", "content": both}));
    for at in [1, 2] {
        assert_eq!(messages(at)[..1], messages(0)[..]);
        assert_eq!(requests[at].body["tools"], requests[0].body["tools"]);
    }
}

#[tokio::test]
async fn a_large_result_of_a_providers_tool_is_within_the_bound_of_an_event() {
    let provider = Provider::start().await;
    let pdf =
        json!({"type": "base64", "media_type": "application/pdf", "data": "A".repeat(3 << 20)});
    let fetched =
        json!({"type": "web_fetch_result", "content": {"type": "document", "source": pdf}});
    let mut answer = paused("s1", "It says");
    answer[8]["content_block"] =
        json!({"type": "web_fetch_tool_result", "tool_use_id": "s1", "content": fetched});
    let mut options = options("claude-opus-4-6", &provider);
    options.client.max_event_bytes = Some(1 << 20);
    options.client.idle_timeout = Duration::from_secs(10);
    let request = || ModelRequest { steps: vec![user("hi")], ..ModelRequest::default() };
    provider.answer(Answer::anthropic(&answer));
    let (_, error) = ask(&Anthropic::new(options.clone()).unwrap(), request()).await;
    assert_eq!(error.map(|error| error.code()), Some("model_protocol"), "the bound is configured");
    options.client.max_event_bytes = None;
    options.extra_body =
        object(json!({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}));
    provider.answer(Answer::anthropic(&answer));
    provider.answer(Answer::anthropic(&events("that")));
    let (answered, error) = ask(&Anthropic::new(options).unwrap(), request()).await;
    assert!(error.is_none(), "{error:?}");
    let is_result = |event: &&ModelEvent| matches!(event, ModelEvent::End { artefact: Some(it), .. } if it.value.len() > 3 << 20);
    assert_eq!(answered.iter().filter(is_result).count(), 1);
    let sent_back =
        provider.requests()[2].body["messages"][1]["content"][2]["content"]["content"].clone();
    assert_eq!(sent_back["source"]["data"].as_str().map(str::len), Some(3 << 20));
}

#[tokio::test]
async fn an_answer_that_is_paused_for_ever_ends() {
    let provider = Provider::start_checked(check).await;
    for n in 0..20 {
        provider.answer(Answer::anthropic(&paused(&format!("s{n}"), "a")));
    }
    let request = ModelRequest { steps: vec![user("hi")], ..ModelRequest::default() };
    let (events, error) = ask(&with_search("claude-opus-4-6", &provider), request).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::Length)));
    assert_eq!(provider.requests().len(), 11);
}

#[tokio::test]
async fn a_failed_continuation_is_an_error_after_the_first_part() {
    let provider = Provider::start_checked(check).await;
    provider.answer(Answer::anthropic(&paused("s", "one")));
    provider.answer(Answer::new(400, ["no"]));
    let request = ModelRequest { steps: vec![user("hi")], ..ModelRequest::default() };
    let (events, error) = ask(&with_search("claude-opus-4-6", &provider), request).await;
    assert_eq!(error.map(|error| error.code()), Some("model_rejected"));
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::Stop(_))), "{events:?}");
}

#[tokio::test]
async fn the_stop_reasons_are_told_apart() {
    let provider = Provider::start_checked(check).await;
    let model = official(options("claude-opus-5-5", &provider));
    for (reason, expected) in [
        ("end_turn", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("pause_turn", StopReason::Done),
        ("tool_use", StopReason::Calls),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::ContextFull),
        ("refusal", StopReason::Refused),
        ("something_new", StopReason::Aborted),
    ] {
        let mut answer = events("a");
        answer[4]["delta"] = json!({"stop_reason": reason, "stop_details": {"type": "refusal", "category": "cyber"}});
        provider.answer(Answer::anthropic(&answer));
        let request = ModelRequest { steps: vec![user("hi")], ..ModelRequest::default() };
        let (events, error) = ask(&model, request).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(events.last(), Some(&ModelEvent::Stop(expected)), "{reason}");
    }
}

#[tokio::test]
async fn an_attachment_that_the_model_cannot_read_is_reported_before_the_answer() {
    let provider = Provider::start_checked(check).await;
    provider.answer(Answer::anthropic(&events("a")));
    let source = PartSource::Data { value: "AA==".to_owned(), mime_type: "video/mp4".to_owned() };
    let mut video = MediaPart::from(source);
    video.metadata = Some(json!({"filename": "cat.mp4"}));
    let steps = vec![ModelStep::User(vec![ContentPart::Video(video)])];
    let model = official(options("claude-opus-5-5", &provider));
    let (events, error) = ask(&model, ModelRequest { steps, ..ModelRequest::default() }).await;
    assert!(error.is_none(), "{error:?}");
    let Some(ModelEvent::Skipped(skipped)) = events.first() else { panic!("{events:?}") };
    assert_eq!((skipped.kind, skipped.name.as_deref()), ("video", Some("cat.mp4")));
    assert_eq!(skipped.mime_type.as_deref(), Some("video/mp4"));
    assert!(provider.requests()[0].body["messages"].to_string().contains("cat.mp4"));
}

#[tokio::test]
async fn beta_features_are_named_only_where_they_are_used() {
    let provider = Provider::start().await;
    let sent = async |model: &Anthropic| {
        provider.answer(Answer::anthropic(&events("a")));
        let (_, error) =
            ask(model, ModelRequest { steps: vec![user("hi")], ..ModelRequest::default() }).await;
        assert!(error.is_none(), "{error:?}");
        provider.requests().pop().unwrap()
    };
    // A server of unknown kind gets none of the members that only Anthropic's own one takes.
    let elsewhere = sent(&Anthropic::new(options("claude-opus-5-5", &provider)).unwrap()).await;
    assert!(!elsewhere.headers.contains_key("anthropic-beta"), "{:?}", elsewhere.headers);
    assert_eq!(elsewhere.body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let mut unknown = options("glm-5", &provider);
    unknown.thinking = Some(Thinking::On);
    unknown.strict_tools = Some(true);
    let unknown = sent(&Anthropic::new(unknown).unwrap()).await;
    let names: Vec<_> = unknown.body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["model", "max_tokens", "stream", "messages", "thinking"]);
    assert_eq!(unknown.body["thinking"], json!({"type": "enabled", "budget_tokens": 4096}));
    let official = sent(&official(options("claude-opus-5-5", &provider))).await;
    assert_eq!(official.headers["anthropic-beta"], BINDING_BETA);
    assert_eq!(
        official.body["thinking"]["block_binding"],
        json!({"prefix_mismatch_behavior": "drop_block"})
    );
}

#[test]
fn options_that_the_api_lacks_are_errors_when_the_model_is_made() {
    let refused = |change: fn(&mut ModelOptions)| {
        let mut options = ModelOptions::new("claude-opus-5-5", ProviderClient::default());
        change(&mut options);
        Anthropic::new(options).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused(|options| options.seed = Some(1)).contains("seed"));
    assert!(refused(|options| options.verbosity = Some("low".to_owned())).contains("verbosity"));
    let with_team = |options: &mut ModelOptions| {
        drop(options.metadata.insert("team".to_owned(), "a".to_owned()))
    };
    assert!(refused(with_team).contains("user_id"));
    assert_eq!(refused(|_| {}), "");
}
