//! Checks the members of JSON objects.

use serde_json::{Map, Value};

/// The values that a member may have.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Bool,
    Number,
    Integer,
    Text,
    Texts,
    Object,
    List,
    /// One of these texts.
    Word(&'static [&'static str]),
    Any,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Text => value.is_string(),
            Self::Texts => value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string)),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Any => true,
        }
    }
}

/// Refuses unknown members and members of another kind.
pub fn members(
    object: &Map<String, Value>,
    known: &[&[(&str, Kind)]],
    of: &str,
) -> Result<(), String> {
    object.iter().try_for_each(|(name, value)| {
        match known.iter().copied().flatten().find(|(member, _)| member == name) {
            Some((_, kind)) if kind.fits(value) => Ok(()),
            Some((_, kind)) => Err(format!("{of}.{name} is {value}, expected {kind:?}")),
            None => Err(format!("unknown member {of}.{name}")),
        }
    })
}

pub fn object<'v>(value: &'v Value, of: &str) -> Result<&'v Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{of} is {value}, expected an object"))
}

pub fn list<'v>(value: &'v Value, of: &str) -> Result<&'v [Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{of} is {value}, expected a list"))
}

pub fn text<'v>(value: &'v Value, of: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{of} is {value}, expected a text"))
}
