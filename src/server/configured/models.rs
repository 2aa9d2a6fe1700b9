//! Models of agents: configured ones, and those that were added in Rust.

use std::{fmt, num::NonZero, path::Path, sync::Arc, time::Duration};

use indexmap::IndexMap;
use secrecy::SecretString;

use crate::server::options::{
    Config, ConfigError, LlmConfig, ModelSource, Origin, ProviderClientConfig,
};
use agui_base::{
    InvalidOption,
    upstream::secret_names::{is_secret_header, secret_variable},
};
use agui_llm::{
    KnownModels, Model, ModelOptions, ProviderClient, SetupError,
    host::{Api, OpenAiApi, RecordedExchanges},
};

/// The models that were added in Rust, by name.
pub(super) type RustModels = IndexMap<String, Arc<dyn Model>>;

/// Builds the model of an agent, without its fallbacks.
pub(super) fn build_model(
    llm: &LlmConfig,
    rust: &RustModels,
    known: &KnownModels,
    origin: &Origin,
) -> Result<Arc<dyn Model>, InvalidOption> {
    let mut options = llm.model.clone();
    options.known_models = known.clone();
    match &llm.source {
        ModelSource::Hosted(api, client) => {
            let names = llm.agent.models.iter().chain([&options.model]);
            let apis =
                names.map(|name| OpenAiApi::for_model(known, name, client.base_url.as_deref()));
            // The Responses API serves older models, too, so one model that needs it decides.
            let usual =
                apis.max_by_key(|api| *api == OpenAiApi::Responses).unwrap_or(OpenAiApi::Chat);
            options.credentials = client.credentials;
            options.client = build_client(client, origin)?;
            let create = api.unwrap_or(Api::OpenAi(usual)).entry().create;
            create(options).map_err(|error| match error {
                SetupError::Option { option, problem }
                    if api.is_none() && usual == OpenAiApi::Responses =>
                {
                    let advice = "this model gets the Responses API unless api = \"chat\" is set";
                    InvalidOption::new(option, format!("{problem}; {advice}"))
                }
                error => setup_fault(error),
            })
        }
        ModelSource::Rust => rust_model(&options.model, rust),
        ModelSource::Playback(folder) => playback_model(&origin.resolve(&folder.dir), options),
    }
}

/// Returns the properties of models, with those of the configured file.
pub(super) fn known_models(config: &Config, origin: &Origin) -> Result<KnownModels, ConfigError> {
    let Some(path) = &config.models.file else { return Ok(KnownModels::default()) };
    let path = origin.resolve(path);
    let fault = |problem: &dyn fmt::Display| {
        origin.error(&["models", "file"], &format!("the file {}: {problem}", path.display()))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| fault(&error))?;
    KnownModels::with(&text).map_err(|error| fault(&error))
}

/// Returns advice about the options of a model's client, for people.
pub(super) fn client_warnings(source: &ModelSource) -> Vec<String> {
    let ModelSource::Hosted(_, client) = source else { return Vec::new() };
    let secret = client.headers.keys().filter(|header| is_secret_header(header));
    let secret = secret.map(|header| {
        format!("the header {header} looks like a secret: put its value into headers_env")
    });
    let url = client.base_url.as_deref().map(|url| url.trim_end_matches('/')).unwrap_or_default();
    // Many pages of vendors show the URLs of requests.
    let mut endpoints = Api::ALL.into_iter().flat_map(|api| api.entry().endpoints);
    let endpoint = endpoints.find_map(|endpoint| Some((endpoint, url.strip_suffix(endpoint)?)));
    let endpoint = endpoint.map(|(endpoint, base)| {
        format!("base_url ends with {endpoint}, which requests add: write base_url = {base:?}")
    });
    secret.chain(endpoint).collect()
}

/// Returns an error of a model's or an agent's options.
pub(super) fn setup_fault(error: SetupError) -> InvalidOption {
    match error {
        SetupError::Option { option, problem } => InvalidOption::new(option, problem),
        error => InvalidOption::whole(error.to_string()),
    }
}

/// Reads the file that an option names.
///
/// # Errors
/// If the file cannot be read or is empty. The error names the file.
pub(super) fn read_file(
    option: &str,
    path: &Path,
    origin: &Origin,
) -> Result<String, InvalidOption> {
    let path = origin.resolve(path);
    let fault = |problem: String| {
        InvalidOption::new(option, format!("the file {} {problem}", path.display()))
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| fault(format!("cannot be read: {error}")))?;
    if text.trim().is_empty() { Err(fault("is empty".to_owned())) } else { Ok(text) }
}

fn rust_model(name: &str, rust: &RustModels) -> Result<Arc<dyn Model>, InvalidOption> {
    rust.get(name).cloned().ok_or_else(|| {
        let known: Vec<_> = rust.keys().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let problem =
            format!("there is no Rust model `{name}`: add it with Server::model; added: {known}");
        InvalidOption::new("model", problem)
    })
}

/// Builds a model of the recorded API, whose answers are the recorded ones.
fn playback_model(
    folder: &Path,
    mut options: ModelOptions,
) -> Result<Arc<dyn Model>, InvalidOption> {
    let find = |path: &str| Api::ALL.into_iter().find(|api| api.entry().has_path(path));
    let (api, exchanges) = RecordedExchanges::read(folder, find)
        .map_err(|error| InvalidOption::new("dir", error.to_string()))?;
    let api = api.entry();
    // The recorded host decides on the request format, as it did when it was recorded. An API without endpoints has the
    // model in its paths, so that no base URL can be read from them.
    let base_url = (!api.endpoints.is_empty()).then(|| format!("https://{}", exchanges.url));
    options.client = ProviderClient { base_url, ..ProviderClient::default() };
    options.exchanges = Some(Arc::new(exchanges));
    (api.create)(options).map_err(setup_fault)
}

fn build_client(
    options: &ProviderClientConfig,
    origin: &Origin,
) -> Result<ProviderClient, InvalidOption> {
    let defaults = ProviderClient::default();
    let secret = |option: &str, variable: &str| match secret_variable(variable) {
        Ok(secret) => Ok(SecretString::from(secret)),
        Err(problem) => Err(InvalidOption::new(option, problem)),
    };
    let api_key = options
        .api_key_env
        .as_deref()
        .map(|variable| secret("api_key_env", variable))
        .transpose()?;
    if let Some(path) = &options.api_key_file {
        read_file("api_key_file", path, origin)?;
    }
    let secret_headers = options.headers_env.iter();
    let secret_headers = secret_headers
        .map(|(header, variable)| Ok((header.clone(), secret("headers_env", variable)?)));
    let seconds = |secs: Option<NonZero<u64>>| secs.map(|secs| Duration::from_secs(secs.get()));
    Ok(ProviderClient {
        base_url: options.base_url.clone(),
        api_key,
        api_key_file: options.api_key_file.as_deref().map(|path| origin.resolve(path)),
        api_key_command: options.api_key_command.clone(),
        api_key_ttl: seconds(options.api_key_ttl_secs).unwrap_or(defaults.api_key_ttl),
        headers: secret_headers.collect::<Result<_, InvalidOption>>()?,
        plain_headers: options.headers.clone().into_iter().collect(),
        connect_timeout: seconds(options.connect_timeout_secs).unwrap_or(defaults.connect_timeout),
        idle_timeout: seconds(options.idle_timeout_secs).unwrap_or(defaults.idle_timeout),
        max_retries: options.max_retries.unwrap_or(defaults.max_retries),
        ..defaults
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Sources;

    #[test]
    fn a_file_of_models_adds_to_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agui.toml");
        std::fs::write(&file, "[models]\nfile = \"models.toml\"\n").unwrap();
        let known = |models: &str| {
            std::fs::write(folder.path().join("models.toml"), models).unwrap();
            let loaded = Sources { file: Some(file.clone()), ..Sources::default() }.load().unwrap();
            known_models(&loaded.config, &loaded.origin)
        };
        let added = known("[[openai]]\nfamilies = [\"house\"]").unwrap();
        assert_eq!(OpenAiApi::for_model(&added, "house-1", None), OpenAiApi::Responses);
        assert_eq!(OpenAiApi::for_model(&KnownModels::default(), "house-1", None), OpenAiApi::Chat);
        let fault = known("[[openai]]\nset = { reason = true }").unwrap_err().to_string();
        assert!(
            fault.contains("models.toml") && fault.contains("unknown field `reason`"),
            "{fault}"
        );
    }
}
