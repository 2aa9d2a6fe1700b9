//! The models of the configured agents, which other agents can name as fallbacks.

use std::sync::Arc;

use indexmap::IndexMap;

use super::models::{RustModels, build_model, connection_warnings};
use crate::{
    config::{AgentKind, Config, ConfigError, Origin},
    llm::{ContextOptions, Model},
};

/// Builds each agent's model once. A fallback is the model of another agent, without that agent's own fallbacks: so two
/// agents can be each other's fallback.
pub(super) struct AgentModels<'s> {
    config: &'s Config,
    origin: &'s Origin,
    rust_models: &'s RustModels,
    built: IndexMap<String, Arc<dyn Model>>,
    warnings: Vec<String>,
}

impl<'s> AgentModels<'s> {
    pub(super) fn new(config: &'s Config, origin: &'s Origin, rust_models: &'s RustModels) -> Self {
        Self { config, origin, rust_models, built: IndexMap::new(), warnings: Vec::new() }
    }

    /// Returns the model of an agent of `kind = "llm"`.
    pub(super) fn model(&mut self, agent: &str) -> Result<Arc<dyn Model>, ConfigError> {
        if let Some(model) = self.built.get(agent) {
            return Ok(model.clone());
        }
        let options = self.config.agents.get(agent).filter(|options| options.kind == AgentKind::Llm);
        let options =
            options.ok_or_else(|| self.origin.error(&["agents", agent], "there is no such agent with a model"))?;
        let model = build_model(agent, options, self.rust_models, self.origin)?;
        let warnings = model.warnings().into_iter().chain(connection_warnings(options));
        self.warnings.extend(warnings.map(|warning| format!("agents.{agent}: {warning}")));
        self.built.insert(agent.to_owned(), model.clone());
        Ok(model)
    }

    /// Returns the context window of an agent, if it has the option `context`.
    pub(super) fn context(&mut self, agent: &str) -> Result<Option<ContextOptions>, ConfigError> {
        let Some(options) = self.config.agents.get(agent) else { return Ok(None) };
        let Some(context) = &options.context else { return Ok(None) };
        let summariser = match context.summariser.as_deref() {
            Some(writer) if self.has_model(writer) => Some(self.model(writer)?),
            Some(writer) => {
                let message = format!("there is no agent `{writer}` with kind = \"llm\" that could write summaries");
                return Err(self.origin.error(&["agents", agent, "context"], &message));
            }
            None => None,
        };
        Ok(Some(ContextOptions {
            window: context.window,
            max_tokens: options.max_tokens,
            policy: context.policy,
            summariser,
        }))
    }

    /// Returns the models of the agents in `fallback`, each with its own agent's context window.
    pub(super) fn fallbacks(&mut self, agent: &str) -> Result<Vec<Arc<dyn Model>>, ConfigError> {
        let names = self.config.agents.get(agent).and_then(|options| options.fallback.as_deref()).unwrap_or_default();
        let mut models = Vec::new();
        for name in names {
            let fault = |problem: String| Err(self.origin.error(&["agents", agent, "fallback"], &problem));
            if name == agent {
                return fault(format!("agent `{name}` cannot be its own fallback"));
            }
            if !self.has_model(name) {
                return fault(format!("there is no agent `{name}` with kind = \"llm\" in the configuration"));
            }
            let model = self.model(name)?;
            models.push(match self.context(name)? {
                Some(context) => context.fit(model),
                None => model,
            });
        }
        Ok(models)
    }

    /// Returns what providers will refuse, and advice about connections.
    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    fn has_model(&self, agent: &str) -> bool {
        self.config.agents.get(agent).is_some_and(|options| options.kind == AgentKind::Llm)
    }
}
