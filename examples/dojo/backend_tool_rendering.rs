//! `/backend_tool_rendering`: a tool of the agent's own, whose result the page draws as a weather card.
//!
//! Call and result arrive together, as messages of a snapshot: this agent has nothing to show in between.

use agui_server::{
    agent::{Agent, RunContext, emit::TextMessage, events},
    protocol::{RunAgentInput, event::MessagesSnapshot},
};
use serde_json::json;

use crate::parts::{answered_call, followed_by, last_result};

pub(crate) fn agent() -> impl Agent {
    |input: RunAgentInput, _: RunContext| {
        if last_result(&input).is_some() {
            return events(TextMessage::whole("Retrieved weather information!"));
        }
        let question = input.last_user_text().unwrap_or_default();
        let city = city(&question);
        // The dojo's card takes its title from `location`; `city` is what the reference server sends.
        let arguments = json!({ "city": city, "location": city });
        let weather = json!({
            "city": city,
            "conditions": "sunny",
            "wind_speed": "10",
            "temperature": "20",
            "humidity": "60",
        });
        let messages = answered_call("get_weather", &arguments, weather.to_string());
        events([MessagesSnapshot::new(followed_by(&input, messages)).into()])
    }
}

/// What follows "in", up to the end of the sentence: enough for the questions that the dojo suggests.
fn city(question: &str) -> &str {
    let Some((_, place)) = question.rsplit_once(" in ") else { return "San Francisco" };
    let place = place.split(['?', '.', '!', ',']).next().unwrap_or_default();
    let place = place.trim().trim_end_matches("today").trim();
    if place.is_empty() { "San Francisco" } else { place }
}
