//! The errors that [`decode`](super::decode) returns.

/// Maximum number of values of one input, including its messages.
pub const MAX_VALUES: usize = 500_000;
/// Maximum number of values (numbers, strings, objects…) that the open payloads of one input hold together.
pub const MAX_OPEN_VALUES: usize = 100_000;

/// The reason why an input is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not JSON.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// The JSON is nested too deeply.
    #[error("nested too deeply: {0}")]
    TooDeep(String),
    /// The open payloads, or all of the input, hold too many values.
    #[error("{}: more than {limit} JSON values", if path.is_empty() { "the request body" } else { path })]
    TooManyValues {
        /// JSON path of the payload that exceeded the limit; empty for the input as a whole.
        path: String,
        /// The largest number of values.
        limit: usize,
    },
    /// A member that the protocol describes is missing or has a wrong value.
    #[error("{}: {problem}", if path.is_empty() { "the request body" } else { path })]
    Malformed {
        /// JSON path, such as `messages[3].toolCallId`; empty for the input as a whole.
        path: String,
        /// The error at that path, such as `missing` or `expected a string, found a number`.
        problem: String,
    },
}

impl DecodeError {
    /// Returns the JSON path of the error, if the error is at one place within the input.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Malformed { path, .. } | Self::TooManyValues { path, .. } if !path.is_empty() => {
                Some(path)
            }
            _ => None,
        }
    }
}
