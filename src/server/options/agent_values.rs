//! Checks of the section `[agents]` that need several options, or more than the type of a value.

use super::{
    agents::{
        AgentConfig, AgentKind, ContextConfig, LlmConfig, LlmOptions, ModelSource,
        ProviderClientConfig,
    },
    diagnose::ConfigError,
    origin::Origin,
};
use agui_agents::host::ReplayOptions;
use agui_base::{InvalidOption, upstream::trust::server_url};
use agui_llm::{ModelOptions, WindowPolicy, host::AgentOptions};

/// The fewest tokens of a context window. No instructions fit into less.
const MIN_WINDOW: u64 = 500;

pub(super) fn check(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))
    {
        let message = "an agent's name is part of its URL: use letters, digits, `-`, `_` and `.`";
        return Err(origin.error(&["agents", name], message));
    }
    let checked = match &agent.kind {
        AgentKind::Echo | AgentKind::Script(_) => Ok(()),
        AgentKind::Replay(_, options) => check_replay(options),
        AgentKind::Llm(llm) => check_llm(llm),
        AgentKind::Remote(options) => options.check(),
    };
    checked.map_err(|error| origin.option_error(&["agents", name], &error))
}

fn check_replay(options: &ReplayOptions) -> Result<(), InvalidOption> {
    if !ReplayOptions::is_pace(options.pace) {
        return Err(InvalidOption::new("pace", "a number from 0 to 1000 is needed"));
    }
    if options.fault_after.is_some() && options.fault.is_none() {
        return Err(InvalidOption::new("fault_after", "`fault` is needed, too"));
    }
    Ok(())
}

fn check_llm(LlmConfig { options, agent, source, model }: &LlmConfig) -> Result<(), InvalidOption> {
    if model.model.trim().is_empty() {
        return Err(InvalidOption::whole(
            "kind = \"llm\" needs `model`, the provider's name of the model",
        ));
    }
    if let ModelSource::Hosted(_, client) = source {
        check_client(client)?;
    }
    check_llm_options(options, agent)?;
    check_model(model)
}

fn check_client(client: &ProviderClientConfig) -> Result<(), InvalidOption> {
    let sources = [
        ("api_key_env", client.api_key_env.is_some()),
        ("api_key_file", client.api_key_file.is_some()),
        ("api_key_command", !client.api_key_command.is_empty()),
        ("credentials", client.credentials.is_some()),
    ];
    match &client.base_url {
        Some(url) if server_url(url).is_none() => {
            let problem =
                "expected a URL such as \"https://api.example.com/v1\"; keys go into `api_key_env`";
            return Err(InvalidOption::new("base_url", problem));
        }
        None if sources.iter().all(|(_, is_set)| !is_set) => {
            return Err(InvalidOption::whole(
                "`api_key_env` is needed, the environment variable with the provider's key, `api_key_file` or \
                 `api_key_command`",
            ));
        }
        _ => {}
    }
    for (at, source) in sources.iter().enumerate() {
        sources[..at].iter().try_for_each(|other| one_of(*other, *source))?;
    }
    let is_secret =
        |name: &&String| client.headers_env.keys().any(|secret| secret.eq_ignore_ascii_case(name));
    if let Some(header) = client.headers.keys().find(is_secret) {
        return Err(InvalidOption::new(
            "headers",
            format!("`headers_env` has `{header}`, too: remove one of them"),
        ));
    }
    Ok(())
}

fn check_llm_options(options: &LlmOptions, agent: &AgentOptions) -> Result<(), InvalidOption> {
    one_of(
        ("system_prompt", options.system_prompt.is_some()),
        ("system_prompt_file", options.system_prompt_file.is_some()),
    )?;
    one_of(
        ("response_schema", agent.response_schema.is_some()),
        ("response_schema_file", options.response_schema_file.is_some()),
    )?;
    if agent.models.iter().any(|model| model.trim().is_empty()) {
        return Err(InvalidOption::new("models", "the name of a model is empty"));
    }
    options.context.as_ref().map_or(Ok(()), check_context)
}

fn check_context(context: &ContextConfig) -> Result<(), InvalidOption> {
    if context.window.is_some_and(|tokens| tokens < MIN_WINDOW) {
        let problem = format!("`window` is in tokens: at least {MIN_WINDOW} are needed");
        return Err(InvalidOption::new("context", problem));
    }
    if context.summariser.is_some() && context.policy != WindowPolicy::Summarise {
        return Err(InvalidOption::new("context", "`summariser` needs policy = \"summarise\""));
    }
    Ok(())
}

fn check_model(options: &ModelOptions) -> Result<(), InvalidOption> {
    if options.max_tokens == Some(0) {
        return Err(InvalidOption::new("max_tokens", "at least 1 is needed"));
    }
    for (option, value, least, most) in [
        ("temperature", options.temperature, 0.0, 2.0),
        ("top_p", options.top_p, 0.0, 1.0),
        ("frequency_penalty", options.frequency_penalty, -2.0, 2.0),
        ("presence_penalty", options.presence_penalty, -2.0, 2.0),
    ] {
        if value.is_some_and(|value| !(least..=most).contains(&value)) {
            return Err(InvalidOption::new(
                option,
                format!("a number from {least} to {most} is needed"),
            ));
        }
    }
    Ok(())
}

/// Refuses two options that replace each other.
fn one_of(
    (one, has_one): (&str, bool),
    (other, has_other): (&str, bool),
) -> Result<(), InvalidOption> {
    if has_one && has_other {
        return Err(InvalidOption::new(other, format!("`{one}` is set, too: remove one of them")));
    }
    Ok(())
}
