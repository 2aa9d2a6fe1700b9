//! The numbers of rows: one type for each kind, so that none is taken for another.

use std::{fmt, num::ParseIntError, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! row_numbers {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self(number)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

row_numbers! {
    /// The number of a thread in its store. A thread that is deleted and created again has another
    /// one.
    ThreadNumber,
    /// The number of a run in its store. Each run of a thread has a higher one than the run before
    /// it.
    RunNumber,
    /// The number of a queued run in its store. A later one of the same thread has a higher number.
    QueueNumber,
    /// The number of a message within its thread, from 1.
    MessageNumber,
    /// The number of a state in its store.
    StateNumber,
}

impl MessageNumber {
    /// The place before the first message, which has no message.
    pub const ROOT: Self = Self(0);

    /// Returns the numbers of the newest `count` messages of a thread whose last message this is,
    /// ascending.
    pub fn newest(self, count: usize) -> impl Iterator<Item = Self> {
        (self.0 - count as i64 + 1..=self.0).map(Self)
    }

    /// Returns the number of the `count`-th message after this one.
    pub(crate) fn plus(self, count: usize) -> Self {
        Self(self.0 + count as i64)
    }
}
