//! Conversions between values and text columns: JSON, identifiers, and the lines of a log.

use std::borrow::Cow;

use serde::{Serialize, de::DeserializeOwned};

use super::{EndedRun, EventBatch, MessageNumber, StoreError, StoreResult};

/// Returns a value as JSON. The types that a store writes always have a JSON form.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a list as JSON, or `None` if it is empty.
pub(super) fn list_to_json<T: Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| to_json(&list))
}

/// The depth of a received or patched value is at most 128, and a message may add some levels. A
/// damaged text can be deeper than the stack.
const MAX_DEPTH: usize = 512;

/// Returns the value, or the fault of its text. The fault does not quote the text.
pub(super) fn parse_json<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    if is_too_deep(json.as_bytes()) {
        return Err(format!("JSON of more than {MAX_DEPTH} levels"));
    }
    let mut parser = serde_json::Deserializer::from_str(json);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| {
        format!(
            "invalid JSON ({:?}) at column {} of {}",
            error.classify(),
            error.column(),
            json.len()
        )
    })
}

fn is_too_deep(json: &[u8]) -> bool {
    // The two brackets differ in this bit. Counting them is ten times as fast as parsing, and most texts have few.
    let opens = |byte: u8| byte | 0x20 == b'{';
    if json.iter().filter(|byte| opens(**byte)).count() <= MAX_DEPTH {
        return false;
    }
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut bytes = json.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' if in_string => _ = bytes.next(),
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ if opens(byte) => depth += 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Postgres does not store NUL, so an identifier with NUL becomes JSON. An identifier that starts
/// like that JSON becomes JSON, too.
pub(super) fn name_to_text(name: &str) -> Cow<'_, str> {
    if name.contains('\0') || name.starts_with('"') { to_json(&name).into() } else { name.into() }
}

pub(super) fn name_from_text(text: &str) -> Result<String, String> {
    if text.starts_with('"') { parse_json(text) } else { Ok(text.to_owned()) }
}

/// Joins the events of a batch, one event a line. Fails if an event has more than one line.
pub(super) fn lines(events: &[String]) -> StoreResult<String> {
    if events.iter().any(|event| memchr::memchr2(b'\n', 0, event.as_bytes()).is_some()) {
        return Err(StoreError::Failed("an event is not one line of JSON".into()));
    }
    Ok(events.join("\n"))
}

/// Joins the times of a batch's events. Fails unless each event has one.
pub(super) fn times(batch: &EventBatch) -> StoreResult<String> {
    if batch.times.len() != batch.events.len() {
        return Err(StoreError::Failed(
            "a batch has another number of times than of events".into(),
        ));
    }
    let times: Vec<_> = batch.times.iter().map(u64::to_string).collect();
    Ok(times.join(" "))
}

impl EndedRun<'_> {
    /// Returns the id or the last message, for a statement that compares both.
    pub(super) fn columns(self) -> (Option<String>, Option<MessageNumber>) {
        match self {
            Self::Id(id) => (Some(name_to_text(id).into_owned()), None),
            Self::Branch(head) => (None, Some(head)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_is_deeper_than_the_stack_is_an_error() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_json::<serde_json::Value>(&nested(MAX_DEPTH)).is_ok());
        assert!(parse_json::<serde_json::Value>(&nested(1_000_000)).is_err());
        assert!(parse_json::<serde_json::Value>(&"[".repeat(1_000_000)).is_err());
        let flat = format!(r#"["{}",{}0]"#, "[\\\"".repeat(600), "[],".repeat(600));
        assert!(parse_json::<serde_json::Value>(&flat).is_ok());
    }

    #[test]
    fn an_identifier_is_decoded_from_its_column() {
        for name in ["", "a", "\"a\"", "\"", "a\0b", "\0", "é"] {
            let text = name_to_text(name);
            assert!(!text.contains('\0'), "{name:?}");
            assert_eq!(name_from_text(&text).unwrap(), name);
        }
    }
}
