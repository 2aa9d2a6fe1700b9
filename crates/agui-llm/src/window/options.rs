//! The options of a context window.

use std::{fmt, sync::Arc};

use serde::Deserialize;

use crate::{known_models::KnownModels, model::Model};
use agui_base::RunErrorCode;

/// The code of the error that a request is too long for its model, also when the provider says so.
pub(crate) const CONTEXT_TOO_LONG: &str = RunErrorCode::ContextTooLong.as_str();

/// The way in which conversations are kept within a model's context window.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct WindowOptions {
    /// The tokens that the model can read and write. `None` uses the published window of a known model. Without any, a
    /// request is shortened only after the provider has refused it.
    pub window: Option<u64>,
    /// The most tokens of an answer, which are kept free.
    pub max_tokens: Option<u32>,
    /// The treatment of a conversation that is too long.
    pub policy: WindowPolicy,
    /// The model that writes summaries; the agent's own if `None`.
    pub summariser: Option<Arc<dyn Model>>,
    /// The published windows of models.
    pub known_models: KnownModels,
}

/// The treatment of a conversation that is too long for the model. The stored thread keeps everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WindowPolicy {
    /// The run fails with the code `context_too_long`.
    Fail,
    /// The model does not get the oldest messages, and the client is told.
    #[default]
    Trim,
    /// The model gets a summary of the oldest messages, which is stored as a message and used by later runs.
    Summarise,
}

impl fmt::Debug for WindowOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowOptions")
            .field("window", &self.window)
            .field("max_tokens", &self.max_tokens)
            .field("policy", &self.policy)
            .field("summariser", &self.summariser.as_ref().map(|model| model.name()))
            .finish()
    }
}
