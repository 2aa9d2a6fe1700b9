//! The simplest agent to try a front end with: it repeats the newest user message.

use super::identity;
use crate::{
    agent::{Agent, EventStream, RunContext, emit::TextMessage, events},
    protocol::{AgentCapabilities, RunAgentInput},
};

/// An agent that answers with the newest user message, one word for each event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

impl Agent for Echo {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        let text = input.last_user_text().filter(|text| !text.is_empty());
        let text = text.unwrap_or("There is no user message to repeat.".into()).into_owned();
        let message = TextMessage::new();
        let mut answer = vec![message.start()];
        answer.extend(text.split_inclusive(char::is_whitespace).map(|word| message.delta(word)));
        answer.push(message.end());
        events(answer)
    }

    fn capabilities(&self) -> AgentCapabilities {
        identity("echo", "Repeats the newest user message")
    }

    /// From its start.
    fn can_continue(&self) -> bool {
        true
    }
}
