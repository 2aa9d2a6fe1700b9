//! The tools that the model can call in a run, and who answers a call of each.
//!
//! A name belongs to one tool. If several tools have it, a tool of the request goes first: the protocol leaves
//! it to the application to answer, and a front end that brings a tool expects the calls. `update_state` comes
//! next, then subagents, then the server's tools in the order in which they were added.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    settings::Settings,
    state,
    subagent::{self, Subagent},
};
use crate::{
    protocol::{RunAgentInput, Tool as ProtocolTool},
    tools::{OfferedTool, ToolSpec},
};

/// The one who answers the calls of a tool.
pub(super) enum ToolOwner {
    /// The application, in its next request.
    Application,
    /// This server.
    Server(OfferedTool),
    /// The agent itself, by changing the state.
    State,
    /// Another agent.
    Subagent(Arc<Subagent>),
}

/// The tools that can be called in a run.
pub(super) struct ToolCatalog {
    specs: Arc<[ToolSpec]>,
    owners: HashMap<String, ToolOwner>,
}

impl ToolCatalog {
    pub(super) fn new(settings: &Settings, input: &RunAgentInput) -> Self {
        let (mut specs, mut owners) = (Vec::new(), HashMap::new());
        let mut add = |spec: ToolSpec, owner: ToolOwner| {
            if owners.contains_key(&spec.name) {
                tracing::warn!(tool = spec.name, "several tools have this name; the first one is offered to the model");
            } else {
                owners.insert(spec.name.clone(), owner);
                specs.push(spec);
            }
        };
        for tool in &input.tools {
            add(spec_of_application(tool), ToolOwner::Application);
        }
        if settings.updates_state {
            add(state::spec(), ToolOwner::State);
        }
        for subagent in &settings.subagents {
            add(subagent::spec(subagent), ToolOwner::Subagent(subagent.clone()));
        }
        for tool in settings.tools.tools() {
            add(tool.tool.spec().clone(), ToolOwner::Server(tool));
        }
        Self { specs: specs.into(), owners }
    }

    /// Returns the descriptions that the model gets.
    pub(super) fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// Returns the owner of the tool of this name; `None` if there is no such tool.
    pub(super) fn owner(&self, name: &str) -> Option<&ToolOwner> {
        self.owners.get(name)
    }
}

fn spec_of_application(tool: &ProtocolTool) -> ToolSpec {
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: object_schema(tool.parameters.as_ref()),
    }
}

/// Returns a schema of an object: providers require one, also for tools without arguments.
fn object_schema(schema: Option<&Value>) -> Value {
    let Some(Value::Object(schema)) = schema else { return json!({ "type": "object", "properties": {} }) };
    let mut schema = schema.clone();
    if !schema.contains_key("type") {
        schema.insert("type".to_owned(), "object".into());
    }
    if schema.get("type").is_some_and(|kind| kind == "object") && !schema.contains_key("properties") {
        schema.insert("properties".to_owned(), json!({}));
    }
    Value::Object(schema)
}
