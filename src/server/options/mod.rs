//! The configuration: plain data, one struct for each section of the TOML file.
//!
//! `config/default.toml` lists every option with its default; a test compares the two. A file overrides the defaults,
//! environment variables override the file, and flags override both ([`Sources`]).
//!
//! A section is the option struct of the part of the server that it belongs to. To add an option, add a field there,
//! and write `config/default.toml` and `config/schema.json` again ([`JSON_SCHEMA`]). To add a section, add a field to
//! [`Config`] and to what [`Config::http_options`] or [`Config::thread_options`] returns. Rules between options are in
//! the section's file, or in `check.rs`.

mod agent_table;
mod agent_values;
mod agents;
mod auth;
mod check;
mod diagnose;
mod json_schema;
mod jwt;
mod load;
mod models;
mod option_names;
mod origin;
mod server;
mod store;
mod transcription;
mod vendors;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use smart_default::SmartDefault;

pub(crate) use agents::{
    A2uiSwitch, AgentConfig, AgentKind, LlmConfig, LlmOptions, ModelSource, ProviderClientConfig,
};
pub(crate) use auth::{AuthConfig, AuthMode};
pub(crate) use check::SANDBOX;
pub use diagnose::ConfigError;
pub(crate) use json_schema::JSON_SCHEMA;
pub(crate) use jwt::JwtConfig;
pub use load::{Loaded, Sources};
pub(crate) use models::ModelsConfig;
pub(crate) use origin::Origin;
pub(crate) use server::{SecretsConfig, ServerConfig};
pub(crate) use store::{StoreConfig, StoreUrl};
pub(crate) use transcription::TranscriptionConfig;
pub(crate) use vendors::OLLAMA_URL;

use crate::http::{
    AllowRule, Cors, HttpOptions,
    client_options::{
        AiSdkOptions, CopilotKitOptions, NamedEventOptions, OpenAiOptions, SupportedClients,
    },
    playground::PlaygroundOptions,
};
use agui_agent::files::FileOptions;
use agui_mcp::McpServerOptions;
use agui_observe::{
    metrics::{MetricsOptions, Prices},
    recordings::RecordOptions,
    telemetry::{TelemetryOptions, logs::LogOptions},
};
use agui_run::{PrincipalLimits, RunOptions, ThreadOptions};
use agui_sandbox::SandboxOptions;
use agui_store::Retention;
use agui_tools::http::HttpToolOptions;

/// The configuration of agui-server: <https://github.com/agui-server/agui-server/blob/main/docs/configuration.md>.
#[derive(Debug, Clone, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The agent behind `/send-message`. Not needed if there is only one agent.
    pub(crate) default_agent: Option<String>,
    /// The address, the data folder, and limits of connections.
    pub(crate) server: ServerConfig,
    /// Authentication. Without it the server listens on this machine only.
    pub(crate) auth: AuthConfig,
    pub(crate) secrets: SecretsConfig,
    /// Limits of runs.
    pub(crate) runs: RunOptions,
    /// Limits of each principal: of each API key, or each subject of tokens. Without authentication they have no
    /// effect.
    pub(crate) limits: PrincipalLimits,
    /// The place where threads are stored.
    pub(crate) store: StoreConfig,
    /// Conversations that the server stores. How long they are kept is in `[retention]`.
    pub(crate) threads: ThreadOptions,
    /// The time and the number for which threads and logs are kept.
    #[default(Retention::for_servers())]
    pub(crate) retention: Retention,
    /// The files that messages refer to.
    pub(crate) files: FileOptions,
    /// The clients that are served.
    pub(crate) clients: SupportedClients,
    /// The endpoints `/agent/chat/stream` and `/agent/agent/stream`, which answer with named events.
    pub(crate) named_events: NamedEventOptions,
    /// The routes `/v1/models` and `/v1/chat/completions`, for clients of OpenAI's API.
    pub(crate) openai: OpenAiOptions,
    /// The web pages that may use the server from a browser. Requests of other pages are refused with 403.
    pub(crate) cors: Cors,
    /// The routes for pages with CopilotKit.
    pub(crate) copilotkit: CopilotKitOptions,
    /// The routes for pages with the AI SDK.
    pub(crate) ai_sdk: AiSdkOptions,
    /// The service that transcribes speech from the microphones of pages.
    pub(crate) transcription: TranscriptionConfig,
    /// The page at `/playground`.
    pub(crate) playground: PlaygroundOptions,
    /// Logs.
    pub(crate) log: LogOptions,
    /// Traces. The environment variables of OpenTelemetry say where they are sent.
    pub(crate) telemetry: TelemetryOptions,
    /// Metrics for Prometheus.
    pub(crate) metrics: MetricsOptions,
    /// Recordings of runs, as files.
    pub(crate) record: RecordOptions,
    /// The prices of models, by the name in an agent's `model`, for the cost in metrics, logs and runs. None are built in.
    pub(crate) prices: Prices,
    /// The properties of models and of servers with chat completions.
    pub(crate) models: ModelsConfig,
    /// The agents, by name. A file with any agents replaces the demo agent.
    #[serde(deserialize_with = "without_agents")]
    #[cfg_attr(test, schemars(with = "IndexMap<String, json_schema::AnyAgent>"))]
    #[default(IndexMap::from([("demo".to_owned(), AgentConfig::script("scripts/demo.toml"))]))]
    pub(crate) agents: IndexMap<String, AgentConfig>,
    /// The callers that may use an agent. An agent that no entry names is for every caller; another
    /// one is for the callers that one of its entries allows: by principal, `key:NAME` for an API
    /// key or `jwt:ISSUER:SUBJECT` for a token, or by a claim of the token with one of the values.
    /// Others are refused with 403, and their lists leave the agent out. Each entry can be a table
    /// `[[allow]]`.
    pub(crate) allow: Vec<AllowRule>,
    /// Tools that call web services, by name. An agent can call those in its `tools`.
    pub(crate) tools: IndexMap<String, HttpToolOptions>,
    /// Limits of the tool group `sandbox`, by which a model runs commands and writes files.
    pub(crate) sandbox: SandboxOptions,
    /// MCP servers, by name. An agent can call their tools as `mcp:NAME`.
    pub(crate) mcp: IndexMap<String, McpServerOptions>,
}

impl Config {
    /// The agent behind `/send-message`: the configured one, or the only one.
    pub(crate) fn default_agent(&self) -> Option<&str> {
        let only =
            || self.agents.keys().next().filter(|_| self.agents.len() == 1).map(String::as_str);
        self.default_agent.as_deref().or_else(only)
    }

    /// Returns the sections that the routes read. What agents add to them is empty.
    pub(crate) fn http_options(&self) -> HttpOptions {
        HttpOptions {
            max_body_bytes: self.server.max_body_bytes,
            max_body_bytes_in_flight: self.server.max_body_bytes_in_flight,
            max_response_bytes_in_flight: self.server.max_response_bytes_in_flight,
            max_streams: self.server.max_streams,
            keep_alive: self.server.keep_alive,
            body_timeout: self.server.body_timeout,
            allowed_hosts: self.server.allowed_hosts.clone(),
            public_url: self.server.public_url.clone(),
            accept_traceparent: self.server.accept_traceparent,
            cors: self.cors.clone(),
            clients: self.clients.clone(),
            copilotkit: self.copilotkit.clone(),
            ai_sdk: self.ai_sdk.clone(),
            named_events: self.named_events.clone(),
            openai: self.openai.clone(),
            allow: self.allow.clone(),
            ..HttpOptions::default()
        }
    }

    /// Returns the sections that runs and their threads read. What agents add to them is empty.
    pub(crate) fn thread_options(&self) -> ThreadOptions {
        let mut options = self.threads.clone();
        options.runs = self.runs;
        options.files = self.files.clone();
        options.retention = self.retention;
        options
    }
}

/// Leaves the agents to [`read_agent`](agent_table::read_agent): their kinds decide on their options.
fn without_agents<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<IndexMap<String, AgentConfig>, D::Error> {
    IndexMap::<String, IgnoredAny>::deserialize(deserializer).map(|_| IndexMap::new())
}

#[cfg(test)]
mod tests;
