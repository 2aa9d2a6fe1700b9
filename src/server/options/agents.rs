//! The section `[agents]`, one table for each agent: its `kind` decides which structs read the table.

use std::{num::NonZero, path::PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;

use agui_agents::{RemoteOptions, host::ReplayOptions};
use agui_llm::{
    ModelOptions, WindowPolicy,
    host::{AgentOptions, Api, CloudCredentials, OpenAiApi, SystemPrompt},
};
use agui_run::OnDisconnect;

/// An agent, with the options of its kind.
#[derive(Debug, Clone)]
pub(crate) struct AgentConfig {
    pub(crate) common: CommonOptions,
    pub(crate) kind: AgentKind,
}

/// The options of a kind of agent.
#[derive(Debug, Clone)]
pub(crate) enum AgentKind {
    Echo,
    Script(ScriptConfig),
    Llm(Box<LlmConfig>),
    Remote(RemoteOptions),
    Replay(RecordingsFolder, ReplayOptions),
}

/// The options of every agent.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CommonOptions {
    /// The kind of the agent, which decides on its options.
    pub(super) kind: KindName,
    /// The purpose of the agent, for clients, and for agents that can give it tasks.
    pub(crate) description: Option<String>,
    /// A further path at which the agent answers, beside `/agents/NAME/send-message`, such as `/api/chat`.
    pub(crate) path: Option<String>,
    /// The effect of a client that disconnects on its run, in place of `on_disconnect` in `[runs]`.
    pub(crate) on_disconnect: Option<OnDisconnect>,
    /// False leaves `SUBAGENT_STARTED`, `SUBAGENT_FINISHED`, `SUBAGENT_ERROR` and `subagentRunId`
    /// out for clients that declare no version of AG-UI: `@ag-ui/client` before 0.0.59 ends a run
    /// at an event that it does not know. Texts of subagents are shown.
    pub(crate) subagent_events: Option<bool>,
    /// True makes the runs of the agent render A2UI surfaces (docs/interfaces.md), false makes none
    /// of them do so. Default: those whose page has a catalog. A table is true, with a catalog and
    /// components in place of the page's, and the number of attempts of a model.
    pub(crate) a2ui: Option<A2uiSwitch>,
}

/// True, or a table, for an agent that renders A2UI surfaces.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected true, false, or a table with `catalog`, `schema_file` or `attempts`"
)]
pub(crate) enum A2uiSwitch {
    OnOrOff(bool),
    On(A2uiConfig),
}

/// A2UI with options.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct A2uiConfig {
    /// The URI of the catalog of components, in place of the page's.
    pub(crate) catalog: Option<String>,
    /// The JSON file with the components, `{catalogId, components: {Name: JSON Schema}}`, in place of the page's. A relative path
    /// starts in the folder of the configuration.
    pub(crate) schema_file: Option<PathBuf>,
    /// The number of attempts of a model to render a surface, the first one included. Default: 3.
    pub(crate) attempts: Option<NonZero<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum KindName {
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

/// An agent of `kind = "script"`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ScriptConfig {
    /// With `kind = "script"`: the file of the script. A relative path starts in the folder of the configuration.
    pub(crate) script: PathBuf,
}

/// The place of the recordings that an agent or a model plays.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecordingsFolder {
    /// With `kind = "replay"` or `provider = "replay"`: the folder of the recordings. A relative path starts in the
    /// folder of the configuration.
    pub(crate) dir: PathBuf,
}

/// An agent of `kind = "llm"`.
#[derive(Debug, Clone)]
pub(crate) struct LlmConfig {
    pub(crate) options: LlmOptions,
    pub(crate) agent: AgentOptions,
    pub(crate) source: ModelSource,
    /// A model in Rust has its name only.
    pub(crate) model: ModelOptions,
}

/// The place of an agent's model.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "it is boxed with the other options of its agent")]
pub(crate) enum ModelSource {
    /// A provider. Without an API: the one of OpenAI that fits the models.
    Hosted(Option<Api>, ProviderClientConfig),
    /// The application, which added a model with a client and options of its own.
    Rust,
    /// The recorded answers of a provider.
    Playback(RecordingsFolder),
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ProviderOptions {
    /// With `kind = "llm"`: the protocol of the model.
    pub(super) provider: Option<ProviderName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum ProviderName {
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
    #[serde(rename = "replay")]
    Playback,
}

impl ProviderName {
    /// Returns the API of a provider that has one only.
    pub(super) fn api(self) -> Option<Api> {
        match self {
            Self::OpenaiResponses => Some(Api::OpenAi(OpenAiApi::Responses)),
            Self::Anthropic => Some(Api::Anthropic),
            Self::Gemini => Some(Api::Gemini),
            Self::Openai | Self::Rust | Self::Playback => None,
        }
    }
}

/// A model of `provider = "rust"`, which has its options in Rust.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedModel {
    pub(super) model: String,
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ApiOptions {
    /// The API of `provider = "openai"`. Default: `responses` at api.openai.com for models that reason and for gpt-5
    /// and later, otherwise `chat`.
    pub(super) api: Option<OpenAiApi>,
}

/// The client of a provider.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ProviderClientConfig {
    /// The URL of the provider, if not its usual one, without credentials, such as
    /// `http://localhost:11434/v1`.
    pub(crate) base_url: Option<String>,
    /// The environment variable with the provider's key. This, `api_key_file` or `api_key_command` is required without a
    /// `base_url`.
    pub(crate) api_key_env: Option<String>,
    /// The file with the provider's key, read again for each request. White space around the key is
    /// removed. A relative path starts in the folder of the configuration.
    pub(crate) api_key_file: Option<PathBuf>,
    /// The command that prints the provider's key: a program and its arguments, such as
    /// `["gcloud", "auth", "print-access-token"]`.
    #[serde(default)]
    pub(crate) api_key_command: Vec<String>,
    /// The time for which the key that the command printed is used, in seconds. Default: 300.
    pub(crate) api_key_ttl_secs: Option<NonZero<u64>>,
    /// The cloud whose credentials authenticate requests, in place of a key, found where its own
    /// tools find them; `base_url` is the cloud's (docs/models.md).
    pub(crate) credentials: Option<CloudCredentials>,
    /// Headers for the provider or the remote agent: by name, the environment variable with the value.
    #[serde(default)]
    pub(crate) headers_env: IndexMap<String, String>,
    /// Headers for the provider that are not secret: by name, the value.
    #[serde(default)]
    pub(crate) headers: IndexMap<String, String>,
    /// The time limit for connecting to the provider or the endpoint, in seconds. Default: 10.
    pub(crate) connect_timeout_secs: Option<NonZero<u64>>,
    /// The longest silence of the provider or the endpoint, in seconds. Default: 60.
    pub(crate) idle_timeout_secs: Option<NonZero<u64>>,
    /// The number of retries of a request that failed before its first token. Default: 2.
    pub(crate) max_retries: Option<u32>,
}

/// The options of an agent of `kind = "llm"` that name files, tools and other agents, whatever its model is.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct LlmOptions {
    /// The agents whose models are asked, in order, if the model of this one cannot be reached,
    /// does not respond in time, is overloaded or limits the rate. Their own `fallback` is not
    /// followed.
    pub(crate) fallback: Vec<String>,
    /// The instructions at the beginning of every conversation. `{{principal}}`, `{{principal_id}}`
    /// and `{{claim:NAME}}` stand for what the caller is known by, in quotes; `{{claim:NAME|TEXT}}`
    /// has a text for callers without it (docs/configuration.md).
    pub(crate) system_prompt: Option<SystemPrompt>,
    /// The file with these instructions. A relative path starts in the folder of the configuration.
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// The tools that the model can call: tools by name, `mcp:SERVER` or `mcp:SERVER/TOOL`,
    /// `mcp:SERVER/resources` and `mcp:SERVER/prompts` for those of an MCP server, `agent:NAME` to
    /// give a task to another agent, `current_time`, `ask_user` and `propose_plan` for questions to
    /// the person, `sandbox` for commands and files, and `update_state`, which changes the state
    /// that is shared with the application. A tool of the same name in a request replaces one of
    /// these, and is left to the application.
    pub(crate) tools: Vec<String>,
    /// The JSON file with the schema of the final answer, in place of `response_schema`. A relative
    /// path starts in the folder of the configuration.
    pub(crate) response_schema_file: Option<PathBuf>,
    /// The model's context window in tokens (default: the published one of a known model), and what
    /// is done with a conversation that is too long for it. With `policy = "trim"`, the default,
    /// the oldest messages are left out; `fail` ends the run (`context_too_long`); with `summarise`
    /// a summary stands for them, written by the model of the agent `summariser` (default: of this
    /// one). The stored thread keeps all.
    pub(crate) context: Option<ContextConfig>,
}

/// The context window of a model.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ContextConfig {
    /// The tokens that the model can read and write, at least 500. Default: the published number of a known model.
    #[cfg_attr(test, schemars(range(min = 500)))]
    pub(crate) window: Option<u64>,
    /// The treatment of a conversation that is too long. The stored thread keeps all. Default:
    /// `trim`.
    pub(crate) policy: WindowPolicy,
    /// With `policy = "summarise"`: the agent whose model writes summaries. Default: this agent.
    pub(crate) summariser: Option<String>,
}

impl AgentConfig {
    /// An agent that plays a script, with A2UI.
    pub(super) fn script(path: &str) -> Self {
        let a2ui = Some(A2uiSwitch::OnOrOff(true));
        let common = CommonOptions { kind: KindName::Script, a2ui, ..CommonOptions::default() };
        Self { common, kind: AgentKind::Script(ScriptConfig { script: path.into() }) }
    }

    /// Returns the options of an agent of `kind = "llm"`.
    pub(crate) fn llm(&self) -> Option<&LlmConfig> {
        match &self.kind {
            AgentKind::Llm(llm) => Some(llm),
            _ => None,
        }
    }
}
