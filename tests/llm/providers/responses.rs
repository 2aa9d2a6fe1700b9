//! The client of OpenAI's Responses API, against its published shape.

use std::{sync::Arc, time::Duration};

use agui_server::{
    llm::{
        Block, BlockStart, Model, ModelEvent, ModelOptions, ModelReasoning, ModelRequest,
        ModelStep, OpenAi, ProviderClient, StopReason, Thinking, ToolChoice, ToolResult,
    },
    protocol::{ContentPart, PartSource, ToolCall},
    tools::ToolSpec,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{
    KEY, ask, client, code,
    provider::{Answer, Provider, Step},
    published::responses::{MODELS, refusal},
};

fn options(
    provider: &Provider,
    model: &str,
    change: impl FnOnce(&mut ModelOptions),
) -> ModelOptions {
    let client = client(format!("{}/v1", provider.url()));
    let mut options =
        ModelOptions::new(model, ProviderClient { idle_timeout: Duration::from_secs(5), ..client });
    change(&mut options);
    options
}

fn model(provider: &Provider) -> OpenAi {
    OpenAi::responses(options(provider, "gpt-5.4", |_| {})).unwrap()
}

/// A stream of events of the Responses API. Panics if an event has no `type`.
fn stream(events: &[Value]) -> Answer {
    // The stream is one piece: pieces would wait for each other's acknowledgements.
    Answer::stream([events.iter().map(sse).collect::<String>()])
}

fn sse(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// The events of an answer with reasoning and text, as the service writes them.
fn answer(words: &str) -> Vec<Value> {
    let part = json!({"type": "output_text", "text": words, "annotations": [], "logprobs": []});
    let empty = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
    let message = |status: &str, content: Value| json!({"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content});
    let response = |status: &str, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null,
            "incomplete_details": null, "model": "gpt-5.4", "output": [], "store": false, "usage": usage})
    };
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 13});
    let events = [
        json!({"type": "response.created", "response": response("in_progress", Value::Null)}),
        json!({"type": "response.in_progress", "response": response("in_progress", Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gA"}}),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0,
            "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0,
            "summary_index": 0, "delta": "I think.", "obfuscation": "x8"}),
        json!({"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0,
            "summary_index": 0, "text": "I think."}),
        json!({"type": "response.reasoning_summary_part.done", "item_id": "rs_1", "output_index": 0,
            "summary_index": 0, "part": {"type": "summary_text", "text": "I think."}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"id": "rs_1", "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "I think."}], "encrypted_content": "gAAA"}}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": message("in_progress", json!([]))}),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 1, "content_index": 0,
            "part": empty}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0,
            "delta": words, "logprobs": [], "obfuscation": "Qx"}),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 1, "content_index": 0,
            "text": words, "logprobs": []}),
        json!({"type": "response.content_part.done", "item_id": "msg_1", "output_index": 1, "content_index": 0,
            "part": part}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message("completed", json!([part]))}),
        json!({"type": "response.completed", "response": response("completed", usage)}),
    ];
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        event
    });
    numbered.collect()
}

/// Returns the text of an answer. Panics unless it is complete.
async fn say(model: &OpenAi, request: ModelRequest) -> String {
    let events: Vec<_> = model.stream(request.clone()).collect().await;
    let events: Vec<_> = events
        .into_iter()
        .map(|event| event.unwrap_or_else(|error| panic!("{error:?}\n{request:?}")))
        .collect();
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::Done)));
    words(&events)
}

/// Returns the deltas of blocks of text.
fn words(events: &[ModelEvent]) -> String {
    let is_text = |index: usize| {
        events
            .iter()
            .any(|event| matches!(event, ModelEvent::Start { index: at, block: BlockStart::Text } if *at == index))
    };
    let deltas = events.iter().filter_map(|event| match event {
        ModelEvent::Delta { index, text } if is_text(*index) => Some(text.as_str()),
        _ => None,
    });
    deltas.collect()
}

fn hi() -> ModelStep {
    ModelStep::User(vec![ContentPart::text("hi")])
}

fn tools() -> Arc<[ToolSpec]> {
    let closed = json!({"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"],
        "additionalProperties": false});
    let spec = |name: &str, parameters| ToolSpec {
        name: name.to_owned(),
        description: "does".to_owned(),
        parameters,
    };
    [spec("closed", closed), spec("open", json!({}))].into()
}

/// Requests of many kinds.
fn requests() -> Vec<ModelRequest> {
    let thought = |artefact: &str, provider: &str| {
        Block::Reasoning(ModelReasoning {
            text: "I think.".to_owned(),
            artefact: Some(artefact.to_owned()),
            redacted: false,
            provider: Some(provider.to_owned()),
        })
    };
    let own = || thought(r#"{"id":"rs_1","encrypted_content":"gAAA"}"#, "openai");
    let call = |id: &str, arguments: &str| Block::Call(ToolCall::new(id, "open", arguments));
    let image = |source| ContentPart::image(source);
    let data = |mime_type: &str| PartSource::Data {
        value: "AA==".to_owned(),
        mime_type: mime_type.to_owned(),
    };
    let url = |value: &str| PartSource::Url { value: value.to_owned(), mime_type: None };
    let png = data("image/png");
    let result = |id: &str, content: Vec<ContentPart>| ToolResult {
        call_id: id.into(),
        name: "open".to_owned(),
        content: content.into(),
        failed: false,
    };
    let long_id = "another provider's id: ".repeat(9);
    let conversation = vec![
        ModelStep::Instructions("Be kind.".to_owned()),
        hi(),
        ModelStep::Assistant(vec![
            own(),
            Block::Text("Well.".to_owned()),
            call("c1", "{}"),
            call(&long_id, "{x"),
        ]),
        ModelStep::ToolResults(vec![
            result("c1", vec![ContentPart::text("12")]),
            result(&long_id, vec![image(png.clone())]),
        ]),
        ModelStep::Assistant(vec![
            thought("c2lnbmVk", "anthropic"),
            Block::Text("Twelve.".to_owned()),
            own(),
        ]),
        ModelStep::User(vec![
            ContentPart::text("And these?"),
            image(png),
            image(url("https://example.com/a.png")),
            ContentPart::Document(data("application/pdf").into()),
            ContentPart::Document(url("https://example.com/a.pdf").into()),
            ContentPart::Audio(data("audio/wav").into()),
        ]),
    ];
    let plain = |steps: Vec<ModelStep>| ModelRequest { steps, ..ModelRequest::default() };
    let audio = ContentPart::Audio(data("audio/wav").into());
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}})
        .as_object()
        .cloned()
        .unwrap();
    let mut requests = vec![
        plain(vec![]),
        plain(vec![hi()]),
        plain(vec![ModelStep::User(vec![audio])]),
        plain(conversation.clone()),
        ModelRequest {
            system: vec!["Be short.".to_owned()],
            current: vec!["page: orders".to_owned()],
            response_schema: Some(Arc::new(schema)),
            ..plain(conversation)
        },
    ];
    for thinking in [Some(true), Some(false)] {
        requests.push(ModelRequest { thinking, ..plain(vec![hi()]) });
    }
    let choices = [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::Tool("open".to_owned()),
    ];
    for tool_choice in choices {
        requests.push(ModelRequest { tool_choice: tool_choice.clone(), ..plain(vec![hi()]) });
        requests.push(ModelRequest {
            tool_choice,
            tools: tools(),
            thinking: Some(true),
            ..plain(vec![hi()])
        });
    }
    requests
}

#[tokio::test]
async fn the_service_takes_requests_of_all_kinds_for_all_models() {
    let provider = Provider::start_checked(refusal).await;
    for (name, efforts) in MODELS {
        let has_verbosity = name.starts_with("gpt-5") || name.starts_with("gpt-6");
        let verbosity = has_verbosity.then(|| "low".to_owned());
        let with = |change: &dyn Fn(&mut ModelOptions)| options(&provider, name, change);
        let extra = json!({"truncation": "auto", "tools": [{"type": "web_search"}]})
            .as_object()
            .cloned()
            .unwrap();
        let mut all = vec![
            with(&|_| {}),
            with(&|options| {
                options.max_tokens = Some(1000);
                options.parallel_tool_calls = Some(false);
                options.strict_tools = Some(true);
                options.verbosity.clone_from(&verbosity);
                options.service_tier = Some("flex".to_owned());
                options.cache_key = Some("key".to_owned());
                options.image_detail = Some("low".to_owned());
                options.metadata = [("a".to_owned(), "b".to_owned())].into();
                options.extra_body = extra.clone();
            }),
        ];
        for thinking in [Thinking::Off, Thinking::On, Thinking::Adaptive] {
            all.push(with(&|options| options.thinking = Some(thinking)));
        }
        for effort in *efforts {
            all.push(with(&|options| options.reasoning_effort = Some((*effort).to_owned())));
        }
        if efforts.first().is_none_or(|default| *default == "none") {
            all.push(with(&|options| {
                (options.temperature, options.top_p) = (Some(0.2), Some(0.9))
            }));
        }
        let models: Vec<_> =
            all.into_iter().map(|options| OpenAi::responses(options).unwrap()).collect();
        // Concurrently, because the end of each answer comes a moment after its last event.
        let answers = models.iter().enumerate().flat_map(|(at, model)| {
            assert_eq!(model.warnings(), [""; 0]);
            // Efforts and sampling do not change the input.
            let step = if at < 2 { 1 } else { 4 };
            requests().into_iter().step_by(step).map(|request| {
                provider.answer(stream(&answer("well")));
                say(model, request)
            })
        });
        let answers: Vec<_> = futures::stream::iter(answers).buffer_unordered(16).collect().await;
        assert!(answers.iter().all(|words| words == "well"), "{name}");
    }
    assert!(provider.requests().iter().all(|request| request.body["store"] == false));
}

#[tokio::test]
async fn options_that_a_model_refuses_are_left_out_and_warned_about() {
    let provider = Provider::start_checked(refusal).await;
    for (name, efforts) in MODELS {
        for effort in ["none", "minimal", "low", "max"] {
            let configured = options(&provider, name, |options| {
                options.reasoning_effort = Some(effort.to_owned());
                options.temperature = Some(0.2);
                options.top_p = Some(0.9);
                options.verbosity = Some("low".to_owned());
            });
            let model = OpenAi::responses(configured).unwrap();
            let answers = requests().into_iter().step_by(4).map(|request| {
                provider.answer(stream(&answer("well")));
                say(&model, request)
            });
            let answers: Vec<_> =
                futures::stream::iter(answers).buffer_unordered(16).collect().await;
            assert!(answers.iter().all(|words| words == "well"), "{name} {effort}");
            if !efforts.contains(&effort) {
                assert!(
                    model.warnings().join("\n").contains("reasoning_effort"),
                    "{name} {effort}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_request_may_choose_any_model_whatever_is_configured() {
    let provider = Provider::start_checked(refusal).await;
    let configured = options(&provider, "gpt-5.4", |options| {
        options.reasoning_effort = Some("none".to_owned());
        options.temperature = Some(0.2);
        options.verbosity = Some("low".to_owned());
    });
    let model = OpenAi::responses(configured).unwrap();
    for (name, _) in MODELS {
        let answers = requests().into_iter().map(|request| {
            provider.answer(stream(&answer("well")));
            say(&model, ModelRequest { model: Some((*name).to_owned()), ..request })
        });
        let answers: Vec<_> = futures::stream::iter(answers).buffer_unordered(16).collect().await;
        assert!(answers.iter().all(|words| words == "well"), "{name}");
        assert_eq!(provider.requests().last().unwrap().body["model"], *name);
    }
}

#[tokio::test]
async fn an_answer_is_complete_with_its_last_event_only() {
    let provider = Provider::start().await;
    let events = answer("a");
    let all = &events[..];
    provider.answer(stream(all).then(Step::Abort));
    provider.answer(stream(all).then(Step::Stall));
    for _ in 0..2 {
        assert_eq!(words(&ask(&model(&provider)).await.0), "a");
    }
    provider.answer(stream(&events[..events.len() - 1]));
    assert_eq!(code(&model(&provider)).await, "model_interrupted");
    provider.answer(stream(&events[..events.len() - 1]).then(Step::Abort));
    assert_eq!(code(&model(&provider)).await, "model_interrupted");
}

#[tokio::test]
async fn a_failure_before_the_answer_is_retried() {
    let provider = Provider::start().await;
    let failed = |code: &str| {
        json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": code, "message": "The server had an error"}}})
    };
    let events = answer("a");
    // The announcement of reasoning is not a part of the answer that a client has seen.
    provider.answer(stream(&[&events[..3], &[failed("server_error")]].concat()));
    provider.answer(stream(&[
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}),
    ]));
    provider.answer(stream(&events));
    assert_eq!(words(&ask(&model(&provider)).await.0), "a");
    assert_eq!(provider.requests().len(), 3);
    provider.answer(stream(&[failed("invalid_prompt")]));
    assert_eq!(code(&model(&provider)).await, "model_failed");
    provider.answer(stream(&[&events[..11], &[failed("server_error")]].concat()));
    assert_eq!(code(&model(&provider)).await, "model_failed");
    assert_eq!(provider.requests().len(), 5);
}

#[tokio::test]
async fn requests_go_to_the_path_of_the_api_with_the_key() {
    let provider = Provider::start().await;
    for (base, path) in [
        ("", "/responses"),
        ("/v1/", "/v1/responses"),
        ("/v1/responses", "/v1/responses"),
        ("/openai/v1?api-version=preview", "/openai/v1/responses?api-version=preview"),
    ] {
        let client = client(format!("{}{base}", provider.url()));
        let model = OpenAi::responses(ModelOptions::new("m", client)).unwrap();
        provider.answer(stream(&answer("a")));
        assert_eq!(words(&ask(&model).await.0), "a");
        let request = provider.requests().pop().unwrap();
        assert_eq!(request.path, path);
        assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
        assert!(!request.headers.contains_key("api-key"));
        assert_eq!((model.provider(), model.name()), ("openai", "m"));
    }
}

#[test]
fn options_that_the_api_lacks_are_refused() {
    let new = |change: &dyn Fn(&mut ModelOptions)| {
        let mut options = ModelOptions::new("m", ProviderClient::default());
        change(&mut options);
        OpenAi::responses(options).err().map(|error| error.to_string())
    };
    assert_eq!(new(&|_| {}), None);
    for (name, change) in [
        (
            "stop",
            &(|o: &mut ModelOptions| o.stop = vec!["x".to_owned()]) as &dyn Fn(&mut ModelOptions),
        ),
        ("seed", &|o| o.seed = Some(1)),
        ("top_k", &|o| o.top_k = Some(1)),
        ("frequency_penalty", &|o| o.frequency_penalty = Some(1.0)),
        ("presence_penalty", &|o| o.presence_penalty = Some(1.0)),
        ("thinking_budget", &|o| o.thinking_budget = Some(1024)),
    ] {
        assert!(new(change).unwrap().contains(name), "{name}");
    }
}

/// The stream is llama.cpp's: it has no indices, and says `completed` of an answer that it has cut off at `max_output_tokens`.
#[tokio::test]
async fn an_answer_of_llama_cpp_that_reaches_the_limit_is_cut_off() {
    let message = json!({"type": "message", "status": "completed", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "The city"}]});
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "item": {"content": [], "id": "msg_1", "role": "assistant", "status": "in_progress", "type": "message"}}),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": "The"}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": " city"}),
        json!({"type": "response.output_item.done", "item": message}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "object": "response", "status": "completed", "output": [message],
            "usage": {"input_tokens": 18, "output_tokens": 2, "total_tokens": 20, "input_tokens_details": {"cached_tokens": 3}}}}),
    ];
    let provider = Provider::start().await;
    for (max_tokens, reason) in
        [(Some(2), StopReason::Length), (Some(3), StopReason::Done), (None, StopReason::Done)]
    {
        let chat =
            OpenAi::responses(options(&provider, "m", |options| options.max_tokens = max_tokens))
                .unwrap();
        provider.answer(stream(&events));
        let (events, error) = ask(&chat).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(events.last(), Some(&ModelEvent::Stop(reason)), "{max_tokens:?}");
    }
}
