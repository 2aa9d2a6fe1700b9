//! `agui-server check --online`, against a provider that refuses like the real ones.

use std::{net::SocketAddr, time::Instant};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request},
    response::Response,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpSocket},
    process::Command,
};

use crate::{
    llm::{
        KEY,
        providers::published::{anthropic, chat, gemini, responses},
    },
    support::{provider::Recorded, running::TEST_TIMEOUT, server::BINARY},
};

/// The models that the provider knows, in the order of [`agents`].
const MODELS: [&str; 4] = ["claude-haiku-4-5", "gpt-4o", "gemini-2.5-flash", "gpt-5.5"];

/// A vendor's responses and checks.
struct Vendor {
    key_header: &'static str,
    key: String,
    unauthorized: (u16, Value),
    unknown_model: Value,
    first_piece: String,
    refusal: fn(&Recorded) -> Option<String>,
}

fn anthropic(model: &str) -> Vendor {
    let error = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model, "usage": {"input_tokens": 9, "output_tokens": 1}});
    let start = json!({"type": "message_start", "message": message});
    Vendor {
        key_header: "x-api-key",
        key: KEY.to_owned(),
        unauthorized: (401, error("authentication_error", "invalid x-api-key")),
        unknown_model: error("not_found_error", &format!("model: {model}")),
        first_piece: format!("event: message_start\ndata: {start}\n\n"),
        refusal: anthropic::check,
    }
}

fn openai(model: &str, first: &[Value], refusal: fn(&Recorded) -> Option<String>) -> Vendor {
    let error = |code: &str, message: &str| json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}});
    let unknown = format!("The model `{model}` does not exist or you do not have access to it.");
    Vendor {
        key_header: "authorization",
        key: format!("Bearer {KEY}"),
        unauthorized: (401, error("invalid_api_key", "Incorrect API key provided.")),
        unknown_model: error("model_not_found", &unknown),
        first_piece: first.iter().map(|event| format!("data: {event}\n\n")).collect(),
        refusal,
    }
}

fn gemini(model: &str) -> Vendor {
    let error = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status}});
    let unknown = format!("models/{model} is not found for API version v1beta.");
    let chunk = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "OK"}]}, "index": 0}]});
    Vendor {
        key_header: "x-goog-api-key",
        key: KEY.to_owned(),
        unauthorized: (
            400,
            error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        ),
        unknown_model: error(404, "NOT_FOUND", &unknown),
        first_piece: format!("data: {chunk}\r\n\r\n"),
        refusal: gemini::check,
    }
}

fn refused(status: u16, error: &Value) -> Response {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(error.to_string().into()).unwrap()
}

/// Sends the first piece of an answer, and then nothing.
async fn provider(ConnectInfo(from): ConnectInfo<SocketAddr>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Value = serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap();
    let path = parts.uri.path();
    let of_path = path
        .strip_prefix("/v1beta/models/")
        .and_then(|path| path.strip_suffix(":streamGenerateContent"));
    let model = of_path.or(body["model"].as_str()).unwrap_or_default().to_owned();
    let vendor = match path {
        "/v1/messages" => anthropic(&model),
        "/chat/completions" => {
            let delta = json!({"role": "assistant", "content": "OK"});
            let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]});
            openai(&model, &[chunk], |request| chat::refusal("openai", request))
        }
        "/v1/responses" => {
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
            let added =
                json!({"type": "response.output_item.added", "output_index": 0, "item": item});
            let delta = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "OK"});
            openai(&model, &[added, delta], responses::refusal)
        }
        _ => gemini(&model),
    };
    if parts.headers.get(vendor.key_header).is_none_or(|key| key != &*vendor.key) {
        return refused(vendor.unauthorized.0, &vendor.unauthorized.1);
    }
    if !MODELS.contains(&&*model) {
        return refused(404, &vendor.unknown_model);
    }
    let path = parts.uri.path_and_query().unwrap().to_string();
    let recorded = Recorded {
        path,
        headers: parts.headers,
        body,
        text: String::new(),
        at: Instant::now(),
        from,
    };
    if let Some(reason) = (vendor.refusal)(&recorded) {
        return refused(400, &json!({"error": {"message": reason}}));
    }
    let body = stream::iter([Ok::<_, std::io::Error>(vendor.first_piece)]).chain(stream::pending());
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(body))
        .unwrap()
}

/// Starts the provider, and returns its URL.
async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router =
        Router::new().fallback(provider).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Returns the options of an agent of each API.
fn agents(url: &str, models: [&str; 4]) -> String {
    let agents = [("anthropic", ""), ("openai", ""), ("gemini", ""), ("openai-responses", "/v1")];
    let options = agents.iter().zip(models).map(|((provider, path), model)| {
        format!(
            "[agents.{provider}]\nkind = \"llm\"\nprovider = {provider:?}\nmodel = {model:?}\nbase_url = \"{url}{path}\"\n\
             api_key_env = \"TEST_KEY\"\nmax_retries = 0\n"
        )
    });
    options.collect()
}

/// Returns the exit code, and the line of each agent after its name.
async fn check(config: &str, key: &str) -> (Option<i32>, Vec<String>) {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(
        file.path(),
        format!("default_agent = \"gemini\"\n[server]\nlisten = \"127.0.0.1:0\"\n{config}"),
    )
    .unwrap();
    let command = Command::new(BINARY)
        .args(["check", "--online"])
        .arg(file.path())
        .env("TEST_KEY", key)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(TEST_TIMEOUT, command).await.unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines =
        said.lines().filter_map(|line| Some(line.strip_prefix("agent:")?.to_owned())).collect();
    (output.status.code(), lines)
}

fn has_each(lines: &[String], expected: &[(&str, &str)]) {
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (begin, part)) in lines.iter().zip(expected) {
        assert!(line.starts_with(begin) && line.contains(part), "{line}");
    }
}

#[tokio::test]
async fn models_that_answer_are_named_and_the_first_piece_ends_the_request() {
    let (code, lines) = check(&agents(&start().await, MODELS), KEY).await;
    let expected = [
        ("anthropic: claude-haiku-4-5 answers (", " s)"),
        ("openai: gpt-4o answers (", " s)"),
        ("gemini: gemini-2.5-flash answers (", " s)"),
        ("openai-responses: gpt-5.5 answers (", " s)"),
    ];
    has_each(&lines, &expected);
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn a_wrong_key_is_refused_in_the_providers_words_and_not_shown() {
    let wrong = "anotherwrongkeyofsomebody";
    let (code, lines) = check(&agents(&start().await, MODELS), wrong).await;
    let expected = [
        ("anthropic: claude-haiku-4-5 does not answer (", "invalid x-api-key"),
        ("openai: gpt-4o does not answer (", "does not accept the key of this server"),
        ("gemini: gemini-2.5-flash does not answer (", "does not accept the key of this server"),
        ("openai-responses: gpt-5.5 does not answer (", "Incorrect API key provided"),
    ];
    has_each(&lines, &expected);
    assert!(lines.iter().all(|line| !line.contains(wrong)), "{lines:#?}");
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn an_unknown_model_is_refused_also_one_that_requests_may_choose() {
    let url = start().await;
    let (code, lines) = check(&agents(&url, ["none"; 4]), KEY).await;
    let openai = "(404): The model `none` does not exist or you do not have access to it.";
    let expected = [
        ("anthropic: none does not answer (", "(404): model: none"),
        ("openai: none does not answer (", openai),
        ("gemini: none does not answer (", "(404): models/none is not found"),
        ("openai-responses: none does not answer (", openai),
    ];
    has_each(&lines, &expected);
    assert_eq!(code, Some(1));
    let last = format!("{}models = [\"none\", \"gpt-5.5\"]\n", agents(&url, MODELS));
    let (code, lines) = check(&last, KEY).await;
    has_each(
        &lines[3..],
        &[("openai-responses: gpt-5.5 answers", ""), ("openai-responses: none does not", openai)],
    );
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_said_so() {
    // Holds a port on which nothing listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let (code, lines) = check(&agents(&url, MODELS), KEY).await;
    assert!(
        lines.len() == 4 && lines.iter().all(|line| line.contains("cannot be reached")),
        "{lines:#?}"
    );
    assert_eq!(code, Some(1));
}
