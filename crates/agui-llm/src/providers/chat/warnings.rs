//! Warnings about configured options that a server's request format or its models do not take.

use super::thinking;
use crate::{ModelOptions, Thinking, known_models::Profile, providers::warning_list::WarningList};

/// Returns the warnings for a server whose models are not OpenAI's.
pub(in crate::providers) fn warnings(profile: &Profile, options: &ModelOptions) -> Vec<String> {
    let model = &options.model;
    let mut warnings = WarningList::new(options, None);
    if let Some(wanted) = options.thinking {
        // An effort or a budget beside the switch could hide that the switch itself is not sent.
        let effort = options.reasoning_effort.clone().filter(|effort| effort == "none");
        let switch =
            ModelOptions { reasoning_effort: effort, thinking_budget: None, ..options.clone() };
        if thinking::members(profile, &switch, None, model, None).is_empty() {
            let switch = if wanted == Thinking::Off { "off" } else { "on" };
            warnings.add(
                "thinking",
                &format!("cannot be switched {switch} at this server"),
                "nothing is sent",
            );
        }
    }
    if let Some(effort) =
        options.reasoning_effort.as_deref().filter(|_| options.thinking != Some(Thinking::Off))
    {
        let sent = thinking::members(profile, options, None, model, None);
        let takes_effort = sent
            .values()
            .any(|value| value == effort || value.get("effort").is_some_and(|sent| sent == effort));
        let is_switch = effort == "none" && !sent.is_empty();
        if !takes_effort && !is_switch {
            let sent: Vec<_> = sent.keys().map(|member| format!("`{member}`")).collect();
            let sent = if sent.is_empty() { "nothing".to_owned() } else { sent.join(", ") };
            warnings.add(
                "reasoning_effort",
                "does not get it at this server",
                &format!("{sent} is sent"),
            );
        }
    }
    if !profile.takes_stop(model) {
        warnings.not_sent(&["stop", "frequency_penalty", "presence_penalty"], "refuses it");
    }
    warnings.list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        KnownModels, ProfileOptions, known_models::ThinkingMember,
        providers::chat::request::tests::known as named,
    };

    fn warn(profile: &Profile, model: &str, change: impl FnOnce(&mut ModelOptions)) -> Vec<String> {
        let mut options = ModelOptions::new(model, Default::default());
        change(&mut options);
        warnings(profile, &options)
    }

    #[test]
    fn an_option_that_is_not_sent_has_a_warning() {
        let effort = |effort: &str| Some(effort.to_owned());
        for (profile, model, thinking, configured, expected) in [
            (
                "compatible",
                "m",
                Some(Thinking::Off),
                None,
                "`thinking`: m cannot be switched off at this server; nothing is sent",
            ),
            ("compatible", "m", Some(Thinking::Off), effort("none"), ""),
            ("compatible", "m", Some(Thinking::On), effort("high"), ""),
            (
                "groq",
                "llama",
                Some(Thinking::On),
                None,
                "`thinking`: llama cannot be switched on at this server; nothing is sent",
            ),
            ("ollama", "m", Some(Thinking::Off), None, ""),
            (
                "qwen",
                "qwen3-max",
                None,
                effort("high"),
                "`reasoning_effort`: qwen3-max does not get it at this server; `enable_thinking` is sent",
            ),
            ("qwen", "qwen3-max", None, effort("none"), ""),
            ("zai", "glm", Some(Thinking::On), effort("high"), ""),
            ("openrouter", "m", Some(Thinking::Adaptive), effort("high"), ""),
            ("vllm", "m", Some(Thinking::Off), effort("high"), ""),
        ] {
            let set = |options: &mut ModelOptions| {
                options.thinking = thinking;
                options.reasoning_effort = configured;
            };
            assert_eq!(warn(&named(profile), model, set).join("; "), expected, "{profile}");
        }
        let url = reqwest::Url::parse("http://host").unwrap();
        let options = ProfileOptions {
            thinking_member: Some(ThinkingMember::None),
            ..ProfileOptions::default()
        };
        let without_thinking = KnownModels::default().profile(Some(&options), &url).unwrap();
        let found = warn(&without_thinking, "m", |options| {
            options.thinking = Some(Thinking::On);
            options.reasoning_effort = effort("high");
        });
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn grok_refuses_stop_and_penalties() {
        let set = |options: &mut ModelOptions| {
            options.stop = vec!["END".to_owned()];
            options.frequency_penalty = Some(1.0);
            options.presence_penalty = Some(1.0);
        };
        let found = warn(&named("xai"), "grok-4.3", set);
        assert_eq!(found[0], "`stop`: grok-4.3 refuses it; it is not sent");
        assert_eq!(found.len(), 3);
        assert!(warn(&named("xai"), "grok-3-mini", set).is_empty());
        assert!(warn(&named("groq"), "grok-4.3", set).is_empty());
    }
}
