//! Conversions between values and text columns: JSON, identifiers, and the lines of a log.

use std::borrow::Cow;

use serde::{Serialize, de::DeserializeOwned};

use super::{EndedRun, EventBatch, StoreError, StoreResult};

/// Returns a value as JSON. The types that a store writes always have a JSON form.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a list as JSON; `None` if it is empty.
pub(super) fn list_to_json<T: Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| to_json(&list))
}

/// Has no limit of depth: the depth of a value was limited when it was received or patched, and a message may
/// add some levels.
pub(super) fn from_json<T: DeserializeOwned>(json: &str) -> StoreResult<T> {
    let mut parser = serde_json::Deserializer::from_str(json);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| StoreError::Failed(error.into()))
}

pub(super) fn list_from_json<T: DeserializeOwned>(json: Option<&str>) -> StoreResult<Vec<T>> {
    json.map_or_else(|| Ok(Vec::new()), from_json)
}

/// Postgres does not store NUL, so an identifier with one becomes JSON, and so does one that starts as that JSON
/// does.
pub(super) fn name_to_text(name: &str) -> Cow<'_, str> {
    if name.contains('\0') || name.starts_with('"') { to_json(&name).into() } else { name.into() }
}

pub(super) fn name_from_text(text: String) -> StoreResult<String> {
    if text.starts_with('"') { from_json(&text) } else { Ok(text) }
}

/// Joins the events of a batch, one event a line. Fails if an event has more than one line.
pub(super) fn lines(events: &[String]) -> StoreResult<String> {
    if events.iter().any(|event| event.bytes().any(|byte| byte == b'\n' || byte == 0)) {
        return Err(StoreError::Failed("an event is not one line of JSON".into()));
    }
    Ok(events.join("\n"))
}

/// Joins the times of a batch's events. Fails unless each event has one.
pub(super) fn times(batch: &EventBatch) -> StoreResult<String> {
    if batch.times.len() != batch.events.len() {
        return Err(StoreError::Failed("a batch has another number of times than of events".into()));
    }
    let times: Vec<_> = batch.times.iter().map(u64::to_string).collect();
    Ok(times.join(" "))
}

impl EndedRun<'_> {
    /// Returns the id or the last message, for a statement that compares both.
    pub(super) fn columns(self) -> (Option<String>, Option<i64>) {
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
    fn an_identifier_is_decoded_from_its_column() {
        for name in ["", "a", "\"a\"", "\"", "a\0b", "\0", "é"] {
            let text = name_to_text(name);
            assert!(!text.contains('\0'), "{name:?}");
            assert_eq!(name_from_text(text.into_owned()).unwrap(), name);
        }
    }
}
