//! The simplest agent to try a front end with: it repeats the newest user message.

use async_stream::stream;

use super::identity;
use agui_agent::{Agent, AgentEffects, EventStream, RunContext, emit::TextMessage, event_stream};
use agui_protocol::{AgentCapabilities, RunAgentInput};

/// An agent that answers with the newest user message, one word for each event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

impl Agent for Echo {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        let text = input.last_user_text().filter(|text| !text.is_empty());
        let text = text.unwrap_or("There is no user message to repeat.".into()).into_owned();
        let message = TextMessage::new();
        // One event at a time: the events of a text of one-letter words take a hundred times its memory.
        event_stream(stream! {
            yield Ok(message.start());
            for word in text.split_inclusive(char::is_whitespace) {
                yield Ok(message.delta(word));
            }
            yield Ok(message.end());
        })
    }

    fn capabilities(&self) -> AgentCapabilities {
        identity("echo", "Repeats the newest user message")
    }

    /// A continued run repeats the message from the start.
    fn can_continue(&self) -> bool {
        true
    }

    fn effects(&self) -> AgentEffects {
        AgentEffects::None
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;
    use agui_protocol::Message;

    #[test]
    fn a_long_text_is_answered_one_event_at_a_time() {
        let text = "a ".repeat(5_000_000);
        let input = RunAgentInput::new("t", "r", vec![Message::user("m", text)]);
        let mut events = Echo.run(input, RunContext::new("t", "r", "echo"));
        // All events at once would take a second and a gigabyte.
        let begin = std::time::Instant::now();
        assert!((0..3).all(|_| events.next().now_or_never().flatten().is_some()));
        assert!(begin.elapsed() < std::time::Duration::from_millis(100));
    }
}
