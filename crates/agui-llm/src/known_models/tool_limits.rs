//! The limits of each provider for the names and schemas of tools.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use agui_protocol::JsonObject;

/// The tables of the file by provider, as written or read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ByProvider<T> {
    pub(crate) openai: T,
    pub(crate) anthropic: T,
    pub(crate) gemini: T,
}

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

impl ByProvider<JsonObject> {
    pub(super) fn extend(&mut self, user: Self) {
        self.openai.extend(user.openai);
        self.anthropic.extend(user.anthropic);
        self.gemini.extend(user.gemini);
    }

    /// Fails if a member is unknown or missing.
    pub(super) fn read(&self) -> Result<ByProvider<Arc<ToolLimits>>, String> {
        let read = |name: &str, members: &JsonObject| {
            let limits: ToolLimits = serde_json::from_value(Value::Object(members.clone()))
                .map_err(|error| format!("[tools.{name}]: {error}"))?;
            match limits.name_chars {
                0..32 => Err(format!("[tools.{name}]: `name_chars` has to be at least 32")),
                _ => Ok(Arc::new(limits)),
            }
        };
        Ok(ByProvider {
            openai: read("openai", &self.openai)?,
            anthropic: read("anthropic", &self.anthropic)?,
            gemini: read("gemini", &self.gemini)?,
        })
    }
}

impl ToolLimits {
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
