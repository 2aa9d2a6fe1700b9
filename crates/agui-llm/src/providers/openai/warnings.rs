//! Warnings about configured options that OpenAI's models refuse.

use super::api::OpenAiApi;
use crate::{
    known_models::OpenAiRules,
    options::ModelOptions,
    providers::{openai_effort::effort, warning_list::WarningList},
};

/// The lowest limit that the service takes: <https://github.com/earendil-works/pi/issues/6265>.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// Returns warnings about options that the configured model refuses, with their replacements.
pub(crate) fn openai_warnings(options: &ModelOptions, api: OpenAiApi) -> Vec<String> {
    let Some(rules) = options.known_models.openai(&options.model) else { return Vec::new() };
    let mut warnings = WarningList::new(options, rules.warning.as_deref());
    let effort = effort(Some(&rules), options, None);
    match api {
        OpenAiApi::Chat => warnings.add_chat(&rules, effort),
        OpenAiApi::Responses => {
            if options.max_tokens.is_some_and(|limit| limit < MIN_OUTPUT_TOKENS) {
                warnings.add(
                    "max_tokens",
                    &format!("refuses less than {MIN_OUTPUT_TOKENS}"),
                    "set more",
                );
            }
        }
    }
    warnings.add_effort(&rules, options.reasoning_effort.as_deref());
    if !rules.takes_sampling(effort) {
        let problem = if rules.can_be_off() { "refuses it while it reasons" } else { "refuses it" };
        warnings.not_sent(&["temperature", "top_p"], problem);
    }
    if rules.reasons {
        warnings.not_sent(&["stop", "frequency_penalty", "presence_penalty"], "refuses it");
    }
    if !rules.has_verbosity && options.verbosity.as_deref() != Some("medium") {
        warnings.not_sent(&["verbosity"], "has none but \"medium\"");
    }
    if api == OpenAiApi::Chat && !rules.takes_parallel_calls_on_chat() {
        warnings.not_sent(&["parallel_tool_calls"], "refuses it");
    }
    warnings.list
}

impl WarningList<'_> {
    fn add_chat(&mut self, rules: &OpenAiRules, effort: Option<&str>) {
        if rules.responses_only {
            self.add("api", "is not served with chat completions", "set api = \"responses\"");
        } else if rules.refuses_tools_on_chat && effort.unwrap_or(&rules.default_effort) != "none" {
            match rules.effort_with_tools_on_chat() {
                Some(only) => {
                    let problem = format!(
                        "refuses tools with chat completions unless reasoning_effort is \"{only}\""
                    );
                    let effect = format!(
                        "requests with tools are sent with \"{only}\": set api = \"responses\" for others"
                    );
                    self.add("api", &problem, &effect);
                }
                None => self.add(
                    "api",
                    "refuses tools with chat completions",
                    "set api = \"responses\"",
                ),
            }
        }
    }

    fn add_effort(&mut self, rules: &OpenAiRules, configured: Option<&str>) {
        match (configured, configured.and_then(|effort| rules.nearest_effort(effort))) {
            (Some(_), None) => self.add("reasoning_effort", "does not reason", "it is not sent"),
            (Some(effort), Some(nearest)) if effort != nearest => {
                let problem =
                    format!("refuses \"{effort}\", it takes {}", rules.efforts.join(", "));
                self.add("reasoning_effort", &problem, &format!("\"{nearest}\" is sent"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Thinking;

    #[test]
    fn warnings_name_what_a_model_refuses() {
        let warn = |model: &str, api, change: &dyn Fn(&mut ModelOptions)| {
            let mut options = ModelOptions { model: model.to_owned(), ..ModelOptions::default() };
            change(&mut options);
            openai_warnings(&options, api).join("\n")
        };
        use OpenAiApi::{Chat, Responses};
        let effort = |effort: &'static str| {
            move |o: &mut ModelOptions| o.reasoning_effort = Some(effort.to_owned())
        };
        assert_eq!(warn("gpt-5.4", Chat, &|_| {}), "");
        assert!(warn("gpt-5.4", Chat, &effort("low")).contains("refuses tools"));
        assert!(warn("gpt-5.5", Chat, &|_| {}).contains("unless reasoning_effort is \"none\""));
        assert_eq!(warn("gpt-5.5", Chat, &effort("none")), "");
        assert!(!warn("gpt-6-astra", Chat, &|_| {}).contains("unless"));
        assert!(warn("gpt-5-pro", Chat, &|_| {}).contains("not served"));
        for model in ["gpt-5.4", "gpt-5.5", "gpt-6-astra", "gpt-5-pro", "gpt-4o", "other"] {
            assert_eq!(warn(model, Responses, &|_| {}), "", "{model}");
        }
        assert!(warn("gpt-5.4", Responses, &effort("minimal")).contains("it takes none, low"));
        assert!(warn("gpt-4o", Responses, &effort("low")).contains("does not reason"));
        let cool = |o: &mut ModelOptions| o.temperature = Some(0.2);
        let without_effort = |o: &mut ModelOptions| {
            (o.temperature, o.reasoning_effort) = (Some(0.2), Some("none".to_owned()))
        };
        assert!(
            warn("gpt-5", Responses, &without_effort).contains("`temperature`: "),
            "it reasons with `minimal`"
        );
        assert_eq!(warn("gpt-5.4", Responses, &cool), "");
        assert_eq!(warn("gpt-4o", Responses, &cool), "");
        for model in ["gpt-5", "o3", "gpt-5.5", "gpt-6-astra"] {
            assert!(warn(model, Responses, &cool).contains("`temperature`: "), "{model}");
        }
        assert!(
            warn("gpt-5.1", Responses, &|o| (o.top_p, o.thinking) =
                (Some(0.5), Some(Thinking::On)))
            .contains("top_p")
        );
        assert!(
            warn("o3", Chat, &|o| o.stop = vec!["x".to_owned()])
                .contains("`stop`: o3 refuses it; it is not sent")
        );
        assert!(
            warn("gpt-4o", Chat, &|o| o.verbosity = Some("low".to_owned())).contains("verbosity")
        );
        assert!(warn("gpt-5.4", Responses, &|o| o.max_tokens = Some(15)).contains("less than 16"));
    }
}
