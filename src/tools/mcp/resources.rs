//! The resources of an MCP server as two tools for a model: one lists them, one reads one.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{annotations::Effects, call::McpCaller, client::RunRequest, listing, result, tool};
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Approval, Tool, ToolContext, ToolError, ToolSpec},
};

/// The name in `approval_of`, which is the protocol's.
pub(super) const READ: &str = "resources/read";

pub(super) fn tools(caller: &McpCaller) -> Vec<Arc<dyn Tool>> {
    let server = caller.server();
    let list = ToolSpec {
        name: listing::tool_name(server, "list_resources"),
        description: format!("Lists the resources of {server}, such as files and records, by their URIs."),
        parameters: listing::parameters(),
    };
    let read = ToolSpec {
        name: listing::tool_name(server, "read_resource"),
        description: format!("Reads a resource of {server}."),
        parameters: json!({
            "type": "object",
            "properties": { "uri": { "type": "string", "description": "The URI of the resource" } },
            "required": ["uri"],
            "additionalProperties": false
        }),
    };
    vec![
        Arc::new(ListResources { spec: list, caller: caller.clone() }),
        Arc::new(ReadResource { spec: read, caller: caller.clone() }),
    ]
}

struct ListResources {
    spec: ToolSpec,
    caller: McpCaller,
}

#[async_trait]
impl Tool for ListResources {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        self.caller.metric_name()
    }

    async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let cursor = listing::cursor(&arguments);
        let is_first_page = cursor.is_none();
        let (answer, secrets) = self.caller.call(RunRequest::ListResources { cursor }, cx).await?;
        let mut lines = listing::lines(&answer, "resources", "uri", &secrets);
        if is_first_page {
            // Not every server has templates.
            if let Ok((templates, secrets)) = self.caller.call(RunRequest::ListResourceTemplates, cx).await {
                lines.extend(listing::lines(&templates, "resourceTemplates", "uriTemplate", &secrets));
            }
        }
        listing::to_content(lines, &answer, self.caller.options.max_result_bytes, &secrets)
    }
}

struct ReadResource {
    spec: ToolSpec,
    caller: McpCaller,
}

#[async_trait]
impl Tool for ReadResource {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        self.caller.metric_name()
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        tool::approval(&self.caller, READ, Effects::READS, arguments)
    }

    async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (answer, secrets) = self.caller.call(RunRequest::ReadResource { uri }, cx).await?;
        let contents = answer.get("contents").and_then(Value::as_array).into_iter().flatten();
        let blocks: Vec<_> = contents.map(|content| json!({ "type": "resource", "resource": content })).collect();
        let limit = self.caller.options.max_result_bytes;
        result::to_content(&json!({ "content": blocks }), limit, &secrets)
    }
}
