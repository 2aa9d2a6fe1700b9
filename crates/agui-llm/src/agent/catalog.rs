//! The tools that the model can call in a run. If several tools have one name, the first in this
//! order is offered: tools of the request, because the front end expects these calls (except
//! `render_a2ui` in runs with A2UI, which is this server's); `update_state`; subagents; the
//! server's tools in the order in which they were added.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    settings::Settings,
    state,
    subagent::{self, Subagent},
    surfaces::render_tool,
};
use crate::{options::ToolChoice, providers::wire};
use agui_agent::{host::RunSurfaces, surfaces::a2ui::RENDER};
use agui_observe::metrics::OTHER;
use agui_protocol::{RunAgentInput, ToolDefinition};
use agui_tools::{OfferedTool, ToolSpec};

pub(super) enum ToolOwner {
    Application,
    Server(OfferedTool),
    State,
    Subagent(Arc<Subagent>),
}

pub(super) struct ToolCatalog {
    pub(super) specs: Arc<[ToolSpec]>,
    owners: HashMap<String, ToolOwner>,
}

impl ToolCatalog {
    pub(super) fn new(
        settings: &Settings,
        input: &RunAgentInput,
        surfaces: Option<&Arc<RunSurfaces>>,
    ) -> Self {
        let (mut specs, mut owners) = (Vec::new(), HashMap::new());
        let mut add = |spec: ToolSpec, owner: ToolOwner| {
            if owners.contains_key(&spec.name) {
                tracing::warn!(
                    tool = spec.name,
                    "several tools have this name; the first one is offered to the model"
                );
            } else {
                owners.insert(spec.name.clone(), owner);
                specs.push(spec);
            }
        };
        if let Some(tool) = surfaces.and_then(|surfaces| render_tool(surfaces.clone())) {
            add(tool.tool.spec().clone(), ToolOwner::Server(tool));
        }
        for tool in input.tools.iter().filter(|tool| surfaces.is_none() || tool.name != RENDER) {
            add(spec_of_application(tool), ToolOwner::Application);
        }
        if settings.updates_state {
            add(state::spec(settings.state_schema.as_deref()), ToolOwner::State);
        }
        for subagent in &settings.subagents {
            add(subagent::spec(subagent), ToolOwner::Subagent(subagent.clone()));
        }
        for tool in settings.tools.tools() {
            add(tool.tool.spec().clone(), ToolOwner::Server(tool));
        }
        Self { specs: specs.into(), owners }
    }

    /// Returns the choice for a request to the model. A call is forced only right after a user's message: otherwise the
    /// model would call again after every result, and never answer.
    pub(super) fn choice(&self, configured: &ToolChoice, follows_user: bool) -> ToolChoice {
        match configured {
            // Providers refuse any choice without tools.
            _ if self.specs.is_empty() => ToolChoice::Auto,
            ToolChoice::Auto | ToolChoice::None => configured.clone(),
            _ if !follows_user => ToolChoice::Auto,
            ToolChoice::Tool(name) if !self.owners.contains_key(name) => {
                tracing::warn!(tool = name, "tool_choice names a tool that this run does not have");
                ToolChoice::Auto
            }
            ToolChoice::Required | ToolChoice::Tool(_) => configured.clone(),
        }
    }

    /// Returns the choice that the request forces in OpenAI's form, as pages do for suggestions:
    /// one of the application's tools, or any tool.
    pub(super) fn forced_by_application(&self, input: &RunAgentInput) -> Option<ToolChoice> {
        let choice = input.forwarded_prop("toolChoice")?;
        if choice == "required" && !input.tools.is_empty() {
            return Some(ToolChoice::Required);
        }
        let name = choice.pointer("/function/name")?.as_str()?;
        matches!(self.owner(name), Some(ToolOwner::Application))
            .then(|| ToolChoice::Tool(name.to_owned()))
    }

    pub(super) fn owner(&self, name: &str) -> Option<&ToolOwner> {
        self.owners.get(name)
    }

    /// Returns the MCP server of a tool.
    pub(super) fn server(&self, name: &str) -> Option<&str> {
        match self.owner(name)? {
            ToolOwner::Server(tool) => tool.tool.server(),
            _ => None,
        }
    }

    /// Returns the name of a tool in metrics: [`OTHER`] for names that a model or an application
    /// can invent.
    pub(super) fn metric_name(&self, name: &str) -> String {
        match self.owner(name) {
            Some(ToolOwner::Server(tool)) => tool.tool.metric_name().to_owned(),
            Some(ToolOwner::State) => state::UPDATE_STATE.to_owned(),
            Some(ToolOwner::Subagent(subagent)) => format!("agent:{}", subagent.name),
            Some(ToolOwner::Application) | None => OTHER.to_owned(),
        }
    }
}

fn spec_of_application(tool: &ToolDefinition) -> ToolSpec {
    let parameters = wire::schema(tool.parameters.as_ref().unwrap_or(&Value::Null));
    ToolSpec::new(tool.name.clone(), tool.description.clone(), parameters)
}

#[cfg(test)]
mod tests;
