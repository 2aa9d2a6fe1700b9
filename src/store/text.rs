//! Stored values as text columns: JSON, and names that a database may not take as they are.

use std::{borrow::Cow, io};

use serde::{Serialize, de::DeserializeOwned};

use super::{BranchWrite, EventPage, StoreError};
use crate::protocol::{Interrupt, InterruptId};

/// A [`BranchWrite`] as columns.
#[derive(Debug, Clone, Default)]
pub(super) struct BranchColumns {
    pub(super) base: i64,
    /// Of the new messages, as the next three.
    pub(super) ids: Vec<String>,
    pub(super) roles: Vec<&'static str>,
    pub(super) runs: Vec<Option<i64>>,
    pub(super) bodies: Vec<String>,
    pub(super) updated_numbers: Vec<i64>,
    pub(super) updated_bodies: Vec<String>,
    /// The length of all new bodies.
    pub(super) bytes: u64,
    /// The length of all updated bodies. The thread may grow by as much.
    pub(super) updated_bytes: u64,
}

impl BranchColumns {
    pub(super) fn of(branch: &BranchWrite<'_>) -> Self {
        let bodies: Vec<_> = branch.new.iter().map(|(message, _)| to_json(message)).collect();
        let updated_bodies: Vec<_> = branch.updated.iter().map(|(_, message)| to_json(message)).collect();
        Self {
            base: branch.base,
            ids: branch.new.iter().map(|(message, _)| name_to_text(message.id()).into_owned()).collect(),
            roles: branch.new.iter().map(|(message, _)| message.role().as_str()).collect(),
            runs: branch.new.iter().map(|(_, run)| *run).collect(),
            updated_numbers: branch.updated.iter().map(|(number, _)| *number).collect(),
            bytes: bodies.iter().map(|body| body.len() as u64).sum(),
            updated_bytes: updated_bodies.iter().map(|body| body.len() as u64).sum(),
            updated_bodies,
            bodies,
        }
    }
}

/// Returns a value as JSON. Nothing that a store is given can fail to be written as JSON.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a list as JSON; `None` for an empty one.
pub(super) fn list_to_json<T: Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| to_json(&list))
}

/// Reads what [`to_json`] wrote. A document may be nested deeper than one that a parser takes by default: it was bounded
/// when it came in or was patched, before it was put into a message.
pub(super) fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, StoreError> {
    let mut parser = serde_json::Deserializer::from_str(json);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| StoreError::Failed(error.into()))
}

/// Reads what [`list_to_json`] wrote.
pub(super) fn list_from_json<T: DeserializeOwned>(json: Option<&str>) -> Result<Vec<T>, StoreError> {
    json.map_or_else(|| Ok(Vec::new()), from_json)
}

/// Returns the length of a value as JSON, in bytes.
pub(super) fn json_len(value: &impl Serialize) -> u64 {
    struct Counter(u64);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A counter takes everything.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Returns a name for a text column: as JSON if it has a NUL, which Postgres does not store, or could be taken for
/// that JSON.
pub(super) fn name_to_text(name: &str) -> Cow<'_, str> {
    if name.contains('\0') || name.starts_with('"') { to_json(&name).into() } else { name.into() }
}

/// Reads what [`name_to_text`] wrote.
pub(super) fn name_from_text(text: String) -> Result<String, StoreError> {
    if text.starts_with('"') { from_json(&text) } else { Ok(text) }
}

/// Returns a batch of events as one text, an event a line. Fails if an event is not one line of JSON.
pub(super) fn lines(events: &[String]) -> Result<String, StoreError> {
    if events.iter().any(|event| event.bytes().any(|byte| byte == b'\n' || byte == 0)) {
        return Err(StoreError::Failed("an event is not one line of JSON".into()));
    }
    Ok(events.join("\n"))
}

impl EventPage {
    /// Adds the events of a batch that the page does not have, and takes their bytes from `room`. A batch may repeat
    /// events of the one before it. Returns whether there is room for more; the first event always has room.
    pub(super) fn extend(&mut self, first: u64, lines: &str, room: &mut usize) -> bool {
        for (number, event) in (first..).zip(lines.split('\n')) {
            if number < self.first + self.events.len() as u64 {
                continue;
            }
            if event.len() > *room && !self.events.is_empty() {
                return false;
            }
            *room = room.saturating_sub(event.len());
            self.events.push(event.to_owned());
        }
        true
    }
}

/// Returns the interrupts without the answered ones.
pub(super) fn unanswered<'a>(
    interrupts: Vec<Interrupt>,
    answered: impl Iterator<Item = &'a InterruptId>,
) -> Vec<Interrupt> {
    let answered: Vec<_> = answered.collect();
    interrupts.into_iter().filter(|interrupt| !answered.contains(&&interrupt.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_from_its_column() {
        for name in ["", "a", "\"a\"", "\"", "a\0b", "\0", "é"] {
            let text = name_to_text(name);
            assert!(!text.contains('\0'), "{name:?}");
            assert_eq!(name_from_text(text.into_owned()).unwrap(), name);
        }
    }

    #[test]
    fn a_length_is_that_of_the_text() {
        let value = serde_json::json!({ "a": ["é", 1.5, null, "\n"] });
        assert_eq!(json_len(&value), to_json(&value).len() as u64);
    }
}
