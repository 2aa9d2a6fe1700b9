//! What can be set, as plain data, one struct a concern.
//!
//! `config/default.toml` lists every option with its default; a test keeps the two equal. A file, then
//! the environment, then flags override the defaults ([`Sources`]). Nothing here knows what an agent is.

mod agents;
mod check;
mod diagnose;
mod jwt;
mod load;
mod remote;
mod threads;
mod tools;

use std::{net::SocketAddr, path::PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;

use crate::{
    copilotkit::CopilotKitOptions,
    named_events::NamedEventOptions,
    tools::{http::HttpToolOptions, mcp::McpServerOptions, sandbox::SandboxOptions},
};

pub use agents::{Agent, AgentKind, Provider};
pub use check::Origin;
pub use diagnose::ConfigError;
pub use jwt::{Audience, Jwt, JwtAlgorithm};
pub use load::{Loaded, Sources};
pub use threads::{ConcurrentRuns, OnDisconnect, Retention, Store, StoreUrl, Threads};
pub use tools::SANDBOX;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The agent behind `/send-message`; may be left out when there is only one.
    pub default_agent: Option<String>,
    /// How the server listens.
    pub server: Server,
    /// Who may use it.
    pub auth: Auth,
    /// What limits runs.
    pub runs: Runs,
    /// How much of the server one caller may take.
    pub limits: Limits,
    /// Where threads are kept.
    pub store: Store,
    /// How runs share a thread.
    pub threads: Threads,
    /// What is kept, and for how long.
    pub retention: Retention,
    /// The named-event endpoints.
    pub named_events: NamedEventOptions,
    /// Which pages may use it from a browser.
    pub cors: Cors,
    /// The routes for pages with CopilotKit.
    pub copilotkit: CopilotKitOptions,
    /// What is logged.
    pub log: Log,
    /// The agents, by name.
    pub agents: IndexMap<String, Agent>,
    /// Tools that call web services, by name.
    pub tools: IndexMap<String, HttpToolOptions>,
    /// Limits of the commands of the tool group `sandbox`.
    pub sandbox: SandboxOptions,
    /// The MCP servers whose tools agents may use, by name.
    pub mcp: IndexMap<String, McpServerOptions>,
}

/// How the server listens, and how patient it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The address and port.
    pub listen: SocketAddr,
    /// The folder of what the server keeps.
    pub data_dir: PathBuf,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// How long a stream is silent before it gets a comment; 0 for never.
    pub keep_alive_secs: u64,
    /// How long runs may go on at shutdown.
    pub drain_secs: u64,
    /// How long a request's head may take to arrive.
    pub head_timeout_secs: u64,
    /// How long a request's body may take to arrive.
    pub body_timeout_secs: u64,
    /// How long a client may leave what it is sent unread.
    pub stall_timeout_secs: u64,
}

/// Who may use the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// How callers identify themselves; not at all, if this is left out.
    pub mode: Option<AuthMode>,
    /// The keys of `mode = "api_key"`.
    pub api_keys: Vec<ApiKey>,
    /// How the tokens of `mode = "jwt"` are checked.
    pub jwt: Jwt,
    /// Lets everybody in on any address, with `mode = "none"`.
    pub allow_unauthenticated: bool,
}

/// How callers identify themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// They do not; the server then serves this machine only.
    None,
    /// With a key, as `Authorization: Bearer <key>`.
    ApiKey,
    /// With a token that somebody else signs, in the same place.
    Jwt,
}

/// A named key: in an environment variable, or as a digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Who holds it.
    pub name: String,
    /// The environment variable it is in.
    pub env: Option<String>,
    /// Its SHA-256, in hexadecimal.
    pub sha256: Option<String>,
}

/// What limits runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Runs {
    /// How many there may be at a time.
    pub max_concurrent: usize,
    /// The longest one may take; 0 for no limit.
    pub max_seconds: u64,
    /// The longest an agent may be silent; 0 for no limit.
    pub idle_seconds: u64,
    /// What happens to a run when its client leaves.
    pub on_disconnect: OnDisconnect,
    /// How many detached runs there may be at a time.
    pub max_detached: usize,
    /// The longest a detached run may take; 0 for no limit.
    pub detached_max_seconds: u64,
    /// The most that a run may say, in bytes.
    pub max_run_bytes: u64,
}

/// How much of the server one caller may take: whoever has one key, or one subject of tokens. 0 for no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// How many runs at a time.
    pub concurrent_runs: usize,
    /// How many runs within a minute.
    pub runs_per_minute: usize,
}

/// Which pages may use the server from a browser.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// Pages served from this machine.
    pub allow_localhost: bool,
    /// Other origins; `*` for all.
    pub allow_origins: Vec<String>,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// A level, or a filter in the form of `RUST_LOG`, which overrides it.
    pub level: String,
    /// How lines look.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        let demo = Agent { script: Some("scripts/demo.toml".into()), ..Agent::new(AgentKind::Script) };
        Self {
            default_agent: None,
            server: Server::default(),
            auth: Auth::default(),
            runs: Runs::default(),
            limits: Limits::default(),
            store: Store::default(),
            threads: Threads::default(),
            retention: Retention::default(),
            named_events: NamedEventOptions::default(),
            cors: Cors::default(),
            copilotkit: CopilotKitOptions::default(),
            log: Log::default(),
            agents: IndexMap::from([("demo".to_owned(), demo)]),
            tools: IndexMap::new(),
            sandbox: SandboxOptions::default(),
            mcp: IndexMap::new(),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            data_dir: "data".into(),
            max_body_bytes: 10 * 1024 * 1024,
            keep_alive_secs: 15,
            drain_secs: 10,
            head_timeout_secs: 15,
            body_timeout_secs: 30,
            stall_timeout_secs: 60,
        }
    }
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            max_concurrent: 1000,
            max_seconds: 600,
            idle_seconds: 120,
            on_disconnect: OnDisconnect::Cancel,
            max_detached: 200,
            detached_max_seconds: 3600,
            max_run_bytes: 64 * 1024 * 1024,
        }
    }
}

impl Default for Cors {
    fn default() -> Self {
        Self { allow_localhost: true, allow_origins: Vec::new() }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

#[cfg(test)]
mod tests;
