//! Failures of tool calls.

use std::{error::Error as StdError, fmt};

use agui_base::text::error_chain;

/// A failure of a call. The model is told the message and may do better next time; the cause goes to the log alone.
///
/// `?` converts any error of the standard kind: the model is told `the tool failed`, because such a
/// text may hold secrets. [`ToolError::new`] is for texts that the model may see.
pub struct ToolError {
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    is_question: bool,
}

impl ToolError {
    /// A failure that the model is told about.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None, is_question: false }
    }

    #[doc(hidden)]
    pub fn question() -> Self {
        Self { is_question: true, ..Self::new("the call waits for a person's answer") }
    }

    /// Adds a cause, for the log alone.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    #[doc(hidden)]
    pub fn has_cause(&self) -> bool {
        self.source.is_some()
    }

    /// The text that the model is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the call has not failed but waits for a person's reply.
    pub fn is_question(&self) -> bool {
        self.is_question
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for ToolError {
    fn from(source: E) -> Self {
        Self::new("the tool failed").caused_by(source)
    }
}

/// The message and the chain of causes, for a log.
impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, ": {}", error_chain(&**source)))
    }
}
