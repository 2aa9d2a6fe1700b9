//! The pages of an MCP server (MCP Apps): they show results of tools, and send requests.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde_json::{Value, json};

use super::{
    call::McpCaller,
    tool::McpTool,
    tool_ui::{is_page, redact},
};
use agui_agent::AppRequest;
use agui_protocol::{JsonObject, MessageId, event::ActivitySnapshot};
use agui_tools::{Approval, Tool as _, ToolContext, ToolError, host::Secrets};

/// The largest resource that a page can read, in bytes of JSON. Pages are HTML with all their scripts in it.
const MAX_RESOURCE_BYTES: usize = 4 * 1024 * 1024;
const ACTIVITY: &str = "mcp-apps";

impl McpTool {
    /// Shows the tool's page with the result of a call, after it. A tool can have no page, and a result can be too large.
    pub(super) fn show_page(
        &self,
        arguments: JsonObject,
        response: &Value,
        secrets: &Secrets,
        cx: &ToolContext,
    ) {
        let McpCaller { server, options, .. } = &*self.caller;
        let Some(uri) = self.ui.resource_uri.as_ref().filter(|_| options.apps) else { return };
        let mut result = response.clone();
        redact(&mut result, secrets);
        if result.to_string().len() > options.max_result_bytes {
            tracing::warn!(
                server = &**server,
                uri,
                "the result is too large to be shown by the tool's page"
            );
            return;
        }
        // `toolCallId` is for front ends that show a page in the place of its call.
        let content = json!({
            "result": result, "resourceUri": uri, "serverHash": server, "serverId": server, "toolInput": arguments,
            "toolCallId": cx.call_id(),
        });
        let Value::Object(content) = content else { return };
        let id = MessageId::from(format!("{ACTIVITY}-{}", cx.call_id()));
        cx.emit_after_result(ActivitySnapshot::new(id, ACTIVITY, content).into());
    }
}

/// Responds to a request of a page of this server. `tools` are those that the agent has.
pub(super) async fn respond(
    caller: &McpCaller,
    tools: &[Arc<McpTool>],
    request: &AppRequest,
    cx: &ToolContext,
) -> Result<Value, ToolError> {
    let text = |name: &str| request.params.get(name).and_then(Value::as_str).unwrap_or_default();
    let (request, max_bytes): (ClientRequest, _) = match &*request.method {
        "ping" => return Ok(json!({})),
        "notifications/message" => {
            tracing::debug!(
                server = &*caller.server,
                "a page of the MCP server has logged a message"
            );
            return Ok(json!({ "success": true }));
        }
        "resources/read" if is_page(text("uri")) => {
            let read = ReadResourceRequest::new(ReadResourceRequestParams::new(text("uri")));
            (read.into(), MAX_RESOURCE_BYTES)
        }
        "tools/call" => {
            let name = text("name");
            let tool = tools.iter().find(|tool| tool.name == name && tool.ui.is_for_app);
            let tool =
                tool.ok_or_else(|| ToolError::new(format!("the page has no tool {name:?}")))?;
            let arguments = request
                .params
                .get("arguments")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            if tool.approval(&arguments) != Approval::NotNeeded {
                return Err(ToolError::new(format!("a call of {name:?} needs approval")));
            }
            let call = CallToolRequest::new(
                CallToolRequestParams::new(name.to_owned()).with_arguments(arguments),
            );
            (call.into(), caller.options.max_result_bytes)
        }
        method => {
            let problem = format!("a page cannot request {method:?}, or not with these parameters");
            return Err(ToolError::new(problem));
        }
    };
    let (mut response, secrets) = caller.call(request, cx).await?;
    if response.to_string().len() > max_bytes {
        return Err(ToolError::new(format!("the answer is larger than {max_bytes} bytes")));
    }
    redact(&mut response, &secrets);
    Ok(response)
}
