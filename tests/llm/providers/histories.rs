//! Any conversation that the server accepts becomes a request that every provider accepts. Nothing is sent: the checks of the
//! strict fakes are called with the bodies.

use std::time::Instant;

use agui_llm::testing::{Api, OpenAiApi, request};
use agui_protocol::decode::decode;
use agui_server::{protocol::Message, tools::ToolSpec};
use http::HeaderMap;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::published;
use crate::{
    llm::KEY,
    support::{provider::Recorded, strict},
};

/// The profiles with models that the checks know, and the APIs.
const CHAT: &[(&str, &str)] = &[
    ("openai", "gpt-4o"),
    ("azure", "my-deployment"),
    ("ollama", "qwen3:8b"),
    ("vllm", "Qwen/Qwen3-8B"),
    ("llama-cpp", "devstral"),
    ("lm-studio", "gemma-3-27b"),
    ("openrouter", "anthropic/claude-sonnet-4.5"),
    ("deepseek", "deepseek-v4-pro"),
    ("mistral", "mistral-small-latest"),
    ("groq", "qwen/qwen3-32b"),
    ("together", "zai-org/GLM-5.1"),
    ("fireworks", "accounts/fireworks/models/deepseek-v3p2"),
    ("xai", "grok-4.3"),
    ("moonshot", "kimi-k2.6"),
    ("zai", "glm-4.7"),
    ("qwen", "qwen3-max"),
];
const CLAUDE: &[&str] =
    &["claude-haiku-4-5", "claude-opus-4-7", "claude-sonnet-5-5", "claude-opus-5-5"];
const GEMINI: &[&str] = &["gemini-2.5-flash", "gemini-3.8-flash"];

/// Ids of calls, in the forms of several providers and in none.
const IDS: &[&str] = &[
    "a",
    "b",
    "call_aB-1",
    "toolu_01A09q90qw90lq917835lq9",
    "functions.search:0",
    "call|fc_1",
    "aaaaaaaa1",
    "",
    "é 😀",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
    "chatcmpl-tool-576c28ae7fe44cde8ffeed533d5e3a02",
];
const NAMES: &[&str] =
    &["look_up", "now", "functions.search", "查询天气", "", "a b", "9lives", "-x"];
const TEXTS: &[&str] = &["", " ", "\n\t", "hello", "é 😀", "<think>hm</think>yes", "{}", "\u{0}"];
const ARGUMENTS: &[&str] =
    &["{}", "{\"a\":1}", "", "null", "[1]", "{\"a\":", "{'a': True}", "\"{}\"", "NaN"];
/// Artefacts, as the providers write them, and others.
const ARTEFACTS: &[(&str, &str)] = &[
    ("anthropic.signature", "c2lnbmF0dXJl"),
    ("anthropic.redacted_thinking", "cmVkYWN0ZWQ="),
    ("openai.encrypted_content", "{\"id\":\"rs_1\",\"encrypted_content\":\"ZW5j\"}"),
    ("openai.reasoning_details", "[{\"type\":\"reasoning.text\",\"text\":\"hm\",\"index\":0}]"),
    ("openai.extra_content", "{\"google\":{\"thought_signature\":\"c2ln\"}}"),
    ("other", "x"),
    ("", ""),
];

fn text() -> impl Strategy<Value = &'static str> {
    select(TEXTS)
}

fn content() -> impl Strategy<Value = Value> {
    let part = text().prop_map(|text| json!({"type": "text", "text": text}));
    prop_oneof![3 => text().prop_map(Value::from), 1 => vec(part, 0..3).prop_map(Value::from)]
}

/// An artefact. A client may drop its type and its provider.
fn artefact() -> impl Strategy<Value = Value> {
    let drop = (any::<bool>(), any::<bool>(), any::<bool>());
    (option::of(select(ARTEFACTS)), drop).prop_map(
        |(artefact, (has_type, has_metadata, redacted))| {
            let Some((kind, value)) = artefact else { return json!({}) };
            let mut members = json!({"encryptedValue": value});
            if has_type {
                members["encryptedValueType"] = kind.into();
            }
            if has_metadata {
                let provider = kind.split('.').next();
                members["metadata"] = json!({"provider": provider, "redacted": redacted});
            }
            members
        },
    )
}

fn call() -> impl Strategy<Value = Value> {
    (select(IDS), select(NAMES), select(ARGUMENTS), artefact()).prop_map(|(id, name, arguments, artefact)| {
        with(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}), artefact)
    })
}

fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn message() -> impl Strategy<Value = Value> {
    let name = || option::of(select(&["Ann", "Ann Lee", "安", ""][..]));
    let instructions = (select(&["system", "developer"][..]), text(), name())
        .prop_map(|(role, content, name)| json!({"role": role, "content": content, "name": name}));
    let user = (content(), name())
        .prop_map(|(content, name)| json!({"role": "user", "content": content, "name": name}));
    let assistant = (option::of(text()), vec(call(), 0..4), name(), artefact()).prop_map(
        |(content, calls, name, artefact)| {
            with(
                json!({"role": "assistant", "content": content, "toolCalls": calls, "name": name}),
                artefact,
            )
        },
    );
    let tool = (content(), select(IDS), option::of(text()))
        .prop_map(|(content, id, error)| json!({"role": "tool", "content": content, "toolCallId": id, "error": error}));
    let reasoning = (text(), artefact()).prop_map(|(content, artefact)| {
        with(json!({"role": "reasoning", "content": content}), artefact)
    });
    let activity = Just(json!({"role": "activity", "activityType": "x", "content": {}}));
    let owner = option::weighted(0.05, Just("s1"));
    let message = prop_oneof![1 => instructions, 3 => user, 4 => assistant, 4 => tool, 2 => reasoning, 1 => activity];
    (message, owner).prop_map(|(mut message, owner)| {
        if let Some(owner) = owner {
            message["subagentRunId"] = owner.into();
        }
        message.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        message
    })
}

fn decoded(messages: Vec<Value>) -> Vec<Message> {
    let messages: Vec<_> = messages
        .into_iter()
        .enumerate()
        .map(|(at, message)| with(message, json!({"id": format!("m{at}")})))
        .collect();
    let body =
        json!({"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": []});
    decode(body.to_string().as_bytes()).unwrap().input.messages.to_vec()
}

fn recorded(path: &str, body: Value) -> Recorded {
    let headers = [("authorization", format!("Bearer {KEY}")), ("x-goog-api-key", KEY.to_owned())];
    let betas = "thinking-binding-controls-2026-08-01,files-api-2025-04-14";
    let of_claude =
        [("anthropic-version", "2023-06-01".to_owned()), ("anthropic-beta", betas.to_owned())];
    let headers = headers.into_iter().chain(of_claude);
    let headers =
        headers.map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
    let from = "127.0.0.1:1".parse().unwrap();
    Recorded {
        path: path.to_owned(),
        headers: HeaderMap::from_iter(headers),
        body,
        text: String::new(),
        at: Instant::now(),
        from,
    }
}

/// Panics if the API refuses the request.
fn check(
    path: &str,
    body: Value,
    published: impl Fn(&Recorded) -> Option<String>,
) -> Result<(), TestCaseError> {
    let request = recorded(path, body);
    let refusal = strict::refusal(&request).or_else(|| published(&request));
    prop_assert!(refusal.is_none(), "{path}: {}\n{}", refusal.unwrap(), request.body);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_accepted_conversation_becomes_a_request_that_every_provider_accepts(
        messages in vec(message(), 0..8),
        has_tools in any::<bool>(),
        (chat, chat_model) in select(CHAT),
        claude in select(CLAUDE),
        gemini in select(GEMINI),
    ) {
        let messages = decoded(messages);
        let spec = |name: &&str| ToolSpec { name: (*name).to_owned(), description: String::new(), parameters: json!({}) };
        let tools: Vec<_> = NAMES[..3].iter().filter(|_| has_tools).map(spec).collect();
        let body = request(Api::OpenAi(OpenAiApi::Chat), Some(chat), chat_model, &messages, &tools);
        check("/chat/completions", body, |request| published::chat::refusal(chat, request))?;
        let body = request(Api::OpenAi(OpenAiApi::Responses), None, "gpt-5", &messages, &tools);
        check("/v1/responses", body, published::responses::refusal)?;
        let body = request(Api::Anthropic, None, claude, &messages, &tools);
        check("/v1/messages", body, published::anthropic::check)?;
        let body = request(Api::Gemini, None, gemini, &messages, &tools);
        let path = format!("/v1beta/models/{gemini}:streamGenerateContent?alt=sse");
        check(&path, body, published::gemini::check)?;
    }
}
