//! Warnings about options that the named model refuses, with their replacements.

use super::thinking::{Conditions, ThinkingPlan};
use crate::{
    ModelOptions, Thinking,
    known_models::{ClaudeRules, Sampling, ThinkingOff, ThinkingTypes},
    providers::warning_list::WarningList,
};

/// Returns one sentence for each option. Unknown models get the configured options, without a
/// warning.
pub(super) fn warnings(options: &ModelOptions) -> Vec<String> {
    let Some(rules) = options.known_models.anthropic(&options.model) else { return Vec::new() };
    let mut warnings = WarningList::new(options, rules.warning.as_deref());
    thinking(options, &rules, &mut warnings);
    if let Some(effort) = options
        .reasoning_effort
        .as_deref()
        .filter(|effort| rules.efforts.iter().all(|own| own != effort))
    {
        let refused = if rules.efforts.is_empty() {
            "takes no effort".to_owned()
        } else {
            format!("takes the efforts {}, not {effort}", rules.efforts.join(", "))
        };
        warnings.add("reasoning_effort", &refused, "it is not sent");
    }
    let sampling = [
        ("temperature", options.temperature.is_some_and(|value| value != 1.0)),
        ("top_p", options.top_p.is_some_and(|value| value < 1.0)),
        ("top_k", options.top_k.is_some()),
    ];
    let plan = ThinkingPlan::new(
        options,
        Some(&rules),
        Conditions { switch: None, refuses_budget: false },
    );
    let sent = plan.sampling(options, Some(&rules));
    for (option, _) in
        sampling.into_iter().filter(|(option, is_set)| *is_set && !sent.contains_key(*option))
    {
        let problem = match rules.sampling {
            Sampling::None => "refuses sampling parameters",
            _ if plan.is_thinking() => "refuses it while it thinks",
            _ => "refuses it together with `temperature`",
        };
        warnings.add(option, problem, "it is not sent");
    }
    if options.temperature.is_some_and(|value| value > 1.0) && rules.sampling != Sampling::None {
        warnings.add("temperature", "takes 0 to 1", "it refuses the request");
    }
    if let Some(max_tokens) = options.max_tokens.filter(|tokens| *tokens > rules.max_output) {
        let refused = format!("answers with at most {} tokens, not {max_tokens}", rules.max_output);
        warnings.add("max_tokens", &refused, "the limit is sent");
    }
    if options.strict_tools == Some(true) && !rules.structured {
        warnings.add("strict_tools", "has no strict tools", "they are offered without `strict`");
    }
    if let Some(tier) =
        options.service_tier.as_deref().filter(|tier| !matches!(*tier, "auto" | "standard_only"))
    {
        warnings.add(
            "service_tier",
            &format!("takes \"auto\" and \"standard_only\", not {tier:?}"),
            "it refuses the request",
        );
    }
    warnings.list
}

fn thinking(options: &ModelOptions, rules: &ClaudeRules, warnings: &mut WarningList<'_>) {
    match (options.thinking, rules.thinking, rules.off) {
        (Some(Thinking::On | Thinking::Adaptive), ThinkingTypes::None, _) => {
            warnings.add("thinking", "cannot think", "it is not sent");
        }
        (Some(Thinking::Adaptive), ThinkingTypes::Budget, _) => {
            warnings.add("thinking", "takes a budget only", "it thinks with `thinking_budget`");
        }
        (Some(Thinking::Off), _, ThinkingOff::Never) => {
            warnings.add(
                "thinking",
                "always thinks",
                "its thinking is hidden, and the effort is \"low\" unless it is set",
            );
        }
        (
            Some(Thinking::Off),
            _,
            ThinkingOff::DisabledUpToHigh | ThinkingOff::BetweenToolsUpToHigh,
        ) if matches!(options.reasoning_effort.as_deref(), Some("xhigh" | "max")) => {
            warnings.add(
                "reasoning_effort",
                "refuses more than \"high\" without thinking",
                "\"high\" is sent",
            );
        }
        _ => {}
    }
    if options.thinking_budget.is_some() {
        match rules.thinking {
            ThinkingTypes::Adaptive => {
                warnings.add(
                    "thinking_budget",
                    "refuses a budget",
                    "set `reasoning_effort`; the budget is not sent",
                );
            }
            ThinkingTypes::None => {
                warnings.add("thinking_budget", "cannot think", "it is not sent")
            }
            ThinkingTypes::Budget | ThinkingTypes::Both => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_model_refuses_are_named() {
        let named = |model: &str, options: ModelOptions| {
            let list = warnings(&ModelOptions { model: model.to_owned(), ..options });
            list.into_iter()
                .map(|text| text.split('`').nth(1).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let all = ModelOptions {
            thinking: Some(Thinking::Off),
            thinking_budget: Some(2000),
            reasoning_effort: Some("minimal".to_owned()),
            temperature: Some(0.5),
            top_p: Some(0.5),
            top_k: Some(3),
            max_tokens: Some(500_000),
            strict_tools: Some(true),
            service_tier: Some("flex".to_owned()),
            ..ModelOptions::default()
        };
        assert_eq!(
            named("claude-opus-5-5", all.clone()),
            [
                "thinking",
                "thinking_budget",
                "reasoning_effort",
                "temperature",
                "top_p",
                "top_k",
                "max_tokens",
                "service_tier"
            ]
        );
        assert_eq!(
            named("claude-3-7-sonnet-20250219", all.clone()),
            ["reasoning_effort", "max_tokens", "strict_tools", "service_tier"]
        );
        assert_eq!(named("m", all), [""; 0]);
        let warm = ModelOptions {
            thinking: Some(Thinking::On),
            temperature: Some(0.5),
            ..ModelOptions::default()
        };
        assert_eq!(named("claude-sonnet-4-5", warm), ["temperature"]);
        let adaptive =
            ModelOptions { thinking: Some(Thinking::Adaptive), ..ModelOptions::default() };
        assert_eq!(named("claude-haiku-4-5", adaptive.clone()), ["thinking"]);
        assert_eq!(named("claude-opus-4-7", adaptive), [""; 0]);
        let high = ModelOptions {
            thinking: Some(Thinking::Off),
            reasoning_effort: Some("max".to_owned()),
            ..ModelOptions::default()
        };
        assert_eq!(named("claude-opus-5", high), ["reasoning_effort"]);
    }
}
