//! Conversions between values and text columns: JSON, identifiers, and the lines of a log.

use std::{borrow::Cow, fmt::Write as _, iter};

use serde::{Serialize, de::DeserializeOwned};

use super::{BranchWrite, EventBatch, EventPage, StoreError, ThreadUpdate};

#[derive(Debug, Clone, Default)]
pub(super) struct BranchColumns {
    pub(super) base: i64,
    /// The columns of the new messages, in order: this one and the next three.
    pub(super) ids: Vec<String>,
    pub(super) roles: Vec<&'static str>,
    pub(super) runs: Vec<Option<i64>>,
    pub(super) bodies: Vec<String>,
    pub(super) updated_numbers: Vec<i64>,
    pub(super) updated_bodies: Vec<String>,
    pub(super) bytes: u64,
    /// The length of all updated bodies, in bytes: the most that they can add to the thread.
    pub(super) updated_bytes: u64,
}

impl BranchColumns {
    pub(super) fn new(branch: &BranchWrite<'_>) -> Self {
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

/// The columns of a [`ThreadUpdate`]. For each part that can be NULL there is a flag that says whether it is set.
#[derive(Debug)]
pub(super) struct UpdateColumns {
    pub(super) sets_title: bool,
    pub(super) title: Option<String>,
    pub(super) archived: Option<bool>,
    pub(super) sets_metadata: bool,
    pub(super) metadata: Option<String>,
    pub(super) head: Option<i64>,
    pub(super) state: Option<i64>,
    pub(super) interrupts: Option<String>,
}

impl UpdateColumns {
    pub(super) fn new(update: &ThreadUpdate<'_>) -> Self {
        Self {
            sets_title: update.title.is_some(),
            title: update.title.flatten().map(|title| name_to_text(title).into_owned()),
            archived: update.archived,
            sets_metadata: update.metadata.is_some(),
            metadata: update.metadata.filter(|metadata| !metadata.is_empty()).map(to_json),
            head: update.head.map(|head| head.head),
            state: update.head.and_then(|head| head.state_number),
            interrupts: update.head.and_then(|head| list_to_json(head.interrupts)),
        }
    }
}

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
pub(super) fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, StoreError> {
    let mut parser = serde_json::Deserializer::from_str(json);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| StoreError::Failed(error.into()))
}

pub(super) fn list_from_json<T: DeserializeOwned>(json: Option<&str>) -> Result<Vec<T>, StoreError> {
    json.map_or_else(|| Ok(Vec::new()), from_json)
}

/// Postgres does not store NUL, so an identifier with one becomes JSON, and so does one that starts as that JSON
/// does.
pub(super) fn name_to_text(name: &str) -> Cow<'_, str> {
    if name.contains('\0') || name.starts_with('"') { to_json(&name).into() } else { name.into() }
}

pub(super) fn name_from_text(text: String) -> Result<String, StoreError> {
    if text.starts_with('"') { from_json(&text) } else { Ok(text) }
}

/// Joins the events of a batch, one event a line. Fails if an event has more than one line.
pub(super) fn lines(events: &[String]) -> Result<String, StoreError> {
    if events.iter().any(|event| event.bytes().any(|byte| byte == b'\n' || byte == 0)) {
        return Err(StoreError::Failed("an event is not one line of JSON".into()));
    }
    Ok(events.join("\n"))
}

/// Joins the times of a batch's events. Fails unless each event has one.
pub(super) fn times(batch: &EventBatch) -> Result<String, StoreError> {
    if batch.times.len() != batch.events.len() {
        return Err(StoreError::Failed("a batch has another number of times than of events".into()));
    }
    let mut text = String::with_capacity(8 * batch.times.len());
    for time in &batch.times {
        // Writing to memory cannot fail.
        let _ = write!(text, "{}{time}", if text.is_empty() { "" } else { " " });
    }
    Ok(text)
}

impl EventPage {
    /// Appends the events of a batch that the page does not have yet, and subtracts their bytes from `room`. A batch may
    /// repeat events of the batch before it. Returns whether there is room for more events; the first one always fits.
    pub(super) fn extend(&mut self, first: u64, lines: &str, times: &str, room: &mut usize) -> bool {
        // Events are not lost with a damaged list of times.
        let times = times.split(' ').map(|time| time.parse().unwrap_or(0)).chain(iter::repeat(0));
        for (number, (event, time)) in (first..).zip(lines.split('\n').zip(times)) {
            if number < self.first + self.events.len() as u64 {
                continue;
            }
            if event.len() > *room && !self.events.is_empty() {
                return false;
            }
            *room = room.saturating_sub(event.len());
            self.events.push(event.to_owned());
            self.times.push(time);
        }
        true
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
