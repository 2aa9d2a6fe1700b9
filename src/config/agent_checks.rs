//! Checks of the section `[agents]`: each agent has what its kind needs, and nothing else.

use indexmap::IndexMap;

use super::{
    agents::{AgentConfig, AgentKind, Provider, is_http_url},
    diagnose::ConfigError,
    origin::Origin,
    remote,
};
use crate::{agents::ReplayOptions, llm::ContextPolicy};

/// The fewest tokens of a context window. No instructions fit into less.
const MIN_WINDOW: u64 = 500;

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
        AgentKind::Replay => check_replay(name, agent, origin),
        AgentKind::Llm => check_llm(name, agent, origin),
        AgentKind::Remote => remote::check(name, agent, origin),
        AgentKind::Echo | AgentKind::Script => Ok(()),
    }
}

fn check_replay(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    let error = |option: &str, message: &str| Err(origin.error(&["agents", name, option], message));
    if agent.dir.is_none() {
        return Err(origin.error(&["agents", name], "kind = \"replay\" needs `dir`, a folder with recordings"));
    }
    if agent.pace.is_some_and(|pace| !ReplayOptions::is_pace(pace)) {
        return error("pace", "a number from 0 to 1000 is needed");
    }
    if agent.fault_after.is_some() && agent.fault.is_none() {
        return error("fault_after", "`fault` is needed, too");
    }
    Ok(())
}

fn check_llm(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    let error = |option: Option<&str>, message: &str| {
        let option: Vec<&str> = ["agents", name].into_iter().chain(option).collect();
        Err(origin.error(&option, message))
    };
    if agent.provider.is_none() {
        return error(
            None,
            "kind = \"llm\" needs `provider`: \"openai\", \"openai-responses\", \"anthropic\", \"gemini\", \"rust\" or \
             \"replay\"",
        );
    }
    if agent.model.as_ref().is_none_or(|model| model.trim().is_empty()) {
        return error(None, "kind = \"llm\" needs `model`, the provider's name of the model");
    }
    if agent.provider == Some(Provider::Replay) {
        if let Err((option, message)) = check_recorded_provider(agent) {
            return error(option, message);
        }
    } else if agent.dir.is_some() {
        return error(Some("dir"), "only kind = \"replay\" and provider = \"replay\" have this option");
    } else if let Some(url) = &agent.base_url {
        if !is_http_url(url) {
            let message = "expected a URL such as \"https://api.example.com/v1\"; keys go into `api_key_env`";
            return error(Some("base_url"), message);
        }
    } else if agent.api_key_env.is_none() && agent.api_key_file.is_none() && agent.provider != Some(Provider::Rust) {
        let message = "`api_key_env` is needed, the environment variable with the provider's key, or `api_key_file`";
        return error(None, message);
    }
    for (option, is_set, other, is_other_set) in [
        ("api_key_file", agent.api_key_file.is_some(), "api_key_env", agent.api_key_env.is_some()),
        ("system_prompt_file", agent.system_prompt_file.is_some(), "system_prompt", agent.system_prompt.is_some()),
        (
            "response_schema_file",
            agent.response_schema_file.is_some(),
            "response_schema",
            agent.response_schema.is_some(),
        ),
    ] {
        if is_set && is_other_set {
            return error(Some(option), &format!("`{other}` is set, too: remove one of them"));
        }
    }
    if let Some(header) =
        agent.headers.iter().flatten().map(|(name, _)| name).find(|name| is_in_headers_env(agent, name))
    {
        return error(Some("headers"), &format!("`headers_env` has `{header}`, too: remove one of them"));
    }
    if agent.models.iter().flatten().any(|model| model.trim().is_empty()) {
        return error(Some("models"), "the name of a model is empty");
    }
    for (option, is_zero) in [
        ("max_steps", agent.max_steps == Some(0)),
        ("max_calls_per_turn", agent.max_calls_per_turn == Some(0)),
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
    for (option, value, least, most) in [
        ("temperature", agent.temperature, 0.0, 2.0),
        ("top_p", agent.top_p, 0.0, 1.0),
        ("frequency_penalty", agent.frequency_penalty, -2.0, 2.0),
        ("presence_penalty", agent.presence_penalty, -2.0, 2.0),
    ] {
        if value.is_some_and(|value| !(least..=most).contains(&value)) {
            return error(Some(option), &format!("a number from {least} to {most} is needed"));
        }
    }
    if let Some(context) = &agent.context {
        if context.window.is_some_and(|tokens| tokens < MIN_WINDOW) {
            return error(Some("context"), &format!("`window` is in tokens: at least {MIN_WINDOW} are needed"));
        }
        if context.summariser.is_some() && context.policy != ContextPolicy::Summarise {
            return error(Some("context"), "`summariser` needs policy = \"summarise\"");
        }
    }
    if agent.api.is_some() && agent.provider != Some(Provider::Openai) {
        return error(Some("api"), "only provider = \"openai\" has this option");
    }
    if agent.provider == Some(Provider::Rust) {
        return check_rust_model(name, agent, origin);
    }
    Ok(())
}

/// Returns the option and the problem.
fn check_recorded_provider(agent: &AgentConfig) -> Result<(), (Option<&'static str>, &'static str)> {
    if agent.dir.is_none() {
        return Err((None, "provider = \"replay\" needs `dir`, a folder with recordings"));
    }
    for (option, is_set) in [
        ("base_url", agent.base_url.is_some()),
        ("api_key_env", agent.api_key_env.is_some()),
        ("api_key_file", agent.api_key_file.is_some()),
        ("headers", agent.headers.is_some()),
        ("headers_env", agent.headers_env.is_some()),
        ("connect_timeout_secs", agent.connect_timeout_secs.is_some()),
        ("idle_timeout_secs", agent.idle_timeout_secs.is_some()),
        ("max_retries", agent.max_retries.is_some()),
    ] {
        if is_set {
            return Err((Some(option), "provider = \"replay\" sends no requests, and has no such option"));
        }
    }
    Ok(())
}

/// The options that an agent with a model in Rust has. The model has a connection and options of its own.
const OPTIONS_WITH_RUST_MODEL: &[&str] = &[
    "provider",
    "model",
    "models",
    "fallback",
    "system_prompt",
    "system_prompt_file",
    "tools",
    "tool_choice",
    "response_schema",
    "response_schema_file",
    "max_steps",
    "max_calls_per_turn",
    "tool_timeout_secs",
    "parallel_tools",
    "context",
];

fn is_in_headers_env(agent: &AgentConfig, header: &str) -> bool {
    agent.headers_env.iter().flatten().any(|(name, _)| name.eq_ignore_ascii_case(header))
}

fn check_rust_model(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    match agent.options_of_kinds().find(|(option, _)| !OPTIONS_WITH_RUST_MODEL.contains(option)) {
        Some((option, _)) => {
            let message = "provider = \"rust\" has no such option: set it on the model in Rust";
            Err(origin.error(&["agents", name, option], message))
        }
        None => Ok(()),
    }
}
