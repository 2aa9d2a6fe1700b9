//! Reads a [`RunAgentInput`] from untrusted bytes, once and without an intermediate tree, so the cost is linear.
//!
//! A member, a role or a type of content part that this version does not describe is ignored and
//! counted in [`Ignored`]: the protocol grows that way. A described member with a wrong value is an
//! error with its JSON path. `null` in place of an optional member reads as absent. A tool without
//! a description and a tool message without content, as pages send them, have an empty one. A
//! member in snake case (`thread_id`), which SDKs in Python accept, is read if the protocol's
//! spelling is absent. serde_json bounds the depth, [`MAX_OPEN_VALUES`] the memory of open
//! payloads. serde's derive has errors without paths and cannot ignore an unknown role. The structs
//! themselves say which members they have: [`wire_struct!`](super::wire_struct).

mod content;
mod diagnostics;
mod error;
mod message;
pub(super) mod object;
mod path;
mod tagged;
mod value;

use serde::de::{Deserialize, DeserializeSeed as _};
use serde_json::Value;

pub use self::diagnostics::Ignored;
pub use self::error::DecodeError;
pub use self::error::{MAX_OPEN_VALUES, MAX_VALUES};
use self::{
    diagnostics::Diagnostics,
    path::JsonPath,
    value::{FromJson, ValueSeed},
};
use super::RunAgentInput;

use agui_base::{json_values, lenient_json, repairs::Partner, text::short_line};

/// An input, and its ignored parts.
#[derive(Debug)]
pub struct Decoded {
    /// The input.
    pub input: RunAgentInput,
    /// The parts that this version of the protocol does not describe.
    pub ignored: Ignored,
    /// The number of members that were spelled in snake case, as `thread_id`.
    pub snake_case: usize,
    /// The number of JSON values in members of any content, such as the state.
    pub open_values: usize,
}

/// Reads an input. Half of a surrogate pair becomes U+FFFD (a page that cuts a text within an emoji
/// sends one), `NaN` becomes `null`, and a byte order mark is left out.
///
/// # Errors
/// If the bytes are not JSON, are nested too deeply, hold too many values, or contradict the protocol.
///
/// ```
/// use agui_protocol::decode::decode;
///
/// let ok = decode(br#"{"threadId":"t","runId":"r","messages":[],"tools":null,"mood":"good"}"#).unwrap();
/// assert_eq!(ok.ignored.members, 1);
///
/// let error = decode(br#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"tool","content":""}]}"#)
///     .unwrap_err();
/// assert_eq!(error.to_string(), "messages[0].toolCallId: missing");
/// ```
pub fn decode(body: &[u8]) -> Result<Decoded, DecodeError> {
    let diagnostics = Diagnostics::new(body.len(), MAX_OPEN_VALUES);
    match decode_with::<RunAgentInput>(body, &diagnostics) {
        Ok(Some(input)) => {
            let (snake_case, open_values) =
                (diagnostics.snake_case.get(), diagnostics.open_values.get());
            Ok(Decoded {
                input,
                ignored: diagnostics.ignored.into_inner(),
                snake_case,
                open_values,
            })
        }
        Ok(None) => Err(DecodeError::Syntax("no input".to_owned())),
        Err(error) => {
            let error = diagnostics.error.into_inner().unwrap_or(error);
            let repaired = || lenient_json::repaired_text(as_text(body).ok()?, Partner::Page);
            match matches!(error, DecodeError::Syntax(_)).then(repaired).flatten() {
                Some(repaired) => decode(repaired.as_bytes()),
                None => Err(error),
            }
        }
    }
}

/// Counts the values of an input, before it takes the memory of a decoded one.
///
/// # Errors
/// If there are more than [`MAX_VALUES`].
pub fn count_values(body: &[u8]) -> Result<usize, DecodeError> {
    match json_values::count_values(body) {
        values if values <= MAX_VALUES => Ok(values),
        _ => Err(DecodeError::TooManyValues { path: String::new(), limit: MAX_VALUES }),
    }
}

/// Reads any JSON of at most [`MAX_VALUES`] values, for formats other than AG-UI's.
///
/// # Errors
/// If the bytes are not JSON, are nested too deeply, or hold too many values.
pub fn decode_value(body: &[u8]) -> Result<Value, DecodeError> {
    let diagnostics = Diagnostics::new(body.len(), MAX_VALUES);
    let value = decode_with::<Value>(body, &diagnostics);
    value
        .map(Option::unwrap_or_default)
        .map_err(|error| diagnostics.error.into_inner().unwrap_or(error))
}

/// Reads a few members of an object. `T` must not contain a list, a map or a [`Value`]: the number
/// of their values is not limited. Members that `T` does not name take no memory.
///
/// # Errors
/// If the bytes are not JSON, are nested too deeply, or do not fit `T`.
pub fn decode_members<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, DecodeError> {
    let mut parser = serde_json::Deserializer::from_str(as_text(body)?);
    T::deserialize(&mut parser)
        .and_then(|read| parser.end().map(|()| read))
        .map_err(|error| syntax_error(&error))
}

fn decode_with<'de, T: FromJson<'de>>(
    body: &'de [u8],
    diagnostics: &Diagnostics,
) -> Result<Option<T>, DecodeError> {
    let mut parser = serde_json::Deserializer::from_str(as_text(body)?);
    ValueSeed::<T>::at(JsonPath::root(diagnostics))
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| syntax_error(&error))
}

/// The text is checked once as a whole: from a `&str`, the parser does not check each string.
fn as_text(body: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(body).map_err(|error| {
        DecodeError::Syntax(format!("invalid UTF-8 at byte {}", error.valid_up_to()))
    })
}

fn syntax_error(error: &serde_json::Error) -> DecodeError {
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        DecodeError::TooDeep(format!("line {}, column {}", error.line(), error.column()))
    } else {
        // The text may quote a string of the body.
        DecodeError::Syntax(short_line(&text))
    }
}

#[cfg(test)]
mod spelling_tests;
#[cfg(test)]
mod tests;
