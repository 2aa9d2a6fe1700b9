//! The configuration: plain data, one struct for each section of the TOML file.
//!
//! `config/default.toml` lists every option with its default; a test compares the two. A file overrides the defaults,
//! environment variables override the file, and flags override both ([`Sources`]).
//!
//! A section is the option struct of the part of the server that it belongs to. To add an option, add a field there,
//! and to `config/default.toml`, and write `config/schema.json` again ([`JSON_SCHEMA`]). Rules between options are in the
//! section's file, or in `check.rs`.

mod agent_checks;
mod agents;
mod auth;
mod check;
mod diagnose;
mod json_schema;
mod jwt;
mod load;
mod origin;
mod record;
mod remote;
mod server;
mod store;
mod tools;

use indexmap::IndexMap;
use serde::Deserialize;

pub use agents::{AgentConfig, AgentKind, ContextConfig, Provider};
pub use auth::{ApiKeyConfig, AuthConfig, AuthMode};
pub use diagnose::ConfigError;
pub use json_schema::JSON_SCHEMA;
pub use jwt::JwtConfig;
pub use load::{Loaded, Sources};
pub use origin::Origin;
pub(crate) use remote::remote_error;
pub use server::{RunsConfig, ServerConfig};
pub use store::{StoreConfig, StoreUrl};
pub use tools::SANDBOX;

use crate::{
    copilotkit::CopilotKitOptions,
    http::Cors,
    metrics::{MetricsOptions, Prices},
    named_events::NamedEventOptions,
    playground::PlaygroundOptions,
    recording::RecordOptions,
    run::{PrincipalLimits, ThreadOptions},
    store::Retention,
    telemetry::{TelemetryOptions, logs::LogOptions},
    tools::{http::HttpToolOptions, mcp::McpServerOptions, sandbox::SandboxOptions},
};

/// The configuration of agui-server: <https://github.com/agui-server/agui-server/blob/main/docs/configuration.md>.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The agent behind `/send-message`. Not needed if there is only one.
    pub default_agent: Option<String>,
    /// The address, the data folder, and limits of connections.
    pub server: ServerConfig,
    /// Authentication. Without it the server listens on this machine only.
    pub auth: AuthConfig,
    /// Limits of runs.
    pub runs: RunsConfig,
    /// Limits of each principal: of each API key, or each subject of tokens. Without authentication they have no
    /// effect.
    pub limits: PrincipalLimits,
    /// The place where threads are stored.
    pub store: StoreConfig,
    /// Conversations that the server stores. How long they are kept is in `[retention]`.
    pub threads: ThreadOptions,
    /// The time and the number for which threads and logs are kept.
    pub retention: Retention,
    /// The endpoints `/agent/chat/stream` and `/agent/agent/stream`, which answer with named events.
    pub named_events: NamedEventOptions,
    /// The web pages that may use the server from a browser. Requests of other pages are refused with 403.
    pub cors: Cors,
    /// The routes for pages with CopilotKit.
    pub copilotkit: CopilotKitOptions,
    /// The page at `/playground`.
    pub playground: PlaygroundOptions,
    /// Logs.
    pub log: LogOptions,
    /// Traces. The environment variables of OpenTelemetry say where they are sent.
    pub telemetry: TelemetryOptions,
    /// Metrics for Prometheus.
    pub metrics: MetricsOptions,
    /// Recordings of runs, as files.
    pub record: RecordOptions,
    /// The prices of models, by the name in an agent's `model`, for the cost in metrics and logs. None are built in.
    pub prices: Prices,
    /// The agents, by name. A file with any agents replaces the demo agent.
    #[cfg_attr(test, schemars(with = "crate::units::json_schema::Table<AgentConfig>"))]
    pub agents: IndexMap<String, AgentConfig>,
    /// Tools that call web services, by name. An agent can call those in its `tools`.
    #[cfg_attr(test, schemars(with = "crate::units::json_schema::Table<HttpToolOptions>"))]
    pub tools: IndexMap<String, HttpToolOptions>,
    /// Limits of the tool group `sandbox`, by which a model runs commands and writes files.
    pub sandbox: SandboxOptions,
    /// MCP servers, by name. An agent can call their tools as `mcp:NAME`.
    #[cfg_attr(test, schemars(with = "crate::units::json_schema::Table<McpServerOptions>"))]
    pub mcp: IndexMap<String, McpServerOptions>,
}

impl Config {
    /// The agent behind `/send-message`: the configured one, or the only one.
    pub fn default_agent(&self) -> Option<&str> {
        let only = || self.agents.keys().next().filter(|_| self.agents.len() == 1).map(String::as_str);
        self.default_agent.as_deref().or_else(only)
    }
}

impl Default for Config {
    fn default() -> Self {
        let demo = AgentConfig { script: Some("scripts/demo.toml".into()), ..AgentConfig::new(AgentKind::Script) };
        Self {
            default_agent: None,
            server: ServerConfig::default(),
            auth: AuthConfig::default(),
            runs: RunsConfig::default(),
            limits: PrincipalLimits::default(),
            store: StoreConfig::default(),
            threads: ThreadOptions::default(),
            retention: Retention::of_servers(),
            named_events: NamedEventOptions::default(),
            cors: Cors::default(),
            copilotkit: CopilotKitOptions::default(),
            playground: PlaygroundOptions::default(),
            log: LogOptions::default(),
            telemetry: TelemetryOptions::default(),
            metrics: MetricsOptions::default(),
            record: RecordOptions::default(),
            prices: Prices::default(),
            agents: IndexMap::from([("demo".to_owned(), demo)]),
            tools: IndexMap::new(),
            sandbox: SandboxOptions::default(),
            mcp: IndexMap::new(),
        }
    }
}

#[cfg(test)]
mod tests;
