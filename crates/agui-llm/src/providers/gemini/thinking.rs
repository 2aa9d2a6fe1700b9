//! The `thinkingConfig` of a request.
//!
//! Levels and budgets exclude each other, and each model takes either:
//! <https://ai.google.dev/gemini-api/docs/thinking>.

use crate::{
    ModelOptions, Thinking,
    known_models::{GeminiRules, ThinkingControl},
    providers::{warning_list::WarningList, wire::SetMember as _},
};
use agui_protocol::JsonObject;

/// The budget with which the model chooses the number of tokens.
const DYNAMIC_BUDGET: i64 = -1;

/// Returns the `thinkingConfig`; `None` if the model decides. `requested` is the request's own
/// switch.
pub(super) fn thinking_config(
    options: &ModelOptions,
    requested: Option<bool>,
    rules: &GeminiRules,
) -> Option<JsonObject> {
    let is_on = is_on(options, requested)?;
    let effort = options.reasoning_effort.as_deref().filter(|effort| *effort != "none");
    let mut config = JsonObject::new();
    match &rules.thinking {
        ThinkingControl::Missing => return None,
        ThinkingControl::Budget { least, most, can_be_off } => {
            let budget = match options.thinking_budget.filter(|budget| *budget > 0) {
                _ if !is_on && *can_be_off => 0,
                _ if !is_on => (*least).into(),
                _ if options.thinking == Some(Thinking::Adaptive) => DYNAMIC_BUDGET,
                Some(budget) => budget.clamp(*least, *most).into(),
                None => effort.map_or(DYNAMIC_BUDGET, |effort| budget_of(effort, *most)),
            };
            config.set("thinkingBudget", budget);
        }
        ThinkingControl::Level { levels, by_default } => {
            let level = match effort {
                _ if !is_on => levels.first().cloned(),
                Some(effort) => Some(level_of(effort, levels)),
                None => (!*by_default).then(|| "LOW".to_owned()),
            };
            config.set("thinkingLevel", level);
        }
    }
    config.set("includeThoughts", is_on.then_some(true));
    Some(config)
}

/// Adds one sentence for each option that the model refuses, with its replacement.
pub(super) fn add_warnings(
    warnings: &mut WarningList<'_>,
    options: &ModelOptions,
    rules: &GeminiRules,
) {
    let budget = options.thinking_budget.filter(|budget| *budget > 0);
    let effort = options.reasoning_effort.as_deref().filter(|effort| *effort != "none");
    let switched = is_on(options, None);
    // The option that switches thinking on or off.
    let switch = match (options.thinking, options.reasoning_effort.is_some()) {
        (Some(_), _) => "thinking",
        (None, true) => "reasoning_effort",
        (None, false) => "thinking_budget",
    };
    match &rules.thinking {
        ThinkingControl::Missing if switched == Some(true) => {
            warnings.add(switch, "cannot think", "it is not sent")
        }
        ThinkingControl::Missing => {}
        ThinkingControl::Budget { least, most, can_be_off } => {
            if switched == Some(false) && !can_be_off {
                warnings.add(
                    switch,
                    "always thinks",
                    &format!("the smallest budget, {least}, is sent"),
                );
            }
            if let Some(budget) = budget.filter(|budget| !(*least..=*most).contains(budget)) {
                let problem = format!("takes {least} to {most}, not {budget}");
                warnings.add("thinking_budget", &problem, "the nearest is sent");
            }
        }
        ThinkingControl::Level { levels, .. } => {
            if switched == Some(false) && levels.first().is_none_or(|level| level != "MINIMAL") {
                warnings.add(switch, "always thinks", "the level LOW is sent");
            }
            if budget.is_some() {
                warnings.add(
                    "thinking_budget",
                    "refuses a budget",
                    "set `reasoning_effort`; the budget is not sent",
                );
            }
            if let Some(effort) = effort {
                let level = level_of(effort, levels);
                if !level.eq_ignore_ascii_case(effort) {
                    let instead = format!("the level {level} is sent");
                    warnings.add(
                        "reasoning_effort",
                        &format!("has no level \"{effort}\""),
                        &instead,
                    );
                }
            }
        }
    }
}

/// Returns whether thinking is on; `None` if neither the request nor the options set it.
fn is_on(options: &ModelOptions, requested: Option<bool>) -> Option<bool> {
    match options.thinking_of(requested) {
        Some(thinking) => Some(thinking != Thinking::Off),
        None => match (options.reasoning_effort.as_deref(), options.thinking_budget) {
            (Some("none"), _) | (None, Some(0)) => Some(false),
            (None, None) => None,
            _ => Some(true),
        },
    }
}

/// Returns the budget of an effort. The API defines these numbers for the efforts of OpenAI:
/// <https://ai.google.dev/gemini-api/docs/openai#thinking>.
fn budget_of(effort: &str, most: u32) -> i64 {
    match effort {
        "minimal" | "low" => 1024,
        "medium" => 8192,
        "high" => 24_576,
        _ => most.into(),
    }
}

/// Returns the nearest level that the model has.
fn level_of(effort: &str, levels: &[String]) -> String {
    let wanted = effort.to_ascii_uppercase();
    let nearest: &[&str] = match wanted.as_str() {
        "MINIMAL" => &["MINIMAL", "LOW"],
        "LOW" => &["LOW"],
        "MEDIUM" => &["MEDIUM", "HIGH"],
        _ => &["HIGH"],
    };
    nearest
        .iter()
        .find(|level| levels.iter().any(|own| own == **level))
        .map_or(wanted, |level| (*level).to_owned())
}

#[cfg(test)]
mod tests;
