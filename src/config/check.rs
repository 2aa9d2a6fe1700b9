//! Checks that options fit together. Each section checks itself; rules across sections are here.

use super::{
    Config, agent_checks, auth,
    diagnose::{ConfigError, nearest},
    origin::Origin,
    record, tools,
};

impl Config {
    pub(super) fn check(&self, origin: &Origin) -> Result<(), ConfigError> {
        agent_checks::check(&self.agents, origin)?;
        auth::check(&self.auth, origin)?;
        record::check(&self.record, origin)?;
        self.check_reachability(origin)?;
        tools::check(&self.tools, &self.mcp, &self.sandbox, origin)?;
        if self.copilotkit.enabled
            && let Err(problem) = self.copilotkit.check_prefix()
        {
            return Err(origin.error(&["copilotkit", "prefix"], problem));
        }
        for allowed in &self.cors.allow_origins {
            if allowed != "*" && !is_origin(allowed) {
                let message = format!("{allowed:?} is not an origin such as \"https://app.example.com\"");
                return Err(origin.error(&["cors", "allow_origins"], &message));
            }
        }
        for allowed in &self.server.allowed_hosts {
            if allowed != "*" && !is_host_name(allowed) {
                let message = format!("{allowed:?} is not a host name such as \"agents.example.com\", without port");
                return Err(origin.error(&["server", "allowed_hosts"], &message));
            }
        }
        if let Some(model) = self.prices.find_invalid() {
            return Err(origin.error(&["prices", model], "prices are numbers of at least 0"));
        }
        if let Err(problem) = self.store.read(&self.server.data_dir) {
            return Err(origin.error(&["store", "url"], problem));
        }
        if self.threads.lease.as_secs() < 2 {
            return Err(origin.error(&["threads", "lease_secs"], "at least 2 are needed"));
        }
        if self.runs.max_concurrent == 0 {
            return Err(origin.error(&["runs", "max_concurrent"], "at least 1 is needed"));
        }
        if !(1..=100).contains(&self.limits.share_percent) {
            return Err(origin.error(&["limits", "share_percent"], "a number from 1 to 100 is needed"));
        }
        if self.server.max_connections == 0 {
            return Err(origin.error(&["server", "max_connections"], "at least 1 is needed"));
        }
        Ok(())
    }

    /// Checks the names of agents in `default_agent`, `[named_events]` and `[threads]`. Agents may be configured, or added in Rust.
    ///
    /// # Errors
    /// The first name that no agent has.
    pub fn check_agent_names(&self, origin: &Origin, rust_agents: &[&str]) -> Result<(), ConfigError> {
        let known: Vec<&str> = self.agents.keys().map(String::as_str).chain(rust_agents.iter().copied()).collect();
        for (option, name) in [("chat", &self.named_events.chat), ("agent", &self.named_events.agent)] {
            if let Some(name) = name.as_ref().filter(|name| !known.contains(&name.as_str())) {
                return Err(origin.error(&["named_events", option], &unknown_agent(name, &known)));
            }
        }
        if let Some(name) = self.threads.title_agent.as_ref().filter(|name| !known.contains(&name.as_str())) {
            return Err(origin.error(&["threads", "title_agent"], &unknown_agent(name, &known)));
        }
        match &self.default_agent {
            None if known.is_empty() => Err(origin.error(&["agents"], "at least one agent is needed")),
            None if self.agents.len() > 1 => {
                let names = self.agents.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let message = format!("with several agents, one has to be the default: one of {names}");
                Err(origin.error(&["default_agent"], &message))
            }
            Some(name) if !known.contains(&name.as_str()) => {
                Err(origin.error(&["default_agent"], &unknown_agent(name, &known)))
            }
            _ => Ok(()),
        }
    }

    fn check_reachability(&self, origin: &Origin) -> Result<(), ConfigError> {
        let metrics = self.metrics.listen.filter(|listen| !listen.ip().to_canonical().is_loopback());
        if let Some(listen) = metrics.filter(|_| !self.auth.authenticates()) {
            let message = format!(
                "{listen} can be reached from other machines: metrics are served there only with authentication \
                 ([auth] mode = \"api_key\" or \"jwt\"); otherwise use 127.0.0.1"
            );
            return Err(origin.error(&["metrics", "listen"], &message));
        }
        let listen = self.server.listen;
        if self.auth.authenticates() || self.auth.allow_unauthenticated || listen.ip().to_canonical().is_loopback() {
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

fn unknown_agent(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("there is no agent `{name}`{near}")
}

fn is_host_name(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('.') && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

/// The form of the header `Origin`: `scheme://host`, optionally with a port.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    plain(scheme, "+-.") && plain(host, "-.:[]_")
}
