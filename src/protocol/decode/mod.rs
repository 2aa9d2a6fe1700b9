//! Reads [`RunAgentInput`] from bytes that nobody vouches for.
//!
//! AG-UI tells two things apart that look alike. What this version does not describe (an unknown
//! member, message role or content part) is how the protocol grows: it is dropped, counted in
//! [`Dropped`], and the run goes on. A described field with a wrong value is a defect: the input is
//! refused with the JSON path of the fault. `null` in an optional position reads as absent; nulls
//! inside open objects are data.
//!
//! The input is read once, from left to right, without an intermediate tree: cost is linear in its
//! size. Nesting is bounded by serde_json's own limit, and the number of values in open payloads by
//! [`MAX_OPEN_VALUES`], because a tree of them takes many times the memory of its text.
//!
//! serde's derive could not do this: it knows no paths, it lets a later field decide nothing about
//! an earlier one (a message's `role` decides what its `content` may be), and an unknown variant is
//! an error to it.

mod at;
mod content;
mod log;
mod message;
mod object;
mod union;
mod value;

use serde::de::DeserializeSeed;

use self::at::At;
pub use self::log::Dropped;
use self::log::Log;
use super::RunAgentInput;

/// How many values (numbers, strings, objects…) the open payloads of one input may hold together.
pub const MAX_OPEN_VALUES: usize = 500_000;

/// An input, and what was left out of it.
#[derive(Debug)]
pub struct Decoded {
    /// The input.
    pub input: RunAgentInput,
    /// What this version of the protocol did not recognise.
    pub dropped: Dropped,
}

/// Why an input was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not JSON.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// The JSON is nested too deeply.
    #[error("nested too deeply: {0}")]
    TooDeep(String),
    /// The open payloads hold too many values.
    #[error("{path}: more than {MAX_OPEN_VALUES} JSON values")]
    TooManyValues {
        /// Where the limit was passed.
        path: String,
    },
    /// A described field is missing or has a wrong value.
    #[error("{}{problem}", prefix(path))]
    Malformed {
        /// Where, such as `messages[3].toolCallId`; empty for the input as a whole.
        path: String,
        /// What is wrong, such as `missing` or `expected a string, found a number`.
        problem: String,
    },
}

impl DecodeError {
    /// The JSON path of the fault, when it is at one place within the input.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Malformed { path, .. } | Self::TooManyValues { path } if !path.is_empty() => Some(path),
            _ => None,
        }
    }
}

fn prefix(path: &str) -> String {
    if path.is_empty() { "the request body: ".to_owned() } else { format!("{path}: ") }
}

/// Reads an input.
///
/// ```
/// use agui_server::protocol::decode::decode;
///
/// let ok = decode(br#"{"threadId":"t","runId":"r","messages":[],"tools":null,"mood":"good"}"#).unwrap();
/// assert_eq!(ok.dropped.members, 1);
///
/// let error = decode(br#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"tool","content":""}]}"#)
///     .unwrap_err();
/// assert_eq!(error.to_string(), "messages[0].toolCallId: missing");
/// ```
pub fn decode(body: &[u8]) -> Result<Decoded, DecodeError> {
    // Checked once here, so that the parser need not check every string again.
    let text = std::str::from_utf8(body)
        .map_err(|error| DecodeError::Syntax(format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    let log = Log::of_body(body.len());
    let mut parser = serde_json::Deserializer::from_str(text);
    let input = message::InputSeed(At::root(&log)).deserialize(&mut parser).and_then(|input| {
        parser.end()?;
        Ok(input)
    });
    match input {
        Ok(input) => Ok(Decoded { input, dropped: log.into_dropped() }),
        Err(error) => Err(log.into_fault().unwrap_or_else(|| syntax_error(&error))),
    }
}

fn syntax_error(error: &serde_json::Error) -> DecodeError {
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        DecodeError::TooDeep(format!("line {}, column {}", error.line(), error.column()))
    } else {
        DecodeError::Syntax(text)
    }
}

#[cfg(test)]
mod tests;
