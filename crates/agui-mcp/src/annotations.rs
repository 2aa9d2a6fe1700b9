//! The annotations by which an MCP server describes the effects of its tools, and approval by them.
//!
//! **Annotations are hints of the server**, which a hostile server can set as it likes: they are for servers that are
//! trusted. A missing hint has the default of the specification, which assumes the worst, and so does a hint that is
//! not a boolean: <https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations>

use serde::Deserialize;
use serde_json::Value;
use smart_default::SmartDefault;

use agui_tools::{ApprovalRule, Repeat, host::ConfiguredRule};

/// A rule for which calls of an MCP server's tools need approval.
#[derive(Debug, Clone, PartialEq, Deserialize, SmartDefault)]
#[serde(try_from = "ConfiguredRule")]
#[non_exhaustive]
pub enum McpApproval {
    /// `"annotations"`: calls of tools need approval that may destroy something, or that reach an open world, by the
    /// server's description. Tools without annotations are among them.
    Annotations,
    /// A rule as for all tools.
    #[default]
    Rule(ApprovalRule),
}

impl From<ApprovalRule> for McpApproval {
    fn from(rule: ApprovalRule) -> Self {
        Self::Rule(rule)
    }
}

impl TryFrom<ConfiguredRule> for McpApproval {
    type Error = String;

    fn try_from(rule: ConfiguredRule) -> Result<Self, String> {
        match rule {
            ConfiguredRule::Annotations => Ok(Self::Annotations),
            other => ApprovalRule::try_from(other).map(Self::Rule),
        }
    }
}

/// The form in a configuration.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for McpApproval {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "McpApproval".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<ConfiguredRule>()
    }
}

impl McpApproval {
    /// Returns the rule for a tool with these effects.
    pub(super) fn rule(&self, effects: Effects) -> ApprovalRule {
        match self {
            Self::Rule(rule) => rule.clone(),
            Self::Annotations if effects.is_destructive || effects.is_open_world => {
                ApprovalRule::Always
            }
            Self::Annotations => ApprovalRule::Never,
        }
    }
}

/// The effects of a tool, by its annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effects {
    is_destructive: bool,
    is_open_world: bool,
    /// True if a second call changes nothing more.
    is_repeatable: bool,
}

impl Effects {
    /// Reading a resource or a prompt changes nothing, and both are the server's own.
    pub(super) const READS: Self =
        Self { is_destructive: false, is_open_world: false, is_repeatable: true };

    /// Reads the annotations of a tool's description.
    pub(super) fn of(description: &Value) -> Self {
        let hint = |name: &str| description.get("annotations")?.get(name)?.as_bool();
        let is_read_only = hint("readOnlyHint").unwrap_or(false);
        Self {
            is_destructive: !is_read_only && hint("destructiveHint").unwrap_or(true),
            is_open_world: hint("openWorldHint").unwrap_or(true),
            is_repeatable: is_read_only || hint("idempotentHint").unwrap_or(false),
        }
    }

    pub(super) fn repeat(self) -> Repeat {
        if self.is_repeatable { Repeat::Safe } else { Repeat::Never }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tools_that_say_that_they_are_harmless_need_no_approval() {
        for (annotations, is_needed) in [
            (json!({ "readOnlyHint": true, "openWorldHint": false }), false),
            (json!({ "destructiveHint": false, "openWorldHint": false }), false),
            // The destructive hint has no meaning for a tool that only reads.
            (
                json!({ "readOnlyHint": true, "destructiveHint": true, "openWorldHint": false }),
                false,
            ),
            (json!({ "readOnlyHint": true }), true),
            (json!({ "openWorldHint": false }), true),
            (json!({ "destructiveHint": false }), true),
            (json!({ "destructiveHint": true, "openWorldHint": false }), true),
            (json!({ "readOnlyHint": "true", "openWorldHint": false }), true),
            (json!({ "readOnlyHint": true, "openWorldHint": "false" }), true),
            (json!({}), true),
            (json!([]), true),
            (json!(null), true),
        ] {
            let effects = Effects::of(&json!({ "name": "t", "annotations": annotations }));
            let is_always_needed = McpApproval::Annotations.rule(effects) == ApprovalRule::Always;
            assert_eq!(is_always_needed, is_needed, "{annotations}");
        }
        assert_eq!(
            Effects::of(&json!({ "name": "t" })),
            Effects::of(&json!({ "annotations": {} }))
        );
    }

    #[test]
    fn a_rule_is_read_as_for_all_tools() {
        #[derive(Deserialize)]
        struct Options {
            approval: McpApproval,
        }
        let read = |text: &str| toml::from_str::<Options>(text).map(|options| options.approval);
        assert_eq!(read("approval = \"annotations\"").unwrap(), McpApproval::Annotations);
        assert_eq!(read("approval = \"always\"").unwrap(), ApprovalRule::Always.into());
        let unless = ApprovalRule::unless([("path", "^/tmp/")]).unwrap();
        assert_eq!(read("approval = { unless = { path = \"^/tmp/\" } }").unwrap(), unless.into());
        assert!(read("approval = \"sometimes\"").unwrap_err().message().contains("`annotations`"));
    }
}
