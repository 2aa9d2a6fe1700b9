//! Options of a model at Anthropic.

use crate::llm::transport::Connection;

pub(super) const PROVIDER: &str = "anthropic";

/// The way in which a model thinks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// With a budget of tokens, at least 1024. Models before Claude 4.6 support only this; models from Opus 4.7 on
    /// do not support it.
    Budget(u32),
    /// As much as the model decides.
    Adaptive {
        /// A hint: `low`, `medium`, `high` or another value that the model supports.
        effort: Option<String>,
    },
}

impl Default for Thinking {
    fn default() -> Self {
        Self::Budget(4096)
    }
}

/// Options of a model with the Messages API.
#[derive(Debug, Clone)]
pub struct AnthropicOptions {
    /// The model's name.
    pub model: String,
    /// The connection. The default base URL is `https://api.anthropic.com`.
    pub connection: Connection,
    /// The most tokens of an answer, thinking included. A thinking budget that is not smaller is added to it.
    pub max_tokens: u32,
    /// The temperature. It is not sent when the model thinks, because thinking allows only the default.
    pub temperature: Option<f64>,
    /// `true` if the model thinks when the request does not set it.
    pub think: bool,
    /// The way in which it thinks.
    pub thinking: Thinking,
    /// `true` if the provider caches the request: the next turn gets cheaper, this one slightly more expensive.
    pub cache: bool,
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        Self {
            model: String::new(),
            connection: Connection::default(),
            max_tokens: 8192,
            temperature: None,
            think: false,
            thinking: Thinking::default(),
            cache: true,
        }
    }
}
