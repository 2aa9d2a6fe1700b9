//! Agents with a language model: [`LlmAgent`], the [`Model`] trait, and the providers' APIs.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each
// remaining one says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod agent;
mod call_content;
mod call_meter;
mod call_trace;
mod form;
mod history;
mod known_models;
mod learned;
mod model;
mod options;
mod providers;
mod refusal;
mod repair;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
mod transport;
mod window;
mod written_syntax;

pub use agent::{LlmAgent, UnknownOutcome};
pub use call_trace::CallTrace;
pub(crate) use form::RequestForm;
pub use known_models::{KnownModels, MediaLimits, ProfileOptions};
pub use model::{
    Artefact, Block, BlockStart, Model, ModelError, ModelEvent, ModelReasoning, ModelRequest,
    ModelStep, ModelStream, SkippedAttachment, StopReason, ToolResult, WrittenCall,
};
pub use options::{ModelOptions, RequestSampling, Thinking, ToolChoice};
pub use providers::{anthropic::Anthropic, gemini::Gemini, openai::OpenAi};
pub use transport::{ProviderClient, SetupError};
pub use window::{WindowOptions, WindowPolicy};

#[doc(hidden)]
pub mod host;

/// The types that `delegate_model!` names.
#[doc(hidden)]
pub mod macros {
    pub use agui_protocol::capabilities::MultimodalInputCapabilities;
}
