//! The limits of each principal: concurrent runs, detached runs, and runs a minute.
//!
//! The counts are kept in memory, so each replica has its own. A principal without runs in the last minute is removed.
//! Costs: one lock for all principals; an entry for each principal, with the time (16 bytes) of each run of the last
//! minute; once a minute one admission looks at all entries.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde::Deserialize;
use smart_default::SmartDefault;
use tokio::time::Instant;

use super::start_error::StartError;
use crate::{agent::Principal, base::units};

const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The limits of each principal: the section `[limits]`. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PrincipalLimits {
    /// The largest number of concurrent runs of each principal, including waiting and detached ones. More are refused
    /// with 429.
    #[serde(rename = "concurrent_runs", with = "units::OptionalCount")]
    pub concurrent: Option<usize>,
    /// The largest number of runs that each principal may start in any sixty seconds. More are refused with 429.
    #[serde(rename = "runs_per_minute", with = "units::OptionalCount")]
    pub per_minute: Option<usize>,
    /// The largest part of `runs.max_concurrent`, `runs.max_detached`, `runs.max_followers` and `server.max_streams` that
    /// one principal may take, in percent. With one API key it has no effect. 100: no limit.
    #[cfg_attr(test, schemars(range(min = 1, max = 100)))]
    #[default(50)]
    pub share_percent: u8,
}

impl PrincipalLimits {
    /// Returns one principal's share of what the server has; `None` if it is not limited.
    pub(crate) fn share_of(&self, all: usize) -> Option<usize> {
        let share = all.saturating_mul(self.share_percent.into()) / 100;
        (self.share_percent < 100).then_some(share.max(1))
    }
}

pub(crate) struct Quota {
    concurrent: Option<usize>,
    detached: Option<usize>,
    per_minute: Option<usize>,
    ledger: Arc<Mutex<Ledger>>,
}

struct Ledger {
    principals: HashMap<Principal, PrincipalUsage>,
    last_sweep: Instant,
}

#[derive(Default)]
struct PrincipalUsage {
    live: usize,
    detached: usize,
    /// The times of the runs that were admitted within the window, the oldest first.
    recent: VecDeque<Instant>,
}

impl PrincipalUsage {
    fn drop_expired(&mut self, now: Instant) {
        while self.recent.front().is_some_and(|at| now.duration_since(*at) >= RATE_WINDOW) {
            self.recent.pop_front();
        }
    }

    fn is_idle(&self) -> bool {
        self.live == 0 && self.recent.is_empty()
    }
}

impl Quota {
    pub(crate) fn new(limits: PrincipalLimits, max_concurrent: usize, max_detached: usize) -> Self {
        let ledger = Ledger { principals: HashMap::new(), last_sweep: Instant::now() };
        let concurrent = limits.concurrent.into_iter().chain(limits.share_of(max_concurrent)).min();
        Self {
            concurrent,
            detached: limits.share_of(max_detached),
            per_minute: limits.per_minute,
            ledger: Arc::new(Mutex::new(ledger)),
        }
    }

    /// Counts a run of a principal until the share is dropped. Returns `None` if runs are not limited.
    pub(crate) fn admit(&self, principal: Option<&Principal>) -> Result<Option<QuotaShare>, StartError> {
        let Some(principal) = principal.filter(|_| self.has_limits()) else { return Ok(None) };
        let now = Instant::now();
        let mut ledger = self.ledger.lock();
        ledger.sweep(now);
        let usage = ledger.principals.entry(principal.clone()).or_default();
        self.check_usage(usage, now)?;
        if self.per_minute.is_some() {
            usage.recent.push_back(now);
        }
        usage.live += 1;
        Ok(Some(QuotaShare { ledger: self.ledger.clone(), principal: principal.clone(), is_detached: false }))
    }

    /// Returns the error that [`admit`](Self::admit) would return now.
    pub(crate) fn check(&self, principal: Option<&Principal>) -> Result<(), StartError> {
        let Some(principal) = principal.filter(|_| self.has_limits()) else { return Ok(()) };
        match self.ledger.lock().principals.get_mut(principal) {
            Some(usage) => self.check_usage(usage, Instant::now()),
            None => Ok(()),
        }
    }

    /// Counts a run as detached until its share is dropped.
    pub(crate) fn admit_detached(&self, share: Option<&mut QuotaShare>) -> Result<(), StartError> {
        let Some(share) = share else { return Ok(()) };
        let mut ledger = self.ledger.lock();
        let Some(usage) = ledger.principals.get_mut(&share.principal) else { return Ok(()) };
        if self.detached.is_some_and(|limit| usage.detached >= limit) {
            return Err(StartError::TooManyDetachedRunsOfPrincipal);
        }
        usage.detached += 1;
        share.is_detached = true;
        Ok(())
    }

    fn has_limits(&self) -> bool {
        self.concurrent.is_some() || self.per_minute.is_some() || self.detached.is_some()
    }

    fn check_usage(&self, usage: &mut PrincipalUsage, now: Instant) -> Result<(), StartError> {
        usage.drop_expired(now);
        if self.concurrent.is_some_and(|limit| usage.live >= limit) {
            return Err(StartError::TooManyRunsOfPrincipal);
        }
        if let Some(excess) = self.per_minute.and_then(|limit| usage.recent.len().checked_sub(limit)) {
            // The next run is admitted when this one leaves the window; a limit of 0 admits none.
            let oldest = usage.recent.get(excess).unwrap_or(&now);
            let retry_after = RATE_WINDOW.saturating_sub(now.duration_since(*oldest));
            return Err(StartError::TooManyRunsPerMinute { retry_after });
        }
        Ok(())
    }
}

impl Ledger {
    fn sweep(&mut self, now: Instant) {
        if now.duration_since(self.last_sweep) < RATE_WINDOW {
            return;
        }
        self.last_sweep = now;
        self.principals.retain(|_, usage| {
            usage.drop_expired(now);
            !usage.is_idle()
        });
        self.principals.shrink_to_fit();
    }
}

pub(crate) struct QuotaShare {
    ledger: Arc<Mutex<Ledger>>,
    principal: Principal,
    is_detached: bool,
}

impl std::fmt::Debug for QuotaShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("QuotaShare").field(&self.principal).finish()
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        let mut ledger = self.ledger.lock();
        let Some(usage) = ledger.principals.get_mut(&self.principal) else { return };
        usage.live = usage.live.saturating_sub(1);
        usage.detached = usage.detached.saturating_sub(self.is_detached.into());
        if usage.is_idle() {
            ledger.principals.remove(&self.principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn quota(concurrent: usize, per_minute: usize) -> Quota {
        let some = |limit| (limit > 0).then_some(limit);
        let (concurrent, per_minute) = (some(concurrent), some(per_minute));
        Quota::new(PrincipalLimits { concurrent, per_minute, share_percent: 100 }, 1000, 200)
    }

    fn counted_principals(quota: &Quota) -> usize {
        quota.ledger.lock().principals.len()
    }

    fn is_full(quota: &Quota, principal: &Principal) -> bool {
        matches!(quota.admit(Some(principal)).unwrap_err(), StartError::TooManyRunsOfPrincipal)
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_runs_are_counted_until_they_end() {
        let quota = quota(2, 0);
        let (ada, bob) = (Principal::new("key", "ada"), Principal::new("key", "bob"));
        let first = quota.admit(Some(&ada)).unwrap();
        let second = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada));
        let bobs = quota.admit(Some(&bob)).unwrap();
        advance(Duration::from_secs(3600)).await;
        assert!(is_full(&quota, &ada));
        drop(first);
        let third = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada));
        drop((second, third, bobs));
        assert_eq!(counted_principals(&quota), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_gets_half_of_the_runs_by_default() {
        let quota = Quota::new(PrincipalLimits::default(), 5, 2);
        let (ada, bob) = (Principal::new("key", "ada"), Principal::new("key", "bob"));
        let mut first = quota.admit(Some(&ada)).unwrap();
        quota.admit_detached(first.as_mut()).unwrap();
        let mut second = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada));
        assert!(matches!(quota.check(Some(&ada)), Err(StartError::TooManyRunsOfPrincipal)));
        let refused = quota.admit_detached(second.as_mut()).unwrap_err();
        assert!(matches!(refused, StartError::TooManyDetachedRunsOfPrincipal));
        let mut bobs = quota.admit(Some(&bob)).unwrap();
        quota.admit_detached(bobs.as_mut()).unwrap();
        drop(first);
        quota.admit_detached(second.as_mut()).unwrap();
        quota.check(Some(&ada)).unwrap();
        drop((second, bobs));
        assert_eq!(counted_principals(&quota), 0);
        // A share is at least one run.
        let smallest = Quota::new(PrincipalLimits::default(), 1, 0);
        assert!(smallest.admit(Some(&ada)).unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_limit_holds_in_every_window_of_60_seconds() {
        let quota = quota(0, 2);
        let ada = Principal::new("key", "ada");
        let mut begun = Vec::new();
        for second in 0..600_u64 {
            match quota.admit(Some(&ada)) {
                Ok(share) => {
                    drop(share);
                    begun.push(second);
                }
                Err(StartError::TooManyRunsPerMinute { retry_after }) => {
                    assert_eq!(retry_after, Duration::from_secs(begun[begun.len() - 2] + 60 - second));
                }
                Err(other) => panic!("{other}"),
            }
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(begun.len(), 20);
        assert!(begun.windows(3).all(|three| three[2] - three[0] >= 60), "{begun:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_run_does_not_count_for_the_other_limit() {
        let quota = quota(1, 2);
        let ada = Principal::new("key", "ada");
        let first = quota.admit(Some(&ada)).unwrap();
        for _ in 0..5 {
            assert!(is_full(&quota, &ada));
        }
        drop(first);
        drop(quota.admit(Some(&ada)).unwrap());
        assert!(matches!(quota.admit(Some(&ada)).unwrap_err(), StartError::TooManyRunsPerMinute { .. }));
        advance(RATE_WINDOW).await;
        let held = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada), "a refused run took no share");
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_principals_are_removed() {
        let quota = quota(5, 5);
        for number in 0..1000 {
            quota.admit(Some(&Principal::new("key", &number.to_string()))).unwrap();
        }
        let ada = Principal::new("key", "ada");
        let held = quota.admit(Some(&ada)).unwrap();
        assert_eq!(counted_principals(&quota), 1001);
        advance(RATE_WINDOW).await;
        quota.admit(Some(&Principal::new("key", "bob"))).unwrap();
        assert_eq!(counted_principals(&quota), 2);
        assert!(held.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn runs_without_principal_or_limits_are_not_counted() {
        let limited = quota(1, 1);
        for _ in 0..3 {
            assert!(limited.admit(None).unwrap().is_none());
            assert!(quota(0, 0).admit(Some(&Principal::new("key", "ada"))).unwrap().is_none());
        }
        assert_eq!(counted_principals(&limited), 0);
    }
}
