//! The members of a request that depend on thinking: `thinking`, effort, `max_tokens`, and the sampling parameters.

use serde_json::{Value, json};

use crate::{
    ModelOptions, Thinking,
    known_models::{ClaudeRules, Sampling, ThinkingOff, ThinkingTypes},
    providers::wire::SetMember as _,
};
use agui_protocol::JsonObject;

const MIN_BUDGET_TOKENS: u32 = 1024;
const DEFAULT_BUDGET_TOKENS: u32 = 4096;
/// The space for the answer if a budget would fill the model's largest output.
const MIN_ANSWER_TOKENS: u32 = 1024;

/// The default of `max_tokens`, which the API requires.
///
/// Thinking is a part of `max_tokens`. The documentation recommends 64,000 to begin with for the two highest efforts
/// (<https://platform.claude.com/docs/en/build-with-claude/effort>).
const DEFAULT_MAX_TOKENS: u32 = 16_000;
const DEFAULT_MAX_TOKENS_ADAPTIVE: u32 = 32_000;
const DEFAULT_MAX_TOKENS_HIGH_EFFORT: u32 = 64_000;
const DEFAULT_MAX_TOKENS_UNKNOWN_MODEL: u32 = 8192;

/// The model's thinking about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestThinking {
    /// No thinking, by a request without `thinking`.
    LeftOut,
    /// No thinking, by this type of `thinking`.
    Off(&'static str),
    Budget(u32),
    Adaptive {
        /// True if the answer contains the text of the thinking.
        is_shown: bool,
    },
}

/// The properties of a request that decide about thinking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// The request's own switch.
    pub(super) switch: Option<bool>,
    /// True if the API would refuse a budget for the request.
    pub(super) refuses_budget: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThinkingPlan {
    pub(super) thinking: RequestThinking,
    pub(super) effort: Option<String>,
    pub(super) max_tokens: u32,
}

impl ThinkingPlan {
    pub(super) fn new(
        options: &ModelOptions,
        rules: Option<&ClaudeRules>,
        conditions: Conditions,
    ) -> Self {
        let thinking = thinking(options, rules, conditions);
        let effort = effort(options, rules, thinking);
        let max_tokens = max_tokens(options, rules, thinking, effort.as_deref());
        let thinking = match thinking {
            RequestThinking::Budget(budget) if budget >= max_tokens => RequestThinking::Budget(
                max_tokens.saturating_sub(MIN_ANSWER_TOKENS).max(MIN_BUDGET_TOKENS),
            ),
            thinking => thinking,
        };
        Self { thinking, effort, max_tokens }
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.thinking, RequestThinking::Budget(_) | RequestThinking::Adaptive { .. })
    }

    /// Returns the member `thinking`. Newer models send the thinking's text only with `display`.
    pub(super) fn member(&self) -> Value {
        match self.thinking {
            RequestThinking::LeftOut => Value::Null,
            RequestThinking::Off(kind) => json!({"type": kind}),
            RequestThinking::Budget(budget) => json!({"type": "enabled", "budget_tokens": budget}),
            RequestThinking::Adaptive { is_shown } => {
                json!({"type": "adaptive", "display": if is_shown { "summarized" } else { "omitted" }})
            }
        }
    }

    /// Returns the sampling parameters that the model takes.
    pub(super) fn sampling(
        &self,
        options: &ModelOptions,
        rules: Option<&ClaudeRules>,
    ) -> JsonObject {
        let mut members = JsonObject::new();
        let sampling = rules.map_or(Sampling::All, |rules| rules.sampling);
        if sampling == Sampling::None {
            return members;
        }
        let is_thinking = self.is_thinking();
        let temperature = options.temperature.filter(|_| !is_thinking);
        members.set("temperature", temperature);
        let excludes_top_p = sampling == Sampling::OneOfTwo && temperature.is_some();
        // With thinking, only values near 1 are taken.
        let is_taken =
            |top_p: &f64| !excludes_top_p && (!is_thinking || (0.95..=1.0).contains(top_p));
        members.set("top_p", options.top_p.filter(is_taken));
        members.set("top_k", options.top_k.filter(|_| !is_thinking));
        members
    }
}

fn thinking(
    options: &ModelOptions,
    rules: Option<&ClaudeRules>,
    conditions: Conditions,
) -> RequestThinking {
    let wanted = options.thinking_of(conditions.switch);
    let budget = || match conditions.refuses_budget {
        true => RequestThinking::LeftOut,
        false => RequestThinking::Budget(
            options.thinking_budget.unwrap_or(DEFAULT_BUDGET_TOKENS).max(MIN_BUDGET_TOKENS),
        ),
    };
    let adaptive = RequestThinking::Adaptive { is_shown: true };
    let Some(rules) = rules else {
        return match wanted {
            None => RequestThinking::LeftOut,
            Some(Thinking::Off) => RequestThinking::Off("disabled"),
            Some(Thinking::On) => budget(),
            Some(Thinking::Adaptive) => adaptive,
        };
    };
    match (wanted, rules.thinking) {
        (_, ThinkingTypes::None) => RequestThinking::LeftOut,
        (None, _) if !rules.thinks_by_default => RequestThinking::LeftOut,
        (Some(Thinking::Off), _) => match rules.off {
            ThinkingOff::LeftOut => RequestThinking::LeftOut,
            ThinkingOff::Disabled | ThinkingOff::DisabledUpToHigh => {
                RequestThinking::Off("disabled")
            }
            ThinkingOff::BetweenToolsUpToHigh => RequestThinking::Off("between_tools"),
            ThinkingOff::Never => RequestThinking::Adaptive { is_shown: false },
        },
        (_, ThinkingTypes::Budget) => budget(),
        (Some(Thinking::On), ThinkingTypes::Both) if options.thinking_budget.is_some() => budget(),
        (_, ThinkingTypes::Both | ThinkingTypes::Adaptive) => adaptive,
    }
}

/// Returns the effort. It applies to the whole answer and does not need thinking. Models refuse
/// unknown values.
fn effort(
    options: &ModelOptions,
    rules: Option<&ClaudeRules>,
    thinking: RequestThinking,
) -> Option<String> {
    let configured = options.reasoning_effort.clone();
    let Some(rules) = rules else { return configured };
    let effort = configured.filter(|effort| rules.efforts.contains(effort));
    let is_high = |effort: &str| matches!(effort, "xhigh" | "max");
    match (thinking, rules.off) {
        // The documentation of models that always think recommends a lower effort in place of no
        // thinking.
        (RequestThinking::Adaptive { is_shown: false }, _)
            if options.thinking != Some(Thinking::Off) =>
        {
            Some("low".to_owned())
        }
        (RequestThinking::Adaptive { is_shown: false }, _) => {
            effort.or_else(|| Some("low".to_owned()))
        }
        (
            RequestThinking::Off(_),
            ThinkingOff::DisabledUpToHigh | ThinkingOff::BetweenToolsUpToHigh,
        ) if effort.as_deref().is_some_and(is_high) => Some("high".to_owned()),
        _ => effort,
    }
}

fn max_tokens(
    options: &ModelOptions,
    rules: Option<&ClaudeRules>,
    thinking: RequestThinking,
    effort: Option<&str>,
) -> u32 {
    let answer = options.max_tokens.unwrap_or(match thinking {
        _ if rules.is_none() => DEFAULT_MAX_TOKENS_UNKNOWN_MODEL,
        _ if matches!(effort, Some("xhigh" | "max")) => DEFAULT_MAX_TOKENS_HIGH_EFFORT,
        RequestThinking::Adaptive { .. } => DEFAULT_MAX_TOKENS_ADAPTIVE,
        _ => DEFAULT_MAX_TOKENS,
    });
    let all = match thinking {
        RequestThinking::Budget(budget) if answer <= budget => budget.saturating_add(answer),
        _ => answer,
    };
    all.min(rules.map_or(u32::MAX, |rules| rules.max_output))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KnownModels;

    fn plan(model: &str, options: ModelOptions, switch: Option<bool>) -> ThinkingPlan {
        let conditions = Conditions { switch, refuses_budget: false };
        ThinkingPlan::new(&options, KnownModels::default().anthropic(model).as_ref(), conditions)
    }

    fn configured(thinking: Option<Thinking>) -> ModelOptions {
        ModelOptions { thinking, ..ModelOptions::default() }
    }

    #[test]
    fn each_model_gets_the_form_that_it_takes() {
        use RequestThinking::{Adaptive, Budget, LeftOut, Off};
        let (shown, hidden) = (Adaptive { is_shown: true }, Adaptive { is_shown: false });
        // The model's default, then off, then on, then adaptive.
        for (model, expected) in [
            ("m", [LeftOut, Off("disabled"), Budget(4096), shown]),
            ("claude-3-5-haiku-latest", [LeftOut; 4]),
            ("claude-haiku-4-5", [LeftOut, LeftOut, Budget(4096), Budget(4096)]),
            ("claude-opus-4-6", [LeftOut, LeftOut, shown, shown]),
            ("claude-opus-4-7", [LeftOut, LeftOut, shown, shown]),
            ("claude-sonnet-5", [shown, Off("disabled"), shown, shown]),
            ("claude-opus-5", [shown, Off("disabled"), shown, shown]),
            ("claude-sonnet-5-5", [shown, Off("between_tools"), shown, shown]),
            ("claude-opus-5-5", [shown, hidden, shown, shown]),
            ("claude-fable-5", [shown, hidden, shown, shown]),
        ] {
            let wanted = [None, Some(Thinking::Off), Some(Thinking::On), Some(Thinking::Adaptive)];
            for (thinking, expected) in wanted.into_iter().zip(expected) {
                assert_eq!(
                    plan(model, configured(thinking), None).thinking,
                    expected,
                    "{model} {thinking:?}"
                );
            }
            assert_eq!(
                plan(model, configured(Some(Thinking::On)), Some(false)).thinking,
                expected[1],
                "{model}"
            );
            assert_eq!(
                plan(model, configured(Some(Thinking::Off)), Some(true)).thinking,
                expected[2],
                "{model}"
            );
            assert_eq!(
                plan(model, configured(Some(Thinking::Adaptive)), Some(true)).thinking,
                expected[3],
                "{model}"
            );
        }
        let budget = ModelOptions { thinking_budget: Some(2000), ..configured(Some(Thinking::On)) };
        assert_eq!(plan("claude-opus-4-6", budget.clone(), None).thinking, Budget(2000));
        assert_eq!(plan("claude-opus-4-7", budget, None).thinking, shown);
    }

    #[test]
    fn effort_is_sent_with_the_values_that_the_model_takes() {
        let sent = |model: &str, effort: &str, thinking, switch| {
            let options =
                ModelOptions { reasoning_effort: Some(effort.to_owned()), ..configured(thinking) };
            plan(model, options, switch).effort
        };
        for (model, effort, expected) in [
            ("claude-haiku-4-5", "low", None),
            ("claude-opus-4-5", "high", Some("high")),
            ("claude-opus-4-5", "max", None),
            ("claude-opus-4-6", "max", Some("max")),
            ("claude-opus-4-6", "xhigh", None),
            ("claude-opus-4-7", "xhigh", Some("xhigh")),
            ("claude-opus-4-7", "minimal", None),
            ("m", "anything", Some("anything")),
        ] {
            assert_eq!(sent(model, effort, None, None).as_deref(), expected, "{model} {effort}");
        }
        let off = Some(Thinking::Off);
        assert_eq!(sent("claude-opus-5", "max", off, None).as_deref(), Some("high"));
        assert_eq!(sent("claude-sonnet-5-5", "xhigh", off, None).as_deref(), Some("high"));
        assert_eq!(sent("claude-opus-4-8", "max", off, None).as_deref(), Some("max"));
        assert_eq!(sent("claude-fable-5", "medium", off, None).as_deref(), Some("medium"));
        assert_eq!(sent("claude-fable-5", "medium", None, Some(false)).as_deref(), Some("low"));
        assert_eq!(
            plan("claude-fable-5", configured(None), Some(false)).effort.as_deref(),
            Some("low")
        );
    }

    #[test]
    fn max_tokens_has_space_for_thinking_and_stays_within_the_models_limit() {
        let sent = |model: &str, max_tokens, thinking_budget, thinking| {
            let options = ModelOptions { max_tokens, thinking_budget, ..configured(thinking) };
            let plan = plan(model, options, None);
            (plan.max_tokens, plan.thinking)
        };
        let on = Some(Thinking::On);
        assert_eq!(sent("claude-haiku-4-5", None, None, None).0, 16_000);
        assert_eq!(sent("claude-opus-4-7", None, None, on).0, 32_000);
        assert_eq!(sent("m", None, None, None).0, 8192);
        assert_eq!(sent("m", None, Some(10_000), on), (18_192, RequestThinking::Budget(10_000)));
        assert_eq!(
            sent("claude-haiku-4-5", Some(1000), Some(5), on),
            (2024, RequestThinking::Budget(1024))
        );
        assert_eq!(sent("claude-haiku-4-5", Some(100_000), None, None).0, 64_000);
        let full = sent("claude-haiku-4-5", None, Some(64_000), on);
        assert_eq!(full, (64_000, RequestThinking::Budget(62_976)));
        let options = ModelOptions { reasoning_effort: Some("max".to_owned()), ..configured(None) };
        assert_eq!(plan("claude-opus-5", options, None).max_tokens, 64_000);
    }

    #[test]
    fn sampling_parameters_are_sent_where_they_are_taken() {
        let all = ModelOptions {
            temperature: Some(0.5),
            top_p: Some(0.97),
            top_k: Some(5),
            ..configured(None)
        };
        let sent = |model: &str, thinking, top_p| {
            let options = ModelOptions { thinking, top_p: Some(top_p), ..all.clone() };
            let members = plan(model, options.clone(), None)
                .sampling(&options, KnownModels::default().anthropic(model).as_ref());
            members.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(sent("m", None, 0.5), ["temperature", "top_p", "top_k"]);
        assert_eq!(sent("claude-sonnet-4-5", None, 0.5), ["temperature", "top_k"]);
        assert_eq!(sent("claude-sonnet-4-5", Some(Thinking::On), 0.5), [""; 0]);
        assert_eq!(sent("claude-sonnet-4-5", Some(Thinking::On), 0.97), ["top_p"]);
        assert_eq!(sent("claude-opus-4-7", None, 0.97), [""; 0]);
        assert_eq!(sent("claude-opus-5-5", Some(Thinking::Off), 0.97), [""; 0]);
    }
}
