//! The section `[agents]`, one table for each agent.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::{
    agents::{ReplayFault, ReplayOptions},
    llm::{Connection, ContextPolicy, ModelOptions, OpenAiApi, ProfileOptions, Thinking, ToolChoice},
    protocol::JsonObject,
    run::OnDisconnect,
};

/// An agent. An option that is not set has the default of the agent's kind.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// The kind of the agent, which decides on its options.
    pub kind: AgentKind,
    /// The purpose of the agent, for clients, and for agents that can give it tasks.
    pub description: Option<String>,
    /// The effect of a client that disconnects on its run, in place of `on_disconnect` in `[runs]`.
    pub on_disconnect: Option<OnDisconnect>,
    /// With `kind = "script"`: the file of the script. A relative path starts in the folder of the configuration.
    pub script: Option<PathBuf>,
    /// With `kind = "llm"`: the protocol of the model.
    pub provider: Option<Provider>,
    /// The API of `provider = "openai"`. Default: `responses` at api.openai.com for models that reason and for gpt-5
    /// and later, otherwise `chat`.
    pub api: Option<OpenAiApi>,
    /// The URL of the provider, if not its usual one, without credentials, such as `http://localhost:11434/v1`.
    pub base_url: Option<String>,
    /// The provider's name of the model.
    pub model: Option<String>,
    /// The names of models that a request may choose with `forwardedProps.model`, beside `model`.
    pub models: Option<Vec<String>>,
    /// The agents whose models are asked, in order, if the model of this one is unavailable.
    pub fallback: Option<Vec<String>>,
    /// The environment variable with the provider's key. This or `api_key_file` is required without a `base_url`.
    pub api_key_env: Option<String>,
    /// The file with the provider's key. A relative path starts in the folder of the configuration.
    pub api_key_file: Option<PathBuf>,
    /// Headers for the provider or the remote agent: by name, the environment variable with the value.
    #[cfg_attr(test, schemars(with = "Option<crate::units::json_schema::Table<String>>"))]
    pub headers_env: Option<IndexMap<String, String>>,
    /// Headers for the provider that are not secret: by name, the value.
    #[cfg_attr(test, schemars(with = "Option<crate::units::json_schema::Table<String>>"))]
    pub headers: Option<IndexMap<String, String>>,
    /// The instructions at the beginning of every conversation.
    pub system_prompt: Option<String>,
    /// The file with these instructions. A relative path starts in the folder of the configuration.
    pub system_prompt_file: Option<PathBuf>,
    /// The tools that the model can call: tools by name, `mcp:SERVER`, `mcp:SERVER/TOOL`, `mcp:SERVER/resources`,
    /// `mcp:SERVER/prompts`, `agent:NAME`, `current_time`, `calculator`, `ask_user`, `propose_plan`, `sandbox` and
    /// `update_state`.
    pub tools: Option<Vec<String>>,
    /// The calls that the model may or has to make: `auto`, `none`, `required`, or the name of a tool. A call is forced
    /// only right after a user's message. Default: `auto`.
    pub tool_choice: Option<ToolChoice>,
    /// The JSON Schema of the final answer. An answer that does not fit is corrected once; then the run fails
    /// (`response_invalid`).
    pub response_schema: Option<JsonObject>,
    /// The JSON file with this schema. A relative path starts in the folder of the configuration.
    pub response_schema_file: Option<PathBuf>,
    /// The largest number of model calls in a run. A run that needs more fails (`max_steps`). Default: 8.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max_steps: Option<u32>,
    /// The largest number of tool calls of one answer that are run. Default: 32.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max_calls_per_turn: Option<usize>,
    /// The largest number of tokens of an answer, thinking included. Default: the provider's limit.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max_tokens: Option<u32>,
    /// The sampling temperature, from 0 to 2. Default: the provider's.
    #[cfg_attr(test, schemars(range(min = 0, max = 2)))]
    pub temperature: Option<f64>,
    /// True lets the model think before it answers, false not. `adaptive`: the model decides how much, where its API
    /// can say so. A request can set `forwardedProps.enableDeepThinking` instead.
    pub thinking: Option<Thinking>,
    /// The largest number of thinking tokens, for models that take a budget.
    pub thinking_budget: Option<u32>,
    /// The reasoning effort: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`, as the model takes.
    pub reasoning_effort: Option<String>,
    /// The share of likely tokens that sampling chooses from, from 0 to 1. Default: the provider's.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub top_p: Option<f64>,
    /// The number of likely tokens that sampling chooses from. Default: the provider's.
    pub top_k: Option<u32>,
    /// The seed of sampling.
    pub seed: Option<i64>,
    /// The penalty on tokens by how often they were used, from -2 to 2.
    #[cfg_attr(test, schemars(range(min = -2, max = 2)))]
    pub frequency_penalty: Option<f64>,
    /// The penalty on tokens that were used, from -2 to 2.
    #[cfg_attr(test, schemars(range(min = -2, max = 2)))]
    pub presence_penalty: Option<f64>,
    /// Texts that end an answer.
    pub stop: Option<Vec<String>>,
    /// False: an answer contains at most one call. Default: the provider's.
    pub parallel_tool_calls: Option<bool>,
    /// True: the provider keeps calls to the schemas of the tools, where the schemas allow it.
    pub strict_tools: Option<bool>,
    /// The length of answers: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// The provider's class of service, such as `flex` or `priority`.
    pub service_tier: Option<String>,
    /// The key that requests with a common beginning share, for the provider's cache.
    pub cache_key: Option<String>,
    /// The detail in which images are read: `low`, `high` or `auto`.
    pub image_detail: Option<String>,
    /// Texts that the provider stores with each request, by name.
    #[cfg_attr(test, schemars(with = "Option<crate::units::json_schema::Table<String>>"))]
    pub metadata: Option<IndexMap<String, String>>,
    /// Members that are merged into the body of each request. False removes a member; `tools` are added to the others.
    pub extra_body: Option<JsonObject>,
    /// The model's context window, and the treatment of a conversation that is too long for it.
    pub context: Option<ContextConfig>,
    /// The request format of a server with chat completions: a profile's name, or a table that replaces members of one.
    /// Default: the profile that fits `base_url`.
    #[cfg_attr(test, schemars(with = "Option<crate::llm::ProfileNameOrTable>"))]
    pub profile: Option<ProfileOptions>,
    /// With `kind = "remote"`: the URL of the AG-UI endpoint, without credentials.
    pub url: Option<String>,
    /// With `kind = "remote"`: the headers of the client's request that are sent on to the endpoint.
    pub pass_headers: Option<Vec<String>>,
    /// With `kind = "replay"` or `provider = "replay"`: the folder of the recordings. A relative path starts in the
    /// folder of the configuration.
    pub dir: Option<PathBuf>,
    /// With `kind = "replay"`: the factor of the recorded waiting times, from 0 to 1000. 1 is the recorded pace, 0
    /// plays without waiting. Default: 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1000)))]
    pub pace: Option<f64>,
    /// With `kind = "replay"`: what goes wrong in each run.
    pub fault: Option<ReplayFault>,
    /// The number of events before the `fault`. Default: half of the recording's.
    pub fault_after: Option<usize>,
    /// The time limit for connecting to the provider or the endpoint, in seconds. Default: 10.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub connect_timeout_secs: Option<u64>,
    /// The longest silence of the provider or the endpoint, in seconds. Default: 60.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub idle_timeout_secs: Option<u64>,
    /// The number of retries of a request that failed before its first token. Default: 2.
    pub max_retries: Option<u32>,
    /// The time limit of a tool call, in seconds. Default: 60.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub tool_timeout_secs: Option<u64>,
    /// The number of tool calls of one turn that run at the same time. Default: 8.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub parallel_tools: Option<usize>,
}

/// The context window of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ContextConfig {
    /// The tokens that the model can read and write, at least 500. Default: the published number of a known model.
    #[cfg_attr(test, schemars(range(min = 500)))]
    pub window: Option<u64>,
    /// The treatment of a conversation that is too long. The stored thread keeps all. Default: `fail`.
    pub policy: ContextPolicy,
    /// With `policy = "summarise"`: the agent whose model writes summaries. Default: this agent.
    pub summariser: Option<String>,
}

/// A kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Repeats the user's text.
    #[default]
    Echo,
    /// Plays a script.
    Script,
    /// A language model with tools.
    Llm,
    /// Forwards runs to another AG-UI endpoint.
    Remote,
    /// Plays recordings.
    Replay,
}

impl AgentKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Script => "script",
            Self::Llm => "llm",
            Self::Remote => "remote",
            Self::Replay => "replay",
        }
    }
}

/// The protocol of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Chat completions, which many servers have, or OpenAI's Responses API, by `api`.
    Openai,
    /// OpenAI's Responses API.
    #[serde(rename = "openai-responses")]
    OpenaiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// A model that the application added with `Server::model`.
    Rust,
    /// The recorded answers of a provider, in `dir`.
    Replay,
}

impl AgentConfig {
    /// An agent with the defaults of its kind.
    pub fn new(kind: AgentKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Returns the options of the agent's model, without its connection.
    pub(crate) fn model_options(&self) -> ModelOptions {
        let agent = self.clone();
        let mut options = ModelOptions::new(agent.model.unwrap_or_default(), Connection::default());
        options.max_tokens = agent.max_tokens;
        options.thinking = agent.thinking;
        options.thinking_budget = agent.thinking_budget;
        options.reasoning_effort = agent.reasoning_effort;
        options.temperature = agent.temperature;
        options.top_p = agent.top_p;
        options.top_k = agent.top_k;
        options.seed = agent.seed;
        options.frequency_penalty = agent.frequency_penalty;
        options.presence_penalty = agent.presence_penalty;
        options.stop = agent.stop.unwrap_or_default();
        options.parallel_tool_calls = agent.parallel_tool_calls;
        options.strict_tools = agent.strict_tools;
        options.verbosity = agent.verbosity;
        options.service_tier = agent.service_tier;
        options.cache_key = agent.cache_key;
        options.image_detail = agent.image_detail;
        options.metadata = agent.metadata.unwrap_or_default();
        options.extra_body = agent.extra_body.unwrap_or_default();
        options.profile = agent.profile;
        options
    }

    /// Returns the options of an agent that plays recordings.
    pub(crate) fn replay_options(&self) -> ReplayOptions {
        let mut options = ReplayOptions::default();
        options.pace = self.pace.unwrap_or(options.pace);
        options.fault = self.fault;
        options.fault_after = self.fault_after;
        options.description = self.description.clone();
        options
    }

    /// Returns the options that are set, with the kinds that have them.
    pub(super) fn options_of_kinds(&self) -> impl Iterator<Item = (&'static str, &'static [AgentKind])> {
        self.all_options_of_kinds().filter(|(_, is_set, _)| *is_set).map(|(name, _, kinds)| (name, kinds))
    }

    /// Returns the options that not all kinds have: their names, whether they are set, and the kinds that have them.
    pub(super) fn all_options_of_kinds(&self) -> impl Iterator<Item = (&'static str, bool, &'static [AgentKind])> {
        macro_rules! set {
            ($kinds:expr; $($field:ident)*) => { [$((stringify!($field), self.$field.is_some(), $kinds),)*] };
        }
        let script = set! { SCRIPT; script };
        let model = set! {
            LLM; provider api base_url model models fallback api_key_env api_key_file headers system_prompt
            system_prompt_file tools tool_choice response_schema response_schema_file max_steps max_calls_per_turn
            max_tokens temperature thinking thinking_budget reasoning_effort top_p top_k seed frequency_penalty
            presence_penalty stop parallel_tool_calls strict_tools verbosity service_tier cache_key image_detail metadata
            extra_body profile context max_retries tool_timeout_secs parallel_tools
        };
        let remote = set! { REMOTE; url pass_headers };
        let replay = set! { REPLAY; pace fault fault_after };
        let recordings = set! { RECORDINGS; dir };
        let upstream = set! { UPSTREAM; headers_env connect_timeout_secs idle_timeout_secs };
        script.into_iter().chain(model).chain(remote).chain(replay).chain(recordings).chain(upstream)
    }
}

const SCRIPT: &[AgentKind] = &[AgentKind::Script];
const LLM: &[AgentKind] = &[AgentKind::Llm];
const REMOTE: &[AgentKind] = &[AgentKind::Remote];
const REPLAY: &[AgentKind] = &[AgentKind::Replay];
const RECORDINGS: &[AgentKind] = &[AgentKind::Replay, AgentKind::Llm];
const UPSTREAM: &[AgentKind] = &[AgentKind::Llm, AgentKind::Remote];

/// Credentials in URLs are refused: they belong into environment variables.
pub(super) fn is_http_url(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.password().is_none()
            && url.username().is_empty()
    })
}
