//! The named-event endpoints.

use crate::openapi::{
    operation::{Description, Tag},
    refusals::{AGENT, BODY, LIMITS, START, STORE},
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    Some(match (method, template) {
        ("POST", "/agent/chat/stream") => endpoint("runChat", "Runs the agent of chats with named events"),
        ("POST", "/agent/agent/stream") => endpoint("runNamedEvents", "Runs an agent with named events"),
        _ => return None,
    })
}

fn endpoint(id: &'static str, summary: &'static str) -> Description {
    Description::new(Tag::NamedEvents, id, summary)
        .details("If the thread has open interrupts, the newest message answers them.")
        .body("NamedEventRequest")
        .stream("NamedEvent", "The events of the run. The name of an event is in its line `event:`.")
        .refuses(&[AGENT, BODY, LIMITS, START, STORE])
}
