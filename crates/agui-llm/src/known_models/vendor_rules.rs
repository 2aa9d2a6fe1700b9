//! The rules of the models of OpenAI, Anthropic and Google, and the parsers of their names.

use serde::Deserialize;

use super::rule_table::{ModelName, ModelVersion, RuleTable};

/// All efforts of OpenAI, the lowest first.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// The version of Gemini models without a number.
const NEWEST: ModelVersion = (u32::MAX, 0);

/// The rules of a model.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OpenAiRules {
    /// `false` if the model answers without reasoning, and refuses options of reasoning.
    pub(crate) reasons: bool,
    /// The efforts, the lowest first; empty if they are not known.
    pub(crate) efforts: Vec<String>,
    /// The effort of a request that sets none.
    pub(crate) default_effort: String,
    /// `true` if chat completions do not serve the model.
    pub(crate) responses_only: bool,
    /// `true` if the Responses API does not serve the model.
    pub(crate) chat_only: bool,
    /// `true` if chat completions refuse tools unless the effort is `none`.
    pub(crate) refuses_tools_on_chat: bool,
    /// `true` if the model wants to know which of its own messages were final answers.
    pub(crate) has_phases: bool,
    /// `true` if the model has a verbosity.
    pub(crate) has_verbosity: bool,
    /// The warning of `agui-server check` about the model.
    pub(crate) warning: Option<String>,
}

impl OpenAiRules {
    /// Returns `true` if requests with this effort may set `temperature` and `top_p`.
    pub(crate) fn takes_sampling(&self, effort: Option<&str>) -> bool {
        !self.reasons || effort.unwrap_or(&self.default_effort) == "none"
    }

    /// Chat completions refuse `parallel_tool_calls` for the o series:
    /// <https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning>.
    pub(crate) fn takes_parallel_calls_on_chat(&self) -> bool {
        !self.reasons || self.has_verbosity
    }

    /// Returns the only effort with which chat completions take tools, if there is one.
    pub(crate) fn effort_with_tools_on_chat(&self) -> Option<&str> {
        (self.refuses_tools_on_chat && self.can_be_off()).then_some("none")
    }

    /// Returns `true` if an effort switches reasoning off.
    pub(crate) fn can_be_off(&self) -> bool {
        self.efforts.first().is_some_and(|effort| effort == "none")
    }

    /// Returns the effort of the model that is nearest to one for another model.
    pub(crate) fn nearest_effort<'e>(&'e self, effort: &'e str) -> Option<&'e str> {
        if !self.reasons {
            return None;
        }
        if self.efforts.is_empty() || self.efforts.iter().any(|own| own == effort) {
            return Some(effort);
        }
        let rank = |effort: &str| EFFORTS.iter().position(|known| *known == effort);
        let above = self.efforts.iter().find(|own| rank(own) >= rank(effort));
        above.or(self.efforts.last()).map(String::as_str)
    }
}

/// Reads names such as `gpt-5.4-mini-2026-03-17`, `o3-mini`, `codex-mini-latest` and
/// `ft:gpt-4.1-2025-04-14:organisation::id`, which is a fine-tuned model.
pub(super) fn parse_openai(model: &str, table: &RuleTable) -> Option<ModelName> {
    let model = model.strip_prefix("ft:").and_then(|rest| rest.split(':').next()).unwrap_or(model);
    let mut parts = model.split('-');
    let first = parts.next()?;
    let (family, version) = match first {
        "gpt" => ("gpt", Some(gpt_version(parts.next()?)?)),
        family if table.has_family(family) => (family, None),
        _ => ("o-series", Some((first.strip_prefix('o')?.parse().ok()?, 0))),
    };
    Some(ModelName {
        family: family.to_owned(),
        version,
        words: parts.map(str::to_owned).collect(),
    })
}

/// Reads versions such as `5.4` and `4o`.
fn gpt_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    Some((number(major)?.0, number(minor).map_or(0, |(minor, _)| minor)))
}

/// The rules for one model.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClaudeRules {
    pub(crate) thinking: ThinkingTypes,
    /// `true` if the model thinks when a request does not mention thinking.
    pub(crate) thinks_by_default: bool,
    pub(crate) off: ThinkingOff,
    /// The values of `output_config.effort`; empty if the model has no effort.
    pub(crate) efforts: Vec<String>,
    /// The largest `max_tokens`.
    pub(crate) max_output: u32,
    pub(crate) sampling: Sampling,
    /// `true` if `tool_choice` may be `any` or `tool`.
    pub(crate) forced_tools: bool,
    /// `true` if the model has strict tools and `output_config.format`.
    pub(crate) structured: bool,
    /// `true` if `messages` may contain the role `system`.
    pub(crate) system_messages: bool,
    /// `true` if a thinking block is only valid behind the same system prompt, tools and messages.
    pub(crate) binds_thinking: bool,
    /// The warning of `agui-server check` about the model.
    pub(crate) warning: Option<String>,
}

/// The types of `thinking` with which a model thinks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThinkingTypes {
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
pub(crate) enum ThinkingOff {
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
pub(crate) enum Sampling {
    #[default]
    All,
    /// `temperature` and `top_p` exclude each other.
    OneOfTwo,
    None,
}

/// Reads names such as `claude-opus-4-7`, `claude-3-7-sonnet-20250219` and `anthropic/claude-sonnet-4.5`. A family is
/// known if a rule names it.
pub(super) fn parse_claude(model: &str, table: &RuleTable) -> Option<ModelName> {
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

/// The rules for one model.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GeminiRules {
    pub(crate) thinking: ThinkingControl,
    pub(crate) penalties: bool,
    /// `false` if the model ignores `temperature`, `topP` and `topK`.
    pub(crate) sampling: bool,
    pub(crate) files_by_url: bool,
    pub(crate) media_in_results: bool,
    pub(crate) schema_with_tools: bool,
    pub(crate) requires_signatures: bool,
    /// The warning of `agui-server check` about the model.
    pub(crate) warning: Option<String>,
}

/// The way in which a model's thinking is set.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ThinkingControl {
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
pub(super) fn parse_gemini(model: &str, _: &RuleTable) -> Option<ModelName> {
    let name = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let Some(rest) = name.strip_prefix("gemini-") else { return Some(ModelName::default()) };
    let version = Some(gemini_version(rest).unwrap_or(NEWEST));
    Some(ModelName {
        family: "gemini".to_owned(),
        version,
        words: rest.split('-').map(str::to_owned).collect(),
    })
}

/// `None` if the text does not begin with a number.
fn gemini_version(text: &str) -> Option<ModelVersion> {
    let (major, rest) = number(text)?;
    let minor = rest.strip_prefix('.').and_then(number).map_or(0, |(minor, _)| minor);
    Some((major, minor))
}

/// Returns the number at the beginning of a text, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, &text[digits..]))
}
