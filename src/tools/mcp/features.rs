//! The resources and the prompts of an MCP server as tools for a model: for each, one tool lists them and one reads one.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Value, json};

use super::{annotations::Effects, call::McpCaller, listing, result, tool};
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Approval, Repeat, Tool, ToolContext, ToolError, ToolSpec},
};

/// The names in `approval_of`, which are the protocol's.
pub(super) const READ: &str = "resources/read";
pub(super) const GET: &str = "prompts/get";

/// Returns the tools for resources.
pub(super) fn resource_tools(caller: &Arc<McpCaller>) -> Vec<Arc<dyn Tool>> {
    let server = &caller.server;
    let list = format!("Lists the resources of {server}, such as files and records, by their URIs.");
    let read = json!({
        "type": "object",
        "properties": { "uri": { "type": "string", "description": "The URI of the resource" } },
        "required": ["uri"],
        "additionalProperties": false
    });
    vec![
        tool(caller, FeatureAction::ListResources, "list_resources", list, listing::parameters()),
        tool(caller, FeatureAction::ReadResource, "read_resource", format!("Reads a resource of {server}."), read),
    ]
}

/// Returns the tools for prompts.
pub(super) fn prompt_tools(caller: &Arc<McpCaller>) -> Vec<Arc<dyn Tool>> {
    let server = &caller.server;
    let list = format!("Lists the prompts of {server}: prepared instructions for tasks, by their names.");
    let get = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "The name of the prompt" },
            "arguments": { "type": "object", "additionalProperties": { "type": "string" } }
        },
        "required": ["name"],
        "additionalProperties": false
    });
    let about_get = format!("Returns a prompt of {server}, with the arguments filled in.");
    vec![
        tool(caller, FeatureAction::ListPrompts, "list_prompts", list, listing::parameters()),
        tool(caller, FeatureAction::GetPrompt, "get_prompt", about_get, get),
    ]
}

fn tool(
    caller: &Arc<McpCaller>,
    action: FeatureAction,
    name: &str,
    description: String,
    parameters: Value,
) -> Arc<dyn Tool> {
    let spec = ToolSpec::new(listing::tool_name(&caller.server, name), description, parameters);
    Arc::new(FeatureTool { spec, action, caller: caller.clone() })
}

enum FeatureAction {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

struct FeatureTool {
    spec: ToolSpec,
    action: FeatureAction,
    caller: Arc<McpCaller>,
}

#[async_trait]
impl Tool for FeatureTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        &self.caller.metric_name
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        let key = match self.action {
            FeatureAction::ReadResource => READ,
            FeatureAction::GetPrompt => GET,
            FeatureAction::ListResources | FeatureAction::ListPrompts => return Approval::NotNeeded,
        };
        tool::approval(&self.caller, key, Effects::READS, arguments)
    }

    fn repeat(&self, _: &JsonObject) -> Repeat {
        Repeat::Safe
    }

    async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        match self.action {
            FeatureAction::ListResources => self.list_resources(&arguments, cx).await,
            FeatureAction::ReadResource => self.read_resource(&arguments, cx).await,
            FeatureAction::ListPrompts => self.list_prompts(&arguments, cx).await,
            FeatureAction::GetPrompt => self.get_prompt(arguments, cx).await,
        }
    }
}

impl FeatureTool {
    async fn list_resources(&self, arguments: &JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let page = listing::page(arguments);
        let is_first_page = page.cursor.is_none();
        let (answer, secrets) = self.caller.call(ListResourcesRequest::with_param(page), cx).await?;
        let mut lines = listing::lines(&answer, "resources", "uri", &secrets);
        if is_first_page {
            // Not every server has templates.
            let request = ListResourceTemplatesRequest::with_param(PaginatedRequestParams::default());
            if let Ok((templates, secrets)) = self.caller.call(request, cx).await {
                lines.extend(listing::lines(&templates, "resourceTemplates", "uriTemplate", &secrets));
            }
        }
        listing::to_content(lines, &answer, self.caller.options.max_result_bytes, &secrets)
    }

    async fn read_resource(&self, arguments: &JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let (answer, secrets) = self.caller.call(request, cx).await?;
        let contents = answer.get("contents").and_then(Value::as_array).into_iter().flatten();
        let blocks: Vec<_> = contents.map(|content| json!({ "type": "resource", "resource": content })).collect();
        let limit = self.caller.options.max_result_bytes;
        result::to_content(&json!({ "content": blocks }), limit, &secrets)
    }

    async fn list_prompts(&self, arguments: &JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let request = ListPromptsRequest::with_param(listing::page(arguments));
        let (answer, secrets) = self.caller.call(request, cx).await?;
        let lines = listing::lines(&answer, "prompts", "name", &secrets);
        listing::to_content(lines, &answer, self.caller.options.max_result_bytes, &secrets)
    }

    async fn get_prompt(&self, mut arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = match arguments.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            _ => JsonObject::new(),
        };
        let request = GetPromptRequestParams::new(name).with_arguments(arguments);
        let (answer, secrets) = self.caller.call(GetPromptRequest::new(request), cx).await?;
        let messages = answer.get("messages").and_then(Value::as_array).into_iter().flatten();
        let blocks = messages.flat_map(|message| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
            [json!({ "type": "text", "text": format!("{role}:") }), message.get("content").cloned().unwrap_or_default()]
        });
        let content = json!({ "content": blocks.collect::<Vec<_>>() });
        result::to_content(&content, self.caller.options.max_result_bytes, &secrets)
    }
}
