//! The capabilities that an agent declares.

use super::settings::Settings;
use agui_protocol::{
    AgentCapabilities, JsonObject, ToolDefinition,
    capabilities::{
        ExecutionCapabilities, HumanInTheLoopCapabilities, IdentityCapabilities,
        MultiAgentCapabilities, MultimodalCapabilities, MultimodalInputCapabilities,
        OutputCapabilities, ReasoningCapabilities, StateCapabilities, SubagentInfo,
        ToolsCapabilities,
    },
};
use agui_tools::OfferedTool;

/// The member of `custom` with the names of the models that a request can choose.
const MODELS: &str = "models";

pub(super) fn capabilities(settings: &Settings) -> AgentCapabilities {
    let tools = settings.tools.tools();
    let media_input = settings.model.media_input();
    let is_media_input_known = media_input != MultimodalInputCapabilities::default();
    let subagents = settings.subagents.iter().map(|subagent| {
        let (name, description) = (subagent.name.clone(), Some(subagent.description.clone()));
        SubagentInfo { name, description }
    });
    AgentCapabilities {
        identity: Some(IdentityCapabilities {
            r#type: Some("agui-server".to_owned()),
            description: settings.description.clone(),
            ..IdentityCapabilities::default()
        }),
        tools: Some(ToolsCapabilities {
            supported: Some(true),
            items: (!tools.is_empty()).then(|| tools.iter().map(as_protocol_tool).collect()),
            parallel_calls: Some(true),
            client_provided: Some(true),
        }),
        output: settings.response.is_some().then(|| OutputCapabilities {
            structured_output: Some(true),
            supported_mime_types: Some(vec!["application/json".to_owned()]),
        }),
        state: Some(StateCapabilities {
            snapshots: Some(settings.shares_state()),
            deltas: Some(settings.shares_state()),
            ..StateCapabilities::default()
        }),
        multi_agent: Some(MultiAgentCapabilities {
            supported: Some(!settings.subagents.is_empty()),
            delegation: Some(!settings.subagents.is_empty()),
            handoffs: Some(false),
            subagents: (!settings.subagents.is_empty()).then(|| subagents.collect()),
        }),
        reasoning: Some(ReasoningCapabilities {
            streaming: Some(true),
            ..ReasoningCapabilities::default()
        }),
        // The kinds of files that the agent's model reads, if they are known.
        multimodal: is_media_input_known
            .then_some(MultimodalCapabilities { input: Some(media_input), output: None }),
        execution: Some(ExecutionCapabilities {
            max_iterations: Some(settings.options.max_steps.get().into()),
            ..ExecutionCapabilities::default()
        }),
        human_in_the_loop: Some(HumanInTheLoopCapabilities {
            supported: Some(true),
            approvals: Some(true),
            interrupts: Some(true),
            approve_with_edits: Some(true),
            ..HumanInTheLoopCapabilities::default()
        }),
        custom: (!settings.options.models.is_empty()).then(|| {
            JsonObject::from_iter([(
                MODELS.to_owned(),
                settings.allowed_models().collect::<Vec<_>>().into(),
            )])
        }),
        ..AgentCapabilities::default()
    }
}

fn as_protocol_tool(tool: &OfferedTool) -> ToolDefinition {
    let spec = tool.tool.spec();
    ToolDefinition {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: Some(spec.parameters.clone()),
        metadata: None,
    }
}
