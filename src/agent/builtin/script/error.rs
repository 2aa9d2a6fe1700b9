//! The error of a script that cannot be used.

use std::ops::Range;

/// The first error of a script, with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    pub(super) message: String,
    pub(super) span: Option<Range<usize>>,
}

impl ScriptError {
    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the range in the script's text, in bytes; `None` if the error is about the whole script.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }
}
