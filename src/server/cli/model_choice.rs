//! An agent whose model is named on the command line: `agui-server --model gpt-4o`, and the file
//! that `agui-server init` writes.

use toml::{Table, Value};

use crate::server::options::OLLAMA_URL;
use agui_llm::host::{Api, KnownProvider};

/// Ollama, whose models need no key.
pub(super) static OLLAMA: KnownProvider = KnownProvider {
    name: "ollama",
    key_env: None,
    base_url: Some(OLLAMA_URL),
    model_prefixes: &[],
    usual_model: "qwen3",
};

/// Returns the providers that the command line knows.
pub(super) fn providers() -> impl Iterator<Item = &'static KnownProvider> {
    Api::ALL.into_iter().filter_map(|api| api.entry().service.as_ref()).chain([&OLLAMA])
}

/// Returns the names of all providers, each with a text behind it.
pub(super) fn each_name(suffix: &str) -> String {
    let names: Vec<_> = providers().map(|provider| format!("{}{suffix}", provider.name)).collect();
    names.join(", ")
}

/// Returns the environment variables with keys.
pub(super) fn key_variables() -> String {
    providers().filter_map(|provider| provider.key_env).collect::<Vec<_>>().join(", ")
}

/// A model and its provider.
#[derive(Debug, Clone)]
pub(super) struct ModelChoice {
    pub(super) provider: &'static KnownProvider,
    pub(super) model: String,
}

pub(super) fn read_provider(name: &str) -> Result<&'static KnownProvider, String> {
    let found = providers().find(|provider| provider.name == name);
    found.ok_or_else(|| format!("expected one of {}", each_name("")))
}

/// Reads `PROVIDER/MODEL`, or the name of a model that only one provider has.
pub(super) fn read_model(text: &str) -> Result<ModelChoice, String> {
    let prefixed =
        text.split_once('/').and_then(|(name, model)| Some((read_provider(name).ok()?, model)));
    let has = |provider: &&KnownProvider| {
        provider.model_prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    let named = prefixed.or_else(|| Some((providers().find(has)?, text)));
    let (provider, model) = named.filter(|(_, model)| !model.is_empty()).ok_or_else(|| {
        let forms = each_name("/MODEL");
        format!("the provider of this model is unknown: write {forms}, or use a configuration file")
    })?;
    Ok(ModelChoice { provider, model: model.to_owned() })
}

impl ModelChoice {
    /// Returns the text of a configuration with one agent.
    pub(super) fn configuration(&self, agent: &str, tools: &[&str]) -> String {
        let KnownProvider { name, key_env, base_url, .. } = *self.provider;
        let texts = [
            ("kind", Some("llm")),
            ("provider", Some(if base_url.is_some() { "openai" } else { name })),
            ("base_url", base_url),
            ("model", Some(&*self.model)),
            ("api_key_env", key_env),
            ("system_prompt", Some("You are a helpful assistant. Answer briefly.")),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(option, text)| Some((option.to_owned(), Value::from(text?))));
        let tools = Value::Array(tools.iter().copied().map(Value::from).collect());
        let options: Table = texts.chain([("tools".to_owned(), tools)]).collect();
        let agents = Table::from_iter([(agent.to_owned(), Value::Table(options))]);
        Table::from_iter([("agents".to_owned(), Value::Table(agents))]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Loaded;

    #[test]
    fn a_model_has_the_provider_that_its_name_or_its_prefix_says() {
        for (text, provider, model) in [
            ("gpt-5.5", "openai", "gpt-5.5"),
            ("o3-mini", "openai", "o3-mini"),
            ("claude-opus-5-5", "anthropic", "claude-opus-5-5"),
            ("gemini-3.8-flash", "gemini", "gemini-3.8-flash"),
            ("openai/ft:any", "openai", "ft:any"),
            ("ollama/hf.co/someone/gpt-oss:20b", "ollama", "hf.co/someone/gpt-oss:20b"),
        ] {
            let choice = read_model(text).unwrap();
            assert_eq!((choice.provider.name, &*choice.model), (provider, model));
        }
        for text in ["qwen3", "mistral/large", "ollama/", "/gpt-4o", ""] {
            assert!(
                read_model(text).unwrap_err().contains("write openai/MODEL, anthropic/MODEL"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_configuration_of_each_provider_is_read_with_its_model() {
        for provider in providers() {
            let choice = ModelChoice { provider, model: "a \"model\"".to_owned() };
            let loaded = Loaded::from_toml_str(
                &choice.configuration("clerk", &["current_time", "ask_user"]),
            )
            .unwrap();
            let agent = loaded.config.agents["clerk"].llm().unwrap();
            assert_eq!(agent.model.model, "a \"model\"");
            assert_eq!(agent.options.tools, ["current_time", "ask_user"]);
        }
    }
}
