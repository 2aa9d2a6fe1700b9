//! `/agentic_chat`: a conversation in which the agent can also use the page.
//!
//! The agent answers with a countdown. To the message `tool` it responds with a call of the page's tool that changes
//! the background, to `backend_tool` with a call of the agent's own tool.

use agui_server::{prelude::*, protocol::event::MessagesSnapshot};
use serde_json::json;

use crate::parts::{Pace, answered_call, followed_by, last_result};

pub(crate) async fn run(input: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    if last_result(&input).is_some() {
        return out.text("background changed ✓").await;
    }
    match input.last_user_text().unwrap_or_default().trim() {
        "tool" => {
            // The page runs the call, and its next run has the result.
            let background = "linear-gradient(135deg, #0f766e 0%, #7c3aed 100%)";
            out.call("change_background", json!({ "background": background })).await?;
            Ok(())
        }
        "backend_tool" => {
            let arguments = json!({ "city": "San Francisco", "weather": "sunny" });
            let weather =
                answered_call("lookup_weather", &arguments, "It is sunny in San Francisco.");
            out.event(MessagesSnapshot::new(followed_by(&input, weather))).await
        }
        _ => count_down(&out, pace).await,
    }
}

async fn count_down(out: &Emitter, pace: Pace) -> Result<(), AgentError> {
    let mut message = out.text_message().await?;
    message.push("counting down: ").await?;
    for number in (1..=10).rev() {
        message.push(format!("{number}  ")).await?;
        pace.pause(300).await;
    }
    message.push("✓").await?;
    message.end().await
}
