//! The rules of Anthropic's models.

use serde::Deserialize;

use super::rule_table::{ModelName, RuleTable};

/// The rules for one model.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::llm) struct ClaudeRules {
    pub(in crate::llm) thinking: ThinkingTypes,
    /// `true` if the model thinks when a request does not mention thinking.
    pub(in crate::llm) thinks_by_default: bool,
    pub(in crate::llm) off: ThinkingOff,
    /// The values of `output_config.effort`; empty if the model has no effort.
    pub(in crate::llm) efforts: Vec<String>,
    /// The largest `max_tokens`.
    pub(in crate::llm) max_output: u32,
    pub(in crate::llm) sampling: Sampling,
    /// `true` if `tool_choice` may be `any` or `tool`.
    pub(in crate::llm) forced_tools: bool,
    /// `true` if the model has strict tools and `output_config.format`.
    pub(in crate::llm) structured: bool,
    /// `true` if `messages` may contain the role `system`.
    pub(in crate::llm) system_messages: bool,
    /// `true` if a thinking block is only valid behind the same system prompt, tools and messages.
    pub(in crate::llm) binds_thinking: bool,
    /// What `agui-server check` says about the model.
    pub(in crate::llm) warning: Option<String>,
}

/// The types of `thinking` with which a model thinks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::llm) enum ThinkingTypes {
    /// The model cannot think.
    #[default]
    None,
    /// `enabled`, with a budget.
    Budget,
    /// `enabled` and `adaptive`.
    Both,
    Adaptive,
}

/// The way in which thinking is switched off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::llm) enum ThinkingOff {
    /// `thinking` is left out.
    #[default]
    LeftOut,
    Disabled,
    /// `disabled`, with an effort of at most `high`.
    DisabledUpToHigh,
    /// `between_tools`, with an effort of at most `high`.
    BetweenToolsUpToHigh,
    /// The model always thinks.
    Never,
}

/// The sampling parameters that a model takes without thinking.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::llm) enum Sampling {
    #[default]
    All,
    /// `temperature` and `top_p` exclude each other.
    OneOfTwo,
    None,
}

/// Reads names such as `claude-opus-4-7`, `claude-3-7-sonnet-20250219` and `anthropic/claude-sonnet-4.5`. A family is
/// known if a rule names it.
pub(super) fn parse(model: &str, table: &RuleTable) -> Option<ModelName> {
    let name = model.to_ascii_lowercase();
    let (_, name) = name.split_once("claude-")?;
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    // A longer number is a date.
    let number = |at: usize| words.get(at).filter(|word| word.len() <= 2)?.parse::<u32>().ok();
    let at = words.iter().position(|word| table.has_family(word))?;
    let first = if number(at + 1).is_some() { at + 1 } else { 0 };
    let minor = if first == 0 && at == 1 { None } else { number(first + 1) };
    let version = Some((number(first)?, minor.unwrap_or(0)));
    Some(ModelName {
        family: words[at].to_owned(),
        version,
        words: words.iter().map(|&word| word.to_owned()).collect(),
    })
}
