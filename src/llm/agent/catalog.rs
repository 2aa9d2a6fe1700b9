//! The tools that the model can call in a run. If several tools have one name, a tool of the request goes first: a
//! front end that brings a tool expects the calls. `update_state` comes next, then subagents, then the server's tools
//! in the order in which they were added.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    settings::Settings,
    state,
    subagent::{self, Subagent},
};
use crate::{
    llm::wire,
    protocol::{RunAgentInput, Tool as ProtocolTool},
    tools::{OfferedTool, ToolSpec},
};

pub(super) enum ToolOwner {
    Application,
    Server(OfferedTool),
    State,
    Subagent(Arc<Subagent>),
}

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

    pub(super) fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    pub(super) fn owner(&self, name: &str) -> Option<&ToolOwner> {
        self.owners.get(name)
    }
}

fn spec_of_application(tool: &ProtocolTool) -> ToolSpec {
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: wire::schema(tool.parameters.as_ref().unwrap_or(&Value::Null)),
    }
}
