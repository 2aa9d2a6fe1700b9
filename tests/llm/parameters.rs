//! Parameters that a server or a model refuses, at each of the four APIs.

use std::sync::Arc;

use agui_server::llm::{
    Anthropic, Gemini, Model, ModelEvent, ModelOptions, ModelReasoning, ModelRequest, ModelStep,
    OpenAi, ProviderClient, StopReason, WindowOptions,
};
use agui_server::{llm::Block, protocol::ContentPart, store::ThreadKey};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::support::{
    provider::{Answer, Provider, Recorded},
    strict,
};

/// Refuses parameters in the words of the real servers, and all requests that the strict fakes
/// refuse.
fn check(request: &Recorded) -> Option<String> {
    let body = &request.body;
    let has = |member: &str| body.get(member).is_some();
    let openai = |message: &str, param: &str, code: &str| {
        json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})
            .to_string()
    };
    let of_path = |end: &str| request.path.split('?').next().unwrap().ends_with(end);
    let refusal = if of_path("/chat/completions") {
        // https://github.com/griptape-ai/ComfyUI-Griptape/issues/312
        const LIMIT: &str = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        // https://github.com/BeehiveInnovations/pal-mcp-server/issues/78
        const VALUE: &str = "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.";
        match () {
            // https://github.com/agno-agi/agno/issues/1066
            () if has("stream_options") => Some(openai(
                "Unknown parameter: 'stream_options'.",
                "stream_options",
                "unknown_parameter",
            )),
            () if has("max_tokens") => Some(openai(LIMIT, "max_tokens", "unsupported_parameter")),
            () if has("temperature") => Some(openai(VALUE, "temperature", "unsupported_value")),
            () => None,
        }
    } else if of_path("/responses") {
        let message = "Unsupported parameter: 'temperature' is not supported with this model.";
        has("temperature").then(|| openai(message, "temperature", "unsupported_parameter"))
    } else if of_path("/messages") {
        // https://github.com/altic-dev/FluidVoice/issues/285, https://github.com/can1357/oh-my-pi/issues/6379
        let error = |message: &str| {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
                .to_string()
        };
        match () {
            () if has("temperature") => Some(error("`temperature` is deprecated for this model.")),
            () if body["messages"].to_string().contains("\"signature\"") => {
                Some(error("messages.1.content.0: Invalid `signature` in `thinking` block"))
            }
            () => None,
        }
    } else {
        // https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77, whose list has other members.
        let message = "Invalid JSON payload received. Unknown name \"topK\" at 'generation_config': Cannot find field.";
        let error =
            json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
                .to_string();
        body["generationConfig"].get("topK").is_some().then_some(error)
    };
    refusal.or_else(|| strict::refusal(request))
}

fn options(model: &str, provider: &Provider) -> ModelOptions {
    let client = ProviderClient {
        base_url: Some(format!("{}/v1", provider.url())),
        max_retries: 0,
        ..ProviderClient::default()
    };
    let mut options = ModelOptions::new(model, client);
    (options.temperature, options.max_tokens) = (Some(0.5), Some(64));
    options
}

fn with_top_k(mut options: ModelOptions) -> Gemini {
    options.top_k = Some(5);
    Gemini::new(options).unwrap()
}

/// Returns the model as an agent asks it.
fn asked(model: impl Model) -> Arc<dyn Model> {
    WindowOptions::default().fit(Arc::new(model))
}

fn events(of: &str) -> Vec<Value> {
    match of {
        "chat" => vec![
            json!({"choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}),
        ],
        "responses" => vec![
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "fine"}),
            json!({"type": "response.completed", "response": {"object": "response", "status": "completed", "output": []}}),
        ],
        "anthropic" => vec![
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "fine"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ],
        _ => vec![
            json!({"candidates": [{"content": {"parts": [{"text": "fine"}]}, "finishReason": "STOP"}]}),
        ],
    }
}

pub(super) fn answer(of: &str) -> Answer {
    Answer::stream(events(of).into_iter().map(|event| format!("data: {event}\n\n")))
}

fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

async fn ask(model: &dyn Model, steps: Vec<ModelStep>) -> Result<String, String> {
    let mut said = String::new();
    let thread = Some(ThreadKey { owner: "key:ann".into(), id: "t".into() });
    let mut answer = model.stream(ModelRequest { steps, thread, ..ModelRequest::default() });
    while let Some(event) = answer.next().await {
        match event.map_err(|error| error.message().to_owned())? {
            ModelEvent::Delta { text, .. } => said.push_str(&text),
            ModelEvent::Stop(StopReason::Done) => return Ok(said),
            _ => {}
        }
    }
    Err("no end".to_owned())
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_once_and_for_all() {
    type Make = fn(ModelOptions) -> Arc<dyn Model>;
    // The last value is the number of parameters that the server refuses.
    let apis: [(&str, &str, Make, usize); 4] = [
        ("chat", "m", |options| asked(OpenAi::chat(options).unwrap()), 3),
        ("responses", "m", |options| asked(OpenAi::responses(options).unwrap()), 1),
        ("anthropic", "m", |options| asked(Anthropic::new(options).unwrap()), 1),
        ("gemini", "gemini-2.5-flash", |options| asked(with_top_k(options)), 1),
    ];
    for (api, name, make, refused) in apis {
        let provider = Provider::start_checked(check).await;
        let model = make(options(name, &provider));
        for requests in [refused + 1, refused + 2] {
            provider.answer(answer(api));
            assert_eq!(ask(&*model, vec![user("hi")]).await.as_deref(), Ok("fine"), "{api}");
            assert_eq!(provider.requests().len(), requests, "{api}: the second time it is known");
        }
        if api == "chat" {
            let body = provider.requests().pop().unwrap().body;
            assert_eq!(
                (&body["max_completion_tokens"], body.get("max_tokens")),
                (&json!(64), None)
            );
        }
    }
}

#[tokio::test]
async fn a_limit_that_is_refused_under_both_of_its_names_is_an_error() {
    let provider = Provider::start_checked(|request| {
        let name = ["max_tokens", "max_completion_tokens"]
            .into_iter()
            .find(|name| request.body.get(name).is_some())?;
        let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
        Some(
            json!({"error": {"message": message, "param": name, "code": "unsupported_parameter"}})
                .to_string(),
        )
    })
    .await;
    let model = asked(OpenAi::chat(options("m", &provider)).unwrap());
    for _ in 0..2 {
        assert!(
            ask(&*model, vec![user("hi")])
                .await
                .unwrap_err()
                .contains("'max_completion_tokens' is not supported")
        );
    }
    assert_eq!(provider.requests().len(), 4);
}

#[tokio::test]
async fn what_may_be_kept_at_the_provider_is_never_left_out() {
    let provider = Provider::start_checked(|request| {
        let error = json!({"message": "Unknown parameter: 'store'.", "param": "store", "code": "unknown_parameter"});
        request.body.get("store").is_some().then(|| json!({"error": error}).to_string())
    })
    .await;
    let model = asked(OpenAi::responses(options("m", &provider)).unwrap());
    assert!(
        ask(&*model, vec![user("hi")]).await.unwrap_err().contains("Unknown parameter: 'store'")
    );
    let requests = provider.requests();
    assert_eq!((requests.len(), &requests[0].body["store"]), (1, &json!(false)));
}

#[tokio::test]
async fn a_request_is_sent_in_at_most_eight_forms_and_the_next_begins_with_the_last_one() {
    const NAMES: [&str; 9] = [
        "temperature",
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "stream_options",
        "verbosity",
        "prompt_cache_key",
    ];
    let provider = Provider::start_checked(|request| {
        let name = NAMES.into_iter().find(|name| request.body.get(name).is_some())?;
        Some(
            json!({"error": {"message": format!("Unknown parameter: '{name}'."), "param": name}})
                .to_string(),
        )
    })
    .await;
    let mut options = options("m", &provider);
    options.top_p = Some(0.9);
    options.top_k = Some(5);
    (options.frequency_penalty, options.presence_penalty) = (Some(0.1), Some(0.1));
    options.seed = Some(7);
    (options.verbosity, options.cache_key) = (Some("low".to_owned()), Some("k".to_owned()));
    let model = asked(OpenAi::chat(options).unwrap());
    assert!(ask(&*model, vec![user("hi")]).await.unwrap_err().contains("Unknown parameter"));
    assert_eq!(provider.requests().len(), 8);
    provider.answer(answer("chat"));
    assert_eq!(ask(&*model, vec![user("hi")]).await.as_deref(), Ok("fine"));
    assert_eq!(provider.requests().len(), 8 + 3);
}

#[tokio::test]
async fn a_refused_member_of_the_configuration_is_shown() {
    let provider = Provider::start_checked(|request| {
        let error = json!({"message": "Unknown parameter: 'seed'.", "param": "seed", "code": "unknown_parameter"});
        request.body.get("seed").is_some().then(|| json!({"error": error}).to_string())
    })
    .await;
    let mut options = options("m", &provider);
    options.extra_body.insert("seed".to_owned(), json!(1));
    let model = asked(OpenAi::chat(options).unwrap());
    assert!(ask(&*model, vec![user("hi")]).await.unwrap_err().contains("'seed'"));
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_value_is_an_error() {
    let provider = Provider::start().await;
    let model = asked(OpenAi::chat(options("m", &provider)).unwrap());
    let said = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.";
    let error = json!({"error": {"message": said, "param": "temperature", "code": "decimal_above_max_value"}});
    provider.answer(Answer::new(400, [error.to_string()]));
    assert!(ask(&*model, vec![user("hi")]).await.unwrap_err().contains("above maximum"));
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn thinking_that_another_model_signed_is_left_out_if_the_server_refuses_it() {
    let provider = Provider::start_checked(check).await;
    let model = asked(Anthropic::new(options("m", &provider)).unwrap());
    let thought = ModelReasoning {
        text: "hm".to_owned(),
        artefact: Some("c2ln".to_owned()),
        redacted: false,
        provider: Some("anthropic".to_owned()),
    };
    let steps = vec![
        user("hi"),
        ModelStep::Assistant(vec![Block::Reasoning(thought), Block::Text("a".to_owned())]),
        user("b"),
    ];
    provider.answer(answer("anthropic"));
    assert_eq!(ask(&*model, steps).await.as_deref(), Ok("fine"));
    assert_eq!(provider.requests().len(), 3, "the temperature, too");
}
