//! The rules of OpenAI's models. Both APIs of OpenAI use them.

use serde::Deserialize;

use super::rule_table::{ModelName, RuleTable};

/// All efforts, the lowest first.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The rules of a model.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::llm) struct OpenAiRules {
    /// `false` if the model answers without reasoning, and refuses options of reasoning.
    pub(in crate::llm) reasons: bool,
    /// The efforts, the lowest first; empty if they are not known.
    pub(in crate::llm) efforts: Vec<String>,
    /// The effort of a request that sets none.
    pub(in crate::llm) default_effort: String,
    /// `true` if chat completions do not serve the model.
    pub(in crate::llm) responses_only: bool,
    /// `true` if the Responses API does not serve the model.
    pub(in crate::llm) chat_only: bool,
    /// `true` if chat completions refuse tools unless the effort is `none`.
    pub(in crate::llm) refuses_tools_on_chat: bool,
    /// `true` if the model wants to know which of its own messages were final answers.
    pub(in crate::llm) has_phases: bool,
    /// `true` if the model has a verbosity.
    pub(in crate::llm) has_verbosity: bool,
    /// What `agui-server check` says about the model.
    pub(in crate::llm) warning: Option<String>,
}

impl OpenAiRules {
    /// Returns `true` if requests with this effort may set `temperature` and `top_p`.
    pub(in crate::llm) fn takes_sampling(&self, effort: Option<&str>) -> bool {
        !self.reasons || effort.unwrap_or(&self.default_effort) == "none"
    }

    /// Chat completions refuse `parallel_tool_calls` for the o series:
    /// <https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning>.
    pub(in crate::llm) fn takes_parallel_calls_on_chat(&self) -> bool {
        !self.reasons || self.has_verbosity
    }

    /// Returns the only effort with which chat completions take tools, if there is one.
    pub(in crate::llm) fn effort_with_tools_on_chat(&self) -> Option<&str> {
        (self.refuses_tools_on_chat && self.can_be_off()).then_some("none")
    }

    /// Returns `true` if an effort switches reasoning off.
    pub(in crate::llm) fn can_be_off(&self) -> bool {
        self.efforts.first().is_some_and(|effort| effort == "none")
    }

    /// Returns the effort of the model that is nearest to one for another model.
    pub(in crate::llm) fn nearest_effort<'e>(&'e self, effort: &'e str) -> Option<&'e str> {
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
pub(super) fn parse(model: &str, table: &RuleTable) -> Option<ModelName> {
    let model = model.strip_prefix("ft:").and_then(|rest| rest.split(':').next()).unwrap_or(model);
    let mut parts = model.split('-');
    let first = parts.next()?;
    let (family, version) = match first {
        "gpt" => ("gpt", Some(gpt_version(parts.next()?)?)),
        family if table.has_family(family) => (family, None),
        _ => ("o-series", Some((first.strip_prefix('o')?.parse().ok()?, 0))),
    };
    Some(ModelName { family: family.to_owned(), version, words: parts.map(str::to_owned).collect() })
}

/// Reads versions such as `5.4` and `4o`.
fn gpt_version(text: &str) -> Option<(u32, u32)> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    Some((digits(major)?, digits(minor).unwrap_or(0)))
}
