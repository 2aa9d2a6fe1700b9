//! Agents with a language model: [`LlmAgent`], the [`Model`] trait, and the providers' APIs.

mod agent;
mod call_content;
mod call_meter;
mod call_trace;
mod context;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod known_models;
mod learned;
mod model;
mod options;
mod providers;
mod transport;
mod written_syntax;

pub use agent::{LlmAgent, UnknownOutcome};
#[cfg(feature = "config")]
pub(crate) use agent::{StatePrediction, SystemPrompt};
pub use call_trace::CallTrace;
pub use context::{ContextOptions, ContextPolicy};
pub use known_models::{KnownModels, MediaLimits, ProfileOptions};
pub use model::{
    Artefact, Block, BlockStart, Model, ModelError, ModelEvent, ModelReasoning, ModelRequest,
    ModelStream, SkippedAttachment, StopReason, ToolResult, Turn, WrittenCall,
};
pub use options::{ModelOptions, Thinking, ToolChoice};
#[cfg(feature = "config")]
pub(crate) use providers::openai::api::OpenAiApi;
pub use providers::{anthropic::Anthropic, gemini::Gemini, openai::OpenAi};
#[cfg(feature = "config")]
pub(crate) use transport::{CloudCredentials, RecordedApi, RecordedExchanges};
pub use transport::{Connection, SetupError};

#[cfg(test)]
pub(crate) use known_models::tests::ProfileNameOrTable;
