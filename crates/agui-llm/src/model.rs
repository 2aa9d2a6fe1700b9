//! The [`Model`] trait, and the types of its requests and answers.
//!
//! The steps of a request alternate as providers require, and the results of a step's calls follow
//! it directly. The blocks of an answer may interleave.

use std::{borrow::Cow, error::Error as StdError, sync::Arc};

use futures::stream::BoxStream;
use serde::Serialize;
use serde_json::Value;

use super::{
    call_trace::CallTrace,
    form::RequestForm,
    known_models::MediaLimits,
    options::{RequestSampling, ToolChoice},
    refusal::ProviderRefusal,
};
use agui_agent::AgentError;
use agui_protocol::{
    ContentPart, JsonObject, MessageContent, TokenUsage, ToolCall, ToolCallId,
    capabilities::MultimodalInputCapabilities,
};
use agui_store::ThreadKey;
use agui_tools::ToolSpec;

/// The events of a model's answer. Dropping the stream ends the request to the provider.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A language model at a provider.
///
/// ```
/// use agui_llm::{BlockStart, LlmAgent, Model, ModelEvent, ModelRequest, ModelStream, StopReason};
/// use futures::{StreamExt as _, stream};
///
/// struct Counter;
/// impl Model for Counter {
///     fn provider(&self) -> &str { "counter" }
///     fn name(&self) -> &str { "counter-1" }
///     fn stream(&self, request: ModelRequest) -> ModelStream {
///         let text = format!("This is step {}.", request.steps.len());
///         let events = [
///             ModelEvent::Start { index: 0, block: BlockStart::Text },
///             ModelEvent::Delta { index: 0, text },
///             ModelEvent::End { index: 0, artefact: None },
///             ModelEvent::Stop(StopReason::Done),
///         ];
///         stream::iter(events.map(Ok)).boxed()
///     }
/// }
/// let agent = LlmAgent::new(Counter).system_prompt("Count.");
/// ```
pub trait Model: Send + Sync + 'static {
    /// Returns the provider's name in lower case, such as `openai`. It marks the provider's artefacts and file handles.
    fn provider(&self) -> &str;

    /// Returns the model's name at the provider.
    fn name(&self) -> &str;

    /// Sends a request to the model. Nothing is sent before the stream is polled.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// Returns warnings about options that the provider will refuse. `agui-server check` prints
    /// them.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the provider's limits on the media of a request. Default: no known limit.
    fn media_limits(&self) -> MediaLimits {
        MediaLimits::default()
    }

    /// Returns the kinds of media that a request can have, for pages with a file picker. Default:
    /// unknown.
    fn media_input(&self) -> MultimodalInputCapabilities {
        MultimodalInputCapabilities::default()
    }
}

/// Delegates the methods of a [`Model`], except for [`Model::stream`], to a wrapped model.
macro_rules! delegate_model {
    ($($inner:tt)+) => {
        fn provider(&self) -> &str {
            self.$($inner)+.provider()
        }

        fn name(&self) -> &str {
            self.$($inner)+.name()
        }

        fn warnings(&self) -> Vec<String> {
            self.$($inner)+.warnings()
        }

        fn media_limits(&self) -> $crate::MediaLimits {
            self.$($inner)+.media_limits()
        }

        fn media_input(&self) -> $crate::macros::MultimodalInputCapabilities {
            self.$($inner)+.media_input()
        }
    };
}
pub(crate) use delegate_model;

impl<M: Model + ?Sized> Model for Arc<M> {
    delegate_model!(as_ref());

    fn stream(&self, request: ModelRequest) -> ModelStream {
        (**self).stream(request)
    }
}

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The model that the request chose, if it is not the configured one.
    pub model: Option<String>,
    /// Instructions before the conversation, in order. None of them is empty.
    pub system: Vec<String>,
    /// Instructions about the current context and state. Providers put them after the conversation, so that a change
    /// leaves the beginning of the request as it was, for the provider's cache.
    pub current: Vec<String>,
    /// The conversation.
    pub steps: Vec<ModelStep>,
    /// The tools that the model can call.
    pub tools: Arc<[ToolSpec]>,
    /// The calls that the model may or has to make.
    pub tool_choice: ToolChoice,
    /// The JSON schema of the answer's text.
    pub response_schema: Option<Arc<JsonObject>>,
    /// True asks the model to think before it answers, false not to think. `None`: the
    /// configuration decides.
    pub thinking: Option<bool>,
    /// The options that the caller chooses for this request.
    pub sampling: RequestSampling,
    /// The thread of the request. Refusals of the provider are remembered for this thread or its
    /// owner; without a thread they are not remembered.
    pub thread: Option<ThreadKey>,
    /// The form in which the request is written.
    #[doc(hidden)]
    pub form: RequestForm,
    /// Takes the reports of the model beside its answer, for logs and metrics.
    pub trace: CallTrace,
}

/// A step of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelStep {
    /// Instructions in the middle of the conversation.
    Instructions(String),
    /// A user's message, of at least one part.
    User(Vec<ContentPart>),
    /// The model's own step, in order. At least one block is not reasoning.
    Assistant(Vec<Block>),
    /// One result for each call of the step before, in the order of the calls.
    ToolResults(Vec<ToolResult>),
}

/// A part of a model's step.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// Reasoning.
    Reasoning(ModelReasoning),
    /// Text.
    Text(String),
    /// A tool call. The arguments may be invalid JSON. `encrypted_value` is the artefact of the [end](ModelEvent::End).
    Call(ToolCall),
}

/// A block of reasoning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelReasoning {
    /// The text; empty if the provider hides it.
    pub text: String,
    /// The provider's opaque artefact.
    pub artefact: Option<String>,
    /// True if the artefact is hidden reasoning, and not a signature of the text.
    pub redacted: bool,
    /// The provider that issued the artefact, if it is known.
    pub provider: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call's id.
    pub call_id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The tool's result, or the text of its error.
    pub content: MessageContent,
    /// True if the call failed.
    pub failed: bool,
}

/// Opaque data of a provider, which returns to it unchanged with a later request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artefact {
    /// The kind of data, after the name of the provider and a dot, such as `anthropic.signature`.
    pub kind: Cow<'static, str>,
    /// The data.
    pub value: String,
}

impl Artefact {
    /// Creates an artefact.
    pub fn new(kind: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        Self { kind: kind.into(), value: value.into() }
    }
}

/// An event of an answer. Each block has its own `index`, and is started once, then continued, then ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// Starts a block.
    Start {
        /// The block's index.
        index: usize,
        /// The kind of the block.
        block: BlockStart,
    },
    /// Continues a block, by text or by JSON of a call's arguments. Never empty.
    Delta {
        /// The block's index.
        index: usize,
        /// The next part of the text.
        text: String,
    },
    /// Ends a block.
    End {
        /// The block's index.
        index: usize,
        /// The provider's opaque artefact of the block.
        artefact: Option<Artefact>,
    },
    /// The usage of the request so far. A later one replaces it.
    Usage(TokenUsage),
    /// A part of the conversation was left out of the request, because the model cannot read it.
    Skipped(SkippedAttachment),
    /// The oldest steps of the conversation were left out of the request, because it is too long for
    /// the model.
    Trimmed,
    /// A source of a block of text, in the provider's own form.
    Citation {
        /// The block's index.
        index: usize,
        /// The source.
        citation: Value,
    },
    /// A picture or another medium that the model made. It stands between the blocks, and has no index.
    Media {
        /// The MIME type.
        media_type: String,
        /// The bytes in base64.
        base64: String,
    },
    /// The rest of the answer: calls that the model wrote as text and that the provider did not
    /// read. They run unless a text of the conversation that the model did not write contains them.
    WrittenCalls {
        /// The text.
        text: String,
        /// The calls that the text has; at least one.
        calls: Vec<WrittenCall>,
    },
    /// The answer is complete. A stream that ends without this event was cut off.
    Stop(StopReason),
}

/// A call that a model wrote as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenCall {
    /// The tool's name, as the text has it.
    pub written_name: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, as JSON that may be invalid.
    pub arguments: String,
}

impl WrittenCall {
    /// Creates a call whose text has the tool's own name.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let name = name.into();
        Self { written_name: name.clone(), name, arguments: arguments.into() }
    }
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockStart {
    /// Text.
    Text,
    /// Reasoning.
    Reasoning {
        /// True if the provider hides the text and sends the artefact alone.
        redacted: bool,
    },
    /// A tool call. The id is the provider's, or a new one if the provider sends none.
    Call {
        /// The call's id.
        id: ToolCallId,
        /// The tool's name.
        name: String,
    },
}

/// The reason of an answer's end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model has finished.
    Done,
    /// The model waits for the results of its calls.
    Calls,
    /// The answer reached the limit of tokens.
    Length,
    /// The conversation and the answer fill the model's context window.
    ContextFull,
    /// A filter of the provider stopped the answer.
    Filtered,
    /// The model refused to answer.
    Refused,
    /// The provider could not read a call that the model wrote, and dropped it.
    MalformedCall,
    /// The provider broke the answer off, such as with `abort`, or ended it for an unknown reason.
    Aborted,
}

/// A part of a message that a model cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SkippedAttachment {
    /// The kind of the part: `image`, `audio`, `video` or `document`.
    pub kind: &'static str,
    /// The name of the file.
    pub name: Option<String>,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// The reason, for people.
    pub reason: String,
}

/// A failed request to a model: a code and a message for the client, and a cause for the log.
pub struct ModelError {
    code: &'static str,
    error: AgentError,
    refusal: Option<Box<ProviderRefusal>>,
    is_final: bool,
    has_no_access: bool,
}

impl ModelError {
    /// Creates an error with a stable code and a message. Clients see both, so they must contain no
    /// secrets.
    pub fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            error: AgentError::new(code, message),
            refusal: None,
            is_final: false,
            has_no_access: false,
        }
    }

    /// Adds a cause, for the log alone.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.error = self.error.caused_by(source);
        self
    }

    /// Adds the refusal of the request, which another form may mend.
    pub(crate) fn with_refusal(mut self, refusal: Option<Box<ProviderRefusal>>) -> Self {
        self.refusal = refusal;
        self
    }

    /// Marks an error as the provider's refusal to let the key use the model.
    pub(crate) fn without_access(mut self) -> Self {
        self.has_no_access = true;
        self
    }

    /// Returns whether the key may not use the model. The key itself is accepted.
    pub(crate) fn has_no_access(&self) -> bool {
        self.has_no_access
    }

    /// Marks an error after which no other form of the request is tried.
    pub(crate) fn into_final(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Returns the refusal that another form may mend. A model without a transport says by its code
    /// that it refuses a request.
    pub(crate) fn refusal(&self) -> Option<Cow<'_, ProviderRefusal>> {
        if self.is_final {
            return None;
        }
        match &self.refusal {
            Some(refusal) => Some(Cow::Borrowed(refusal)),
            None => ProviderRefusal::from_error(self.code, self.message()).map(Cow::Owned),
        }
    }

    /// Returns the code, for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the message, for people.
    pub fn message(&self) -> &str {
        self.error.message()
    }
}

impl std::fmt::Debug for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl From<ModelError> for AgentError {
    fn from(error: ModelError) -> Self {
        error.error
    }
}
