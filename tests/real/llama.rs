//! llama.cpp's own server with a model of 135 million parameters, by its three APIs. Its chat template refuses
//! instructions that are not first, and lets the model call the first tool.

use serde_json::{Value, json};
use tokio::process::Child;

use super::start_python;
use crate::{
    llm::models::{ask, text_and_error},
    support::{conversation, poll::poll_until, server::Process},
};

const APIS: [&str; 3] = ["openai", "openai-responses", "anthropic"];

/// The options of the agents, each of which exists for each API.
const KINDS: [(&str, &str); 5] = [
    ("plain", "max_tokens = 24"),
    ("clock", "max_tokens = 64\ntools = [\"current_time\"]"),
    ("health", "max_tokens = 64\ntools = [\"get_health\"]"),
    (
        "city",
        "max_tokens = 64\nresponse_schema = { type = \"object\", properties = { city = { type = \"string\" } }, required = [\"city\"], additionalProperties = false }",
    ),
    ("endless", "extra_body = { ignore_eos = true }"),
];

/// A model's server, and a server of ours with agents on it.
struct Llama {
    url: String,
    process: Child,
    ours: Process,
    _folder: tempfile::TempDir,
}

async fn start_model(context: u32, port: u16) -> Option<(String, Child)> {
    let (context, port) = (context.to_string(), port.to_string());
    start_python(".venv-llama", "llama.py", &[&context, &port]).await
}

impl Llama {
    async fn start(context: u32) -> Option<Self> {
        let (url, process) = start_model(context, 0).await?;
        let mut text = format!(
            "default_agent = \"openai-plain\"\n[tools.get_health]\nkind = \"http\"\nurl = \"{url}/health\"\n\
             description = \"The health of the server.\"\napproval = \"always\"\n"
        );
        for api in APIS {
            let path = if api == "anthropic" { "" } else { "/v1" };
            for (kind, options) in KINDS {
                text += &format!(
                    "[agents.{api}-{kind}]\nkind = \"llm\"\nprovider = \"{api}\"\nbase_url = \"{url}{path}\"\nmodel = \"smollm2\"\n\
                     system_prompt = \"You are a clerk.\"\n{options}\n"
                );
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("llama.toml");
        std::fs::write(&file, text).unwrap();
        let ours = Process::start(&["--config", file.to_str().unwrap()], &[]);
        Some(Self { url, process, ours, _folder: folder })
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
            let slots = reqwest::get(format!("{}/slots", self.url)).await.unwrap();
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

#[tokio::test]
async fn llama_cpp_streams_calls_tools_and_keeps_to_schemas_by_its_three_apis() {
    let Some(llama) = Llama::start(4096).await else { return };
    for api in APIS {
        // The page's context comes after the conversation, where the template takes no instructions.
        for run in ["r1", "r2"] {
            let mut input = conversation::ask(api, run, run, "Hello");
            input["context"] = json!([{ "description": "the page", "value": "A list of flowers" }]);
            let events = llama.ask(api, "plain", input).await;
            assert_answered(&events, api);
            assert!(of_type(&events, "TEXT_MESSAGE_CONTENT").len() > 2, "{api}: {events:?}");
        }

        let thread = format!("{api}-clock");
        let input = conversation::ask(&thread, "r", "m", "Use a function now.");
        let events = llama.ask(api, "clock", input).await;
        assert_answered(&events, api);
        assert_eq!(of_type(&events, "TOOL_CALL_START")[0]["toolCallName"], "current_time");
        assert_eq!(of_type(&events, "TOOL_CALL_RESULT").len(), 1, "{api}: {events:?}");

        let thread = format!("{api}-health");
        let input = conversation::ask(&thread, "r", "m", "Use a function now.");
        let asked = llama.ask(api, "health", input).await;
        let question = &asked.last().unwrap()["outcome"]["interrupts"][0]["id"];
        assert!(question.is_string(), "{api}: {asked:?}");
        let reply = json!({ "threadId": thread, "runId": "r2", "messages": [], "resume": [
            { "interruptId": question, "status": "resolved", "payload": { "approved": true } }] });
        let events = llama.ask(api, "health", reply).await;
        assert_answered(&events, api);
        let results = of_type(&events, "TOOL_CALL_RESULT");
        assert!(results[0]["content"].as_str().unwrap().contains("ok"), "{api}: {results:?}");
    }
    // The template's refusal was mended, and once for each API that sends instructions in messages.
    assert!(llama.ours.has_logged("asking again in a poorer form"));

    let input = conversation::ask("city", "r", "m", "Name a city.");
    let events = llama.ask("openai", "city", input).await;
    assert!(events.last().unwrap()["result"]["city"].is_string(), "{events:?}");
}

#[tokio::test]
async fn a_thread_that_outgrows_llama_cpps_window_goes_on_without_its_oldest_messages() {
    let Some(llama) = Llama::start(512).await else { return };
    for api in APIS {
        let text = "Tell me of flowers and trees and birds. ".repeat(30);
        let first = llama.ask(api, "plain", conversation::ask(api, "r1", "m1", &text)).await;
        assert_answered(&first, api);
        let second = llama.ask(api, "plain", conversation::ask(api, "r2", "m2", &text)).await;
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
    let Some(llama) = Llama::start(4096).await else { return };
    for api in APIS {
        let response = llama.begin(api, &conversation::ask(api, "r", "m", "Hello")).await;
        llama.until_busy(true).await;
        drop(response);
        llama.until_busy(false).await;
    }
}

#[tokio::test]
async fn a_run_ends_with_its_llama_cpp_and_the_next_one_asks_the_new_one() {
    let Some(mut llama) = Llama::start(4096).await else { return };
    for api in APIS {
        let response = llama.begin(api, &conversation::ask(api, "r1", "m1", "Hello")).await;
        llama.process.kill().await.unwrap();
        let rest = response.text().await.unwrap();
        assert!(rest.contains(r#""code":"model_interrupted""#), "{api}: {rest}");

        let port = reqwest::Url::parse(&llama.url).unwrap().port().unwrap();
        llama.process = start_model(4096, port).await.unwrap().1;
        let events = llama.ask(api, "plain", conversation::ask(api, "r2", "m2", "Hello")).await;
        assert_answered(&events, api);
    }
}
