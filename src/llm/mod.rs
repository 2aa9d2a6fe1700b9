//! Agents with a language model behind them: the [`Model`] trait and what speaks to a provider.

mod agent;
mod history;
mod model;

pub use agent::LlmAgent;

pub use model::{
    AssistantTurn, Block, BlockStart, Model, ModelError, ModelEvent, ModelRequest, ModelStream, ReasoningBlock,
    StopReason, ToolResult, Turn,
};
