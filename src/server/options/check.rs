//! Checks that options fit together. Each section checks itself; rules across sections are here.

use std::collections::HashSet;

use super::{
    Config, StoreUrl, agent_values, auth, diagnose::ConfigError, origin::Origin, transcription,
};
use crate::http::{AllowRule, check_own_path, client_options::is_below};
use agui_agent::files::check_url;
use agui_base::{
    InvalidOption,
    text::did_you_mean,
    upstream::{
        secret_names::is_secret_header,
        trust::{is_trusted_url, server_url},
    },
};
use agui_observe::{recordings::RecordOptions, telemetry::logs};

/// The name by which agents list the tools of the sandbox.
pub(crate) const SANDBOX: &str = "sandbox";
const TOOL_NAME: &str =
    "a tool's name has 1 to 64 letters, digits, `-` and `_`: models accept no others";
const SERVER_NAME: &str = "the name of an MCP server has 1 to 64 letters, digits, `-` and `_`";

impl Config {
    /// Returns all errors that are found, as one.
    pub(super) fn check(&self, origin: &Origin) -> Result<(), ConfigError> {
        let sections = [
            self.check_tables(origin),
            auth::check(&self.auth, origin),
            check_record(&self.record, origin),
            self.check_reachability(origin),
            self.check_names(origin),
            self.check_paths(origin),
            self.check_callers(origin),
            self.check_logins(origin),
            self.check_values(origin),
            transcription::check(&self.transcription, origin),
        ];
        ConfigError::join(sections.into_iter().filter_map(Result::err))
    }

    /// Checks agents, tools and MCP servers, each by itself. Returns all errors that are found, as one.
    pub(super) fn check_tables(&self, origin: &Origin) -> Result<(), ConfigError> {
        let agents =
            self.agents.iter().map(|(name, agent)| agent_values::check(name, agent, origin));
        let tools = self.tools.iter().map(|(name, tool)| match name.as_str() {
            SANDBOX => {
                Err(origin.error(&["tools", name], "the name of a tool group cannot be used"))
            }
            name => check_named(["tools", name], TOOL_NAME, origin, || tool.check()),
        });
        let servers = self.mcp.iter();
        let servers = servers.map(|(name, server)| {
            check_named(["mcp", name], SERVER_NAME, origin, || server.check())
        });
        let sandbox =
            self.sandbox.check().map_err(|error| origin.option_error(&["sandbox"], &error));
        ConfigError::join(
            agents.chain(tools).chain(servers).chain([sandbox]).filter_map(Result::err),
        )
    }

    fn check_names(&self, origin: &Origin) -> Result<(), ConfigError> {
        let wrong_prefix = self.copilotkit.check_prefix().err().filter(|_| self.copilotkit.enabled);
        let taken = self.copilotkit.enabled.then_some(&*self.copilotkit.prefix);
        let wrong_chats = self.ai_sdk.check_prefix(taken).err().filter(|_| self.ai_sdk.enabled);
        let wrong_origin =
            self.cors.allow_origins.iter().find(|allowed| *allowed != "*" && !is_origin(allowed));
        let wrong_host = self
            .server
            .allowed_hosts
            .iter()
            .find(|allowed| *allowed != "*" && !is_host_name(allowed));
        let files_problem =
            self.files.url.as_ref().and_then(|url| match self.store.read(&self.server.data_dir) {
                Ok(StoreUrl::Memory) => {
                    Some("a store in memory keeps files in memory: set [store] url".to_owned())
                }
                _ => check_url(url).err(),
            });
        let wrong_url = self.server.public_url.as_ref().filter(|url| server_url(url).is_none());
        let is_not = |wrong: Option<&String>, expected: &str| {
            wrong.map(|wrong| format!("{wrong:?} is not {expected}"))
        };
        let problems = [
            (["copilotkit", "prefix"], wrong_prefix.map(str::to_owned)),
            (["ai_sdk", "prefix"], wrong_chats.map(str::to_owned)),
            (
                ["cors", "allow_origins"],
                is_not(wrong_origin, "an origin such as \"https://app.example.com\""),
            ),
            (
                ["server", "allowed_hosts"],
                is_not(wrong_host, "a host name such as \"agents.example.com\", without port"),
            ),
            (["files", "url"], files_problem),
            (
                ["server", "public_url"],
                is_not(wrong_url, "a URL such as \"https://chat.example.com\""),
            ),
        ];
        let first = problems
            .into_iter()
            .find_map(|(option, problem)| Some(origin.error(&option, &problem?)));
        first.map_or(Ok(()), Err)
    }

    /// A path belongs to one agent, and not to the routes for CopilotKit or the AI SDK.
    fn check_paths(&self, origin: &Origin) -> Result<(), ConfigError> {
        let mut taken = HashSet::new();
        let paths = self
            .agents
            .iter()
            .filter_map(|(name, agent)| Some((name, agent.common.path.as_deref()?)));
        for (name, path) in paths {
            let problem = if let Err(problem) = check_own_path(path) {
                problem
            } else if self.copilotkit.enabled && is_below(path, &self.copilotkit.prefix) {
                "the path is one of [copilotkit] prefix"
            } else if self.ai_sdk.enabled && is_below(path, &self.ai_sdk.prefix) {
                "the path is one of [ai_sdk] prefix"
            } else if !taken.insert(path) {
                "another agent has this path"
            } else {
                continue;
            };
            return Err(origin.error(&["agents", name, "path"], problem));
        }
        Ok(())
    }

    fn check_callers(&self, origin: &Origin) -> Result<(), ConfigError> {
        let fault = |problem: &str| Err(origin.error(&["allow"], problem));
        if self.allow.iter().any(AllowRule::is_incomplete) {
            return fault("each table needs `agents`, and `principals` or `claim` with `values`");
        }
        if !self.allow.is_empty() && !self.auth.authenticates() {
            return fault("callers are known with authentication only: set [auth] mode");
        }
        Ok(())
    }

    /// Logins need a key, an address for browsers, and callers that differ, or a single person.
    fn check_logins(&self, origin: &Origin) -> Result<(), ConfigError> {
        let servers = self
            .mcp
            .iter()
            .filter(|(_, server)| server.login.is_some())
            .map(|(name, _)| ["mcp", name]);
        let tools = self
            .tools
            .iter()
            .filter(|(_, tool)| tool.login.is_some())
            .map(|(name, _)| ["tools", name]);
        let Some([section, name]) = servers.chain(tools).next() else { return Ok(()) };
        let is_loopback = self.server.listen.ip().to_canonical().is_loopback();
        let problem = if self.secrets.key_env.is_none() {
            "logins are stored sealed: set [secrets] key_env"
        } else if !self.auth.authenticates() && !is_loopback {
            "without authentication, everybody would use the account of whoever logs in first: configure [auth]"
        } else if self.server.public_url.is_none() && !is_loopback {
            "browsers have to reach this server: set [server] public_url"
        } else if self.server.public_url.as_ref().is_some_and(|url| !is_trusted_url(url)) {
            "[server] public_url has to be https: http is for this machine only"
        } else {
            return Ok(());
        };
        Err(origin.error(&[section, name, "login"], problem))
    }

    fn check_values(&self, origin: &Origin) -> Result<(), ConfigError> {
        let price = self
            .prices
            .find_invalid()
            .map(|model| origin.error(&["prices", model], "prices are numbers of at least 0"));
        let store = self
            .store
            .read(&self.server.data_dir)
            .err()
            .map(|problem| origin.error(&["store", "url"], problem));
        let level = logs::parse(&self.log.level)
            .err()
            .map(|error| origin.error(&["log", "level"], &error.to_string()));
        let numbers = [
            (["threads", "lease_secs"], self.threads.lease.as_secs() >= 2, "at least 2 are needed"),
            (["runs", "max_concurrent"], self.runs.max_concurrent > 0, "at least 1 is needed"),
            (
                ["limits", "share_percent"],
                (1..=100).contains(&self.limits.share_percent),
                "a number from 1 to 100 is needed",
            ),
            (
                ["server", "max_connections"],
                self.server.max_connections > 0,
                "at least 1 is needed",
            ),
            (["server", "max_streams"], self.server.max_streams > 0, "at least 1 is needed"),
            (["files", "max_file_bytes"], self.files.max_file_bytes > 0, "at least 1 is needed"),
            (["files", "url_days"], self.files.url_days > 0, "at least 1 is needed"),
            (["record", "max_file_bytes"], self.record.max_file_bytes > 0, "at least 1 is needed"),
            (["record", "max_files"], self.record.max_files > 0, "at least 1 is needed"),
            (
                ["record", "max_folder_bytes"],
                self.record.max_folder_bytes > 0,
                "at least 1 is needed",
            ),
        ];
        let wrong = numbers.iter().filter(|(_, is_right, _)| !is_right);
        let numbers = wrong.map(|(option, _, problem)| origin.error(option, problem));
        ConfigError::join([price, store, level].into_iter().flatten().chain(numbers))
    }

    /// Checks the names of agents in `default_agent`, `[named_events]` and `[threads]`. Agents may be configured, or added in Rust.
    ///
    /// # Errors
    /// The names that no agent has.
    pub(crate) fn check_agent_names(
        &self,
        origin: &Origin,
        rust_agents: &[&str],
    ) -> Result<(), ConfigError> {
        let known: Vec<&str> =
            self.agents.keys().map(String::as_str).chain(rust_agents.iter().copied()).collect();
        let named = [
            (&["named_events", "chat"][..], &self.named_events.chat),
            (&["named_events", "agent"], &self.named_events.agent),
            (&["threads", "title_agent"], &self.threads.title_agent),
            (&["default_agent"], &self.default_agent),
        ];
        let named = named.into_iter().filter_map(|(option, name)| Some((option, name.as_ref()?)));
        let allowed =
            self.allow.iter().flat_map(|rule| &rule.agents).map(|name| (&["allow"][..], name));
        let unknown = named.chain(allowed).filter(|(_, name)| !known.contains(&name.as_str()));
        ConfigError::join(unknown.map(|(option, name)| {
            origin
                .error(option, &format!("there is no agent `{name}`{}", did_you_mean(name, &known)))
        }))?;
        match &self.default_agent {
            None if known.is_empty() => {
                Err(origin.error(&["agents"], "at least one agent is needed"))
            }
            None if self.agents.len() > 1 => {
                let names = self
                    .agents
                    .keys()
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
                let message =
                    format!("with several agents, one has to be the default: one of {names}");
                Err(origin.error(&["default_agent"], &message))
            }
            _ => Ok(()),
        }
    }

    fn check_reachability(&self, origin: &Origin) -> Result<(), ConfigError> {
        let metrics =
            self.metrics.listen.filter(|listen| !listen.ip().to_canonical().is_loopback());
        if let Some(listen) = metrics.filter(|_| !self.auth.authenticates()) {
            let message = format!(
                "{listen} can be reached from other machines: metrics are served there only with authentication \
                 ([auth] mode = \"api_key\" or \"jwt\"); otherwise use 127.0.0.1"
            );
            return Err(origin.error(&["metrics", "listen"], &message));
        }
        let listen = self.server.listen;
        if self.auth.authenticates()
            || self.auth.allow_unauthenticated
            || listen.ip().to_canonical().is_loopback()
        {
            return Ok(());
        }
        let message = format!(
            "{listen} can be reached from other machines, and without authentication anybody there could use the \
             server. Configure keys or tokens ([auth] mode = \"api_key\" or \"jwt\"), listen on 127.0.0.1, or, if that \
             is what you want, set [auth] allow_unauthenticated = true"
        );
        Err(origin.error(&["server", "listen"], &message))
    }
}

fn is_host_name(text: &str) -> bool {
    !text.is_empty()
        && !text.ends_with('.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

/// The form of the header `Origin`: `scheme://host`, optionally with a port.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    plain(scheme, "+-.") && plain(host, "-.:[]_")
}

fn check_record(record: &RecordOptions, origin: &Origin) -> Result<(), ConfigError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let problem = record.headers.iter().find_map(|name| {
        if name.is_empty() || !name.chars().all(is_plain) {
            return Some(format!("{name:?} is not the name of a header in lower case"));
        }
        is_secret_header(name).then(|| {
            format!("{name:?} looks like a header with credentials, which are not recorded")
        })
    });
    problem.map_or(Ok(()), |problem| Err(origin.error(&["record", "headers"], &problem)))
}

/// Checks the name of a tool or a server, whose form is in `rule`, and then its options.
fn check_named(
    table: [&str; 2],
    rule: &str,
    origin: &Origin,
    check_options: impl FnOnce() -> Result<(), InvalidOption>,
) -> Result<(), ConfigError> {
    let [_, name] = table;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_plain || !(1..=64).contains(&name.len()) {
        return Err(origin.error(&table, rule));
    }
    check_options().map_err(|error| origin.option_error(&table, &error))
}

impl Origin {
    pub(crate) fn option_error(&self, table: &[&str], error: &InvalidOption) -> ConfigError {
        let path: Vec<&str> =
            table.iter().copied().chain(error.path.iter().map(String::as_str)).collect();
        self.error(&path, &error.problem)
    }
}
