//! The tool `render_a2ui`. The projection of the run paints the surface before the call runs, so
//! the call only reports the outcome.

use std::{future::ready, sync::Arc};

use serde_json::{Value, json};

use agui_agent::{host::RunSurfaces, surfaces::a2ui};
use agui_protocol::JsonObject;
use agui_tools::{FnTool, OfferedTool, Repeat, ToolError, ToolSpec, Validator};

/// Returns the tool for a run.
pub(super) fn render_tool(surfaces: Arc<RunSurfaces>) -> Option<OfferedTool> {
    let tool = a2ui::tool();
    let spec = ToolSpec::new(tool.name, tool.description, tool.parameters?);
    let validator = Arc::new(Validator::new(&spec.parameters).ok()?);
    let tool = FnTool::from_spec(spec, move |arguments, _| ready(response(&surfaces, &arguments)))
        .repeat(Repeat::Safe);
    Some(OfferedTool { tool: Arc::new(tool), validator })
}

fn response(surfaces: &RunSurfaces, arguments: &JsonObject) -> Result<Value, ToolError> {
    let faults = surfaces.check_call(arguments);
    let advice = match (faults.is_empty(), surfaces.has_given_up()) {
        (true, false) => return Ok(json!({ "status": "rendered" })),
        (_, true) => "the interface was not shown, and no attempt is left: answer with text",
        (false, false) => "the interface has faults: call render_a2ui again, with all components",
    };
    Err(ToolError::new(format!("{advice}. {}", json!({ "errors": faults }))))
}
