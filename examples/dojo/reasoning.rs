//! `/reasoning`, in the dojo `/agentic_chat_reasoning`: the agent sends its reasoning, then answers.

use agui_server::prelude::*;
use serde_json::Value;

use crate::parts::Pace;

const THOUGHTS: [&str; 4] = [
    "I was asked a question. ",
    "I have no model, so I can't know the answer. ",
    "But I can show what reasoning looks like on this page, ",
    "and then say so.",
];

pub(crate) async fn run(input: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    let mut reasoning = out.reasoning_span().await?;
    for thought in THOUGHTS {
        reasoning.push(thought).await?;
        pace.pause(400).await;
    }
    reasoning.end().await?;

    let mut message = out.text_message().await?;
    // The dojo's page lets people choose a model, and puts it into the state.
    if let Some(model) =
        input.state.as_ref().and_then(|state| state.get("model")).and_then(Value::as_str)
    {
        message.push(format!("You picked {model}, but there is no model here. ")).await?;
    }
    message.push("I thought about it in ").await?;
    pace.pause(200).await;
    message.push(format!("{} sentences, which you can unfold above.", THOUGHTS.len())).await?;
    message.end().await
}
