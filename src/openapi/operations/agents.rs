//! The agents and their capabilities.

use crate::openapi::{
    operation::{Description, Tag},
    refusals::AGENT,
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    Some(match (method, template) {
        ("GET", "/agents") => {
            Description::new(Tag::Agents, "listAgents", "Lists the agents").json(200, "AgentList", "The agents.")
        }
        ("GET", "/agents/{agent}/capabilities") => {
            Description::new(Tag::Agents, "readCapabilities", "Returns the capabilities that an agent declares")
                .json(200, "AgentCapabilities", "The capabilities.")
                .refuses(&[AGENT])
        }
        _ => return None,
    })
}
