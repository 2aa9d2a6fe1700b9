//! `/tool_based_generative_ui`: the agent sends a haiku as the arguments of the tool `generate_haiku`.
//!
//! A page that offers the tool gets the call and answers it. For other pages, the agent answers its call itself.

use agui_server::{
    agent::emit::ToolCallEvents,
    prelude::*,
    protocol::{Event, MessageId, event::MessagesSnapshot},
};
use serde_json::{Value, json};

use crate::parts::{Pace, answered_call, followed_by, last_result};

const TOOL: &str = "generate_haiku";
const CREATED: &str = "Haiku created";
/// Size of an argument delta. Small deltas let the page draw the haiku while it arrives.
const CHARS_PER_EVENT: usize = 24;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    if last_result(&input).is_some() {
        return out.text(CREATED).await;
    }
    if input.last_user_text().is_some_and(|text| text.trim() == "thanks") {
        return out
            .event(snapshot(&input, [Message::assistant(MessageId::random(), CREATED)]))
            .await;
    }
    if input.tool(TOOL).is_none() {
        return out.event(snapshot(&input, answered_call(TOOL, &haiku(), CREATED))).await;
    }
    let call = ToolCallEvents::new(TOOL);
    let arguments: Vec<char> = haiku().to_string().chars().collect();
    out.event(call.start()).await?;
    for piece in arguments.chunks(CHARS_PER_EVENT) {
        out.event(call.delta(String::from_iter(piece))).await?;
        pace.pause(50).await;
    }
    out.event(call.end()).await
}

fn snapshot(input: &RunAgentInput, more: impl IntoIterator<Item = Message>) -> Event {
    MessagesSnapshot::new(followed_by(input, more)).into()
}

fn haiku() -> Value {
    json!({
        "japanese": ["夜明け前", "光る画面に", "道ひとつ"],
        "english": ["Before the dawn breaks,", "upon a glowing display", "a single road lies."],
        "image_name": "Mount_Fuji_Lake_Reflection_Cherry_Blossoms_Sakura_Spring.jpg",
        "gradient": "linear-gradient(135deg, #1e3a8a 0%, #f9a8d4 100%)",
    })
}
