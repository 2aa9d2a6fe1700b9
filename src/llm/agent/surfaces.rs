//! The tool `render_a2ui`: the projection of the run has painted the surface when the call runs, so the call only answers.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use crate::{
    agent::RunSurfaces,
    protocol::{JsonObject, MessageContent},
    surfaces::a2ui,
    tools::{OfferedTool, Repeat, Tool, ToolContext, ToolError, ToolSpec, Validator},
};

pub(super) struct RenderSurface {
    spec: ToolSpec,
    surfaces: Arc<RunSurfaces>,
}

impl RenderSurface {
    /// Returns the tool for a run.
    pub(super) fn offer(surfaces: Arc<RunSurfaces>) -> Option<OfferedTool> {
        let tool = a2ui::tool();
        let spec = ToolSpec::new(tool.name, tool.description, tool.parameters?);
        let validator = Arc::new(Validator::new(&spec.parameters).ok()?);
        Some(OfferedTool { tool: Arc::new(Self { spec, surfaces }), validator })
    }
}

#[async_trait]
impl Tool for RenderSurface {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn repeat(&self, _: &JsonObject) -> Repeat {
        Repeat::Safe
    }

    async fn call(&self, arguments: JsonObject, _: &ToolContext) -> Result<MessageContent, ToolError> {
        let faults = self.surfaces.check_call(&arguments);
        let advice = match (faults.is_empty(), self.surfaces.has_given_up()) {
            (true, false) => return Ok(json!({ "status": "rendered" }).to_string().into()),
            (_, true) => "the interface was not shown, and no attempt is left: answer with text",
            (false, false) => "the interface has faults: call render_a2ui again, with all components",
        };
        Err(ToolError::new(format!("{advice}. {}", json!({ "errors": faults }))))
    }
}
