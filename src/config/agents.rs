//! The section `[agents]`, one table for each agent.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::run::OnDisconnect;

/// An agent. `None` stands for the default of its kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    /// The URL of the provider, if not its usual one.
    pub base_url: Option<String>,
    /// The provider's name of the model.
    pub model: Option<String>,
    /// The environment variable with the provider's key.
    pub api_key_env: Option<String>,
    /// Headers for the provider or the remote agent: by name, the environment variable with the value.
    pub headers_env: Option<IndexMap<String, String>>,
    /// The instructions at the beginning of every conversation.
    pub system_prompt: Option<String>,
    /// The tools that the model can call: tools by name, `mcp:SERVER`, `agent:NAME`, built-in ones.
    pub tools: Option<Vec<String>>,
    /// The largest number of model calls in a run.
    pub max_steps: Option<u32>,
    /// The largest number of tokens of an answer.
    pub max_tokens: Option<u32>,
    /// The sampling temperature, from 0 to 2.
    pub temperature: Option<f64>,
    /// True if the model thinks before it answers, unless a request says otherwise.
    pub thinking: Option<bool>,
    /// The largest number of thinking tokens, for Anthropic models.
    pub thinking_budget: Option<u32>,
    /// The reasoning effort, for OpenAI-compatible models.
    pub reasoning_effort: Option<String>,
    /// The URL of the agent of `kind = "remote"`.
    pub url: Option<String>,
    /// The headers of the client's request that are sent on to the remote agent.
    pub pass_headers: Option<Vec<String>>,
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

/// A kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Repeats the user's text.
    Echo,
    /// Plays a script.
    Script,
    /// A language model with tools.
    Llm,
    /// Forwards runs to another AG-UI endpoint.
    Remote,
}

impl AgentKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Script => "script",
            Self::Llm => "llm",
            Self::Remote => "remote",
        }
    }
}

/// The protocol of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// OpenAI's chat completions, which many servers have.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// A model that the application added with `Server::model`.
    Rust,
}

impl AgentConfig {
    /// An agent with the defaults of its kind.
    pub fn new(kind: AgentKind) -> Self {
        Self {
            kind,
            description: None,
            on_disconnect: None,
            script: None,
            provider: None,
            base_url: None,
            model: None,
            api_key_env: None,
            headers_env: None,
            system_prompt: None,
            tools: None,
            max_steps: None,
            max_tokens: None,
            temperature: None,
            thinking: None,
            thinking_budget: None,
            reasoning_effort: None,
            url: None,
            pass_headers: None,
            connect_timeout_secs: None,
            idle_timeout_secs: None,
            max_retries: None,
            tool_timeout_secs: None,
            parallel_tools: None,
        }
    }

    /// Returns the options that are set, with the kinds that have them.
    pub(super) fn options_of_kinds(&self) -> impl Iterator<Item = (&'static str, &'static [AgentKind])> {
        macro_rules! set {
            ($kinds:expr; $($field:ident)*) => { [$((stringify!($field), self.$field.is_some(), $kinds),)*] };
        }
        let script = set! { SCRIPT; script };
        let model = set! {
            LLM; provider base_url model api_key_env system_prompt tools max_steps max_tokens temperature thinking
            thinking_budget reasoning_effort max_retries tool_timeout_secs parallel_tools
        };
        let remote = set! { REMOTE; url pass_headers };
        let upstream = set! { UPSTREAM; headers_env connect_timeout_secs idle_timeout_secs };
        let all = script.into_iter().chain(model).chain(remote).chain(upstream);
        all.filter(|(_, set, _)| *set).map(|(name, _, kinds)| (name, kinds))
    }
}

const SCRIPT: &[AgentKind] = &[AgentKind::Script];
const LLM: &[AgentKind] = &[AgentKind::Llm];
const REMOTE: &[AgentKind] = &[AgentKind::Remote];
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
