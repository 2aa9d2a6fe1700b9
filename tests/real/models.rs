//! llama.cpp's own server with a model of 135 million parameters, by its three APIs, and by four behind LiteLLM. Its chat
//! template refuses instructions that are not first, and lets the model call the first tool.

use serde_json::{Value, json};
use tokio::process::Child;

use super::start_python;
use crate::{
    llm::models::{ask, text_and_error},
    support::{conversation, poll::poll_until, server::Process},
};

const APIS: [&str; 3] = ["openai", "openai-responses", "anthropic"];
const KEY: &str = "sk-7f1c0d3e9b5a4c2686d1e0f3a7b9c5d2";

/// The options of the agents, each of which exists for each API.
const KINDS: [(&str, &str); 7] = [
    ("plain", "max_tokens = 24"),
    ("clock", "max_tokens = 64\ntools = [\"current_time\"]"),
    ("health", "max_tokens = 64\ntools = [\"get_health\"]"),
    (
        "city",
        "max_tokens = 64\nresponse_schema = { type = \"object\", properties = { city = { type = \"string\" } }, \
         required = [\"city\"], additionalProperties = false }",
    ),
    ("endless", "extra_body = { ignore_eos = true }"),
    ("unknown-model", "model = \"other\""),
    ("wrong-key", "api_key_env = \"WRONG_KEY\""),
];

async fn start_model(context: u32, port: u16) -> Option<(String, Child)> {
    let (context, port) = (context.to_string(), port.to_string());
    start_python(".venv-llama", "llama.py", &[&context, &port]).await
}

/// A model's server, and a server of ours with agents on it.
struct Models {
    url: String,
    process: Child,
    ours: Process,
    _folder: tempfile::TempDir,
}

impl Models {
    async fn of_llama_cpp(context: u32) -> Option<Self> {
        let (url, process) = start_model(context, 0).await?;
        Some(Self::start(url, process, &APIS))
    }

    fn start(url: String, process: Child, apis: &[&str]) -> Self {
        let mut text = format!(
            "default_agent = \"openai-plain\"\n[tools.get_health]\nkind = \"http\"\nurl = \"{url}/health\"\n\
             description = \"The health of the server.\"\napproval = \"always\"\n"
        );
        for api in apis {
            let path = match *api {
                "anthropic" => "",
                "gemini" => "/v1beta",
                _ => "/v1",
            };
            for (kind, options) in KINDS {
                text += &format!(
                    "[agents.{api}-{kind}]\nkind = \"llm\"\nprovider = \"{api}\"\nbase_url = \"{url}{path}\"\n\
                     system_prompt = \"You are a clerk.\"\n{options}\n"
                );
                for (option, value) in [("model", "smollm2"), ("api_key_env", "RIGHT_KEY")] {
                    if !options.starts_with(option) {
                        text += &format!("{option} = \"{value}\"\n");
                    }
                }
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.toml");
        std::fs::write(&file, text).unwrap();
        let keys = [("RIGHT_KEY", KEY), ("WRONG_KEY", "sk-8a2e")];
        let ours = Process::start(&["--config", file.to_str().unwrap()], &keys);
        Self { url, process, ours, _folder: folder }
    }

    async fn ask(&self, api: &str, kind: &str, input: Value) -> Vec<Value> {
        ask(&format!("{}/agents/{api}-{kind}", self.ours.url), input).await
    }

    /// Begins an answer that does not end. Returns the response after its first text.
    async fn begin(&self, api: &str, input: &Value) -> reqwest::Response {
        let client = agui_base::upstream::client(&Default::default()).unwrap();
        let url = format!("{}/agents/{api}-endless/send-message", self.ours.url);
        let mut response = client.post(url).json(input).send().await.unwrap();
        let mut text = String::new();
        while !text.contains("TEXT_MESSAGE_CONTENT") {
            let chunk = response.chunk().await.unwrap().expect("an event");
            text += &String::from_utf8_lossy(&chunk);
        }
        response
    }

    /// Waits until the model works on an answer, or on none.
    async fn until_busy(&self, busy: bool) {
        poll_until(if busy { "the model works" } else { "the slot is idle" }, async || {
            let client = agui_base::upstream::client(&Default::default()).unwrap();
            let slots = client.get(format!("{}/slots", self.url)).send().await.unwrap();
            let slots: Value = slots.json().await.unwrap();
            (slots[0]["is_processing"] == busy).then_some(())
        })
        .await;
    }
}

/// Returns the events of a type.
fn of_type<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == name).collect()
}

fn assert_answered(events: &[Value], api: &str) {
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["type"], "success", "{api}: {last}");
    assert!(last["usage"][0]["outputTokens"].as_u64() > Some(0), "{api}: {last}");
    assert!(!text_and_error(events).0.is_empty(), "{api}: {last}");
}

/// A model of an API streams, is told of the page after its instructions, and calls a tool.
async fn walk(models: &Models, api: &str) {
    // The page's context comes after the conversation, where the template takes no instructions.
    for run in ["r1", "r2"] {
        let mut input = conversation::ask(api, run, run, "Hello");
        input["context"] = json!([{ "description": "the page", "value": "A list of flowers" }]);
        let events = models.ask(api, "plain", input).await;
        assert_answered(&events, api);
        assert!(of_type(&events, "TEXT_MESSAGE_CONTENT").len() > 2, "{api}: {events:?}");
        // llama.cpp's Responses say that each answer is complete.
        let last = events.last().unwrap();
        if api == "openai-responses" {
            assert_eq!(last["usage"][0]["outputTokens"], 24, "{last}");
            assert!(last["result"]["truncated"].is_object(), "{last}");
        }
    }
    let thread = format!("{api}-clock");
    let input = conversation::ask(&thread, "r", "m", "Use a function now.");
    let events = models.ask(api, "clock", input).await;
    assert_answered(&events, api);
    assert_eq!(of_type(&events, "TOOL_CALL_START")[0]["toolCallName"], "current_time");
    assert_eq!(of_type(&events, "TOOL_CALL_RESULT").len(), 1, "{api}: {events:?}");
}

#[tokio::test]
async fn llama_cpp_streams_calls_tools_and_keeps_to_schemas_by_its_three_apis() {
    let Some(models) = Models::of_llama_cpp(4096).await else { return };
    for api in APIS {
        walk(&models, api).await;
        let thread = format!("{api}-health");
        let input = conversation::ask(&thread, "r", "m", "Use a function now.");
        let asked = models.ask(api, "health", input).await;
        let question = &asked.last().unwrap()["outcome"]["interrupts"][0]["id"];
        assert!(question.is_string(), "{api}: {asked:?}");
        let reply = json!({ "threadId": thread, "runId": "r2", "messages": [], "resume": [
            { "interruptId": question, "status": "resolved", "payload": { "approved": true } }] });
        let events = models.ask(api, "health", reply).await;
        assert_answered(&events, api);
        let results = of_type(&events, "TOOL_CALL_RESULT");
        assert!(results[0]["content"].as_str().unwrap().contains("ok"), "{api}: {results:?}");
    }
    assert!(models.ours.has_logged("asking again in a poorer form"));
    // Each stream was followed by the end of its connection.
    assert!(!models.ours.has_logged("trying again"));

    let input = conversation::ask("city", "r", "m", "Name a city.");
    let events = models.ask("openai", "city", input).await;
    assert!(events.last().unwrap()["result"]["city"].is_string(), "{events:?}");
}

#[tokio::test]
async fn litellm_passes_on_llama_cpp_by_four_apis_and_its_errors_are_read() {
    let Some((model, _process)) = start_model(4096, 0).await else { return };
    let started = start_python(".venv-litellm", "litellm_proxy.py", &[&model, KEY]).await;
    let Some((url, process)) = started else { return };
    let apis = ["openai", "openai-responses", "anthropic", "gemini"];
    let models = Models::start(url, process, &apis);
    for api in apis {
        walk(&models, api).await;
        for (kind, code) in
            [("wrong-key", "model_unauthorized"), ("unknown-model", "model_rejected")]
        {
            let thread = format!("{api}-{kind}");
            let events = models.ask(api, kind, conversation::ask(&thread, "r", "m", "Hello")).await;
            let last = events.last().unwrap();
            assert_eq!(last["code"], code, "{api}: {last}");
        }
    }
}

#[tokio::test]
async fn a_thread_that_outgrows_llama_cpps_window_goes_on_without_its_oldest_messages() {
    let Some(models) = Models::of_llama_cpp(512).await else { return };
    for api in APIS {
        let text = "Tell me of flowers and trees and birds. ".repeat(30);
        let first = models.ask(api, "plain", conversation::ask(api, "r1", "m1", &text)).await;
        assert_answered(&first, api);
        let second = models.ask(api, "plain", conversation::ask(api, "r2", "m2", &text)).await;
        assert_answered(&second, api);
        let is_trimmed = |event: &Value| event["name"] == "agui-server.context_trimmed";
        assert!(
            !first.iter().any(is_trimmed) && second.iter().any(is_trimmed),
            "{api}: {second:?}"
        );
    }
}

#[tokio::test]
async fn llama_cpp_stops_when_the_client_leaves() {
    let Some(models) = Models::of_llama_cpp(4096).await else { return };
    for api in APIS {
        let response = models.begin(api, &conversation::ask(api, "r", "m", "Hello")).await;
        models.until_busy(true).await;
        drop(response);
        models.until_busy(false).await;
    }
}

#[tokio::test]
async fn a_run_ends_with_its_llama_cpp_and_the_next_one_asks_the_new_one() {
    let Some(mut models) = Models::of_llama_cpp(4096).await else { return };
    for api in APIS {
        let response = models.begin(api, &conversation::ask(api, "r1", "m1", "Hello")).await;
        models.process.kill().await.unwrap();
        let rest = response.text().await.unwrap();
        assert!(rest.contains(r#""code":"model_interrupted""#), "{api}: {rest}");

        // Its message stays unanswered in the thread, and the template refuses two in a row.
        let events = models.ask(api, "plain", conversation::ask(api, "r2", "m2", "Hello")).await;
        assert_eq!(events.last().unwrap()["code"], "model_unreachable", "{api}: {events:?}");

        let port = reqwest::Url::parse(&models.url).unwrap().port().unwrap();
        models.process = start_model(4096, port).await.unwrap().1;
        let events = models.ask(api, "plain", conversation::ask(api, "r3", "m3", "Hello")).await;
        assert_answered(&events, api);
    }
}
