//! The models of the configured agents, which other agents can name as fallbacks.

use std::sync::Arc;

use indexmap::IndexMap;

use super::models::{RustModels, build_model, client_warnings, known_models};
use crate::server::options::{AgentConfig, ConfigError, LlmConfig, Loaded, ModelSource};
use agui_llm::{KnownModels, Model, WindowOptions};

/// A model at a provider that an agent's requests may use.
pub(in crate::server) struct HostedModel<'s> {
    pub(in crate::server) agent: &'s str,
    pub(in crate::server) name: &'s str,
    pub(in crate::server) model: Arc<dyn Model>,
}

/// Builds the models of the agents, also those that a request has to name.
pub(in crate::server) fn hosted_models(
    loaded: &Loaded,
) -> Result<Vec<HostedModel<'_>>, ConfigError> {
    let rust_models = RustModels::default();
    let (mut models, mut hosted) = (AgentModels::new(loaded, &rust_models)?, Vec::new());
    for (agent, llm) in
        loaded.config.agents.iter().filter_map(|(agent, config)| Some((agent, config.llm()?)))
    {
        if matches!(llm.source, ModelSource::Hosted(..)) {
            let (model, usual) = (models.model(agent, llm)?, llm.model.model.as_str());
            let others = llm.agent.models.iter().map(String::as_str).filter(|name| *name != usual);
            let names = [usual].into_iter().chain(others);
            hosted.extend(names.map(|name| HostedModel { agent, name, model: model.clone() }));
        }
    }
    Ok(hosted)
}

/// Builds each agent's model once. A fallback is the model of another agent, without that agent's own fallbacks: so two
/// agents can be each other's fallback.
pub(super) struct AgentModels<'s> {
    loaded: &'s Loaded,
    rust_models: &'s RustModels,
    known: KnownModels,
    built: IndexMap<String, Arc<dyn Model>>,
    /// What providers will refuse, and advice about connections.
    pub(super) warnings: Vec<String>,
}

impl<'s> AgentModels<'s> {
    pub(super) fn new(
        loaded: &'s Loaded,
        rust_models: &'s RustModels,
    ) -> Result<Self, ConfigError> {
        let known = known_models(&loaded.config, &loaded.origin)?;
        Ok(Self { loaded, rust_models, known, built: IndexMap::new(), warnings: Vec::new() })
    }

    /// Returns the model of an agent.
    pub(super) fn model(
        &mut self,
        agent: &str,
        llm: &LlmConfig,
    ) -> Result<Arc<dyn Model>, ConfigError> {
        if let Some(model) = self.built.get(agent) {
            return Ok(model.clone());
        }
        let built = build_model(llm, self.rust_models, &self.known, &self.loaded.origin);
        let model =
            built.map_err(|error| self.loaded.origin.option_error(&["agents", agent], &error))?;
        let warnings = model.warnings().into_iter().chain(client_warnings(&llm.source));
        self.warnings.extend(warnings.map(|warning| format!("agents.{agent}: {warning}")));
        self.built.insert(agent.to_owned(), model.clone());
        Ok(model)
    }

    /// Returns the context window of an agent, if it has the option `context`.
    pub(super) fn context(
        &mut self,
        agent: &str,
        llm: &LlmConfig,
    ) -> Result<Option<WindowOptions>, ConfigError> {
        let Some(context) = &llm.options.context else { return Ok(None) };
        let summariser = context.summariser.as_ref().map(|writer| match self.llm(writer) {
            Some(config) => self.model(writer, config),
            None => {
                let message = format!(
                    "there is no agent `{writer}` with kind = \"llm\" that could write summaries"
                );
                Err(self.loaded.origin.error(&["agents", agent, "context"], &message))
            }
        });
        let summariser = summariser.transpose()?;
        let mut options = WindowOptions::default();
        options.window = context.window;
        options.max_tokens = llm.model.max_tokens;
        options.policy = context.policy;
        options.summariser = summariser;
        options.known_models = self.known.clone();
        Ok(Some(options))
    }

    /// Returns the models of the agents in `fallback`, each with its own agent's context window.
    pub(super) fn fallbacks(
        &mut self,
        agent: &str,
        llm: &LlmConfig,
    ) -> Result<Vec<Arc<dyn Model>>, ConfigError> {
        let mut models = Vec::new();
        for name in &llm.options.fallback {
            let fault = |problem: String| {
                self.loaded.origin.error(&["agents", agent, "fallback"], &problem)
            };
            if name == agent {
                return Err(fault(format!("agent `{name}` cannot be its own fallback")));
            }
            let other = self.llm(name).ok_or_else(|| {
                fault(format!(
                    "there is no agent `{name}` with kind = \"llm\" in the configuration"
                ))
            })?;
            let model = self.model(name, other)?;
            models.push(match self.context(name, other)? {
                Some(context) => context.fit(model),
                None => model,
            });
        }
        Ok(models)
    }

    fn llm(&self, agent: &str) -> Option<&'s LlmConfig> {
        self.loaded.config.agents.get(agent).and_then(AgentConfig::llm)
    }
}
