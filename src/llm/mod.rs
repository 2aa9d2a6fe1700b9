//! Agents with a language model behind them: the [`Model`] trait and what speaks to a provider.

mod agent;
mod anthropic;
mod history;
mod model;
mod openai;
mod transport;
mod wire;

pub use agent::LlmAgent;
pub use anthropic::{Anthropic, AnthropicOptions, Thinking};
pub use model::{
    AssistantTurn, Block, BlockStart, Model, ModelError, ModelEvent, ModelRequest, ModelStream, ReasoningBlock,
    StopReason, ToolResult, Turn,
};
pub use openai::{OpenAi, OpenAiOptions};
pub use transport::{Connection, SetupError};
