//! How much of the server one principal may take: runs at a time, and runs a minute.
//!
//! What is counted is kept in memory, so each replica counts for itself. It is bounded by the runs there are and those
//! that were asked for within the last minute; who has neither is forgotten.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::StartError;
use crate::agent::Principal;

/// What `per_minute` is counted over.
const MINUTE: Duration = Duration::from_secs(60);

/// What each principal may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrincipalLimits {
    /// How many runs it may have at a time, waiting ones included.
    pub concurrent: Option<usize>,
    /// How many runs it may ask for within any sixty seconds.
    pub per_minute: Option<usize>,
}

/// Counts the runs of every principal.
pub(super) struct Quota {
    limits: PrincipalLimits,
    book: Arc<Mutex<Book>>,
}

struct Book {
    accounts: HashMap<Principal, Account>,
    /// When those who have nothing left were last looked for.
    swept: Instant,
}

#[derive(Default)]
struct Account {
    /// Runs that have not ended.
    live: usize,
    /// When runs of the last minute were asked for, the oldest first.
    recent: VecDeque<Instant>,
}

impl Account {
    fn forget_before_the_last_minute(&mut self, now: Instant) {
        while self.recent.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            self.recent.pop_front();
        }
    }

    fn is_idle(&self) -> bool {
        self.live == 0 && self.recent.is_empty()
    }
}

impl Quota {
    pub(super) fn new(limits: PrincipalLimits) -> Self {
        let book = Book { accounts: HashMap::new(), swept: Instant::now() };
        Self { limits, book: Arc::new(Mutex::new(book)) }
    }

    /// Takes one run of a principal's share.
    pub(super) fn admit(&self, principal: Option<&Principal>) -> Result<Option<Share>, StartError> {
        let Some(principal) = principal else { return Ok(None) };
        if self.limits == PrincipalLimits::default() {
            return Ok(None);
        }
        let now = Instant::now();
        let mut book = lock(&self.book);
        book.sweep(now);
        let account = book.accounts.entry(principal.clone()).or_default();
        account.forget_before_the_last_minute(now);
        if self.limits.concurrent.is_some_and(|most| account.live >= most) {
            return Err(StartError::TooManyRunsOfPrincipal);
        }
        if let Some(most) = self.limits.per_minute {
            // The place of the run that has to be a minute ago before there is room for another.
            if let Some(oldest) = account.recent.len().checked_sub(most).and_then(|place| account.recent.get(place)) {
                return Err(StartError::TooManyRunsPerMinute {
                    retry_after: MINUTE.saturating_sub(now.duration_since(*oldest)),
                });
            }
            account.recent.push_back(now);
        }
        account.live += 1;
        Ok(Some(Share { book: self.book.clone(), principal: principal.clone() }))
    }
}

impl Book {
    fn sweep(&mut self, now: Instant) {
        if now.duration_since(self.swept) < MINUTE {
            return;
        }
        self.swept = now;
        self.accounts.retain(|_, account| {
            account.forget_before_the_last_minute(now);
            !account.is_idle()
        });
        // What many have left is given back, too.
        self.accounts.shrink_to_fit();
    }
}

/// One run of a principal's share, until it is dropped.
pub(super) struct Share {
    book: Arc<Mutex<Book>>,
    principal: Principal,
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Share").field(&self.principal).finish()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut book = lock(&self.book);
        let Some(account) = book.accounts.get_mut(&self.principal) else { return };
        account.live = account.live.saturating_sub(1);
        if account.is_idle() {
            book.accounts.remove(&self.principal);
        }
    }
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn quota(concurrent: usize, per_minute: usize) -> Quota {
        let some = |most| (most > 0).then_some(most);
        Quota::new(PrincipalLimits { concurrent: some(concurrent), per_minute: some(per_minute) })
    }

    fn known(quota: &Quota) -> usize {
        lock(&quota.book).accounts.len()
    }

    fn is_full(quota: &Quota, principal: &Principal) -> bool {
        matches!(quota.admit(Some(principal)).unwrap_err(), StartError::TooManyRunsOfPrincipal)
    }

    #[tokio::test(start_paused = true)]
    async fn runs_at_a_time_are_counted_until_they_end() {
        let quota = quota(2, 0);
        let (ada, bob) = (Principal::new("key", "ada"), Principal::new("key", "bob"));
        let first = quota.admit(Some(&ada)).unwrap();
        let second = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada));
        let of_bob = quota.admit(Some(&bob)).unwrap();
        advance(Duration::from_secs(3600)).await;
        assert!(is_full(&quota, &ada));
        drop(first);
        let third = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada));
        drop((second, third, of_bob));
        assert_eq!(known(&quota), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn no_sixty_seconds_have_more_runs_than_may_be() {
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
    async fn who_is_refused_for_one_limit_does_not_use_up_the_other() {
        let quota = quota(1, 2);
        let ada = Principal::new("key", "ada");
        let first = quota.admit(Some(&ada)).unwrap();
        for _ in 0..5 {
            assert!(is_full(&quota, &ada));
        }
        drop(first);
        drop(quota.admit(Some(&ada)).unwrap());
        assert!(matches!(quota.admit(Some(&ada)).unwrap_err(), StartError::TooManyRunsPerMinute { .. }));
        advance(MINUTE).await;
        let held = quota.admit(Some(&ada)).unwrap();
        assert!(is_full(&quota, &ada), "a refusal held nothing");
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_left_is_forgotten() {
        let quota = quota(5, 5);
        for number in 0..1000 {
            quota.admit(Some(&Principal::new("key", &number.to_string()))).unwrap();
        }
        let ada = Principal::new("key", "ada");
        let held = quota.admit(Some(&ada)).unwrap();
        assert_eq!(known(&quota), 1001);
        advance(MINUTE).await;
        quota.admit(Some(&Principal::new("key", "bob"))).unwrap();
        assert_eq!(known(&quota), 2);
        assert!(held.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_in_particular_and_no_limits_are_not_counted() {
        let limited = quota(1, 1);
        for _ in 0..3 {
            assert!(limited.admit(None).unwrap().is_none());
            assert!(quota(0, 0).admit(Some(&Principal::new("key", "ada"))).unwrap().is_none());
        }
        assert_eq!(known(&limited), 0);
    }
}
