//! Reads a [`RunAgentInput`] from untrusted bytes, once and without an intermediate tree, so the cost is linear.
//!
//! A member, a role or a type of content part that this version does not describe is ignored and counted in
//! [`Ignored`]: the protocol grows that way. A described member with a wrong value is an error with its JSON path.
//! `null` in place of an optional member reads as absent. serde_json bounds the depth, [`MAX_OPEN_VALUES`] the memory
//! of open payloads. serde's derive has errors without paths and cannot ignore an unknown role. A new member of a
//! protocol type needs a line in `input.rs`, `message.rs` or `content.rs`; without it, nothing compiles.

mod content;
mod diagnostics;
mod error;
mod input;
mod message;
mod object;
mod path;
mod tagged;
mod value;

use serde::de::DeserializeSeed as _;

use self::{diagnostics::Diagnostics, path::JsonPath, value::ValueSeed};
pub use self::{
    diagnostics::Ignored,
    error::{DecodeError, MAX_OPEN_VALUES},
};
use super::RunAgentInput;

/// An input, and what was ignored of it.
#[derive(Debug)]
pub struct Decoded {
    /// The input.
    pub input: RunAgentInput,
    /// The parts that this version of the protocol does not describe.
    pub ignored: Ignored,
}

/// Reads an input.
///
/// # Errors
/// If the bytes are not JSON, are nested too deeply, hold too many values, or contradict the protocol.
///
/// ```
/// use agui_server::protocol::decode::decode;
///
/// let ok = decode(br#"{"threadId":"t","runId":"r","messages":[],"tools":null,"mood":"good"}"#).unwrap();
/// assert_eq!(ok.ignored.members, 1);
///
/// let error = decode(br#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"tool","content":""}]}"#)
///     .unwrap_err();
/// assert_eq!(error.to_string(), "messages[0].toolCallId: missing");
/// ```
pub fn decode(body: &[u8]) -> Result<Decoded, DecodeError> {
    // Checked once for all strings: from a `&str`, the parser does not check each of them.
    let text = std::str::from_utf8(body)
        .map_err(|error| DecodeError::Syntax(format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    let diagnostics = Diagnostics::new(body.len());
    let mut parser = serde_json::Deserializer::from_str(text);
    let input = ValueSeed::<RunAgentInput>::at(JsonPath::root(&diagnostics))
        .deserialize(&mut parser)
        .and_then(|input| parser.end().map(|()| input));
    match input {
        Ok(Some(input)) => Ok(Decoded { input, ignored: diagnostics.into_ignored() }),
        Ok(None) => Err(DecodeError::Syntax("no input".to_owned())),
        Err(error) => Err(diagnostics.into_error().unwrap_or_else(|| syntax_error(&error))),
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
