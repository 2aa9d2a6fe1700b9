//! What a provider of models has to do: turn a conversation into a stream of blocks.
//!
//! The types stand between AG-UI's conversation and the wire of a provider. A conversation has been put in order
//! before a model sees it: turns alternate as providers want them, every call has its result right after the turn
//! that made it, nothing is in it that no model may see. An answer is a sequence of blocks (text, reasoning, tool
//! calls), which may interleave.

use std::{borrow::Cow, error::Error as StdError, sync::Arc};

use futures::stream::BoxStream;

use crate::{
    agent::AgentError,
    protocol::{ContentPart, MessageContent, TokenUsage, ToolCall, ToolCallId},
    tools::ToolSpec,
};

/// The answer of a model, as it is made. Dropping it ends the request to the provider.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A language model at a provider.
pub trait Model: Send + Sync + 'static {
    /// The provider, in lower case: `openai`, `anthropic`. What it issues (artefacts, file handles) is known by this.
    fn provider(&self) -> &str;

    /// The model's name, as the provider has it.
    fn name(&self) -> &str;

    /// Asks the model. Nothing is sent before the stream is polled.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn provider(&self) -> &str {
        (**self).provider()
    }

    fn name(&self) -> &str {
        (**self).name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        (**self).stream(request)
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// Instructions that stand before the conversation, in order; none is empty.
    pub system: Vec<String>,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// What the model can call.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the model should think before it answers; `None` leaves it to the configuration.
    pub thinking: Option<bool>,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// Instructions in the middle of the conversation.
    Instructions(String),
    /// What a person said; at least one part.
    User(Vec<ContentPart>),
    /// What the model said and called.
    Assistant(AssistantTurn),
    /// One result for each call of the turn before, in the calls' order.
    ToolResults(Vec<ToolResult>),
}

/// What the model said and called, in order; at least one block that is no reasoning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssistantTurn {
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// A part of a model's turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What it thought.
    Reasoning(ReasoningBlock),
    /// What it said.
    Text(String),
    /// What it called. The arguments are JSON as the model wrote it, and may not parse. `encrypted_value` is what
    /// came with the [end](ModelEvent::End) of the block.
    Call(ToolCall),
}

/// What a model thought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReasoningBlock {
    /// The text; empty when the provider keeps it to itself.
    pub text: String,
    /// The provider's opaque artefact, as it came.
    pub artefact: Option<String>,
    /// Whether the artefact stands for reasoning that the provider has hidden, and is no signature of the text.
    pub redacted: bool,
    /// Who issued the artefact, if that is known.
    pub provider: Option<String>,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Which call.
    pub call_id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// What it returned; the text of the error is part of it when it failed.
    pub content: MessageContent,
    /// Whether it failed.
    pub failed: bool,
}

/// A piece of an answer. Blocks are told apart by `index`, and each is opened once, then continued, then ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// Opens a block.
    Start {
        /// Which.
        index: usize,
        /// What it is.
        block: BlockStart,
    },
    /// Continues it: text, or JSON of a call's arguments. Never empty.
    Delta {
        /// Which.
        index: usize,
        /// What comes next.
        text: String,
    },
    /// Ends it.
    End {
        /// Which.
        index: usize,
        /// An opaque artefact of the provider's that belongs to it.
        artefact: Option<String>,
    },
    /// What the call has cost so far; a later one replaces it.
    Usage(TokenUsage),
    /// The answer is complete: nothing comes after it. A stream that ends without it was cut.
    Stop(StopReason),
}

/// What kind of block begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockStart {
    /// Text.
    Text,
    /// Reasoning.
    Reasoning {
        /// Whether it is hidden, and only its artefact will come.
        redacted: bool,
    },
    /// A tool call. Its id is the provider's, or a new one where the provider gave none.
    Call {
        /// Identifies it.
        id: ToolCallId,
        /// What is called.
        name: String,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model has said what it had to say.
    Done,
    /// It waits for the results of its calls.
    Calls,
    /// It has reached a limit of tokens.
    Length,
    /// The provider, or the model, does not answer this.
    Refused,
}

/// How asking a model failed: what the client may know, and the cause for the log.
pub struct ModelError {
    code: &'static str,
    message: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl ModelError {
    /// A failure with a stable code and a message for people, in which there is nothing secret.
    pub fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), source: None }
    }

    /// Adds a cause, for the log alone.
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What went wrong, for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What went wrong, for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl std::fmt::Debug for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source:?}")?;
        }
        Ok(())
    }
}

impl From<ModelError> for AgentError {
    fn from(error: ModelError) -> Self {
        let ModelError { code, message, source } = error;
        let failure = Self::new(code, message);
        match source {
            Some(source) => failure.caused_by(source),
            None => failure,
        }
    }
}
