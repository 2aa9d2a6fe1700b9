//! Checks of the section `[agents]`: each agent has what its kind needs, and nothing else.

use indexmap::IndexMap;

use super::{
    agents::{AgentConfig, AgentKind, Provider, is_http_url},
    diagnose::ConfigError,
    origin::Origin,
    remote,
};

pub(super) fn check(agents: &IndexMap<String, AgentConfig>, origin: &Origin) -> Result<(), ConfigError> {
    agents.iter().try_for_each(|(name, agent)| check_agent(name, agent, origin))
}

fn check_agent(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)) {
        let message = "an agent's name is part of its URL: use letters, digits, `-`, `_` and `.`";
        return Err(origin.error(&["agents", name], message));
    }
    if let Some((option, kinds)) = agent.options_of_kinds().find(|(_, kinds)| !kinds.contains(&agent.kind)) {
        let kinds: Vec<_> = kinds.iter().map(|kind| format!("kind = \"{}\"", kind.as_str())).collect();
        let message = match &kinds[..] {
            [kind] => format!("only {kind} has this option"),
            kinds => format!("only {} have this option", kinds.join(" and ")),
        };
        return Err(origin.error(&["agents", name, option], &message));
    }
    match agent.kind {
        AgentKind::Script if agent.script.is_none() => {
            Err(origin.error(&["agents", name], "kind = \"script\" needs `script`, a file"))
        }
        AgentKind::Llm => check_llm(name, agent, origin),
        AgentKind::Remote => remote::check(name, agent, origin),
        AgentKind::Echo | AgentKind::Script => Ok(()),
    }
}

fn check_llm(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    let error = |option: Option<&str>, message: &str| {
        let option: Vec<&str> = ["agents", name].into_iter().chain(option).collect();
        Err(origin.error(&option, message))
    };
    if agent.provider.is_none() {
        return error(None, "kind = \"llm\" needs `provider`: \"openai\", \"anthropic\" or \"rust\"");
    }
    if agent.model.as_ref().is_none_or(|model| model.trim().is_empty()) {
        return error(None, "kind = \"llm\" needs `model`, the provider's name of the model");
    }
    if let Some(url) = &agent.base_url {
        if !is_http_url(url) {
            let message = "expected a URL such as \"https://api.example.com/v1\"; keys go into `api_key_env`";
            return error(Some("base_url"), message);
        }
    } else if agent.api_key_env.is_none() && agent.provider != Some(Provider::Rust) {
        return error(None, "`api_key_env` is needed, the environment variable with the provider's key");
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
            return error(Some(option), "at least 1 is needed");
        }
    }
    if agent.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return error(Some("temperature"), "a number from 0 to 2 is needed");
    }
    if agent.provider == Some(Provider::Rust) {
        return check_rust_model(name, agent, origin);
    }
    let (option, is_of_other_provider) = match agent.provider {
        Some(Provider::Anthropic) => ("reasoning_effort", agent.reasoning_effort.is_some()),
        _ => ("thinking_budget", agent.thinking_budget.is_some()),
    };
    if is_of_other_provider {
        return error(Some(option), "this provider does not have this option");
    }
    Ok(())
}

/// A model in Rust has a connection of its own.
fn check_rust_model(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    let options = [
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
    ];
    match options.iter().find(|(_, is_set)| *is_set) {
        Some((option, _)) => {
            let message = "provider = \"rust\" has no such option: set it on the model in Rust";
            Err(origin.error(&["agents", name, option], message))
        }
        None => Ok(()),
    }
}
