//! Agents with a language model: [`LlmAgent`], the [`Model`] trait, and the providers' APIs.
//!
//! To add a provider, implement [`Model`] on `transport`, as `chat`, `anthropic` and `gemini` do.

mod agent;
mod anthropic;
mod attachments;
mod call_content;
mod call_meter;
mod call_trace;
mod chat;
mod context;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
mod history;
mod model;
mod openai_models;
mod openai_warnings;
mod options;
mod responses;
mod strict_schema;
mod transport;
mod wire;

pub use agent::LlmAgent;
pub use anthropic::Anthropic;
pub use call_trace::CallTrace;
#[cfg(test)]
pub(crate) use chat::known::ProfileNameOrTable;
pub use chat::{
    OpenAiChat,
    profile::{
        Documents, ProfileOptions, ReasoningMember, StructuredOutputs, SystemMessages, ThinkTags, ThinkingMember,
        TokenLimit, ToolChoiceForm,
    },
};
pub use context::{ContextOptions, ContextPolicy};
pub use gemini::Gemini;
pub use model::{
    Artefact, AssistantTurn, Block, BlockStart, Model, ModelError, ModelEvent, ModelRequest, ModelStream,
    ReasoningBlock, SkippedAttachment, StopReason, ToolResult, Turn,
};
pub use openai_models::OpenAiApi;
pub use options::{ModelOptions, Thinking, ToolChoice};
pub use responses::OpenAiResponses;
pub use transport::{Connection, ExchangesError, RecordedApi, RecordedExchanges, SetupError};
