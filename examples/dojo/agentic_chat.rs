//! `/agentic_chat`: a conversation, in which the agent can also use the page.
//!
//! It counts down, whatever it is told, but for two words: at `tool` it has the page change its background, and
//! at `backend_tool` it uses a tool of its own.

use agui_server::{
    agent::{
        Agent, EventStream, RunContext,
        emit::{TextMessage, ToolCallEvents},
        event_stream, events,
    },
    protocol::{RunAgentInput, event::MessagesSnapshot},
};
use serde_json::json;

use crate::parts::{Pace, answered_call, followed_by, last_result};

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |input: RunAgentInput, _: RunContext| {
        if last_result(&input).is_some() {
            return events(TextMessage::whole("background changed ✓"));
        }
        let text = input.last_user_text().unwrap_or_default();
        match text.trim() {
            "tool" => events(change_background()),
            "backend_tool" => look_up_weather(&input),
            _ => count_down(pace),
        }
    }
}

fn count_down(pace: Pace) -> EventStream {
    event_stream(async_stream::try_stream! {
        let message = TextMessage::new();
        yield message.start();
        yield message.delta("counting down: ");
        for number in (1..=10).rev() {
            yield message.delta(format!("{number}  "));
            pace.pause(300).await;
        }
        yield message.delta("✓");
        yield message.end();
    })
}

/// The page's own tool: the page acts on the call, and the next run comes with what came of it.
fn change_background() -> Vec<agui_server::protocol::Event> {
    let background = "linear-gradient(135deg, #0f766e 0%, #7c3aed 100%)";
    ToolCallEvents::new("change_background").whole(&json!({ "background": background }))
}

fn look_up_weather(input: &RunAgentInput) -> EventStream {
    let arguments = json!({ "city": "San Francisco", "weather": "sunny" });
    let weather = answered_call("lookup_weather", &arguments, "It is sunny in San Francisco.");
    events([MessagesSnapshot::new(followed_by(input, weather)).into()])
}
