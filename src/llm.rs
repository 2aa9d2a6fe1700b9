//! Agents with a language model: [`LlmAgent`], the [`Model`] trait, and the providers' APIs.

#[doc(inline)]
pub use agui_llm::{
    Anthropic, Artefact, Block, BlockStart, CallTrace, Gemini, KnownModels, LlmAgent, MediaLimits,
    Model, ModelError, ModelEvent, ModelOptions, ModelReasoning, ModelRequest, ModelStep,
    ModelStream, OpenAi, ProfileOptions, ProviderClient, RequestSampling, SetupError,
    SkippedAttachment, StopReason, Thinking, ToolChoice, ToolResult, UnknownOutcome, WindowOptions,
    WindowPolicy, WrittenCall,
};
