//! Models of agents, by their configuration and by what was added in Rust.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use indexmap::IndexMap;
use secrecy::SecretString;

use super::files::read_file;
use crate::{
    config::{self, ConfigError, Origin, Provider},
    llm::{
        Anthropic, Connection, Gemini, Model, ModelOptions, OpenAiApi, OpenAiChat, OpenAiResponses, RecordedApi,
        RecordedExchanges, SetupError,
    },
    tools::Tool,
};

/// Parts of the names of headers that contain secrets.
const SECRET_NAMES: [&str; 6] = ["authorization", "key", "token", "secret", "password", "cookie"];

/// The models and tools that were added in Rust.
#[derive(Clone, Default)]
pub(in crate::app) struct RustModels {
    pub(in crate::app) models: IndexMap<String, Arc<dyn Model>>,
    pub(in crate::app) tools: Vec<Arc<dyn Tool>>,
}

impl fmt::Debug for RustModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.spec().name).collect();
        f.debug_struct("RustModels")
            .field("models", &self.models.keys().collect::<Vec<_>>())
            .field("tools", &tools)
            .finish()
    }
}

/// Builds the model of an agent, without its fallbacks.
pub(super) fn build_model(
    name: &str,
    options: &config::AgentConfig,
    rust: &RustModels,
    origin: &Origin,
) -> Result<Arc<dyn Model>, ConfigError> {
    match options.provider {
        Some(Provider::Rust) => rust_model(name, options, rust, origin),
        Some(Provider::Replay) => replay_model(name, options, origin),
        Some(provider) => provider_model(provider, name, options, origin),
        None => Err(origin.error(&["agents", name], "kind = \"llm\" needs `provider`")),
    }
}

/// Returns advice about the options of an agent's connection, for people.
pub(super) fn connection_warnings(options: &config::AgentConfig) -> impl Iterator<Item = String> {
    let headers = options.headers.iter().flatten().map(|(header, _)| header).filter(|header| is_secret(header));
    headers.map(|header| format!("the header {header} looks like a secret: put its value into headers_env"))
}

fn rust_model(
    name: &str,
    options: &config::AgentConfig,
    rust: &RustModels,
    origin: &Origin,
) -> Result<Arc<dyn Model>, ConfigError> {
    let model = options.model.as_deref().unwrap_or_default();
    rust.models.get(model).cloned().ok_or_else(|| {
        let known: Vec<_> = rust.models.keys().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("there is no Rust model `{model}`: add it with Server::model; added: {known}");
        origin.error(&["agents", name, "model"], &message)
    })
}

/// Builds a model of the recorded API, whose answers are the recorded ones.
fn replay_model(name: &str, options: &config::AgentConfig, origin: &Origin) -> Result<Arc<dyn Model>, ConfigError> {
    let folder = origin.resolve(options.dir.as_deref().unwrap_or(Path::new("")));
    let exchanges =
        RecordedExchanges::read(&folder).map_err(|error| origin.error(&["agents", name, "dir"], &error.to_string()))?;
    let api = exchanges.api();
    // The recorded host decides on the request format, as it did when it was recorded. Gemini's path has the model.
    let base_url = (api != RecordedApi::Gemini).then(|| format!("https://{}", exchanges.url()));
    let connection = Connection { base_url, exchanges: Some(exchanges), ..Connection::default() };
    let model = ModelOptions { connection, ..options.model_options() };
    let built: Result<Arc<dyn Model>, SetupError> = match api {
        RecordedApi::Messages => Anthropic::new(model).map(|model| Arc::new(model) as _),
        RecordedApi::Gemini => Gemini::new(model).map(|model| Arc::new(model) as _),
        RecordedApi::Responses => OpenAiResponses::new(model).map(|model| Arc::new(model) as _),
        RecordedApi::ChatCompletions => OpenAiChat::new(model).map(|model| Arc::new(model) as _),
    };
    built.map_err(|error| match error {
        SetupError::Option { option, problem } => origin.error(&["agents", name, option], &problem),
        error => origin.error(&["agents", name], &error.to_string()),
    })
}

fn provider_model(
    provider: Provider,
    name: &str,
    options: &config::AgentConfig,
    origin: &Origin,
) -> Result<Arc<dyn Model>, ConfigError> {
    let model = ModelOptions { connection: connection(name, options, origin)?, ..options.model_options() };
    let is_responses = match provider {
        Provider::OpenaiResponses => true,
        Provider::Openai => {
            // The Responses API serves older models, too, so one model that needs it decides.
            let mut names = options.models.iter().flatten().chain([&model.model]);
            let base_url = options.base_url.as_deref();
            options.api.map_or_else(
                || names.any(|name| OpenAiApi::for_model(name, base_url) == OpenAiApi::Responses),
                |api| api == OpenAiApi::Responses,
            )
        }
        Provider::Anthropic | Provider::Gemini | Provider::Rust | Provider::Replay => false,
    };
    let built: Result<Arc<dyn Model>, SetupError> = match provider {
        Provider::Anthropic => Anthropic::new(model).map(|model| Arc::new(model) as _),
        Provider::Gemini => Gemini::new(model).map(|model| Arc::new(model) as _),
        _ if is_responses => OpenAiResponses::new(model).map(|model| Arc::new(model) as _),
        _ => OpenAiChat::new(model).map(|model| Arc::new(model) as _),
    };
    built.map_err(|error| match error {
        SetupError::Option { option, problem } => {
            let was_chosen = is_responses && provider == Provider::Openai && options.api.is_none();
            let advice =
                if was_chosen { "; this model gets the Responses API unless api = \"chat\" is set" } else { "" };
            origin.error(&["agents", name, option], &format!("{problem}{advice}"))
        }
        error => origin.error(&["agents", name], &error.to_string()),
    })
}

fn connection(name: &str, options: &config::AgentConfig, origin: &Origin) -> Result<Connection, ConfigError> {
    let defaults = Connection::default();
    let secret = |option: &str, variable: &str| match std::env::var(variable) {
        Ok(secret) if !secret.trim().is_empty() => Ok(SecretString::from(secret.trim().to_owned())),
        _ => {
            let message = format!("the environment variable {variable} is not set");
            Err(origin.error(&["agents", name, option], &message))
        }
    };
    let api_key = match (&options.api_key_env, &options.api_key_file) {
        (Some(variable), _) => Some(secret("api_key_env", variable)?),
        (None, Some(path)) => Some(read_file(name, "api_key_file", path, origin)?.into()),
        (None, None) => None,
    };
    let secret_headers = options.headers_env.iter().flatten();
    let secret_headers =
        secret_headers.map(|(header, variable)| Ok((header.clone(), secret("headers_env", variable)?)));
    Ok(Connection {
        base_url: options.base_url.clone(),
        api_key,
        headers: secret_headers.collect::<Result<_, ConfigError>>()?,
        plain_headers: options.headers.iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect(),
        connect_timeout: options.connect_timeout_secs.map_or(defaults.connect_timeout, Duration::from_secs),
        idle_timeout: options.idle_timeout_secs.map_or(defaults.idle_timeout, Duration::from_secs),
        max_retries: options.max_retries.unwrap_or(defaults.max_retries),
        ..defaults
    })
}

fn is_secret(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| header.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_secrets_are_known_by_their_names() {
        for header in ["Authorization", "X-Api-Key", "api-key", "X-Auth-Token", "Cookie", "Ocp-Apim-Subscription-Key"] {
            assert!(is_secret(header), "{header}");
        }
        for header in ["HTTP-Referer", "X-Title", "OpenAI-Organization", "anthropic-beta"] {
            assert!(!is_secret(header), "{header}");
        }
    }
}
