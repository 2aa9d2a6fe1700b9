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

/// An agent. `None` stands for the default of its kind.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// The kind of agent.
    pub kind: AgentKind,
    /// The purpose, for clients, and for agents that can give it tasks.
    pub description: Option<String>,
    /// The effect of a client's leaving on its run; `runs.on_disconnect` if not set.
    pub on_disconnect: Option<OnDisconnect>,
    /// The script of `kind = "script"`, relative to the file that names it.
    pub script: Option<PathBuf>,
    /// The protocol of the model of `kind = "llm"`.
    pub provider: Option<Provider>,
    /// The API of `provider = "openai"`; by the model and the URL if not set.
    pub api: Option<OpenAiApi>,
    /// The URL of the provider, if not its usual one.
    pub base_url: Option<String>,
    /// The provider's name of the model.
    pub model: Option<String>,
    /// The names of models that a request may choose in place of `model`.
    pub models: Option<Vec<String>>,
    /// The agents whose models are asked if this agent's is unavailable, in order.
    pub fallback: Option<Vec<String>>,
    /// The environment variable with the provider's key.
    pub api_key_env: Option<String>,
    /// The file with the provider's key, relative to the file that names it.
    pub api_key_file: Option<PathBuf>,
    /// Headers for the provider or the remote agent: by name, the environment variable with the value.
    pub headers_env: Option<IndexMap<String, String>>,
    /// Headers for the provider, which are not secret.
    pub headers: Option<IndexMap<String, String>>,
    /// The instructions at the beginning of every conversation.
    pub system_prompt: Option<String>,
    /// The file with these instructions, relative to the file that names it.
    pub system_prompt_file: Option<PathBuf>,
    /// The tools that the model can call: tools by name, `mcp:SERVER`, `agent:NAME`, built-in ones.
    pub tools: Option<Vec<String>>,
    /// The calls that the model may or has to make. A call is forced only right after a user's message.
    pub tool_choice: Option<ToolChoice>,
    /// The JSON Schema of the final answer.
    pub response_schema: Option<JsonObject>,
    /// The JSON file with this schema, relative to the file that names it.
    pub response_schema_file: Option<PathBuf>,
    /// The largest number of model calls in a run.
    pub max_steps: Option<u32>,
    /// The largest number of tool calls of one answer that are run.
    pub max_calls_per_turn: Option<usize>,
    /// The largest number of tokens of an answer.
    pub max_tokens: Option<u32>,
    /// The sampling temperature, from 0 to 2.
    pub temperature: Option<f64>,
    /// The way in which the model thinks, unless a request says otherwise.
    pub thinking: Option<Thinking>,
    /// The largest number of thinking tokens, for models that take a budget.
    pub thinking_budget: Option<u32>,
    /// The reasoning effort.
    pub reasoning_effort: Option<String>,
    /// The share of likely tokens that sampling chooses from, above 0 and up to 1.
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
    pub stop: Option<Vec<String>>,
    /// False if an answer may contain at most one call.
    pub parallel_tool_calls: Option<bool>,
    /// True if the provider keeps calls to the schemas of the tools.
    pub strict_tools: Option<bool>,
    /// The length of answers.
    pub verbosity: Option<String>,
    /// The provider's class of service.
    pub service_tier: Option<String>,
    /// The key that requests with a common beginning share, for the provider's cache.
    pub cache_key: Option<String>,
    /// The detail in which images are read.
    pub image_detail: Option<String>,
    /// Texts that the provider stores with a request.
    pub metadata: Option<IndexMap<String, String>>,
    /// Members that are merged into the request's body. `false` removes a member.
    pub extra_body: Option<JsonObject>,
    /// The way in which conversations are kept within the model's context window.
    pub context: Option<ContextConfig>,
    /// The request format of a server with chat completions: a profile's name, or a table that replaces members of one.
    pub profile: Option<ProfileOptions>,
    /// The URL of the agent of `kind = "remote"`.
    pub url: Option<String>,
    /// The headers of the client's request that are sent on to the remote agent.
    pub pass_headers: Option<Vec<String>>,
    /// The folder of the recordings of `kind = "replay"` and `provider = "replay"`, relative to the file that names it.
    pub dir: Option<PathBuf>,
    /// The factor of the recorded waiting times.
    pub pace: Option<f64>,
    /// What goes wrong in each run.
    pub fault: Option<ReplayFault>,
    /// The number of events before the fault.
    pub fault_after: Option<usize>,
    /// The time limit for connecting to the provider or the remote agent, in seconds.
    pub connect_timeout_secs: Option<u64>,
    /// The longest silence of the provider or the remote agent, in seconds.
    pub idle_timeout_secs: Option<u64>,
    /// The number of retries of a request that failed before its first token.
    pub max_retries: Option<u32>,
    /// The time limit of a tool call, in seconds.
    pub tool_timeout_secs: Option<u64>,
    /// The number of tool calls of one turn that run at the same time.
    pub parallel_tools: Option<usize>,
}

/// The context window of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextConfig {
    /// The tokens that the model can read and write; the published ones of a known model if not set.
    pub window: Option<u64>,
    /// The treatment of a conversation that is too long.
    pub policy: ContextPolicy,
    /// The agent whose model writes summaries; the agent itself if not set.
    pub summariser: Option<String>,
}

/// A kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
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
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// OpenAI's chat completions, which many servers have, or its Responses API, by `api`.
    Openai,
    /// OpenAI's Responses API.
    #[serde(rename = "openai-responses")]
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// A model that the application added with `Server::model`.
    Rust,
    /// Recorded answers of a provider.
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
        let all = script.into_iter().chain(model).chain(remote).chain(replay).chain(recordings).chain(upstream);
        all.filter(|(_, set, _)| *set).map(|(name, _, kinds)| (name, kinds))
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
