//! The refusal of a request body.

/// A value of a request that is invalid, or that this server cannot use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}")]
pub struct InvalidRequest {
    /// The JSON path of the value, such as `messages[0].content[1].mime_type`.
    pub path: String,
    /// A description of the valid values.
    pub expected: String,
}

impl InvalidRequest {
    /// An error at a JSON path.
    pub fn new(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { path: path.into(), expected: expected.into() }
    }
}
