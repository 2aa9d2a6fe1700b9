//! Interfaces that a model writes as the arguments of a tool call, which arrive in pieces of three bytes.

use std::sync::{Arc, Mutex};

use agui_server::{
    Server,
    llm::{BlockStart, LlmAgent, Model, ModelEvent, ModelRequest, ModelStream, StopReason},
    options::CopilotKitOptions,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::running::{Running, events};

/// Gives its answers in order, each a call of a tool or a text, and keeps the requests.
#[derive(Clone, Default)]
struct Drawing {
    answers: Arc<Mutex<Vec<(&'static str, String)>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Drawing {
    fn of(answers: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().map(|(tool, arguments)| (tool, arguments.to_string())).collect();
        answers.reverse();
        Self { answers: Arc::new(Mutex::new(answers)), requests: Arc::default() }
    }
}

impl Model for Drawing {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let mut requests = self.requests.lock().unwrap();
        requests.push(request);
        let (tool, text) = self.answers.lock().unwrap().pop().unwrap_or(("", "Done.".to_owned()));
        let block = match tool {
            "" => BlockStart::Text,
            name => BlockStart::Call { id: format!("c{}", requests.len()).into(), name: name.to_owned() },
        };
        let pieces = text.as_bytes().chunks(3).map(|piece| String::from_utf8_lossy(piece).into_owned());
        let deltas: Vec<_> = pieces.map(|text| ModelEvent::Delta { index: 0, text }).collect();
        let end = [ModelEvent::End { index: 0, artefact: None }, ModelEvent::Stop(StopReason::Done)];
        stream::iter([ModelEvent::Start { index: 0, block }].into_iter().chain(deltas).chain(end).map(Ok)).boxed()
    }
}

async fn play(server: &Running, input: &Value) -> Vec<Value> {
    events(&server.run(input).await.text().await.unwrap())
}

fn ask(text: &str) -> Value {
    json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": text }] })
}

/// Returns the activities that a client gets that opens the thread again.
async fn stored_activities(server: &Running) -> Vec<Value> {
    let messages = server.client.get(server.url("/threads/t/messages")).send().await.unwrap();
    let messages: Value = messages.json().await.unwrap();
    let all = messages["messages"].as_array().unwrap().iter();
    all.filter(|message| message["role"] == "activity").cloned().collect()
}

#[tokio::test]
async fn html_of_the_pages_tool_is_shown_while_it_is_written_and_again_after_a_reload() {
    let model = Drawing::of([("generateSandboxedUi", json!({ "css": "p {}", "html": "<p>Hello</p>" }))]);
    let server = Running::start(Server::new().agent("a", LlmAgent::new(model))).await;
    let mut input = ask("draw");
    input["tools"] = json!([{ "name": "generateSandboxedUi", "description": "Shows HTML.", "parameters": {} }]);
    let events = play(&server, &input).await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let at = |kind: &str| types.iter().position(|one| *one == kind).unwrap();
    assert_eq!(at("ACTIVITY_SNAPSHOT") + 1, at("TOOL_CALL_START"));
    assert!(types.iter().filter(|kind| **kind == "ACTIVITY_DELTA").count() > 5);
    assert_eq!(types[types.len() - 3..], ["TOOL_CALL_END", "STEP_FINISHED", "RUN_FINISHED"]);
    let activities = stored_activities(&server).await;
    assert_eq!(activities.len(), 1);
    assert_eq!(activities[0]["activityType"], "open-generative-ui");
    let content = &activities[0]["content"];
    let html: String = content["html"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect();
    assert_eq!((&*html, &content["css"], &content["generating"]), ("<p>Hello</p>", &json!("p {}"), &json!(false)));
}

#[tokio::test]
async fn pages_are_told_to_offer_the_tool_if_the_option_says_so() {
    for is_on in [false, true] {
        let mut options = CopilotKitOptions::default();
        options.open_generative_ui = is_on;
        let server =
            Running::start(Server::new().agent("a", LlmAgent::new(Drawing::default())).copilotkit(options)).await;
        let info: Value = server.client.get(server.url("/copilotkit/info")).send().await.unwrap().json().await.unwrap();
        assert_eq!(info["openGenerativeUIEnabled"], is_on);
    }
}
