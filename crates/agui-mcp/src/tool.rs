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
        let (response, secrets) = self.caller.call(CallToolRequest::new(request), cx).await?;
        self.show_page(arguments, &response, &secrets, cx);
        result::to_content(&response, self.caller.options.max_result_bytes, &secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reduced_to_characters_that_all_providers_accept() {
        assert_eq!(portable_name("", "read_file"), "read_file");
        assert_eq!(portable_name("files_", "read.file/é"), "files_read_file__-13H6Mlm9K5Zj");
        assert_eq!(portable_name("", &"x".repeat(100)).len(), MAX_NAME_CHARS);
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
