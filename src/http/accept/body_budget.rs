//! The memory that the request bodies of all connections may use together while they arrive.
//!
//! A body takes its part before its buffer grows, and gives it back when its last byte is dropped. There are two pools:
//! one for the first [`SMALL_BODY_BYTES`] of each body, one for the rest of large bodies. So large bodies, however many
//! arrive, leave room for small ones. One principal gets at most half of each pool.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::auth::Principal;

/// The part of a body, in bytes, that comes from the pool of small bodies.
pub(crate) const SMALL_BODY_BYTES: usize = 64 * 1024;
/// The longest time that a body waits for room. Its client sends nothing more meanwhile.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);
/// The unit of the pools, in bytes.
const UNIT: usize = 1024;

pub(crate) struct BodyBudget {
    small: Pool,
    large: Pool,
    /// Without shares, for servers with one principal.
    has_shares: bool,
}

/// A part of the budget.
#[must_use = "dropping it gives the memory back"]
pub(crate) struct Room {
    _of_principal: Option<OwnedSemaphorePermit>,
    _of_pool: OwnedSemaphorePermit,
}

/// No room became free within [`ROOM_TIMEOUT`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

impl BodyBudget {
    /// A quarter of the bytes is for small bodies. The rest holds at least two bodies of the largest size, so that the
    /// half of one principal holds one.
    pub(crate) fn new(bytes: usize, max_body_bytes: usize, has_shares: bool) -> Self {
        let small = (bytes / 4).max(2 * SMALL_BODY_BYTES);
        let large = (bytes - bytes / 4).max(max_body_bytes.saturating_mul(2));
        Self { small: Pool::new(small), large: Pool::new(large), has_shares }
    }

    /// Returns the bytes that are taken.
    pub(crate) fn used_bytes(&self) -> usize {
        [&self.small, &self.large].iter().map(|pool| (pool.units - pool.free.available_permits()) * UNIT).sum()
    }

    /// Takes room for the first bytes of a body, at most [`SMALL_BODY_BYTES`].
    pub(crate) async fn small(&self, principal: Option<&Principal>, bytes: usize) -> Result<Room, BudgetExhausted> {
        self.take(&self.small, principal, bytes).await
    }

    /// Takes room for a body of a known size.
    pub(crate) async fn whole(&self, principal: Option<&Principal>, bytes: usize) -> Result<Room, BudgetExhausted> {
        let pool = if bytes <= SMALL_BODY_BYTES { &self.small } else { &self.large };
        self.take(pool, principal, bytes).await
    }

    /// Takes room for further bytes of a body.
    pub(crate) async fn large(&self, principal: Option<&Principal>, bytes: usize) -> Result<Room, BudgetExhausted> {
        self.take(&self.large, principal, bytes).await
    }

    async fn take(&self, pool: &Pool, principal: Option<&Principal>, bytes: usize) -> Result<Room, BudgetExhausted> {
        let principal = principal.filter(|_| self.has_shares);
        timeout(ROOM_TIMEOUT, pool.take(principal, bytes)).await.map_err(|_| BudgetExhausted)?
    }
}

struct Pool {
    units: usize,
    free: Arc<Semaphore>,
    /// The free units of each principal that has a body in this pool.
    shares: Mutex<HashMap<Principal, Weak<Semaphore>>>,
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(2, Semaphore::MAX_PERMITS);
        Self { units, free: Arc::new(Semaphore::new(units)), shares: Mutex::default() }
    }

    /// The share comes first: a principal that waits for its own bodies keeps nothing from others.
    async fn take(&self, principal: Option<&Principal>, bytes: usize) -> Result<Room, BudgetExhausted> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| BudgetExhausted)?;
        let of_principal = match principal {
            Some(principal) => Some(acquire(self.share(principal), units).await?),
            None => None,
        };
        Ok(Room { _of_principal: of_principal, _of_pool: acquire(self.free.clone(), units).await? })
    }

    fn share(&self, principal: &Principal) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(principal).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() == shares.capacity() {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.units / 2));
        shares.insert(principal.clone(), Arc::downgrade(&share));
        share
    }
}

async fn acquire(semaphore: Arc<Semaphore>, units: u32) -> Result<OwnedSemaphorePermit, BudgetExhausted> {
    // The semaphores are never closed.
    semaphore.acquire_many_owned(units).await.map_err(|_| BudgetExhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: usize = 1024 * 1024;

    fn budget() -> BodyBudget {
        BodyBudget::new(8 * MEGABYTE, MEGABYTE, true)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_room_is_refused_after_five_seconds() {
        let budget = budget();
        let held = budget.large(None, 6 * MEGABYTE).await.unwrap();
        let started = tokio::time::Instant::now();
        assert_eq!(budget.large(None, 1).await.err(), Some(BudgetExhausted));
        assert_eq!(started.elapsed(), ROOM_TIMEOUT);
        // Small bodies have their own pool.
        let small = budget.small(None, SMALL_BODY_BYTES).await.unwrap();
        drop(held);
        drop(budget.large(None, 6 * MEGABYTE).await.unwrap());
        drop(small);
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_gets_half() {
        let budget = budget();
        let (ada, bob) = (Principal::new("key", "ada"), Principal::new("key", "bob"));
        let adas = budget.large(Some(&ada), 3 * MEGABYTE).await.unwrap();
        assert!(budget.large(Some(&ada), 1).await.is_err());
        let bobs = budget.large(Some(&bob), 3 * MEGABYTE).await.unwrap();
        drop(adas);
        drop(budget.large(Some(&ada), 3 * MEGABYTE).await.unwrap());
        drop(bobs);
        let alone = BodyBudget::new(8 * MEGABYTE, MEGABYTE, false);
        drop(alone.large(Some(&ada), 6 * MEGABYTE).await.unwrap());
    }

    #[tokio::test]
    async fn principals_without_bodies_are_forgotten() {
        let budget = budget();
        for number in 0..10_000 {
            drop(budget.large(Some(&Principal::new("key", &number.to_string())), UNIT).await.unwrap());
        }
        assert!(budget.large.shares.lock().len() < 100);
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_body_has_room_in_a_small_budget() {
        let budget = BodyBudget::new(0, MEGABYTE, true);
        let ada = Principal::new("key", "ada");
        drop(budget.small(Some(&ada), SMALL_BODY_BYTES).await.unwrap());
        drop(budget.large(Some(&ada), MEGABYTE).await.unwrap());
    }
}
