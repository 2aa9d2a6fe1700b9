//! The rules of Gemini models.

use serde::Deserialize;

use super::rule_table::{ModelName, ModelVersion, RuleTable};

const NEWEST: ModelVersion = (u32::MAX, 0);

/// The rules for one model.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::llm) struct GeminiRules {
    pub(in crate::llm) thinking: ThinkingControl,
    pub(in crate::llm) penalties: bool,
    /// `false` if the model ignores `temperature`, `topP` and `topK`.
    pub(in crate::llm) sampling: bool,
    pub(in crate::llm) files_by_url: bool,
    pub(in crate::llm) media_in_results: bool,
    pub(in crate::llm) schema_with_tools: bool,
    pub(in crate::llm) requires_signatures: bool,
    /// What `agui-server check` says about the model.
    pub(in crate::llm) warning: Option<String>,
}

/// The way in which a model's thinking is set.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(in crate::llm) enum ThinkingControl {
    /// The model does not think.
    #[default]
    Missing,
    /// A number of tokens.
    Budget { least: u32, most: u32, can_be_off: bool },
    /// One of these levels, the lowest first. Some models hardly think unless a level is set.
    Level { levels: Vec<String>, by_default: bool },
}

/// Reads names such as `gemini-2.5-flash-lite` and `publishers/google/models/gemini-3.8-flash`. Models of other names, such
/// as `gemma-…`, are Google's too, without a version.
pub(super) fn parse(model: &str, _: &RuleTable) -> Option<ModelName> {
    let name = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let Some(rest) = name.strip_prefix("gemini-") else { return Some(ModelName::default()) };
    let version = Some(version(rest).unwrap_or(NEWEST));
    Some(ModelName { family: "gemini".to_owned(), version, words: rest.split('-').map(str::to_owned).collect() })
}

/// `None` if the text does not begin with a number.
fn version(text: &str) -> Option<ModelVersion> {
    let (major, rest) = number(text)?;
    let minor = rest.strip_prefix('.').and_then(number).map_or(0, |(minor, _)| minor);
    Some((major, minor))
}

/// Returns the number at the beginning of a text, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, &text[digits..]))
}
