//! Reads the JSON of providers' events. Members that are missing or of another type are empty.

use serde_json::Value;

use super::decode::DecodeFault;

/// Parses an event. `noun` names it in the error.
pub(crate) fn parse(data: &str, noun: &str) -> Result<Value, DecodeFault> {
    serde_json::from_str(data).map_err(|error| DecodeFault::Malformed(format!("{noun}: {error}")))
}

/// Parses an event that is an object.
pub(crate) fn parse_object(data: &str, noun: &str) -> Result<Value, DecodeFault> {
    let event = parse(data, noun)?;
    if event.is_object() {
        Ok(event)
    } else {
        Err(DecodeFault::Malformed(format!("{noun} is not an object")))
    }
}

pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}
