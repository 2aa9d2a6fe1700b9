//! The members of an MCP tool's description that are about pages (MCP Apps, SEP-1865): a front end shows a page of HTML in a
//! frame, with the results of the tool.

use serde_json::Value;

use agui_tools::host::Secrets;

/// The extension of MCP by which a server knows that its pages are shown.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/ui";
pub(super) const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The members of a tool's `_meta.ui`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolUi {
    /// The page that shows results of the tool.
    pub(super) resource_uri: Option<String>,
    pub(super) is_for_model: bool,
    pub(super) is_for_app: bool,
}

impl ToolUi {
    /// Reads a tool's description. A tool without `visibility` is for both, by the specification.
    pub(super) fn of(description: &Value) -> Self {
        let ui = description.pointer("/_meta/ui");
        let uri = ui
            .and_then(|ui| ui.get("resourceUri"))
            .or_else(|| description.pointer("/_meta/ui~1resourceUri"));
        let visibility = ui.and_then(|ui| ui.get("visibility")).and_then(Value::as_array);
        let is_for = |who: &str| {
            visibility.is_none_or(|all| all.iter().any(|one| one.as_str() == Some(who)))
        };
        Self {
            resource_uri: uri.and_then(Value::as_str).filter(|uri| is_page(uri)).map(str::to_owned),
            is_for_model: is_for("model"),
            is_for_app: is_for("app"),
        }
    }
}

pub(super) fn is_page(uri: &str) -> bool {
    uri.starts_with("ui://")
}

/// Removes the secrets from all texts of a result.
pub(super) fn redact(result: &mut Value, secrets: &Secrets) {
    match result {
        Value::String(text) => {
            secrets.redact(text).into_iter().for_each(|redacted| *text = redacted)
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, secrets)),
        Value::Object(members) => members.values_mut().for_each(|member| redact(member, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_for_those_that_its_visibility_names() {
        let read = |meta: Value| {
            let ui = ToolUi::of(&json!({ "name": "t", "_meta": meta }));
            (ui.resource_uri, ui.is_for_model, ui.is_for_app)
        };
        let page = || Some("ui://a".to_owned());
        assert_eq!(read(json!({})), (None, true, true));
        assert_eq!(read(json!({ "ui/resourceUri": "ui://a" })), (page(), true, true));
        assert_eq!(
            read(json!({ "ui": { "resourceUri": "ui://a", "visibility": ["app"] } })),
            (page(), false, true)
        );
        assert_eq!(read(json!({ "ui": { "visibility": ["model"] } })), (None, true, false));
        assert_eq!(
            read(json!({ "ui": { "visibility": [], "resourceUri": "https://a" } })),
            (None, false, false)
        );
    }
}
