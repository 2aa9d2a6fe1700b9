//! Serde helpers for options whose keys carry their unit.
//!
//! `#[serde(rename = "timeout_secs", deserialize_with = "units::seconds")]` reads `timeout_secs = 30` into a `Duration`.
//! The `optional_…` helpers read 0 as `None`: no limit. [`deadline`] is the end of such a time.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use tokio::time::Instant;

/// Stands for a time that ends later than an [`Instant`] can say, such as `Duration::MAX`.
pub(crate) const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the end of a time that an operator, an application or a file has chosen. `from + time` panics if the time is too
/// long for an [`Instant`]; this returns an instant in 30 years.
pub(crate) fn deadline(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).or_else(|| from.checked_add(FAR_FUTURE)).unwrap_or(from)
}

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

/// The same helpers for the JSON Schema of the configuration, which has the unit in `x-unit`.
#[cfg(test)]
#[allow(dead_code, reason = "options of some features have units of their own")]
pub(crate) mod json_schema {
    use std::{borrow::Cow, collections::BTreeMap};

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    /// An IP address and a port.
    pub(crate) const SOCKET_ADDRESS: &str = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]{1,5}$";

    /// An IP address or a name, and a port.
    pub(crate) const NAMED_SOCKET_ADDRESS: &str = r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]{1,5}$";

    /// The schema of an `IndexMap`.
    pub(crate) type Table<T> = BTreeMap<String, T>;

    macro_rules! numbers {
        ($($name:ident $unit:literal,)*) => { $(
            pub(crate) struct $name;

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({ "type": "integer", "minimum": 0, "x-unit": $unit })
                }
            }
        )* };
    }

    numbers! {
        Seconds "In seconds.",
        OptionalSeconds "In seconds; 0 switches it off.",
        OptionalHours "In hours; 0 is no limit.",
        OptionalDays "In days; 0 is no limit.",
        OptionalNumber "0 is no limit.",
        Megabytes "In megabytes (2^20 bytes).",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_too_long_for_a_deadline() {
        let now = Instant::now();
        assert_eq!(deadline(now, Duration::from_secs(5)), now + Duration::from_secs(5));
        for longest in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
            assert_eq!(deadline(now, longest), now + FAR_FUTURE);
        }
    }
}
