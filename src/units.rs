//! Serde helpers for options whose keys carry their unit.
//!
//! `#[serde(rename = "timeout_secs", deserialize_with = "units::seconds")]` reads `timeout_secs = 30` into a `Duration`.
//! The `optional_…` helpers read 0 as `None`: no limit.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Reads whole seconds.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

/// Reads hours into milliseconds; 0 is `None`.
pub(crate) fn optional_hours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(optional(deserializer)?.map(|hours: u64| hours.saturating_mul(3_600_000)))
}

/// Reads days into milliseconds; 0 is `None`.
pub(crate) fn optional_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(optional(deserializer)?.map(|days: u64| days.saturating_mul(24 * 3_600_000)))
}

/// Reads a number; 0 is `None`.
pub(crate) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Some(T::deserialize(deserializer)?).filter(|number| *number != T::default()))
}
