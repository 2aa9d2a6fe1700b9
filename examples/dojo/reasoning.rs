//! `/reasoning`, in the dojo `/agentic_chat_reasoning`: the agent thinks aloud, then answers.

use agui_server::{
    agent::{
        Agent, RunContext,
        emit::{ReasoningSpan, TextMessage},
        event_stream,
    },
    protocol::RunAgentInput,
};
use serde_json::Value;

use crate::parts::Pace;

const THOUGHTS: [&str; 4] = [
    "Somebody asks me something. ",
    "I have no model, so I can't know the answer. ",
    "But I can show what thinking looks like on this page, ",
    "and then say so.",
];

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |input: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            let reasoning = ReasoningSpan::new();
            for event in reasoning.start() {
                yield event;
            }
            for thought in THOUGHTS {
                yield reasoning.delta(thought);
                pace.pause(400).await;
            }
            for event in reasoning.end() {
                yield event;
            }

            let message = TextMessage::new();
            yield message.start();
            // The dojo's page lets people choose a model, and puts it into the state.
            if let Some(model) = input.state.as_ref().and_then(|state| state.get("model")).and_then(Value::as_str) {
                yield message.delta(format!("You picked {model}, but there is no model here. "));
            }
            yield message.delta("I thought about it in ");
            pace.pause(200).await;
            yield message.delta(format!("{} sentences, which you can unfold above.", THOUGHTS.len()));
            yield message.end();
        })
    }
}
