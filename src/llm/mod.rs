//! Agents with a language model: [`LlmAgent`], the [`Model`] trait, and the providers' APIs.
//!
//! To add a provider, implement [`Model`] on `transport`, as `openai` and `anthropic` do.

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
