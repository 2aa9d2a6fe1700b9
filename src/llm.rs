//! Agents with a language model: [`LlmAgent`], the [`Model`] trait, and the providers' APIs.

#[doc(hidden)]
pub use agui_llm::fuzzing;
#[doc(inline)]
pub use agui_llm::{
    Anthropic, Artefact, Block, BlockStart, CallTrace, Connection, ContextOptions, ContextPolicy,
    Gemini, KnownModels, LlmAgent, MediaLimits, Model, ModelError, ModelEvent, ModelOptions,
    ModelReasoning, ModelRequest, ModelStream, OpenAi, ProfileOptions, SetupError,
    SkippedAttachment, StopReason, Thinking, ToolChoice, ToolResult, Turn, UnknownOutcome,
    WrittenCall,
};
