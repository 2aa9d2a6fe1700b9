//! The resources and the prompts of an MCP server as tools for a model: for each, one tool lists them and one reads one.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Value, json};

use super::{
    annotations::Effects,
    call::McpCaller,
    result,
    tool::{self, MAX_NAME_CHARS},
};
use crate::{
    base::text::shortened,
    protocol::{JsonObject, MessageContent},
    tools::{Approval, Repeat, Tool, ToolContext, ToolError, ToolSpec, secrets::Secrets},
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
        tool(caller, FeatureAction::ListResources, "list_resources", list, parameters()),
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
        tool(caller, FeatureAction::ListPrompts, "list_prompts", list, parameters()),
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
    let spec = ToolSpec::new(tool_name(&caller.server, name), description, parameters);
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
        let page = page(arguments);
        let is_first_page = page.cursor.is_none();
        let (answer, secrets) = self.caller.call(ListResourcesRequest::with_param(page), cx).await?;
        let mut lines = described(&answer, "resources", "uri", &secrets);
        if is_first_page {
            // Not every server has templates.
            let request = ListResourceTemplatesRequest::with_param(PaginatedRequestParams::default());
            if let Ok((templates, secrets)) = self.caller.call(request, cx).await {
                lines.extend(described(&templates, "resourceTemplates", "uriTemplate", &secrets));
            }
        }
        to_content(lines, &answer, self.caller.options.max_result_bytes, &secrets)
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
        let request = ListPromptsRequest::with_param(page(arguments));
        let (answer, secrets) = self.caller.call(request, cx).await?;
        let lines = described(&answer, "prompts", "name", &secrets);
        to_content(lines, &answer, self.caller.options.max_result_bytes, &secrets)
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

const MAX_ENTRY_CHARS: usize = 500;
const MAX_ENTRIES: usize = 500;
/// A server could send a cursor of any length.
const MAX_CURSOR_BYTES: usize = 2000;

/// Returns the name of a tool, which has the server's name, because several servers can have resources.
pub(super) fn tool_name(server: &str, action: &str) -> String {
    let server: String = server.chars().take(MAX_NAME_CHARS - action.len() - 1).collect();
    format!("{server}_{action}")
}

pub(super) fn parameters() -> Value {
    let cursor = json!({ "type": "string", "description": "The cursor of the next page, from the page before" });
    json!({ "type": "object", "properties": { "cursor": cursor }, "additionalProperties": false })
}

/// Returns the page that the arguments ask for.
pub(super) fn page(arguments: &JsonObject) -> PaginatedRequestParams {
    let cursor = arguments.get("cursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned))
}

/// Returns a line for each entry of a list: its `key`, name, media type, description and arguments.
pub(super) fn described(answer: &Value, list: &str, key: &str, secrets: &Secrets) -> Vec<String> {
    let entries = answer.get(list).and_then(Value::as_array).into_iter().flatten();
    entries.take(MAX_ENTRIES).map(|entry| line(entry, key, secrets)).collect()
}

fn line(entry: &Value, key: &str, secrets: &Secrets) -> String {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut line = format!("- {}", text(key).unwrap_or("(nameless)"));
    let title = text("title").or(text("name")).filter(|title| text(key) != Some(*title));
    title.into_iter().for_each(|title| line.push_str(&format!(" ({title})")));
    text("mimeType").into_iter().for_each(|kind| line.push_str(&format!(" [{kind}]")));
    text("description").into_iter().for_each(|about| line.push_str(&format!(": {about}")));
    let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let arguments: Vec<_> = arguments
        .filter_map(|argument| {
            let name = argument.get("name").and_then(Value::as_str)?;
            let is_required = argument.get("required").and_then(Value::as_bool).unwrap_or(false);
            Some(if is_required { format!("{name} (required)") } else { name.to_owned() })
        })
        .collect();
    if !arguments.is_empty() {
        line.push_str(&format!("; arguments: {}", arguments.join(", ")));
    }
    let line = secrets.redact(&line).unwrap_or(line);
    shortened(&line.replace(char::is_control, " "), MAX_ENTRY_CHARS)
}

/// `page` is the answer that has the cursor of the next page.
pub(super) fn to_content(
    mut lines: Vec<String>,
    page: &Value,
    limit: usize,
    secrets: &Secrets,
) -> Result<MessageContent, ToolError> {
    if lines.is_empty() {
        lines.push("(the list is empty)".to_owned());
    }
    match page.get("nextCursor").and_then(Value::as_str) {
        Some(next) if next.len() <= MAX_CURSOR_BYTES => {
            lines.insert(0, format!("There are more. Call again with {}.", json!({ "cursor": next })));
        }
        Some(_) => lines.insert(0, "There are more, which cannot be listed.".to_owned()),
        None => {}
    }
    result::to_content(&json!({ "content": [{ "type": "text", "text": lines.join("\n") }] }), limit, secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_short_line() {
        let entry = json!({
            "name": "greet", "title": "Greeting", "description": "Says\nhello",
            "arguments": [{ "name": "who", "required": true }, { "name": "how" }, {}]
        });
        let page = json!({ "prompts": [entry, { "uri": 7 }, "x", { "name": "y".repeat(5000) }], "nextCursor": "2" });
        let lines = described(&page, "prompts", "name", &Secrets::default());
        assert_eq!(lines[0], "- greet (Greeting): Says hello; arguments: who (required), how");
        assert_eq!(
            (&*lines[1], &*lines[2], lines[3].chars().count()),
            ("- (nameless)", "- (nameless)", MAX_ENTRY_CHARS + 1)
        );
        let content = to_content(lines, &page, 10_000, &Secrets::default()).unwrap();
        assert!(content.text().starts_with("There are more. Call again with {\"cursor\":\"2\"}.\n- greet"));
        assert_eq!(to_content(Vec::new(), &json!({}), 100, &Secrets::default()).unwrap().text(), "(the list is empty)");
    }

    #[test]
    fn a_secret_at_the_end_of_an_entry_is_removed_as_a_whole() {
        let mut secrets = Secrets::default();
        secrets.add("sk-12345678");
        for before in MAX_ENTRY_CHARS - 20..MAX_ENTRY_CHARS {
            let entry = json!({ "name": "a", "description": format!("{}sk-12345678", "x".repeat(before)) });
            let lines = described(&json!({ "prompts": [entry] }), "prompts", "name", &secrets);
            assert!(!lines[0].contains("sk"), "{}", lines[0]);
        }
    }

    #[test]
    fn names_of_tools_fit_all_providers() {
        assert_eq!(tool_name("files", "read_resource"), "files_read_resource");
        let long = tool_name(&"x".repeat(64), "read_resource");
        assert!(long.len() == MAX_NAME_CHARS && long.ends_with("_read_resource"));
    }
}
