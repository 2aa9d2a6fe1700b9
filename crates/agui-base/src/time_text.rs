//! Times in milliseconds since 1970 as texts in JSON, with serde's `with`: `2026-01-31T12:00:00.000Z`.

use jiff::Timestamp;
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// Returns a time with three digits of milliseconds, so that times sort as texts.
pub fn time_text(millis: i64) -> String {
    let time = Timestamp::from_millisecond(millis);
    time.map_or_else(|_| millis.to_string(), |time| format!("{time:.3}"))
}

pub fn serialize<S: Serializer>(
    time: &(impl Copy + Into<Option<i64>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match (*time).into() {
        Some(millis) => serializer.serialize_str(&time_text(millis)),
        None => serializer.serialize_none(),
    }
}

pub fn deserialize<'de, T: From<i64>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = text.parse::<Timestamp>();
    let time = time.map_err(|_| {
        D::Error::custom(format!("{text:?} is no time such as 2026-01-31T12:00:00.000Z"))
    })?;
    Ok(time.as_millisecond().into())
}
