//! What the model can call in a run, and whose it is.
//!
//! A name belongs to one tool. Where several claim it, the application's own goes first: the protocol says that a tool
//! of the request is the application's to answer, and a front end that brings one gets the call. After it
//! come `update_state`, subagents, and the server's tools in the order in which they were given.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};

use super::{Core, state, subagent::Subagent};
use crate::{
    protocol::{RunAgentInput, Tool as ProtocolTool},
    tools::{OfferedTool, ToolSpec},
};

/// Who carries out a call.
#[derive(Clone, Copy)]
pub(super) enum Kind<'o> {
    /// The application.
    Application,
    /// This server.
    Server(&'o OfferedTool),
    /// The run itself: the state changes.
    State,
    /// Another agent.
    Subagent(&'o Subagent),
}

/// What can be called in a run.
pub(super) struct Offer {
    specs: Arc<[ToolSpec]>,
    owners: HashMap<String, Owner>,
    server: Vec<OfferedTool>,
    core: Arc<Core>,
}

enum Owner {
    Application,
    Server(usize),
    State,
    Subagent(usize),
}

impl Offer {
    pub(super) fn new(core: &Arc<Core>, input: &RunAgentInput) -> Self {
        let server = core.tools.tools();
        let (mut specs, mut owners) = (Vec::new(), HashMap::new());
        let mut offer = |spec: ToolSpec, owner: Owner| {
            if owners.contains_key(&spec.name) {
                tracing::warn!(tool = spec.name, "several tools have this name; the first one is offered to the model");
            } else {
                owners.insert(spec.name.clone(), owner);
                specs.push(spec);
            }
        };
        for tool in &input.tools {
            offer(of_application(tool), Owner::Application);
        }
        if core.updates_state {
            offer(state::spec(), Owner::State);
        }
        for (index, subagent) in core.subagents.iter().enumerate() {
            offer(subagent.spec(), Owner::Subagent(index));
        }
        for (index, tool) in server.iter().enumerate() {
            offer(tool.tool.spec().clone(), Owner::Server(index));
        }
        Self { specs: specs.into(), owners, server, core: core.clone() }
    }

    /// What the model is told.
    pub(super) fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// Who carries out calls of this name; nobody, when there is no such tool.
    pub(super) fn kind(&self, name: &str) -> Option<Kind<'_>> {
        Some(match self.owners.get(name)? {
            Owner::Application => Kind::Application,
            Owner::Server(index) => Kind::Server(self.server.get(*index)?),
            Owner::State => Kind::State,
            Owner::Subagent(index) => Kind::Subagent(self.core.subagents.get(*index)?),
        })
    }
}

fn of_application(tool: &ProtocolTool) -> ToolSpec {
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: object_schema(tool.parameters.as_ref()),
    }
}

/// The schema of the arguments. Providers want one of an object, also for tools without arguments.
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

/// A tool of the server's, as clients are told about it.
pub(super) fn as_protocol_tool(tool: &OfferedTool) -> ProtocolTool {
    let spec = tool.tool.spec();
    ProtocolTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: Some(spec.parameters.clone()),
        metadata: None,
    }
}
