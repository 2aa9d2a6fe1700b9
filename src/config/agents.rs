//! What can be set about agents.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Config, ConfigError, OnDisconnect, Origin, diagnose::nearest};

/// An agent. What is `None` is the kind's own default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// What answers.
    pub kind: AgentKind,
    /// What it is for; other agents that can give it tasks are told, too.
    pub description: Option<String>,
    /// What happens to its runs when their client leaves, if not what `runs` says.
    pub on_disconnect: Option<OnDisconnect>,
    /// The script of `kind = "script"`, relative to the file that names it.
    pub script: Option<PathBuf>,
    /// Whose protocol the model of `kind = "llm"` is asked in.
    pub provider: Option<Provider>,
    /// Where the provider is, if not at its own address.
    pub base_url: Option<String>,
    /// The model, as the provider calls it.
    pub model: Option<String>,
    /// The environment variable with the provider's key.
    pub api_key_env: Option<String>,
    /// More headers for the provider or the remote agent: by name, the environment variable with the value.
    pub headers_env: Option<IndexMap<String, String>>,
    /// Instructions before every conversation.
    pub system_prompt: Option<String>,
    /// What the model can call: tools by name, `mcp:SERVER`, `agent:NAME`, built-in ones.
    pub tools: Option<Vec<String>>,
    /// How often the model is asked in a run, at most.
    pub max_steps: Option<u32>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// Whether the model thinks before it answers, unless a request says otherwise.
    pub thinking: Option<bool>,
    /// How many tokens it may think, at an Anthropic model.
    pub thinking_budget: Option<u32>,
    /// How hard it thinks, at an OpenAI-compatible model.
    pub reasoning_effort: Option<String>,
    /// Where the agent of `kind = "remote"` is.
    pub url: Option<String>,
    /// Headers of the client's request that it is sent, too.
    pub pass_headers: Option<Vec<String>>,
    /// How long connecting to the provider, or the remote agent, may take.
    pub connect_timeout_secs: Option<u64>,
    /// How long it may be silent.
    pub idle_timeout_secs: Option<u64>,
    /// How often a request is sent again that failed before the first token.
    pub max_retries: Option<u32>,
    /// How long a tool may take.
    pub tool_timeout_secs: Option<u64>,
    /// How many calls of one turn are carried out at a time.
    pub parallel_tools: Option<usize>,
}

/// What kind of agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Repeats what it is told.
    Echo,
    /// Is played from a file.
    Script,
    /// A language model with tools.
    Llm,
    /// Another AG-UI endpoint, to which runs are forwarded.
    Remote,
}

impl AgentKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Script => "script",
            Self::Llm => "llm",
            Self::Remote => "remote",
        }
    }
}

/// Whose protocol a model is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Chat completions, as OpenAI and many others have them.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// A model that the application added with `Server::model`.
    Rust,
}

impl Agent {
    /// An agent of a kind, with its defaults.
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

    /// The options that are set and not of every kind of agent, with the kinds that have them.
    fn particular(&self) -> impl Iterator<Item = (&'static str, &'static [AgentKind])> {
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

/// Which kinds of agent have an option.
const SCRIPT: &[AgentKind] = &[AgentKind::Script];
const LLM: &[AgentKind] = &[AgentKind::Llm];
const REMOTE: &[AgentKind] = &[AgentKind::Remote];
const UPSTREAM: &[AgentKind] = &[AgentKind::Llm, AgentKind::Remote];

impl Config {
    /// The agent behind `/send-message`.
    pub fn default_agent(&self) -> Option<&str> {
        let only = || self.agents.keys().next().filter(|_| self.agents.len() == 1).map(String::as_str);
        self.default_agent.as_deref().or_else(only)
    }

    pub(super) fn check_agents(&self, origin: &Origin) -> Result<(), ConfigError> {
        for (name, agent) in &self.agents {
            if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)) {
                let message = "an agent's name is part of its address: letters, digits, `-`, `_` and `.`";
                return Err(origin.error(&["agents", name], message));
            }
            if let Some((option, kinds)) = agent.particular().find(|(_, kinds)| !kinds.contains(&agent.kind)) {
                let kinds: Vec<_> = kinds.iter().map(|kind| format!("kind = \"{}\"", kind.as_str())).collect();
                let message = match &kinds[..] {
                    [kind] => format!("only {kind} has this option"),
                    kinds => format!("only {} have this option", kinds.join(" and ")),
                };
                return Err(origin.error(&["agents", name, option], &message));
            }
            match agent.kind {
                AgentKind::Script if agent.script.is_none() => {
                    return Err(origin.error(&["agents", name], "kind = \"script\" needs `script`, a file"));
                }
                AgentKind::Llm => check_llm(name, agent, origin)?,
                AgentKind::Remote => super::remote::check(name, agent, origin)?,
                AgentKind::Echo | AgentKind::Script => {}
            }
        }
        Ok(())
    }

    /// Checks the names of agents in `default_agent` and `[named_events]`. Agents may be configured, or added in Rust.
    ///
    /// # Errors
    /// The first name that no agent has.
    pub fn check_agent_names(&self, origin: &Origin, rust_agents: &[&str]) -> Result<(), ConfigError> {
        let known = || self.agents.keys().map(String::as_str).chain(rust_agents.iter().copied());
        self.check_named_events(origin, rust_agents)?;
        match &self.default_agent {
            None if known().next().is_none() => Err(origin.error(&["agents"], "at least one agent is needed")),
            None if self.agents.len() > 1 => {
                let names = self.agents.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let message = format!("there are several agents; name one of {names}");
                Err(origin.error(&["default_agent"], &message))
            }
            Some(name) if !known().any(|known| known == name) => {
                let message = match nearest(name, known()) {
                    Some(near) => format!("there is no agent `{name}`; did you mean `{near}`?"),
                    None => format!("there is no agent `{name}`"),
                };
                Err(origin.error(&["default_agent"], &message))
            }
            _ => Ok(()),
        }
    }
}

fn check_llm(name: &str, agent: &Agent, origin: &Origin) -> Result<(), ConfigError> {
    let fault = |option: Option<&str>, message: &str| {
        let place: Vec<&str> = ["agents", name].into_iter().chain(option).collect();
        Err(origin.error(&place, message))
    };
    if agent.provider.is_none() {
        return fault(None, "kind = \"llm\" needs `provider`: \"openai\", \"anthropic\" or \"rust\"");
    }
    if agent.model.as_ref().is_none_or(|model| model.trim().is_empty()) {
        return fault(None, "kind = \"llm\" needs `model`, as the provider calls it");
    }
    if let Some(url) = &agent.base_url {
        if !is_http_address(url) {
            return fault(
                Some("base_url"),
                "this is no address such as \"https://api.example.com/v1\"; keys go elsewhere",
            );
        }
    } else if agent.api_key_env.is_none() && agent.provider != Some(Provider::Rust) {
        return fault(None, "`api_key_env` is needed, the environment variable with the provider's key");
    }
    for (option, is_zero) in [
        ("max_steps", agent.max_steps == Some(0)),
        ("max_tokens", agent.max_tokens == Some(0)),
        ("parallel_tools", agent.parallel_tools == Some(0)),
        ("connect_timeout_secs", agent.connect_timeout_secs == Some(0)),
        ("idle_timeout_secs", agent.idle_timeout_secs == Some(0)),
        ("tool_timeout_secs", agent.tool_timeout_secs == Some(0)),
    ] {
        if is_zero {
            return fault(Some(option), "at least 1 is needed");
        }
    }
    if agent.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return fault(Some("temperature"), "a number from 0 to 2 is needed");
    }
    if agent.provider == Some(Provider::Rust) {
        for (option, is_set) in [
            ("base_url", agent.base_url.is_some()),
            ("api_key_env", agent.api_key_env.is_some()),
            ("headers_env", agent.headers_env.is_some()),
            ("max_tokens", agent.max_tokens.is_some()),
            ("temperature", agent.temperature.is_some()),
            ("thinking", agent.thinking.is_some()),
            ("thinking_budget", agent.thinking_budget.is_some()),
            ("reasoning_effort", agent.reasoning_effort.is_some()),
            ("connect_timeout_secs", agent.connect_timeout_secs.is_some()),
            ("idle_timeout_secs", agent.idle_timeout_secs.is_some()),
            ("max_retries", agent.max_retries.is_some()),
        ] {
            if is_set {
                return fault(Some(option), "provider = \"rust\" has no such option: set it on the model in Rust");
            }
        }
        return Ok(());
    }
    let (option, is_others) = match agent.provider {
        Some(Provider::Anthropic) => ("reasoning_effort", agent.reasoning_effort.is_some()),
        _ => ("thinking_budget", agent.thinking_budget.is_some()),
    };
    if is_others {
        return fault(Some(option), "this provider has no such option");
    }
    Ok(())
}

/// Whether an address can be asked: HTTP, a host, and no credentials, which belong into the environment.
pub(super) fn is_http_address(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.password().is_none()
            && url.username().is_empty()
    })
}
