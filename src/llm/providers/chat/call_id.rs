//! The ids of calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{
    llm::{known_models::Profile, providers::wire},
    protocol::ToolCallId,
};

/// Returns an id that the server takes. The same id always gets the same one, so that a call and its result agree.
pub(super) fn call_id(id: &ToolCallId, profile: &Profile) -> String {
    let length = profile.call_id_length;
    if length == 0 {
        return wire::call_id(id);
    }
    if id.len() == length && id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return id.as_str().to_owned();
    }
    (0..length)
        .map(|at| {
            let mut hasher = DefaultHasher::new();
            (id, at).hash(&mut hasher);
            char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[(hasher.finish() % 36) as usize])
        })
        .collect()
}
