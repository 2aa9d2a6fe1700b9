//! The prompts of an MCP server as two tools for a model: one lists them, one fills one in.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{annotations::Effects, call::McpCaller, client::RunRequest, listing, result, tool};
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Approval, Tool, ToolContext, ToolError, ToolSpec},
};

/// The name in `approval_of`, which is the protocol's.
pub(super) const GET: &str = "prompts/get";

pub(super) fn tools(caller: &McpCaller) -> Vec<Arc<dyn Tool>> {
    let server = caller.server();
    let list = ToolSpec {
        name: listing::tool_name(server, "list_prompts"),
        description: format!("Lists the prompts of {server}: prepared instructions for tasks, by their names."),
        parameters: listing::parameters(),
    };
    let get = ToolSpec {
        name: listing::tool_name(server, "get_prompt"),
        description: format!("Returns a prompt of {server}, with the arguments filled in."),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The name of the prompt" },
                "arguments": { "type": "object", "additionalProperties": { "type": "string" } }
            },
            "required": ["name"],
            "additionalProperties": false
        }),
    };
    vec![
        Arc::new(ListPrompts { spec: list, caller: caller.clone() }),
        Arc::new(GetPrompt { spec: get, caller: caller.clone() }),
    ]
}

struct ListPrompts {
    spec: ToolSpec,
    caller: McpCaller,
}

#[async_trait]
impl Tool for ListPrompts {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        self.caller.metric_name()
    }

    async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let request = RunRequest::ListPrompts { cursor: listing::cursor(&arguments) };
        let (answer, secrets) = self.caller.call(request, cx).await?;
        let lines = listing::lines(&answer, "prompts", "name", &secrets);
        listing::to_content(lines, &answer, self.caller.options.max_result_bytes, &secrets)
    }
}

struct GetPrompt {
    spec: ToolSpec,
    caller: McpCaller,
}

#[async_trait]
impl Tool for GetPrompt {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        self.caller.metric_name()
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        tool::approval(&self.caller, GET, Effects::READS, arguments)
    }

    async fn call(&self, mut arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = match arguments.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            _ => JsonObject::new(),
        };
        let (answer, secrets) = self.caller.call(RunRequest::GetPrompt { name, arguments }, cx).await?;
        let messages = answer.get("messages").and_then(Value::as_array).into_iter().flatten();
        let blocks = messages.flat_map(|message| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
            [json!({ "type": "text", "text": format!("{role}:") }), message.get("content").cloned().unwrap_or_default()]
        });
        let content = json!({ "content": blocks.collect::<Vec<_>>() });
        result::to_content(&content, self.caller.options.max_result_bytes, &secrets)
    }
}
