//! A tool of an MCP server: its description for models, and calls to it.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{CallToolRequest, CallToolRequestParams};
use serde_json::Value;

use super::{annotations::Effects, call::McpCaller, result, tool_ui::ToolUi};
use agui_base::schema::{SchemaLimits, check_size, remove_unsupported_patterns};
use agui_protocol::{JsonObject, MessageContent};
use agui_tools::{
    Approval, ApprovalRule, Repeat, Tool, ToolContext, ToolError, ToolSpec, Validator, host::digest,
};

/// The longest name of a tool that all model providers accept, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;
/// The length of the digest in a changed name, before base64.
const NAME_DIGEST_BYTES: usize = 9;
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;

pub(super) struct McpTool {
    /// The name that the server gives the tool.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
    pub(super) effects: Effects,
    approval: ApprovalRule,
    pub(super) ui: ToolUi,
    metric_name: String,
    pub(super) caller: Arc<McpCaller>,
}

impl McpTool {
    pub(super) fn new(description: &Value, caller: &Arc<McpCaller>) -> Result<Self, String> {
        let text = |key: &str| {
            description.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
        };
        let name = text("name").ok_or("it has no name")?;
        let mut purpose = text("description").or(text("title")).unwrap_or_default().to_owned();
        purpose.truncate(purpose.floor_char_boundary(MAX_DESCRIPTION_BYTES));
        // Servers in Go write `null` for no arguments: https://github.com/c0tton-fluff/caido-mcp-server/pull/1
        let written = description.get("inputSchema").filter(|schema| !schema.is_null());
        let mut parameters = written.cloned().unwrap_or_else(|| Value::Object(Default::default()));
        if let Value::Object(schema) = &mut parameters {
            // Model providers require both.
            schema.entry("type").or_insert_with(|| "object".into());
            schema.entry("properties").or_insert_with(|| Value::Object(Default::default()));
        }
        let unusable = |error| format!("its schema cannot be used: {error}");
        check_size(&parameters, SchemaLimits::TOOL).map_err(unusable)?;
        make_defaults_optional(&mut parameters);
        // Zod and others write look-ahead into the patterns of addresses. The server checks its arguments itself.
        let unchecked = remove_unsupported_patterns(&mut parameters);
        if !unchecked.is_empty() {
            let (server, patterns) = (&*caller.server, unchecked.len());
            tracing::warn!(server, tool = name, patterns, first = ?unchecked[0], "patterns of the tool need backtracking; its arguments are not checked against them");
        }
        Validator::new(&parameters).map_err(unusable)?;
        let spec = ToolSpec::new(portable_name(&caller.options.prefix, name), purpose, parameters);
        let effects = Effects::of(description);
        Ok(Self {
            name: name.to_owned(),
            spec,
            approval: approval_rule(caller, name, effects),
            effects,
            ui: ToolUi::of(description),
            metric_name: metric_name(caller, name),
            caller: caller.clone(),
        })
    }

    /// Adds to the error of a tool that wanted to ask the user during its call, which the revision does not have, what
    /// the operator can do. The words of servers differ: this says so of each error about elicitation.
    fn explained(&self, error: ToolError) -> ToolError {
        let McpCaller { server, options, session, .. } = &*self.caller;
        let is_modern = session.client().is_ok_and(|client| !client.has_initialize());
        let is_about_questions = error.message().to_lowercase().contains("elicit");
        if error.is_question() || !is_modern || !is_about_questions || !options.elicitation {
            return error;
        }
        let (server, tool) = (&**server, &self.name);
        tracing::warn!(
            server,
            tool,
            "a tool of the MCP server asks during its call: set its option `revision`"
        );
        ToolError::new(format!(
            "{}\nIf the tool asks the user during its call, it has run up to its question: do not call it again. \
             Such tools need the option `revision = \"2025-11-25\"` of [mcp.{server}] in the configuration.",
            error.message()
        ))
    }
}

/// Makes members optional that have a default. Zod, with which servers in TypeScript write schemas, describes the value
/// after its defaults were filled in, where such a member is required. The server checks its arguments itself.
fn make_defaults_optional(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(make_defaults_optional),
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            let with_default = properties
                .into_iter()
                .flatten()
                .filter(|(_, property)| property.get("default").is_some());
            let optional: Vec<_> = with_default.map(|(name, _)| name.clone()).collect();
            if let Some(Value::Array(required)) = members.get_mut("required") {
                let is_optional = |name: &Value| optional.iter().any(|optional| name == optional);
                required.retain(|name| !is_optional(name));
            }
            let is_data = |name: &str| ["const", "default", "enum", "examples"].contains(&name);
            let schemas = members.iter_mut().filter(|(name, _)| !is_data(name));
            schemas.for_each(|(_, schema)| make_defaults_optional(schema));
        }
        _ => {}
    }
}

/// Returns the calls that need approval; `key` is the name in `approval_of`.
pub(super) fn approval_rule(caller: &McpCaller, key: &str, effects: Effects) -> ApprovalRule {
    let options = &caller.options;
    options.approval_of.get(key).unwrap_or(&options.approval).rule(effects)
}

/// A server chooses the names of its tools, so only those that the configuration names are told apart.
fn metric_name(caller: &McpCaller, name: &str) -> String {
    let McpCaller { server, options, .. } = caller;
    let is_configured = options.tools.iter().flatten().any(|tool| tool == name);
    if is_configured { format!("mcp:{server}/{name}") } else { format!("mcp:{server}") }
}

/// Returns a name that all providers accept. A changed name ends with a digest of the original:
/// otherwise two tools whose names look alike or begin alike could get the same name.
fn portable_name(prefix: &str, name: &str) -> String {
    let all = prefix.chars().chain(name.chars());
    let portable: String =
        all.map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect();
    let written = format!("{prefix}{name}");
    if portable == written && portable.len() <= MAX_NAME_CHARS {
        return portable;
    }
    let digest = digest("", &written, NAME_DIGEST_BYTES);
    let kept: String = portable.chars().take(MAX_NAME_CHARS - digest.len() - 1).collect();
    format!("{kept}-{digest}")
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        &self.metric_name
    }

    fn server(&self) -> Option<&str> {
        Some(&self.caller.server)
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        self.approval.decide(arguments)
    }

    fn repeat(&self, _: &JsonObject) -> Repeat {
        self.caller.options.repeat.unwrap_or_else(|| self.effects.repeat())
    }

    async fn call(
        &self,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<MessageContent, ToolError> {
        let request =
            CallToolRequestParams::new(self.name.clone()).with_arguments(arguments.clone());
        let called = self.caller.call(CallToolRequest::new(request), cx).await;
        let (response, secrets) = called.map_err(|error| self.explained(error))?;
        self.show_page(arguments, &response, &secrets, cx);
        result::to_content(&response, self.caller.options.max_result_bytes, &secrets)
            .map_err(|error| self.explained(error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_reduced_to_characters_that_all_providers_accept() {
        assert_eq!(portable_name("", "read_file"), "read_file");
        assert_eq!(portable_name("files_", "read.file/é"), "files_read_file__-13H6Mlm9K5Zj");
        assert_eq!(portable_name("", &"x".repeat(100)).len(), MAX_NAME_CHARS);
    }

    #[test]
    fn a_required_member_with_a_default_is_optional() {
        let text = json!({ "type": "string", "default": "left" });
        let mut schema = json!({
            "properties": {
                "button": text,
                "target": { "type": "string" },
                "steps": { "items": { "properties": { "a": text, "b": {} }, "required": ["a", "b"] } },
                "required": { "default": 1 },
            },
            "required": ["button", "target", "required"],
            "$defs": { "x": { "default": { "properties": { "a": text }, "required": ["a"] } } },
        });
        let unchanged = schema["$defs"].clone();
        make_defaults_optional(&mut schema);
        assert_eq!(schema["required"], json!(["target"]));
        assert_eq!(schema.pointer("/properties/steps/items/required"), Some(&json!(["b"])));
        assert_eq!(schema["$defs"], unchanged);
    }

    #[test]
    fn names_that_differ_stay_different() {
        let (long, longer) = ("x".repeat(70), "x".repeat(71));
        // The second `pay` and `a` are Cyrillic, the last `é` is of two characters.
        let names = [
            "pay",
            "р\u{430}у",
            "p\u{430}y",
            "send_mail",
            "send.mail",
            "send/mail",
            "é",
            "e\u{301}",
            &long,
            &longer,
        ];
        let portable: std::collections::HashSet<_> =
            names.iter().map(|name| portable_name("", name)).collect();
        assert_eq!(portable.len(), names.len(), "{portable:?}");
    }
}
