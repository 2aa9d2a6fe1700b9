//! The configuration: plain data, one struct for each section of the TOML file.
//!
//! `config/default.toml` lists every option with its default; a test compares the two. A file overrides the defaults,
//! environment variables override the file, and flags override both ([`Sources`]).
//!
//! A section is the option struct of the part of the server that it belongs to. To add an option, add a field there,
//! and to `config/default.toml`. Rules between options are in the section's file, or in `check.rs`.

mod agent_checks;
mod agents;
mod auth;
mod check;
mod diagnose;
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

/// All options.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The agent behind `/send-message`. Not needed if there is only one.
    pub default_agent: Option<String>,
    /// The address, the data folder, and limits of connections.
    pub server: ServerConfig,
    /// Authentication.
    pub auth: AuthConfig,
    /// Limits of runs.
    pub runs: RunsConfig,
    /// Limits of each principal.
    pub limits: PrincipalLimits,
    /// The place where threads are stored.
    pub store: StoreConfig,
    /// Threads. Its `retention` and the options of `runs` are in sections of their own.
    pub threads: ThreadOptions,
    /// The time for which threads and logs are kept.
    pub retention: Retention,
    /// The named-event endpoints.
    pub named_events: NamedEventOptions,
    /// The web pages that may use the server.
    pub cors: Cors,
    /// The routes for pages with CopilotKit.
    pub copilotkit: CopilotKitOptions,
    /// The page at `/playground`.
    pub playground: PlaygroundOptions,
    /// Logs.
    pub log: LogOptions,
    /// Traces.
    pub telemetry: TelemetryOptions,
    /// Where metrics are served.
    pub metrics: MetricsOptions,
    /// Recordings of runs.
    pub record: RecordOptions,
    /// The prices of models, by name.
    pub prices: Prices,
    /// The agents, by name.
    pub agents: IndexMap<String, AgentConfig>,
    /// Tools that call web services, by name.
    pub tools: IndexMap<String, HttpToolOptions>,
    /// Limits of the commands of the tool group `sandbox`.
    pub sandbox: SandboxOptions,
    /// The MCP servers, by name.
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
