//! Options of a model with chat completions.

use crate::llm::transport::Connection;

pub(super) const PROVIDER: &str = "openai";

/// Options of a model with chat completions.
#[derive(Debug, Clone, Default)]
pub struct OpenAiOptions {
    /// The model's name.
    pub model: String,
    /// The connection. The default base URL is `https://api.openai.com/v1`.
    pub connection: Connection,
    /// The most tokens of an answer, reasoning included.
    pub max_tokens: Option<u32>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The reasoning effort: `low`, `medium`, `high` or another value that the model supports. If set, the model thinks
    /// unless the request forbids it; if not, a request that asks for thinking gets `medium`.
    pub reasoning_effort: Option<String>,
    /// `true` if the reasoning before tool calls is sent back to the model; `None` does so for providers known to
    /// require it. Others refuse unknown members.
    pub return_reasoning: Option<bool>,
}
