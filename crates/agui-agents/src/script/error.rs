//! The error of a script that cannot be used.

use std::ops::Range;

/// The first error of a script, with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    /// The problem.
    pub message: String,
    /// The range in the script's text, in bytes; `None` if the error is about the whole script.
    pub span: Option<Range<usize>>,
}
