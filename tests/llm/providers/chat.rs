//! Chat completions against providers that refuse what the real ones refuse.

use std::{sync::Arc, time::Duration};

use agui_server::{
    llm::{
        Block, Model, ModelEvent, ModelOptions, ModelReasoning, ModelRequest, ModelStep, OpenAi,
        ProfileOptions, ProviderClient, StopReason, Thinking, ToolChoice, ToolResult,
    },
    protocol::{ContentPart, MediaPart, PartSource, ToolCall},
    tools::ToolSpec,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{
    chunk, client,
    provider::{Answer, Provider, Recorded},
    published::chat::refusal,
};

/// The profiles with the models that are asked for.
const MODELS: &[(&str, &[&str])] = &[
    (
        "openai",
        &[
            "gpt-4o",
            "gpt-4.1-mini",
            "o3",
            "o4-mini",
            "gpt-5",
            "gpt-5-mini",
            "gpt-5.2",
            "gpt-5.4",
            "gpt-5.6",
        ],
    ),
    ("azure", &["my-deployment"]),
    ("ollama", &["qwen3:8b"]),
    ("vllm", &["Qwen/Qwen3-8B"]),
    ("llama-cpp", &["devstral"]),
    ("lm-studio", &["gemma-3-27b"]),
    ("openrouter", &["anthropic/claude-sonnet-4.5"]),
    ("deepseek", &["deepseek-v4-pro"]),
    ("mistral", &["mistral-small-latest", "codestral-latest"]),
    ("groq", &["qwen/qwen3-32b", "openai/gpt-oss-120b", "llama-3.3-70b-versatile"]),
    ("together", &["zai-org/GLM-5.1"]),
    ("fireworks", &["accounts/fireworks/models/deepseek-v3p2"]),
    ("xai", &["grok-4.3", "grok-4-1-fast-non-reasoning"]),
    ("moonshot", &["kimi-k2.6"]),
    ("zai", &["glm-4.7"]),
    ("qwen", &["qwen3-max"]),
];

fn check(request: &Recorded) -> Option<String> {
    // The test names the provider in a header, which a connection can have anyway.
    let name = request.headers["x-provider"].to_str().unwrap();
    refusal(name, request)
}

fn model(name: &str, url: String, change: impl FnOnce(&mut ModelOptions)) -> OpenAi {
    let headers = vec![("x-provider".to_owned(), name.into())];
    let mut options = ModelOptions::default();
    change(&mut options);
    // Many requests on a busy machine.
    let idle_timeout = Duration::from_secs(20);
    options.client = ProviderClient { headers, max_retries: 0, idle_timeout, ..client(url) };
    options.profile = Some(ProfileOptions::named(name));
    OpenAi::chat(options).unwrap()
}

/// Sets an option that the provider has; others are refused when the model is made.
fn set_if_taken(options: &mut ModelOptions, profile: &str, set: impl FnOnce(&mut ModelOptions)) {
    let mut changed = options.clone();
    set(&mut changed);
    changed.profile = Some(ProfileOptions::named(profile));
    if OpenAi::chat(changed.clone()).is_ok() {
        *options = changed;
    }
}

fn set_all(options: &mut ModelOptions, profile: &str) {
    options.max_tokens = Some(1000);
    let sets: [&dyn Fn(&mut ModelOptions); 15] = [
        &|options| options.temperature = Some(0.5),
        &|options| options.top_p = Some(0.9),
        &|options| options.top_k = Some(20),
        &|options| options.seed = Some(7),
        &|options| options.frequency_penalty = Some(0.5),
        &|options| options.presence_penalty = Some(-0.5),
        &|options| options.stop = vec!["END".to_owned()],
        &|options| options.parallel_tool_calls = Some(false),
        &|options| options.strict_tools = Some(true),
        &|options| options.verbosity = Some("low".to_owned()),
        &|options| options.service_tier = Some("flex".to_owned()),
        &|options| options.cache_key = Some("key".to_owned()),
        &|options| options.image_detail = Some("low".to_owned()),
        &|options| options.thinking_budget = Some(2000),
        &|options| options.metadata = [("a".to_owned(), "b".to_owned())].into_iter().collect(),
    ];
    for set in sets {
        set_if_taken(options, profile, set);
    }
}

fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

fn answer(blocks: impl Into<Vec<Block>>) -> ModelStep {
    ModelStep::Assistant(blocks.into())
}

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn call(id: &str) -> Block {
    Block::Call(ToolCall::new(id, "look_up", "{\"a\":\"b\"}"))
}

fn result(id: &str, content: impl Into<agui_server::protocol::MessageContent>) -> ToolResult {
    ToolResult {
        call_id: id.into(),
        name: "look_up".to_owned(),
        content: content.into(),
        failed: false,
    }
}

fn reasoning(artefact: Option<&str>, provider: Option<&str>) -> Block {
    Block::Reasoning(ModelReasoning {
        text: "hm".to_owned(),
        artefact: artefact.map(str::to_owned),
        redacted: false,
        provider: provider.map(str::to_owned),
    })
}

fn data(mime_type: &str) -> MediaPart {
    PartSource::Data { value: "YSxi".to_owned(), mime_type: mime_type.to_owned() }.into()
}

fn url() -> PartSource {
    PartSource::Url {
        value: "https://example.org/a.pdf".to_owned(),
        mime_type: Some("application/pdf".to_owned()),
    }
}

fn tools() -> Arc<[ToolSpec]> {
    let spec = |name: &str, parameters| ToolSpec {
        name: name.to_owned(),
        description: "does".to_owned(),
        parameters,
    };
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let strict = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    Arc::new([spec("look_up", open), spec("send", strict), spec("now", json!({}))])
}

/// Conversations of many kinds.
fn requests() -> Vec<ModelRequest> {
    let image = || ContentPart::Image(data("image/png"));
    let conversations = vec![
        vec![user("hi")],
        // A failed run leaves a message of the user without an answer.
        vec![user("hi"), user("are you there?")],
        // A run continues without a new message; a page begins with a greeting.
        vec![answer([text("hello")]), user("hi"), answer([text("what can I do?")])],
        vec![answer([text("hello")]), answer([text("hi")])],
        // Ids and reasoning of other providers.
        vec![
            user("hi"),
            answer([reasoning(None, None), text("I look"), call("call_toolu_01A:b"), call("c")]),
            ModelStep::ToolResults(vec![result("call_toolu_01A:b", "one"), result("c", "two")]),
        ],
        vec![
            user("hi"),
            answer([reasoning(Some("c2ln"), Some("anthropic")), call("a")]),
            ModelStep::ToolResults(vec![result("a", vec![ContentPart::text("see"), image()])]),
            answer([
                reasoning(Some("[{\"type\":\"reasoning.text\",\"text\":\"hm\"}]"), Some("openai")),
                text("done"),
            ]),
            ModelStep::Instructions("be brief".to_owned()),
            user("thanks"),
        ],
        // The person speaks after an interrupted call.
        vec![
            user("hi"),
            answer([call("a")]),
            ModelStep::ToolResults(vec![result("a", "")]),
            user("stop"),
        ],
        vec![
            ModelStep::Instructions("be kind".to_owned()),
            user("hi"),
            ModelStep::Instructions("be brief".to_owned()),
        ],
        vec![ModelStep::User(vec![
            ContentPart::text("see"),
            image(),
            ContentPart::Image(data("image/svg+xml")),
            ContentPart::image(PartSource::Url {
                value: "https://example.org/a.png".to_owned(),
                mime_type: None,
            }),
            ContentPart::Audio(data("audio/wav")),
            ContentPart::Audio(data("audio/ogg")),
            ContentPart::Video(data("video/mp4")),
            ContentPart::Document(data("application/pdf")),
            ContentPart::Document(data("text/csv")),
            ContentPart::Document(data("application/vnd.ms-excel")),
            ContentPart::Document(url().into()),
        ])],
    ];
    let mut requests = Vec::new();
    for steps in conversations {
        for current in [vec![], vec!["it is noon".to_owned(), "{\"count\":1}".to_owned()]] {
            for thinking in [None, Some(false), Some(true)] {
                let system = vec!["be good".to_owned(), "be true".to_owned()];
                let steps = steps.clone();
                let current = current.clone();
                requests.push(ModelRequest {
                    system,
                    steps,
                    current,
                    thinking,
                    ..ModelRequest::default()
                });
            }
        }
    }
    for choice in [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::Tool("send".to_owned()),
    ] {
        for tools in [tools(), Arc::new([])] {
            let tool_choice = choice.clone();
            requests.push(ModelRequest {
                steps: vec![user("hi")],
                tools,
                tool_choice,
                ..ModelRequest::default()
            });
        }
    }
    for required in [json!(["a"]), json!([])] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": required, "additionalProperties": false});
        let response_schema = schema.as_object().cloned().map(Arc::new);
        requests.push(ModelRequest {
            steps: vec![user("hi")],
            response_schema,
            ..ModelRequest::default()
        });
    }
    let with_tools: Vec<_> =
        requests.iter().map(|request| ModelRequest { tools: tools(), ..request.clone() }).collect();
    requests.into_iter().filter(|request| request.thinking.is_none()).chain(with_tools).collect()
}

/// Panics if the provider refuses a request.
async fn send(provider: &Provider, model: &OpenAi, request: ModelRequest) {
    provider.answer(Answer::openai(&[chunk("yes")]));
    let shown = format!("{} {request:?}", model.name());
    let events: Vec<_> = model.stream(request).collect().await;
    match events.last() {
        Some(Ok(ModelEvent::Stop(StopReason::Done))) => {}
        other => panic!("{other:?}\n{}\n{shown}", provider.requests().pop().unwrap().body),
    }
}

/// Returns the body of a request that the provider takes.
async fn sent(provider: &Provider, model: &OpenAi, request: ModelRequest) -> Value {
    send(provider, model, request).await;
    provider.requests().pop().unwrap().body
}

#[tokio::test]
async fn no_request_is_refused_by_any_server() {
    let requests = requests();
    for (profile, models) in MODELS {
        for name in *models {
            let provider = Provider::start_checked(check).await;
            let plain =
                model(profile, provider.url(), |options| options.model = (*name).to_owned());
            let full = model(profile, provider.url(), |options| {
                options.model = (*name).to_owned();
                set_all(options, profile);
            });
            // A part of the requests is enough for further models, and without options.
            for (at, request) in requests.iter().enumerate() {
                if *name == models[0] || at % 3 == 0 {
                    send(&provider, &full, request.clone()).await;
                }
                if at % 3 == 0 {
                    send(&provider, &plain, request.clone()).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn no_configured_thinking_is_refused() {
    let provider = Provider::start_checked(check).await;
    for (profile, models) in MODELS {
        for name in *models {
            for thinking in [Thinking::Off, Thinking::On, Thinking::Adaptive] {
                for effort in [None, Some("low"), Some("high")] {
                    let model = model(profile, provider.url(), |options| {
                        options.model = (*name).to_owned();
                        options.thinking = Some(thinking);
                        options.reasoning_effort = effort.map(str::to_owned);
                    });
                    for tools in [tools(), Arc::new([])] {
                        let steps = vec![user("hi")];
                        send(
                            &provider,
                            &model,
                            ModelRequest { steps, tools, ..ModelRequest::default() },
                        )
                        .await;
                    }
                }
            }
        }
    }
}

/// The checks refuse invalid requests; otherwise the tests above would prove nothing.
#[tokio::test]
async fn the_checks_refuse_what_the_servers_refuse() {
    let provider = Provider::start_checked(check).await;
    let refused = async |profile: &str, name: &str, extra: Value, request: ModelRequest| {
        let chat = model(profile, provider.url(), |options| {
            options.model = name.to_owned();
            options.extra_body = extra.as_object().unwrap().clone();
        });
        let events: Vec<_> = chat.stream(request).collect().await;
        match events.last() {
            Some(Err(error)) => error.message().to_owned(),
            other => panic!("{profile} {name} took {extra}: {other:?}"),
        }
    };
    let hi = || ModelRequest { steps: vec![user("hi")], ..ModelRequest::default() };
    let with_tools = || ModelRequest { tools: tools(), ..hi() };
    for (profile, name, extra, request, reason) in [
        (
            "openai",
            "gpt-5.4",
            json!({"reasoning_effort": "low"}),
            with_tools(),
            "Function tools with reasoning_effort",
        ),
        (
            "openai",
            "gpt-5.6",
            json!({"reasoning_effort": false}),
            with_tools(),
            "Function tools with reasoning_effort",
        ),
        ("openai", "gpt-5", json!({"temperature": 0.5}), hi(), "'temperature' is not supported"),
        ("openai", "o3", json!({"max_tokens": 5}), hi(), "'max_tokens' is not supported"),
        ("openai", "gpt-4o", json!({"reasoning_effort": "low"}), hi(), "reasoning_effort"),
        ("openai", "gpt-4o", json!({"top_k": 5}), hi(), "unknown member body.top_k"),
        ("openai", "gpt-4o", json!({"metadata": {"a": "b"}}), hi(), "only allowed when 'store'"),
        ("openai", "gpt-4o", json!({"tool_choice": "none"}), hi(), "only allowed when tools"),
        (
            "mistral",
            "m",
            json!({"stream_options": {"include_usage": true}}),
            hi(),
            "unknown member",
        ),
        (
            "mistral",
            "m",
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            hi(),
            "Expected last role",
        ),
        (
            "mistral",
            "m",
            json!({"messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "aaaaaaaa1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "aaaaaaaa1", "content": "a"},
                {"role": "user", "content": "b"},
            ]}),
            hi(),
            "Unexpected role 'user' after role 'tool'",
        ),
        (
            "mistral",
            "m",
            json!({"messages": [
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "a"},
            ]}),
            hi(),
            "with a length of 9",
        ),
        (
            "vllm",
            "m",
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}),
            hi(),
            "must alternate",
        ),
        (
            "vllm",
            "m",
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}),
            hi(),
            "at the beginning",
        ),
        (
            "llama-cpp",
            "m",
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            hi(),
            "prefill",
        ),
        (
            "llama-cpp",
            "m",
            json!({"tool_choice": {"type": "function", "function": {"name": "send"}}}),
            with_tools(),
            "Invalid tool_choice",
        ),
        (
            "deepseek",
            "m",
            json!({"messages": [{"role": "assistant", "content": "b"}]}),
            hi(),
            "must be passed back",
        ),
        (
            "groq",
            "m",
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}}),
            hi(),
            "cannot be streamed",
        ),
        ("xai", "grok-4", json!({"stop": ["a"]}), hi(), "Argument not supported"),
        (
            "openai",
            "gpt-4o",
            json!({"messages": [{"role": "tool", "tool_call_id": "a", "content": "b"}]}),
            hi(),
            "has no call",
        ),
        (
            "openai",
            "gpt-4o",
            json!({"messages": [{"role": "user", "content": ""}]}),
            hi(),
            "a message is empty",
        ),
    ] {
        let message = refused(profile, name, extra, request).await;
        assert!(message.contains(reason), "{message}, not: {reason}");
    }
}

#[tokio::test]
async fn a_request_may_choose_another_model() {
    let provider = Provider::start_checked(check).await;
    let chat = model("openai", provider.url(), |options| {
        options.model = "gpt-4o".to_owned();
        options.temperature = Some(0.5);
        options.reasoning_effort = Some("high".to_owned());
    });
    let ask = |name: &str| ModelRequest {
        model: Some(name.to_owned()),
        steps: vec![user("hi")],
        ..ModelRequest::default()
    };
    let body = sent(&provider, &chat, ask("gpt-5.6")).await;
    assert_eq!(
        (&body["model"], &body["reasoning_effort"], body.get("temperature")),
        (&json!("gpt-5.6"), &json!("high"), None)
    );
    let body = sent(&provider, &chat, ask("gpt-4.1-mini")).await;
    assert_eq!((body.get("reasoning_effort"), &body["temperature"]), (None, &json!(0.5)));
}

#[tokio::test]
async fn a_server_that_is_not_known_gets_its_ways_from_the_configuration() {
    let provider = Provider::start().await;
    let mut profile = ProfileOptions::named("compatible");
    profile.developer_role = Some(true);
    profile.stream_options = Some(false);
    let mut options = ModelOptions::new("m", client(provider.url()));
    options.profile = Some(profile);
    let request = ModelRequest {
        system: vec!["be good".to_owned()],
        steps: vec![user("hi")],
        ..ModelRequest::default()
    };
    let body = sent(&provider, &OpenAi::chat(options).unwrap(), request).await;
    assert_eq!(body["messages"][0], json!({"role": "developer", "content": "be good"}));
    assert!(body.get("stream_options").is_none());
}

#[tokio::test]
async fn skipped_attachments_are_reported_before_the_answer() {
    let provider = Provider::start().await;
    let chat = super::openai(client(provider.url()));
    provider.answer(Answer::openai(&[chunk("yes")]));
    let steps = vec![ModelStep::User(vec![
        ContentPart::text("see"),
        ContentPart::Video(data("video/mp4")),
    ])];
    let events: Vec<_> =
        chat.stream(ModelRequest { steps, ..ModelRequest::default() }).collect().await;
    let Some(Ok(ModelEvent::Skipped(skipped))) = events.first() else { panic!("{events:?}") };
    assert_eq!((skipped.kind, skipped.mime_type.as_deref()), ("video", Some("video/mp4")));
    assert_eq!(skipped.reason, "this model takes no videos");
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Stop(StopReason::Done)))), "{events:?}");
}

#[tokio::test]
async fn an_error_that_is_compressed_is_read() {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    // The body is an error compressed with `gzip`.
    let error = "H4sIAAAAAAACA6tWSi0qyi9SsqpWyk0tLk5MT1WyUsrLVyguTc5QyM1PSc1Rqq0FAKoz9z4lAAAA";
    let provider = Provider::start().await;
    let chat = super::openai(client(provider.url()));
    provider.answer(
        Answer::new(400, [BASE64_STANDARD.decode(error).unwrap()])
            .header("content-encoding", "gzip"),
    );
    let refused = super::ask(&chat).await.1.unwrap();
    assert_eq!(refused.message(), "The model provider refused the request (400): no such model");
    assert_eq!(provider.requests()[0].headers["accept-encoding"], "identity");
}
