//! The resources and the prompts of an MCP server as tools for a model: for each, one tool lists them and one reads one.

use std::sync::Arc;

use rmcp::model::{
    GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Value, json};

use super::{annotations::Effects, call::McpCaller, listing, result, tool::approval_rule};
use agui_protocol::{JsonObject, MessageContent};
use agui_tools::{FnTool, Repeat, Tool, ToolContext, ToolError, ToolSpec, host::object_schema};

/// The names in `approval_of`, which are the protocol's.
pub(super) const READ: &str = "resources/read";
pub(super) const GET: &str = "prompts/get";

type FeatureResult = Result<MessageContent, ToolError>;

/// Returns the tools for resources.
pub(super) fn resource_tools(caller: &Arc<McpCaller>) -> Vec<Arc<dyn Tool>> {
    let server = &caller.server;
    let list =
        format!("Lists the resources of {server}, such as files and records, by their URIs.");
    let uri = json!({ "uri": { "type": "string", "description": "The URI of the resource" } });
    let about_read = format!("Reads a resource of {server}.");
    let read =
        tool(caller, "read_resource", about_read, object_schema(uri, &["uri"]), read_resource);
    vec![
        Arc::new(tool(caller, "list_resources", list, listing::parameters(), list_resources)),
        Arc::new(read.needs_approval(approval_rule(caller, READ, Effects::READS))),
    ]
}

/// Returns the tools for prompts.
pub(super) fn prompt_tools(caller: &Arc<McpCaller>) -> Vec<Arc<dyn Tool>> {
    let server = &caller.server;
    let list =
        format!("Lists the prompts of {server}: prepared instructions for tasks, by their names.");
    let prompt = json!({
        "name": { "type": "string", "description": "The name of the prompt" },
        "arguments": { "type": "object", "additionalProperties": { "type": "string" } }
    });
    let about_get = format!("Returns a prompt of {server}, with the arguments filled in.");
    let get = tool(caller, "get_prompt", about_get, object_schema(prompt, &["name"]), get_prompt);
    vec![
        Arc::new(tool(caller, "list_prompts", list, listing::parameters(), list_prompts)),
        Arc::new(get.needs_approval(approval_rule(caller, GET, Effects::READS))),
    ]
}

fn tool<F>(
    caller: &Arc<McpCaller>,
    name: &str,
    description: String,
    parameters: Value,
    call: fn(Arc<McpCaller>, JsonObject, ToolContext) -> F,
) -> FnTool
where
    F: Future<Output = FeatureResult> + Send + 'static,
{
    let spec = ToolSpec::new(listing::tool_name(&caller.server, name), description, parameters);
    let (caller, server) = (caller.clone(), &caller.server);
    let tool = FnTool::from_spec(spec, move |arguments, cx| call(caller.clone(), arguments, cx));
    tool.repeat(Repeat::Safe).with_server(server)
}

async fn list_resources(
    caller: Arc<McpCaller>,
    arguments: JsonObject,
    cx: ToolContext,
) -> FeatureResult {
    let page = listing::page(&arguments);
    let is_first_page = page.cursor.is_none();
    let (response, secrets) = caller.call(ListResourcesRequest::with_param(page), &cx).await?;
    let mut lines = listing::lines(&response, "resources", "uri", &secrets);
    if is_first_page {
        // Not every server has templates.
        let request = ListResourceTemplatesRequest::with_param(PaginatedRequestParams::default());
        if let Ok((templates, secrets)) = caller.call(request, &cx).await {
            lines.extend(listing::lines(&templates, "resourceTemplates", "uriTemplate", &secrets));
        }
    }
    listing::to_content(lines, &response, caller.options.max_result_bytes, &secrets)
}

async fn read_resource(
    caller: Arc<McpCaller>,
    arguments: JsonObject,
    cx: ToolContext,
) -> FeatureResult {
    let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
    let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
    let (response, secrets) = caller.call(request, &cx).await?;
    let contents = response.get("contents").and_then(Value::as_array).into_iter().flatten();
    let blocks: Vec<_> =
        contents.map(|content| json!({ "type": "resource", "resource": content })).collect();
    let limit = caller.options.max_result_bytes;
    result::to_content(&json!({ "content": blocks }), limit, &secrets)
}

async fn list_prompts(
    caller: Arc<McpCaller>,
    arguments: JsonObject,
    cx: ToolContext,
) -> FeatureResult {
    let request = ListPromptsRequest::with_param(listing::page(&arguments));
    let (response, secrets) = caller.call(request, &cx).await?;
    let lines = listing::lines(&response, "prompts", "name", &secrets);
    listing::to_content(lines, &response, caller.options.max_result_bytes, &secrets)
}

async fn get_prompt(
    caller: Arc<McpCaller>,
    arguments: JsonObject,
    cx: ToolContext,
) -> FeatureResult {
    let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments =
        arguments.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    let request = GetPromptRequestParams::new(name).with_arguments(arguments);
    let (response, secrets) = caller.call(GetPromptRequest::new(request), &cx).await?;
    let messages = response.get("messages").and_then(Value::as_array).into_iter().flatten();
    let blocks = messages.flat_map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
        [
            json!({ "type": "text", "text": format!("{role}:") }),
            message.get("content").cloned().unwrap_or_default(),
        ]
    });
    let content = json!({ "content": blocks.collect::<Vec<_>>() });
    result::to_content(&content, caller.options.max_result_bytes, &secrets)
}
