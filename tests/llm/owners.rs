//! The requests of one caller do not change those of others: of two callers of one agent, the first
//! provokes refusals in the words of real providers.

use agui_server::{
    Server,
    auth::ApiKey,
    llm::{
        Anthropic, Gemini, LlmAgent, ModelOptions, OpenAi, ProviderClient, WindowOptions,
        WindowPolicy,
    },
};
use serde_json::{Value, json};

use super::{
    media::{self, images},
    misbehaving::{APIS, Api, code, text},
};
use crate::support::{
    provider::{Check, Provider, Recorded},
    running::{Running, events, input},
};

const ANN: &str = "a-key";
const BOB: &str = "b-key";

/// Parameters that the requests have. The first caller's tools have these names.
const NAMES: &[&str] = &[
    "temperature",
    "max_tokens",
    "seed",
    "store",
    "stream_options",
    "top_p",
    "topP",
    "topK",
    "metadata",
    "strict",
];

/// Refuses each tool that has one of the names, and repeats it.
fn refuse_tools(request: &Recorded) -> Option<String> {
    let tools = &request.body["tools"];
    let list = if tools[0]["functionDeclarations"].is_array() {
        &tools[0]["functionDeclarations"]
    } else {
        tools
    };
    let name_of = |tool: &Value| {
        tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned)
    };
    let name =
        list.as_array()?.iter().filter_map(name_of).find(|name| NAMES.contains(&name.as_str()))?;
    let of_path = |end: &str| request.path.split('?').next().unwrap().ends_with(end);
    let refusal = if of_path("/chat/completions") && name.as_str() < "s" {
        // https://github.com/BerriAI/litellm/issues/7785
        let quoted = tools.to_string().replace('"', "'");
        let said = format!(
            "litellm.UnsupportedParamsError: together_ai does not support parameters: {{'tools': {quoted}}}, for model=m. \
             To drop these, set `litellm.drop_params=True` or for proxy:"
        );
        json!({"error": {"message": said, "type": "None", "param": null, "code": "400"}})
    } else if of_path("/chat/completions") {
        // https://github.com/vllm-project/vllm/pull/10463
        let said = format!(
            "[{{'type': 'extra_forbidden', 'loc': ('body', 'messages', 0, 'typed-dict', '{name}'), \
             'msg': 'Extra inputs are not permitted', 'input': None}}]"
        );
        json!({"object": "error", "message": said, "type": "BadRequestError", "param": null, "code": 400})
    } else if of_path("/responses") {
        // https://github.com/github/github-mcp-server/issues/1548, of a tool's member.
        let said = format!("Unknown parameter: 'tools[0].{name}'.");
        let param = format!("tools[0].{name}");
        json!({"error": {"message": said, "type": "invalid_request_error", "param": param, "code": "unknown_parameter"}})
    } else if of_path("/messages") {
        // https://github.com/langchain-ai/langchain/issues/31208
        let said = format!("messages.0.content.0.tool_use.{name}: Extra inputs are not permitted");
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    } else {
        // https://github.com/glowingjade/obsidian-smart-composer/issues/455
        let place = "tools[0].function_declarations[0].parameters.properties[0].value";
        let said = format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field."
        );
        let violation = json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": place, "description": said}]});
        json!({"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT", "details": [violation]}})
    };
    Some(refusal.to_string())
}

/// Returns an agent whose requests have as many parameters as the API takes.
fn agent(api: &Api, client: ProviderClient) -> LlmAgent {
    let mut options = ModelOptions::new("m", client);
    (options.temperature, options.top_p, options.max_tokens) = (Some(0.5), Some(0.9), Some(64));
    match api.name {
        "chat completions" => {
            options.seed = Some(7);
            options.extra_body.insert("store".to_owned(), false.into());
            LlmAgent::new(OpenAi::chat(options).unwrap())
        }
        "Responses" => LlmAgent::new(OpenAi::responses(options).unwrap()),
        "Anthropic" => LlmAgent::new(Anthropic::new(options).unwrap()),
        _ => {
            options.top_k = Some(5);
            LlmAgent::new(Gemini::new(options).unwrap())
        }
    }
}

async fn start(
    agent: impl FnOnce(ProviderClient) -> LlmAgent,
    check: Check,
) -> (Running, Provider) {
    let provider = Provider::start_checked(check).await;
    let base_url = Some(format!("{}/v1", provider.url()));
    let agent = agent(ProviderClient { base_url, max_retries: 0, ..ProviderClient::default() });
    let keys = [ApiKey::from_secret("ann", ANN), ApiKey::from_secret("bob", BOB)];
    (Running::start(Server::new().agent("a", agent).api_keys(keys)).await, provider)
}

/// Sends a run in the name of a caller. Returns its events, and the requests to the provider.
async fn ask(
    server: &Running,
    provider: &Provider,
    key: &str,
    input: &Value,
) -> (Vec<Value>, Vec<Recorded>) {
    let asked = provider.requests().len();
    let response = server.post("/send-message").bearer_auth(key).json(input).send().await.unwrap();
    let events = events(&response.text().await.unwrap());
    (events, provider.requests().split_off(asked))
}

#[tokio::test]
async fn tools_that_are_named_like_parameters_change_no_request_of_another_caller() {
    for api in APIS {
        let (server, provider) = start(|client| agent(api, client), refuse_tools).await;
        let plain = input("hi");
        let mut full = Vec::new();
        for key in [BOB, ANN] {
            provider.answer(api.says("fine"));
            let (run, requests) = ask(&server, &provider, key, &plain).await;
            assert_eq!((text(&run).as_str(), requests.len()), ("fine", 1), "{}", api.name);
            full.push(requests[0].text.clone());
        }
        for name in NAMES {
            let mut tools = plain.clone();
            let schema = json!({"type": "object", "properties": {*name: {"type": "string"}}});
            tools["tools"] = json!([{"name": name, "description": "d", "parameters": schema}]);
            let (run, requests) = ask(&server, &provider, ANN, &tools).await;
            assert_eq!(code(&run), Some("model_rejected"), "{} {name}", api.name);
            assert!(requests.len() <= 2, "{} {name}: one guess", api.name);
            for (key, full) in [BOB, ANN].into_iter().zip(&full) {
                provider.answer(api.says("fine"));
                let (_, requests) = ask(&server, &provider, key, &plain).await;
                assert_eq!(requests.len(), 1, "{} {name}", api.name);
                assert_eq!(requests[0].text, *full, "{} {name} {key}", api.name);
            }
        }
    }
}

#[tokio::test]
async fn a_parameter_that_a_model_refuses_is_left_out_for_the_caller_whose_request_showed_it() {
    fn check(request: &Recorded) -> Option<String> {
        let error = json!({"message": "Unknown parameter: 'seed'.", "param": "seed", "code": "unknown_parameter"});
        request.body.get("seed").is_some().then(|| json!({"error": error}).to_string())
    }
    let chat = &APIS[0];
    let (server, provider) = start(|client| agent(chat, client), check).await;
    for (key, requests) in [(ANN, 2), (ANN, 1), (BOB, 2), (BOB, 1), (ANN, 1)] {
        provider.answer(chat.says("fine"));
        let (run, sent) = ask(&server, &provider, key, &input("hi")).await;
        assert_eq!((text(&run).as_str(), sent.len()), ("fine", requests), "{key}");
    }
}

#[tokio::test]
async fn a_text_that_a_refusal_quotes_costs_no_other_caller_its_history() {
    fn check(request: &Recorded) -> Option<String> {
        request
            .text
            .contains("maximum context length")
            .then(|| "no: \"maximum context length\"".to_owned())
    }
    let chat = &APIS[0];
    let trimmed = |client| {
        let mut options = WindowOptions::default();
        options.policy = WindowPolicy::Trim;
        agent(chat, client).window(options)
    };
    let (server, provider) = start(trimmed, check).await;
    let mut long = input("hi");
    let word = "word ".repeat(2000);
    long["messages"] = json!([
        {"id": "m1", "role": "user", "content": word}, {"id": "m2", "role": "assistant", "content": word},
        {"id": "m3", "role": "user", "content": word},
    ]);
    let mut quoted = long.clone();
    quoted["messages"][2]["content"] = "maximum context length".into();
    let (run, _) = ask(&server, &provider, ANN, &quoted).await;
    assert_eq!(code(&run), Some("context_too_long"));
    let other_thread = |mut input: Value| {
        input["threadId"] = "another".into();
        input
    };
    for (key, input) in [(BOB, long.clone()), (ANN, other_thread(long.clone()))] {
        provider.answer(chat.says("fine"));
        let (_, requests) = ask(&server, &provider, key, &input).await;
        assert_eq!(requests[0].body["messages"].as_array().unwrap().len(), 3, "{key}");
    }
}

#[tokio::test]
async fn a_picture_that_was_refused_in_the_run_of_one_caller_is_sent_for_the_other() {
    let chat = &APIS[0];
    let (server, provider) = start(|client| agent(chat, client), media::refusal).await;
    let image = json!({"type": "image", "source": {"type": "data", "value": "AAAAAAAA", "mimeType": "image/png"}});
    let mut look = input("look");
    look["messages"][0]["content"] = json!([{"type": "text", "text": "What is this?"}, image]);
    for (key, sent) in [(ANN, vec![1, 0]), (ANN, vec![0]), (BOB, vec![1, 0])] {
        provider.answer(chat.says("I see."));
        let (run, requests) = ask(&server, &provider, key, &look).await;
        assert_eq!(text(&run), "I see.", "{key}");
        let pictures: Vec<_> = requests.iter().map(|request| images(&request.body).len()).collect();
        assert_eq!(pictures, sent, "{key}");
    }
}
