//! The options of a model, which are the same for all providers. A provider refuses the ones that its API lacks.

use std::{borrow::Cow, sync::Arc};

use indexmap::IndexMap;
use reqwest::Url;
use serde::Deserialize;

use super::{
    known_models::{KnownModels, ProfileOptions},
    transport::{CloudCredentials, ProviderClient, RecordedExchanges, SetupError},
};
use agui_protocol::JsonObject;

/// The options of a model, as in the configuration. Options that are not set have the provider's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelOptions {
    /// The provider's name of the model.
    pub model: String,
    /// The client of the provider.
    #[serde(skip)]
    pub client: ProviderClient,
    /// The largest number of tokens of an answer, thinking included. Default: the provider's limit;
    /// with Anthropic, which requires one, 8192 to 64,000, as docs/models.md says.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_tokens: Option<u32>,
    /// The sampling temperature, from 0 to 2. Default: the provider's.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 2)))]
    pub temperature: Option<f64>,
    /// True lets the model think before it answers, false not. `adaptive`: the model decides how
    /// much, where its API can say so (Anthropic, Gemini), and like true elsewhere. A request can
    /// set `forwardedProps.enableDeepThinking` instead.
    pub thinking: Option<Thinking>,
    /// The largest number of thinking tokens, for models that take a budget (Anthropic, Gemini, and
    /// the profiles `openrouter`, `vllm` and `qwen`).
    pub thinking_budget: Option<u32>,
    /// The reasoning effort: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`, as the
    /// model takes. `agui-server check` says if it does not.
    pub reasoning_effort: Option<String>,
    /// The share of likely tokens that sampling chooses from, from 0 to 1. Default: the provider's.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub top_p: Option<f64>,
    /// The number of likely tokens that sampling chooses from. Default: the provider's.
    pub top_k: Option<u32>,
    /// The seed of sampling.
    pub seed: Option<i64>,
    /// The penalty on tokens by how often they were used, from -2 to 2.
    #[cfg_attr(feature = "schema", schemars(range(min = -2, max = 2)))]
    pub frequency_penalty: Option<f64>,
    /// The penalty on tokens that were used, from -2 to 2.
    #[cfg_attr(feature = "schema", schemars(range(min = -2, max = 2)))]
    pub presence_penalty: Option<f64>,
    /// Texts that end an answer.
    #[serde(default)]
    pub stop: Vec<String>,
    /// False: an answer contains at most one call. Default: the provider's.
    pub parallel_tool_calls: Option<bool>,
    /// True: the provider keeps calls to the schemas of the tools, where the schemas allow it.
    pub strict_tools: Option<bool>,
    /// The length of answers: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// The provider's class of service, such as `flex` or `priority`.
    pub service_tier: Option<String>,
    /// The key that requests with a common beginning share in the provider's cache.
    pub cache_key: Option<String>,
    /// The detail in which images are read: `low`, `high` or `auto`.
    pub image_detail: Option<String>,
    /// Texts that the provider stores with each request, by name.
    #[serde(default)]
    pub metadata: IndexMap<String, String>,
    /// Members that are merged into the body of each request. False removes a member; `tools` are added to the others.
    #[serde(default)]
    pub extra_body: JsonObject,
    /// The request format of a server with chat completions (`provider = "openai"`): a profile's
    /// name (`ollama`, `vllm`, `mistral`, …), or a table that replaces members of one, as
    /// docs/models.md says. Default: the profile that fits `base_url`.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::known_models::ProfileNameOrTable>")
    )]
    pub profile: Option<ProfileOptions>,
    /// The known models and servers, by their names.
    #[serde(skip)]
    pub known_models: KnownModels,
    /// The cloud whose credentials authenticate requests, in place of a key.
    #[serde(skip)]
    #[doc(hidden)]
    pub credentials: Option<CloudCredentials>,
    /// Recorded answers, in place of requests. Nothing is sent then.
    #[serde(skip)]
    #[doc(hidden)]
    pub exchanges: Option<Arc<RecordedExchanges>>,
}

/// The way in which a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "ConfiguredThinking")]
#[non_exhaustive]
pub enum Thinking {
    /// It does not think.
    Off,
    /// It thinks.
    On,
    /// It decides how much it thinks.
    Adaptive,
}

/// The value `true`, `false` or `"adaptive"`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected true, false or \"adaptive\"")]
enum ConfiguredThinking {
    Switch(bool),
    Mode(ThinkingMode),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ThinkingMode {
    Adaptive,
}

impl From<ConfiguredThinking> for Thinking {
    fn from(configured: ConfiguredThinking) -> Self {
        match configured {
            ConfiguredThinking::Switch(true) => Self::On,
            ConfiguredThinking::Switch(false) => Self::Off,
            ConfiguredThinking::Mode(ThinkingMode::Adaptive) => Self::Adaptive,
        }
    }
}

/// The calls that a model may or has to make.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model calls nothing.
    None,
    /// The model calls at least one tool.
    Required,
    /// The model calls the tool of this name.
    Tool(String),
}

impl From<String> for ToolChoice {
    fn from(text: String) -> Self {
        match text.as_str() {
            "auto" => Self::Auto,
            "none" => Self::None,
            "required" => Self::Required,
            _ => Self::Tool(text),
        }
    }
}

/// The options of one request, which its caller chooses.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequestSampling {
    /// The largest number of tokens of an answer, at most the model's own
    /// [`max_tokens`](ModelOptions::max_tokens).
    pub max_tokens: Option<u32>,
    /// The sampling temperature, in place of the model's own.
    pub temperature: Option<f64>,
    /// Texts that end an answer, in place of the model's own.
    pub stop: Vec<String>,
}

impl ModelOptions {
    /// Creates the options of a model.
    pub fn new(model: impl Into<String>, client: ProviderClient) -> Self {
        Self { model: model.into(), client, ..Self::default() }
    }

    /// Authenticates requests with Google's application default credentials, in place of a key. The
    /// client needs the base URL of a location of Vertex AI.
    pub fn with_gcp_credentials(self) -> Self {
        Self { credentials: Some(CloudCredentials::Gcp), ..self }
    }

    /// Signs requests with the keys of AWS, in place of a key. The client needs the base URL of
    /// Amazon Bedrock in a region.
    pub fn with_aws_credentials(self) -> Self {
        Self { credentials: Some(CloudCredentials::Aws), ..self }
    }

    /// Returns the options with those of a request. A caller cannot raise the limit of tokens.
    pub(crate) fn for_request(&self, wanted: &RequestSampling) -> Cow<'_, Self> {
        if *wanted == RequestSampling::default() {
            return Cow::Borrowed(self);
        }
        let mut options = self.clone();
        options.max_tokens = match (self.max_tokens, wanted.max_tokens) {
            (Some(own), Some(wanted)) => Some(own.min(wanted)),
            (own, wanted) => wanted.or(own),
        };
        options.temperature = wanted.temperature.or(self.temperature);
        if !wanted.stop.is_empty() {
            options.stop.clone_from(&wanted.stop);
        }
        Cow::Owned(options)
    }

    /// Returns the base URL.
    pub(crate) fn url(&self, default: &str) -> Result<Url, SetupError> {
        if self.credentials.is_some() && self.client.base_url.is_none() {
            let problem =
                "the credentials of a cloud need its URL: see \"Clouds\" in docs/models.md"
                    .to_owned();
            return Err(SetupError::Option { option: "base_url", problem });
        }
        self.client.url(default)
    }

    /// Returns the way in which the model thinks for a request; `None` is the provider's default.
    /// `requested` is the request's own switch; `None` asks about the configuration alone. APIs
    /// without [`Thinking::Adaptive`] use it as [`Thinking::On`].
    pub(crate) fn thinking_of(&self, requested: Option<bool>) -> Option<Thinking> {
        match (requested, self.thinking) {
            (Some(false), _) => Some(Thinking::Off),
            (Some(true), Some(Thinking::Adaptive)) => Some(Thinking::Adaptive),
            (Some(true), _) => Some(Thinking::On),
            (None, configured) => configured,
        }
    }

    /// Refuses options that an API lacks, by their names.
    ///
    /// # Errors
    /// [`SetupError::Option`] for the first of these options that is set;
    /// [`SetupError::KnownModels`] for an unknown name.
    pub(crate) fn refuse(&self, lacking: &[&str]) -> Result<(), SetupError> {
        for name in lacking {
            match self.option(name) {
                None => {
                    let problem =
                        format!("a server cannot lack \"{name}\": there is no such option");
                    return Err(SetupError::KnownModels { problem });
                }
                Some((option, true)) => {
                    return Err(SetupError::Option {
                        option,
                        problem: "this provider has no such option".into(),
                    });
                }
                Some((_, false)) => {}
            }
        }
        Ok(())
    }

    /// Returns an option that a server can lack, by its name, and whether it is set.
    pub(crate) fn option(&self, name: &str) -> Option<(&'static str, bool)> {
        let options = [
            ("temperature", self.temperature.is_some()),
            ("top_p", self.top_p.is_some()),
            ("thinking_budget", self.thinking_budget.is_some()),
            ("reasoning_effort", self.reasoning_effort.is_some()),
            ("top_k", self.top_k.is_some()),
            ("seed", self.seed.is_some()),
            ("frequency_penalty", self.frequency_penalty.is_some()),
            ("presence_penalty", self.presence_penalty.is_some()),
            ("stop", !self.stop.is_empty()),
            ("parallel_tool_calls", self.parallel_tool_calls.is_some()),
            ("strict_tools", self.strict_tools.is_some()),
            ("verbosity", self.verbosity.is_some()),
            ("service_tier", self.service_tier.is_some()),
            ("cache_key", self.cache_key.is_some()),
            ("image_detail", self.image_detail.is_some()),
            ("metadata", !self.metadata.is_empty()),
            ("profile", self.profile.is_some()),
        ];
        options.into_iter().find(|(option, _)| *option == name)
    }

    /// Merges `extra_body` into a request's body.
    pub(crate) fn extend(&self, body: &mut JsonObject) {
        merge(body, &self.extra_body);
    }
}

/// Merges `extra` into `members`: tables are merged, `tools` are appended, `false` removes a
/// member, and other values replace it. `false` for an absent member is stored.
fn merge(members: &mut JsonObject, extra: &JsonObject) {
    use serde_json::Value;
    for (name, value) in extra {
        match (members.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            (Some(Value::Array(tools)), Value::Array(more)) if name == "tools" => {
                tools.extend_from_slice(more)
            }
            (Some(_), Value::Bool(false)) => drop(members.remove(name)),
            (_, value) => drop(members.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn thinking_is_a_switch_or_adaptive() {
        let read = |value: Value| serde_json::from_value::<Thinking>(value).ok();
        assert_eq!(read(json!(true)), Some(Thinking::On));
        assert_eq!(read(json!(false)), Some(Thinking::Off));
        assert_eq!(read(json!("adaptive")), Some(Thinking::Adaptive));
        assert_eq!(read(json!("much")), None);
    }

    #[test]
    fn a_request_switches_thinking_and_the_configuration_says_how() {
        use Thinking::{Adaptive, Off, On};
        for (configured, expected) in [
            (None, [None, Some(On), Some(Off)]),
            (Some(On), [Some(On), Some(On), Some(Off)]),
            (Some(Off), [Some(Off), Some(On), Some(Off)]),
            (Some(Adaptive), [Some(Adaptive), Some(Adaptive), Some(Off)]),
        ] {
            let options = ModelOptions { thinking: configured, ..ModelOptions::default() };
            assert_eq!(
                [None, Some(true), Some(false)].map(|requested| options.thinking_of(requested)),
                expected
            );
        }
    }

    #[test]
    fn a_request_replaces_sampling_and_lowers_the_limit_of_tokens() {
        let wanted = |max_tokens| RequestSampling {
            max_tokens: Some(max_tokens),
            temperature: Some(0.5),
            stop: vec!["END".to_owned()],
        };
        let own = ModelOptions {
            max_tokens: Some(100),
            temperature: Some(1.0),
            ..ModelOptions::default()
        };
        let limits = [10, 1000].map(|limit| own.for_request(&wanted(limit)).max_tokens);
        assert_eq!(limits, [Some(10), Some(100)]);
        assert_eq!(ModelOptions::default().for_request(&wanted(7)).max_tokens, Some(7));
        let options = own.for_request(&wanted(10));
        assert_eq!((options.temperature, &*options.stop), (Some(0.5), &["END".to_owned()][..]));
        let same = own.for_request(&RequestSampling::default());
        assert_eq!((same.temperature, same.max_tokens), (Some(1.0), Some(100)));
    }

    #[test]
    fn extra_members_are_merged_and_false_removes_one() {
        let Value::Object(extra) =
            json!({"a": 2, "gone": false, "new": false, "t": {"y": 2, "z": false}, "tools": [2]})
        else {
            unreachable!()
        };
        let options = ModelOptions { extra_body: extra, ..ModelOptions::default() };
        let mut body = json!({"a": 1, "gone": 1, "t": {"x": 1, "z": 1}, "tools": [1]});
        options.extend(body.as_object_mut().unwrap());
        assert_eq!(body, json!({"a": 2, "new": false, "t": {"x": 1, "y": 2}, "tools": [1, 2]}));
    }

    #[test]
    fn an_option_that_an_api_lacks_is_named() {
        let options = ModelOptions { seed: Some(1), ..ModelOptions::default() };
        assert!(options.refuse(&["top_k"]).is_ok());
        assert!(options.refuse(&["top_k", "seed"]).unwrap_err().to_string().contains("seed"));
        let misspelt = options.refuse(&["topk"]).unwrap_err().to_string();
        assert_eq!(misspelt, "the models: a server cannot lack \"topk\": there is no such option");
    }
}
