//! The options of a model, which are the same for all providers. A provider refuses the ones that its API lacks.

use indexmap::IndexMap;
use serde::Deserialize;

use super::{
    chat::profile::ProfileOptions,
    transport::{Connection, SetupError},
};
use crate::protocol::JsonObject;

/// The options of a model. Options that are not set are left to the provider.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The model's name at the provider.
    pub model: String,
    /// The connection to the provider.
    pub connection: Connection,
    /// The most tokens of an answer, reasoning included.
    pub max_tokens: Option<u32>,
    /// The way in which the model thinks, unless a request sets it.
    pub thinking: Option<Thinking>,
    /// The most tokens of thinking, for models that take a budget.
    pub thinking_budget: Option<u32>,
    /// The effort of reasoning: `none`, `minimal`, `low`, `medium`, `high` or another value that the model takes.
    pub reasoning_effort: Option<String>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The share of likely tokens that sampling chooses from, up to 1.
    pub top_p: Option<f64>,
    /// The number of likely tokens that sampling chooses from.
    pub top_k: Option<u32>,
    /// The seed of sampling.
    pub seed: Option<i64>,
    /// The penalty on tokens by how often they were used, from -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// The penalty on tokens that were used, from -2 to 2.
    pub presence_penalty: Option<f64>,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    /// `false` if an answer may contain at most one call.
    pub parallel_tool_calls: Option<bool>,
    /// `true` if the provider keeps calls to the schemas of the tools.
    pub strict_tools: Option<bool>,
    /// The length of answers: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// The provider's class of service, such as `flex` or `priority`.
    pub service_tier: Option<String>,
    /// The key that requests with a common beginning share, for the provider's cache.
    pub cache_key: Option<String>,
    /// The detail in which images are read: `low`, `high` or `auto`.
    pub image_detail: Option<String>,
    /// Texts that the provider stores with the request.
    pub metadata: IndexMap<String, String>,
    /// Members that are merged into the request's body. `false` removes a member, and `tools` are added to the others.
    pub extra_body: JsonObject,
    /// The request format of a server with chat completions; `None` is the known one of the base URL.
    pub profile: Option<ProfileOptions>,
}

/// The way in which a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// `true`, `false` or `"adaptive"`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected true, false or \"adaptive\"")]
enum ConfiguredThinking {
    Switch(bool),
    Mode(ThinkingMode),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

impl ModelOptions {
    /// Options of a model.
    pub fn new(model: impl Into<String>, connection: Connection) -> Self {
        Self { model: model.into(), connection, ..Self::default() }
    }

    /// Returns the way in which the model thinks for a request; `None` is the provider's default. `requested` is the
    /// request's own switch, or `None`, also for the configuration alone. APIs without a way to say
    /// [`Thinking::Adaptive`] take it as [`Thinking::On`].
    pub(in crate::llm) fn thinking_of(&self, requested: Option<bool>) -> Option<Thinking> {
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
    /// The first option of these that is set.
    pub(in crate::llm) fn refuse(&self, lacking: &[&'static str]) -> Result<(), SetupError> {
        let is_set = |option: &str| match option {
            "thinking_budget" => self.thinking_budget.is_some(),
            "reasoning_effort" => self.reasoning_effort.is_some(),
            "top_k" => self.top_k.is_some(),
            "seed" => self.seed.is_some(),
            "frequency_penalty" => self.frequency_penalty.is_some(),
            "presence_penalty" => self.presence_penalty.is_some(),
            "stop" => !self.stop.is_empty(),
            "parallel_tool_calls" => self.parallel_tool_calls.is_some(),
            "strict_tools" => self.strict_tools.is_some(),
            "verbosity" => self.verbosity.is_some(),
            "service_tier" => self.service_tier.is_some(),
            "cache_key" => self.cache_key.is_some(),
            "image_detail" => self.image_detail.is_some(),
            "metadata" => !self.metadata.is_empty(),
            "profile" => self.profile.is_some(),
            _ => false,
        };
        match lacking.iter().find(|option| is_set(option)) {
            Some(option) => Err(SetupError::Option { option, problem: "this provider has no such option".into() }),
            None => Ok(()),
        }
    }

    /// Merges `extra_body` into a request's body.
    pub(in crate::llm) fn extend(&self, body: &mut serde_json::Value) {
        let Some(members) = body.as_object_mut() else { return };
        merge(members, &self.extra_body);
    }
}

/// Tables are merged, `tools` are added, `false` removes a member, and all else replaces it. A member that is not there
/// becomes `false`.
fn merge(members: &mut JsonObject, extra: &JsonObject) {
    use serde_json::Value;
    for (name, value) in extra {
        match (members.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            (Some(Value::Array(tools)), Value::Array(more)) if name == "tools" => tools.extend_from_slice(more),
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
            assert_eq!([None, Some(true), Some(false)].map(|requested| options.thinking_of(requested)), expected);
        }
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
        options.extend(&mut body);
        assert_eq!(body, json!({"a": 2, "new": false, "t": {"x": 1, "y": 2}, "tools": [1, 2]}));
    }

    #[test]
    fn an_option_that_an_api_lacks_is_named() {
        let options = ModelOptions { seed: Some(1), ..ModelOptions::default() };
        assert!(options.refuse(&["top_k"]).is_ok());
        assert!(options.refuse(&["top_k", "seed"]).unwrap_err().to_string().contains("seed"));
    }
}
