//! The limits of each principal, and the counts of its runs a minute.
//!
//! The counts are kept in memory, so each replica has its own. A principal without runs in the last
//! minute is removed. Costs: one lock for all principals; an entry for each principal, with the
//! time (16 bytes) of each run of the last minute; once a minute, one admission scans all
//! entries.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use parking_lot::Mutex;
use serde::Deserialize;
use smart_default::SmartDefault;
use tokio::time::Instant;

use super::start_error::StartError;
use agui_agent::Principal;
use agui_base::units;

const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The limits of each principal: the section `[limits]`. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PrincipalLimits {
    /// The largest number of runs of each principal at a time, including queued and detached ones.
    /// More are refused with 429. Each server counts for itself.
    #[serde(rename = "concurrent_runs", with = "units::OptionalCount")]
    pub concurrent: Option<usize>,
    /// The largest number of runs that each principal may start in any sixty seconds. More are
    /// refused with 429. Each server counts for itself.
    #[serde(rename = "runs_per_minute", with = "units::OptionalCount")]
    pub per_minute: Option<usize>,
    /// The largest part of `runs.max_concurrent`, `runs.max_detached`, `runs.max_followers` and `server.max_streams` that
    /// one principal may take, in percent. With one API key it has no effect. 100: no limit.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    #[default(50)]
    pub share_percent: u8,
}

impl PrincipalLimits {
    /// Returns one principal's share of `all`, at least one; `None` without a limit.
    pub(crate) fn share_of(&self, all: usize) -> Option<usize> {
        let share = all.saturating_mul(self.share_percent.into()) / 100;
        (self.share_percent < 100).then_some(share.max(1))
    }
}

/// The limit of runs that each principal may start in a minute.
pub(crate) struct RunRate {
    per_minute: Option<usize>,
    ledger: Mutex<Ledger>,
}

struct Ledger {
    /// The times of the runs that were admitted within the window, the oldest first.
    recent: HashMap<Principal, VecDeque<Instant>>,
    last_sweep: Instant,
}

impl RunRate {
    pub(crate) fn new(per_minute: Option<usize>) -> Self {
        Self {
            per_minute,
            ledger: Mutex::new(Ledger { recent: HashMap::new(), last_sweep: Instant::now() }),
        }
    }

    /// Counts a run of a principal.
    pub(crate) fn count(&self, principal: Option<&Principal>) -> Result<(), StartError> {
        let (Some(limit), Some(principal)) = (self.per_minute, principal) else { return Ok(()) };
        let now = Instant::now();
        let mut ledger = self.ledger.lock();
        ledger.sweep(now);
        let recent = ledger.recent.entry(principal.clone()).or_default();
        check(recent, limit, now)?;
        recent.push_back(now);
        Ok(())
    }

    /// Returns the error that [`count`](Self::count) would return now.
    pub(crate) fn check(&self, principal: Option<&Principal>) -> Result<(), StartError> {
        let (Some(limit), Some(principal)) = (self.per_minute, principal) else { return Ok(()) };
        match self.ledger.lock().recent.get_mut(principal) {
            Some(recent) => check(recent, limit, Instant::now()),
            None => Ok(()),
        }
    }
}

fn check(recent: &mut VecDeque<Instant>, limit: usize, now: Instant) -> Result<(), StartError> {
    drop_expired(recent, now);
    let Some(excess) = recent.len().checked_sub(limit) else { return Ok(()) };
    // The next run is admitted when this one leaves the window; a limit of 0 admits none.
    let oldest = recent.get(excess).unwrap_or(&now);
    let retry_after = RATE_WINDOW.saturating_sub(now.duration_since(*oldest));
    Err(StartError::TooManyRunsPerMinute { retry_after })
}

fn drop_expired(recent: &mut VecDeque<Instant>, now: Instant) {
    while recent.front().is_some_and(|at| now.duration_since(*at) >= RATE_WINDOW) {
        recent.pop_front();
    }
}

impl Ledger {
    fn sweep(&mut self, now: Instant) {
        if now.duration_since(self.last_sweep) < RATE_WINDOW {
            return;
        }
        self.last_sweep = now;
        self.recent.retain(|_, recent| {
            drop_expired(recent, now);
            !recent.is_empty()
        });
        self.recent.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_limit_holds_in_every_window_of_60_seconds() {
        let rate = RunRate::new(Some(2));
        let ada = Principal::new("key", "ada");
        let mut begun = Vec::new();
        for second in 0..600_u64 {
            match rate.count(Some(&ada)) {
                Ok(()) => begun.push(second),
                Err(StartError::TooManyRunsPerMinute { retry_after }) => {
                    assert_eq!(
                        retry_after,
                        Duration::from_secs(begun[begun.len() - 2] + 60 - second)
                    );
                    assert!(rate.check(Some(&ada)).is_err());
                }
                Err(other) => panic!("{other}"),
            }
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(begun.len(), 20);
        assert!(begun.windows(3).all(|three| three[2] - three[0] >= 60), "{begun:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_principals_are_removed() {
        let rate = RunRate::new(Some(5));
        for number in 0..1000 {
            rate.count(Some(&Principal::new("key", &number.to_string()))).unwrap();
        }
        assert_eq!(rate.ledger.lock().recent.len(), 1000);
        advance(RATE_WINDOW).await;
        rate.count(Some(&Principal::new("key", "bob"))).unwrap();
        assert_eq!(rate.ledger.lock().recent.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn runs_without_principal_or_limit_are_not_counted() {
        let (limited, ada) = (RunRate::new(Some(1)), Principal::new("key", "ada"));
        for _ in 0..3 {
            limited.count(None).unwrap();
            RunRate::new(None).count(Some(&ada)).unwrap();
        }
        assert_eq!(limited.ledger.lock().recent.len(), 0);
    }
}
