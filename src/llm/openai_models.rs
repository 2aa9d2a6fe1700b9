//! The rules of OpenAI's models, by their names. Both APIs of OpenAI use them.
//!
//! The rules come from these pages, read in November 2026, and from the errors that the service answers:
//! - efforts: <https://developers.openai.com/api/docs/models>, "reasoning.effort supports" on the page of each model, and
//!   <https://community.openai.com/t/1371738> for older ones;
//! - `temperature` and `top_p`: <https://developers.openai.com/api/docs/guides/latest-model?model=gpt-5.4>, "parameter
//!   compatibility", and <https://developers.openai.com/api/docs/guides/deployment-checklist>;
//! - tools with chat completions: the same checklist, and <https://github.com/openai/openai-openapi/issues/541>.

use reqwest::Url;
use serde::Deserialize;

/// An API of OpenAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OpenAiApi {
    /// Chat completions, which many other servers have.
    Chat,
    /// The Responses API.
    Responses,
}

impl OpenAiApi {
    /// Returns the API for a model: at `api.openai.com`, the Responses API for models that reason and for all models
    /// since gpt-5, as <https://developers.openai.com/api/docs/guides/deployment-checklist> advises; chat completions for
    /// older models, and at other servers. `base_url` is `None` for OpenAI's own.
    pub fn for_model(model: &str, base_url: Option<&str>) -> Self {
        let is_openai = base_url.is_none_or(|url| {
            Url::parse(url).is_ok_and(|url| {
                url.host_str().is_some_and(|host| host == "api.openai.com" || host.ends_with(".api.openai.com"))
            })
        });
        // Chat completions alone serve gpt-5-search-api.
        let is_for_search = model.contains("-search-");
        match OpenAiRules::of(model) {
            Some(rules) if is_openai && !is_for_search && (rules.reasons || rules.has_verbosity) => Self::Responses,
            _ => Self::Chat,
        }
    }
}

/// The rules of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) struct OpenAiRules {
    /// `false` if the model answers without reasoning, and refuses options of reasoning.
    pub(in crate::llm) reasons: bool,
    /// The efforts, the lowest first; empty if they are not known.
    pub(in crate::llm) efforts: &'static [&'static str],
    /// The effort of a request that sets none.
    pub(in crate::llm) default_effort: Option<&'static str>,
    /// `true` if chat completions do not serve the model.
    pub(in crate::llm) responses_only: bool,
    /// `true` if chat completions refuse tools unless the effort is `none`.
    pub(in crate::llm) refuses_tools_on_chat: bool,
    /// `true` if the model wants to know which of its own messages were final answers.
    pub(in crate::llm) has_phases: bool,
    /// `true` if the model has a verbosity.
    pub(in crate::llm) has_verbosity: bool,
}

const HIGH: &[&str] = &["high"];
const MEDIUM: &[&str] = &["medium"];
const LOW_TO_HIGH: &[&str] = &["low", "medium", "high"];
const MINIMAL_TO_HIGH: &[&str] = &["minimal", "low", "medium", "high"];
const NONE_TO_HIGH: &[&str] = &["none", "low", "medium", "high"];
const MEDIUM_TO_XHIGH: &[&str] = &["medium", "high", "xhigh"];
const LOW_TO_XHIGH: &[&str] = &["low", "medium", "high", "xhigh"];
const NONE_TO_XHIGH: &[&str] = &["none", "low", "medium", "high", "xhigh"];
const LOW_TO_MAX: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const NONE_TO_MAX: &[&str] = &["none", "low", "medium", "high", "xhigh", "max"];
/// All efforts, the lowest first.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

impl OpenAiRules {
    /// Returns `None` for names that are not OpenAI's.
    pub(in crate::llm) fn of(model: &str) -> Option<Self> {
        // A fine-tuned model is `ft:gpt-4.1-2025-04-14:organisation::id`.
        let model = model.strip_prefix("ft:").and_then(|rest| rest.split(':').next()).unwrap_or(model);
        if let Some(version) = model.strip_prefix("gpt-").and_then(GptVersion::of_name) {
            return Some(version.rules());
        }
        let is_o_series = model.strip_prefix('o').is_some_and(|rest| {
            let number = rest.split('-').next().unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let is_codex = model.starts_with("codex-");
        if !is_o_series && !is_codex && !model.starts_with("computer-use-preview") {
            return None;
        }
        let has = |part: &str| model.split('-').any(|segment| segment == part);
        let efforts = if has("research") || !(is_o_series || is_codex) { &[] } else { LOW_TO_HIGH };
        Some(Self {
            reasons: true,
            efforts,
            default_effort: Some("medium"),
            responses_only: !is_o_series || has("pro") || has("research"),
            refuses_tools_on_chat: false,
            has_phases: false,
            has_verbosity: false,
        })
    }

    /// Returns `true` if requests with this effort may set `temperature` and `top_p`.
    pub(in crate::llm) fn takes_sampling(&self, effort: Option<&str>) -> bool {
        !self.reasons || effort.or(self.default_effort) == Some("none")
    }

    /// Chat completions refuse `parallel_tool_calls` for the o series:
    /// <https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning>.
    pub(in crate::llm) fn takes_parallel_calls_on_chat(&self) -> bool {
        !self.reasons || self.has_verbosity
    }

    /// Returns the only effort with which chat completions take tools, if there is one.
    pub(in crate::llm) fn effort_with_tools_on_chat(&self) -> Option<&'static str> {
        self.efforts.first().copied().filter(|effort| self.refuses_tools_on_chat && *effort == "none")
    }

    /// Returns `true` if an effort switches reasoning off.
    pub(in crate::llm) fn can_be_off(&self) -> bool {
        self.efforts.first() == Some(&"none")
    }

    /// Returns the effort of the model that is nearest to one for another model.
    pub(in crate::llm) fn nearest_effort<'e>(&self, effort: &'e str) -> Option<&'e str> {
        if !self.reasons {
            return None;
        }
        if self.efforts.is_empty() || self.efforts.contains(&effort) {
            return Some(effort);
        }
        let rank = |effort: &str| EFFORTS.iter().position(|known| *known == effort);
        let above = self.efforts.iter().find(|own| rank(own) >= rank(effort));
        above.or(self.efforts.last()).copied()
    }
}

/// The version of a model of the GPT series, and the parts of its name after it.
struct GptVersion<'n> {
    number: (u32, u32),
    parts: Vec<&'n str>,
}

impl<'n> GptVersion<'n> {
    /// `name` is what follows `gpt-`, such as `5.4-mini-2026-03-17` or `4o`.
    fn of_name(name: &'n str) -> Option<Self> {
        let mut parts = name.split('-');
        let number = parts.next().unwrap_or_default();
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
        let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
        Some(Self { number: (digits(major)?, digits(minor).unwrap_or(0)), parts: parts.collect() })
    }

    fn has(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }

    fn rules(&self) -> OpenAiRules {
        let (efforts, default_effort): (&'static [_], _) = match self.number {
            (..5, _) => (&[], None),
            (5, 0) if self.has("pro") => (HIGH, Some("high")),
            (5, _) if self.has("pro") => (MEDIUM_TO_XHIGH, Some("medium")),
            (5, 0) if self.has("chat") || self.has("search") => (&[], None),
            (5, _) if self.has("chat") => (MEDIUM, Some("medium")),
            (5, 1) if self.has("max") => (LOW_TO_XHIGH, Some("medium")),
            (5, 0..=1) if self.has("codex") => (LOW_TO_HIGH, Some("medium")),
            (5, _) if self.has("codex") => (LOW_TO_XHIGH, Some("medium")),
            (5, 0) => (MINIMAL_TO_HIGH, Some("medium")),
            (5, 1) => (NONE_TO_HIGH, Some("none")),
            (5, 2..=4) => (NONE_TO_XHIGH, Some("none")),
            (5, 5) => (NONE_TO_XHIGH, Some("medium")),
            (5, 6) | (6, 0) if !self.has("astra") => (NONE_TO_MAX, Some("medium")),
            (6, 1) if self.has("terra") => (NONE_TO_MAX, Some("medium")),
            (6, 0..=2) => (LOW_TO_MAX, Some("medium")),
            _ => (&[], Some("medium")),
        };
        let responses_only = self.has("pro") || self.has("codex");
        OpenAiRules {
            reasons: default_effort.is_some(),
            efforts,
            default_effort,
            responses_only,
            refuses_tools_on_chat: self.number >= (5, 4),
            // https://developers.openai.com/api/docs/guides/latest-model?model=gpt-5.4: "phase", from gpt-5.3-codex on.
            has_phases: self.number >= (5, 4) || self.number == (5, 3) && self.has("codex"),
            has_verbosity: self.number.0 >= 5,
        }
    }
}

/// Returns the effort of a request. `thinks` is the wish of the request, or of the configuration.
pub(in crate::llm) fn effort<'o>(
    rules: Option<&OpenAiRules>,
    configured: Option<&'o str>,
    thinks: Option<bool>,
) -> Option<&'o str> {
    match thinks {
        None => configured,
        Some(true) => match (configured, rules) {
            (Some(effort), _) if !matches!(effort, "none" | "minimal") => Some(effort),
            (_, Some(rules)) if !rules.reasons => None,
            (_, rules) => {
                rules.and_then(|rules| rules.default_effort).filter(|effort| *effort != "none").or(Some("medium"))
            }
        },
        Some(false) => match (configured, rules) {
            (Some("none"), _) => Some("none"),
            (_, Some(rules)) if !rules.reasons => None,
            (_, Some(rules)) => Some(rules.efforts.first().copied().unwrap_or("low")),
            // A model with an effort takes `low`; one without may not reason at all.
            (configured, None) => configured.map(|_| "low"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn efforts(model: &str) -> String {
        OpenAiRules::of(model).unwrap().efforts.join(" ")
    }

    #[test]
    fn each_model_has_its_efforts() {
        for (model, expected) in [
            ("gpt-4o", ""),
            ("gpt-4.1-mini-2025-04-14", ""),
            ("ft:gpt-4.1-2025-04-14:acme::x", ""),
            ("o3-mini", "low medium high"),
            ("o4-mini-2025-04-16", "low medium high"),
            ("gpt-5", "minimal low medium high"),
            ("gpt-5-mini-2025-08-07", "minimal low medium high"),
            ("gpt-5-pro-2025-10-06", "high"),
            ("gpt-5-codex", "low medium high"),
            ("gpt-5-chat-latest", ""),
            ("gpt-5.1", "none low medium high"),
            ("gpt-5.1-codex-max", "low medium high xhigh"),
            ("gpt-5.2-chat-latest", "medium"),
            ("gpt-5.2-pro", "medium high xhigh"),
            ("gpt-5.3-codex", "low medium high xhigh"),
            ("gpt-5.4-mini-2026-03-17", "none low medium high xhigh"),
            ("gpt-5.5-2026-04-23", "none low medium high xhigh"),
            ("gpt-5.6-terra", "none low medium high xhigh max"),
            ("gpt-6-luna", "none low medium high xhigh max"),
            ("gpt-6-astra", "low medium high xhigh max"),
            ("gpt-6.1-sol", "low medium high xhigh max"),
            ("gpt-6.1-terra", "none low medium high xhigh max"),
            ("gpt-6.2-sol", "low medium high xhigh max"),
            ("gpt-7-nova", ""),
        ] {
            assert_eq!(efforts(model), expected, "{model}");
        }
        for other in ["gpt-oss-120b", "openai/gpt-5", "ollama", "o", "o-x", "claude-opus-5-5", "gpt-"] {
            assert_eq!(OpenAiRules::of(other), None, "{other}");
        }
    }

    #[test]
    fn openais_current_models_get_the_responses_api_at_openai() {
        let api = OpenAiApi::for_model;
        for model in
            ["o1", "o3-pro", "o4-mini", "codex-mini-latest", "gpt-5", "gpt-5-chat-latest", "gpt-6.2-sol", "gpt-7"]
        {
            assert_eq!(api(model, None), OpenAiApi::Responses, "{model}");
            assert_eq!(api(model, Some("https://api.openai.com/v1")), OpenAiApi::Responses, "{model}");
            assert_eq!(api(model, Some("https://eu.api.openai.com/v1")), OpenAiApi::Responses, "{model}");
            for other in
                ["http://localhost:11434/v1", "https://x.openai.azure.com/openai/v1", "https://notapi.openai.com"]
            {
                assert_eq!(api(model, Some(other)), OpenAiApi::Chat, "{model} at {other}");
            }
        }
        for model in ["gpt-4o", "gpt-4.1", "gpt-3.5-turbo", "gpt-oss-120b", "gpt-5-search-api", "llama3.2", ""] {
            assert_eq!(api(model, None), OpenAiApi::Chat, "{model}");
        }
    }

    #[test]
    fn without_thinking_a_model_gets_its_lowest_effort() {
        let off = |model: &str, configured| effort(OpenAiRules::of(model).as_ref(), configured, Some(false));
        assert_eq!(off("gpt-5", Some("high")), Some("minimal"));
        assert_eq!(off("gpt-5.4", None), Some("none"));
        assert_eq!(off("gpt-6-astra", None), Some("low"));
        assert_eq!(off("gpt-5-pro", None), Some("high"));
        assert_eq!(off("gpt-7-nova", None), Some("low"));
        assert_eq!(off("gpt-4o", None), None);
        assert_eq!(off("local", None), None);
        assert_eq!(off("local", Some("high")), Some("low"));
        for model in ["gpt-5", "gpt-5.4", "gpt-6-astra", "local"] {
            assert_eq!(off(model, Some("none")), Some("none"), "a configured `none` stays: {model}");
        }
    }

    #[test]
    fn with_thinking_a_model_gets_an_effort_that_thinks() {
        let on = |model: &str, configured| effort(OpenAiRules::of(model).as_ref(), configured, Some(true));
        assert_eq!(on("gpt-5.4", None), Some("medium"));
        assert_eq!(on("gpt-5.4", Some("none")), Some("medium"));
        assert_eq!(on("gpt-5.4", Some("xhigh")), Some("xhigh"));
        assert_eq!(on("gpt-5-pro", None), Some("high"));
        assert_eq!(on("gpt-4o", None), None);
        assert_eq!(on("local", None), Some("medium"));
        assert_eq!(effort(None, Some("low"), None), Some("low"));
    }

    #[test]
    fn an_effort_for_another_model_becomes_the_nearest_one() {
        let nearest = |model: &str, effort| OpenAiRules::of(model).unwrap().nearest_effort(effort);
        assert_eq!(nearest("gpt-5.4", "minimal"), Some("low"));
        assert_eq!(nearest("gpt-5", "none"), Some("minimal"));
        assert_eq!(nearest("o3", "max"), Some("high"));
        assert_eq!(nearest("gpt-4o", "high"), None);
        assert_eq!(nearest("gpt-7-nova", "huge"), Some("huge"));
    }
}
