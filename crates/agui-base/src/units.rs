//! Units for options whose keys carry them.
//!
//! `#[serde(rename = "timeout_secs", with = "units::Seconds")]` reads `timeout_secs = 30` into a `Duration`. The `Optional…`
//! units read 0 as `None`: no limit.

use std::{num::NonZero, time::Duration};

use serde::{Deserialize, Deserializer};

/// Defines the units: each reads a number into a value, and has the unit in the JSON Schema of the configuration.
macro_rules! units {
    ($($(#[$doc:meta])* $name:ident: $number:ty => $value:ty = $read:expr, $unit:literal;)*) => { $(
        $(#[$doc])*
        pub enum $name {}

        impl $name {
            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$value, D::Error> {
                <$number>::deserialize(deserializer).map($read)
            }
        }

        #[cfg(feature = "schema")]
        impl $name {
            /// Writes a default for the JSON Schema.
            pub fn serialize<S: serde::Serializer>(value: &$value, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(value, serializer)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "integer", "minimum": 0, "x-unit": $unit })
            }
        }
    )* };
}

units! {
    /// Whole seconds.
    Seconds: u64 => Duration = Duration::from_secs, "In seconds.";
    /// Whole seconds, at least one.
    SomeSeconds: NonZero<u64> => Duration = |number| Duration::from_secs(number.get()), "In seconds.";
    /// Whole seconds; 0 is `None`.
    OptionalSeconds: u64 => Option<Duration> = |number| not_zero(number).map(Duration::from_secs),
        "In seconds; 0 switches it off.";
    /// Hours, in milliseconds; 0 is `None`.
    OptionalHours: u64 => Option<u64> = |number| not_zero(number).map(|hours| hours.saturating_mul(3_600_000)),
        "In hours; 0 is no limit.";
    /// Days, in milliseconds; 0 is `None`.
    OptionalDays: u64 => Option<u64> = |number| not_zero(number).map(|days| days.saturating_mul(24 * 3_600_000)),
        "In days; 0 is no limit.";
    /// A number; 0 is `None`.
    OptionalNumber: u64 => Option<u64> = not_zero, "0 is no limit.";
    /// A number of things in memory; 0 is `None`.
    OptionalCount: usize => Option<usize> = not_zero, "0 is no limit.";
    /// Megabytes, in bytes.
    Megabytes: u64 => u64 = |megabytes| megabytes.saturating_mul(1 << 20), "In megabytes (2^20 bytes).";
}

fn not_zero<T: Default + PartialEq>(number: T) -> Option<T> {
    Some(number).filter(|number| *number != T::default())
}

/// An IP address and a port, in the JSON Schema of the configuration.
#[cfg(feature = "schema")]
pub const SOCKET_ADDRESS: &str =
    r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]{1,5}$";

/// An IP address or a name, and a port.
#[cfg(feature = "schema")]
pub const NAMED_SOCKET_ADDRESS: &str =
    r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]{1,5}$";
