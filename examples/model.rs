//! A model in Rust, named by a configuration: `cargo run --example model`
//!
//! A model turns a conversation into a stream of blocks: text, reasoning, tool calls. This one repeats the newest message
//! word by word. A real one sends a request to a provider that the server does not support.

use agui_server::{
    llm::{BlockStart, Model, ModelEvent, ModelRequest, ModelStep, ModelStream, StopReason},
    prelude::*,
    protocol::ContentPart,
};
use futures::{StreamExt as _, stream};

const CONFIG: &str = r#"
[agents.parrot]
kind = "llm"
provider = "rust"     # a model that the application adds with Server::model
model = "parrot-1"
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    Ok(Server::from_toml_str(CONFIG)?.model("parrot-1", Parrot).serve("127.0.0.1:8080").await?)
}

struct Parrot;

impl Model for Parrot {
    fn provider(&self) -> &str {
        "example"
    }

    fn name(&self) -> &str {
        "parrot-1"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let words = newest_words(&request);
        let start = ModelEvent::Start { index: 0, block: BlockStart::Text };
        let deltas = words.into_iter().map(|text| ModelEvent::Delta { index: 0, text });
        let end =
            [ModelEvent::End { index: 0, artefact: None }, ModelEvent::Stop(StopReason::Done)];
        stream::iter([start].into_iter().chain(deltas).chain(end).map(Ok)).boxed()
    }
}

/// Returns the words of the newest user message, each with the space after it.
fn newest_words(request: &ModelRequest) -> Vec<String> {
    let newest = request.steps.iter().rev().find_map(|step| match step {
        ModelStep::User(parts) => Some(parts),
        _ => None,
    });
    let texts = newest.into_iter().flatten().filter_map(|part| match part {
        ContentPart::Text(part) => Some(part.text.as_str()),
        _ => None,
    });
    texts.flat_map(|text| text.split_inclusive(' ')).map(str::to_owned).collect()
}
