//! `/backend_tool_rendering`: the page draws the result of the agent's tool as a weather card.
//!
//! The call and its result arrive together, as messages of a snapshot.

use agui_server::{prelude::*, protocol::event::MessagesSnapshot};
use serde_json::json;

use crate::parts::{Pace, answered_call, followed_by, last_result};

pub(crate) async fn run(input: RunAgentInput, out: Emitter, _: Pace) -> Result<(), AgentError> {
    if last_result(&input).is_some() {
        return out.text("Retrieved weather information!").await;
    }
    let question = input.last_user_text().unwrap_or_default();
    let city = city(&question);
    // The dojo's card takes its title from `location`; the reference server sends `city`.
    let arguments = json!({ "city": city, "location": city });
    let weather = json!({
        "city": city,
        "conditions": "sunny",
        "wind_speed": "10",
        "temperature": "20",
        "humidity": "60",
    });
    let messages = answered_call("get_weather", &arguments, weather.to_string());
    out.event(MessagesSnapshot::new(followed_by(&input, messages))).await
}

/// Returns the text between "in" and the end of the sentence, which is the city in the questions that the dojo suggests.
fn city(question: &str) -> &str {
    let Some((_, place)) = question.rsplit_once(" in ") else { return "San Francisco" };
    let place = place.split(['?', '.', '!', ',']).next().unwrap_or_default();
    let place = place.trim().trim_end_matches("today").trim();
    if place.is_empty() { "San Francisco" } else { place }
}
