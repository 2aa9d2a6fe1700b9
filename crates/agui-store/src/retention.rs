//! Limits of what is kept, and the number of threads that each owner has above them.

use std::collections::HashMap;

use serde::Deserialize;

use agui_base::units;

/// Limits of what is kept: the section `[retention]`. `None` is no limit. Ages are in milliseconds here, and in days and
/// hours in a configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default = "Retention::for_servers", deny_unknown_fields)]
#[non_exhaustive]
pub struct Retention {
    /// The time for which a thread is kept after its last change.
    #[serde(rename = "thread_days", with = "units::OptionalDays")]
    pub thread_age: Option<u64>,
    /// The number of threads that are kept for each principal, those with the newest runs.
    #[serde(rename = "max_threads", with = "units::OptionalNumber")]
    pub owner_threads: Option<u64>,
    /// The number of threads that are kept in all. The principals with the most threads lose their oldest ones first.
    #[serde(rename = "max_threads_total", with = "units::OptionalNumber")]
    pub threads: Option<u64>,
    /// The bytes of messages and states of the threads of one principal. Beyond them, its runs and
    /// copies of threads are refused with 413, until threads are deleted. It can be exceeded by
    /// what is stored in a few seconds.
    #[serde(rename = "max_bytes", with = "units::OptionalNumber")]
    pub owner_bytes: Option<u64>,
    /// The bytes of messages and states of all threads together. Beyond them, runs and copies of
    /// threads are refused with 507. If it is not set, or `u64::MAX`: half of what the disk has for
    /// an SQLite file when the server starts.
    #[serde(rename = "max_bytes_total", with = "units::OptionalNumber")]
    pub bytes: Option<u64>,
    /// The time for which the log of a detached run is kept after its end.
    #[serde(rename = "log_hours", with = "units::OptionalHours")]
    pub log_age: Option<u64>,
    /// The number of logs that are kept, those of the runs that ended last.
    #[serde(rename = "max_logs", with = "units::OptionalNumber")]
    pub logs: Option<u64>,
}

impl Retention {
    /// The limits of servers that set none.
    pub fn for_servers() -> Self {
        Self {
            thread_age: None,
            owner_threads: Some(100_000),
            threads: Some(1_000_000),
            owner_bytes: Some(16 << 30),
            bytes: Some(u64::MAX),
            log_age: Some(24 * 3_600_000),
            logs: Some(10_000),
        }
    }
}

/// The result of applying [`Retention`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepResult {
    /// The number of removed threads.
    pub threads: u64,
    /// The number of removed logs.
    pub logs: u64,
}

/// Returns the number of threads to remove from each owner, so that no owner has more than `each`
/// and all owners have at most `total`. The owners with the most threads lose threads for `total`.
pub(super) fn surplus(
    owners: Vec<(String, u64)>,
    each: Option<u64>,
    total: Option<u64>,
) -> HashMap<String, u64> {
    let kept = |count: u64, most: u64| count.min(each.unwrap_or(u64::MAX)).min(most);
    let sum = |most: u64| owners.iter().map(|(_, count)| kept(*count, most)).sum::<u64>();
    let largest = owners.iter().map(|(_, count)| kept(*count, u64::MAX)).max().unwrap_or(0);
    let total = total.unwrap_or(u64::MAX);
    // A binary search for the largest number of threads an owner may keep so that the sum is at most `total`.
    let (mut fits, mut exceeds) = (0, largest + 1);
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        if sum(middle) <= total { fits = middle } else { exceeds = middle }
    }
    let surplus = owners.iter().map(|(owner, count)| (owner.clone(), count - kept(*count, fits)));
    surplus.filter(|(_, surplus)| *surplus > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owners_with_the_most_threads_lose_threads() {
        let owners = |counts: &[u64]| {
            counts.iter().enumerate().map(|(n, count)| (n.to_string(), *count)).collect()
        };
        let lost = |counts: &[u64], each, total| {
            let surplus = surplus(owners(counts), each, total);
            (0..counts.len())
                .map(|n| surplus.get(&n.to_string()).copied().unwrap_or(0))
                .collect::<Vec<_>>()
        };
        assert_eq!(lost(&[5, 2, 9], None, None), [0, 0, 0]);
        assert_eq!(lost(&[5, 2, 9], Some(4), None), [1, 0, 5]);
        assert_eq!(lost(&[5, 2, 9], None, Some(12)), [0, 0, 4]);
        assert_eq!(lost(&[5, 2, 9], None, Some(8)), [2, 0, 6]);
        assert_eq!(lost(&[5, 2, 9], Some(4), Some(3)), [4, 1, 8]);
        assert_eq!(lost(&[], Some(4), Some(0)), [0; 0]);
    }
}
