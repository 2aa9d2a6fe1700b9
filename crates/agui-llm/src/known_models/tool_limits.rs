//! The limits of each provider for the names and schemas of tools.

use serde::Deserialize;
use serde_json::Value;

use agui_protocol::JsonObject;

/// The limits of one provider. A name has letters and digits of ASCII, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolLimits {
    /// The longest name of a tool.
    pub(crate) name_chars: usize,
    /// `true` if a name may begin with a digit or `-`.
    digit_first: bool,
    /// The longest name of an argument, which has letters, digits, `_`, `.` and `-`. 0: any name is taken.
    property_chars: usize,
    /// `true` if `$ref` may stand beside other keywords.
    pub(crate) ref_siblings: bool,
    /// The keywords that are refused at the top of a schema.
    refused_at_top: Vec<String>,
    /// The keywords that are refused anywhere.
    refused: Vec<String>,
}

impl ToolLimits {
    /// Fails if a member is unknown or missing.
    pub(super) fn read(provider: &str, members: &JsonObject) -> Result<Self, String> {
        let limits: Self = serde_json::from_value(Value::Object(members.clone()))
            .map_err(|error| format!("[tools.{provider}]: {error}"))?;
        match limits.name_chars {
            0..32 => Err(format!("[tools.{provider}]: `name_chars` has to be at least 32")),
            _ => Ok(limits),
        }
    }

    pub(crate) fn takes_name(&self, name: &str) -> bool {
        let first = name.bytes().next();
        (1..=self.name_chars).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            && (self.digit_first
                || first.is_some_and(|first| first.is_ascii_alphabetic() || first == b'_'))
    }

    pub(crate) fn takes_property(&self, name: &str) -> bool {
        let is_letter =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        self.property_chars == 0
            || (1..=self.property_chars).contains(&name.len()) && name.bytes().all(is_letter)
    }

    pub(crate) fn refuses_at_top(&self, keyword: &str) -> bool {
        self.refused_at_top.iter().any(|refused| refused == keyword)
    }

    pub(crate) fn refuses(&self, keyword: &str) -> bool {
        self.refused.iter().any(|refused| refused == keyword)
    }
}
