//! A configuration names agents, tools and models that are written in Rust.

use agui_server::{
    agent::builtin::Echo,
    config::{Loaded, Sources},
    llm::{BlockStart, Model, ModelEvent, ModelRequest, ModelStep, ModelStream, StopReason},
    prelude::*,
};
use futures::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;

use super::support::{Running, events, input};

/// Loads a file, whose path is left out of errors.
fn load(text: &str) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    std::fs::write(&file, text).unwrap();
    Sources { file: Some(file), ..Sources::default() }
        .load()
        .map_err(|error| without_folder(&error.to_string()))
}

fn without_folder(error: &str) -> String {
    error[error.find("my.toml").unwrap_or(0)..].to_owned()
}

/// A model that calls each tool once, and then repeats the results.
struct CallsEachTool;

impl Model for CallsEachTool {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "calls-each-tool"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let mut events = Vec::new();
        if let Some(ModelStep::ToolResults(results)) = request.steps.last() {
            let text = results
                .iter()
                .map(|result| result.content.text().into_owned())
                .collect::<Vec<_>>()
                .join(" + ");
            events.push(ModelEvent::Start { index: 0, block: BlockStart::Text });
            events.push(ModelEvent::Delta { index: 0, text });
            events.push(ModelEvent::End { index: 0, artefact: None });
            events.push(ModelEvent::Stop(StopReason::Done));
        } else {
            for (index, tool) in request.tools.iter().enumerate() {
                let block =
                    BlockStart::Call { id: format!("c{index}").into(), name: tool.name.clone() };
                let text = r#"{"order":7,"task":"Hello"}"#.to_owned();
                events.push(ModelEvent::Start { index, block });
                events.push(ModelEvent::Delta { index, text });
                events.push(ModelEvent::End { index, artefact: None });
            }
            events.push(ModelEvent::Stop(StopReason::Calls));
        }
        stream::iter(events.into_iter().map(Ok)).boxed()
    }
}

#[derive(Deserialize, JsonSchema)]
struct OrderQuery {
    order: u32,
}

const DESK: &str = r#"
default_agent = "desk"
[agents.desk]
kind = "llm"
provider = "rust"
model = "house"
tools = ["find_order", "agent:clerk"]
"#;

fn server(loaded: &Loaded) -> Server {
    let find_order = tool_fn("find_order", "Finds an order.", |query: OrderQuery, _| async move {
        format!("order {} was sent", query.order)
    });
    // The order of these calls makes no difference, either.
    Server::from_config(loaded)
        .unwrap()
        .agent("clerk", Echo)
        .tool(find_order)
        .model("house", CallsEachTool)
}

#[tokio::test]
async fn an_agent_of_a_configuration_uses_a_model_a_tool_and_an_agent_in_rust() {
    let server = Running::start(server(&load(DESK).unwrap())).await;
    let events = events(&server.run(&input("Hello")).await.text().await.unwrap());
    let said: Vec<_> =
        events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT").collect();
    assert_eq!(said.last().unwrap()["delta"], "Hello + order 7 was sent", "{events:#?}");
}

#[tokio::test]
async fn the_default_agent_may_be_in_rust() {
    let loaded =
        load(&DESK.replace("default_agent = \"desk\"", "default_agent = \"clerk\"")).unwrap();
    let server = Running::start(server(&loaded)).await;
    let events = events(&server.run(&input("Hello, clerk")).await.text().await.unwrap());
    let said: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(said, "Hello, clerk");
}

#[tokio::test]
async fn an_agent_in_rust_takes_the_place_of_the_built_in_demo() {
    let loaded = load("[server]\ndrain_secs = 1").unwrap();
    let server = Running::start(Server::from_config(&loaded).unwrap().agent("clerk", Echo)).await;
    let agents =
        server.client.get(server.url("/agents")).send().await.unwrap().text().await.unwrap();
    assert!(agents.contains("clerk") && !agents.contains("demo"), "{agents}");
}

#[test]
fn a_name_that_nothing_has_is_an_error_with_its_place() {
    let fault = |text: &str| {
        let loaded = load(text).unwrap();
        without_folder(&server(&loaded).check().unwrap_err().to_string())
    };
    assert_eq!(
        server(&load(DESK).unwrap()).check().map_err(|error| error.to_string()),
        Ok(Vec::new())
    );
    for (text, expected) in [
        (
            DESK.replace("find_order", "find_ordr"),
            "my.toml:7:1: agents.desk.tools: there is no tool `find_ordr`; did you mean `find_order`?",
        ),
        (
            DESK.replace("agent:clerk", "agent:clrk"),
            "my.toml:7:1: agents.desk.tools: there is no agent `clrk`",
        ),
        (
            DESK.replace("\"house\"", "\"hous\""),
            "my.toml:6:1: agents.desk.model: there is no Rust model `hous`: add it with Server::model; added: `house`",
        ),
        (
            format!("{DESK}context = {{ policy = \"summarise\", summariser = \"clerk\" }}"),
            "my.toml:8:1: agents.desk.context: there is no agent `clerk` with kind = \"llm\" that could write summaries",
        ),
        (
            DESK.replace("default_agent = \"desk\"", "default_agent = \"clrk\""),
            "my.toml:2:1: default_agent: there is no agent `clrk`; did you mean `clerk`?",
        ),
    ] {
        let fault = fault(&text);
        assert!(fault.starts_with(expected), "{fault}\n{expected}");
    }
    let rust_only = Server::from_config(&load(DESK).unwrap()).unwrap();
    assert!(rust_only.check().unwrap_err().to_string().contains("there is no tool `find_order`"));
    let refused = load(&DESK.replace("\"house\"", "\"house\"\napi_key_env = \"KEY\"")).unwrap_err();
    assert!(
        refused.starts_with(
            "my.toml:7:1: agents.desk.api_key_env: provider = \"rust\" has no such option: set it on the model in Rust"
        ),
        "{refused}"
    );
}
