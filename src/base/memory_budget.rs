//! The memory that things of one kind may use together, such as the bodies of all requests while they arrive.
//!
//! A thing takes its room before its memory grows, and gives it back when it is dropped. There are two pools: one for the
//! first [`SMALL_BYTES`] of each, one for the rest of what is large. So large things, however many there are, leave room for
//! small ones. One principal gets at most half of each pool.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The part of a thing, in bytes, that comes from the pool of small ones.
pub(crate) const SMALL_BYTES: usize = 64 * 1024;
/// The longest time that something waits for room. The client of a body sends nothing more meanwhile.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);
/// The unit of the pools, in bytes.
const UNIT: usize = 1024;

/// `P` is a principal.
pub(crate) struct MemoryBudget<P> {
    small: Pool<P>,
    large: Pool<P>,
    /// Without shares, for servers with one principal.
    has_shares: bool,
}

/// A part of the budget.
#[must_use = "dropping it gives the memory back"]
pub(crate) struct Room {
    of_principal: Option<OwnedSemaphorePermit>,
    of_pool: OwnedSemaphorePermit,
}

impl Room {
    pub(crate) fn bytes(&self) -> usize {
        self.of_pool.num_permits() * UNIT
    }

    /// Gives back what exceeds this many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        for permit in self.of_principal.iter_mut().chain([&mut self.of_pool]) {
            drop(permit.split(permit.num_permits().saturating_sub(bytes.div_ceil(UNIT))));
        }
    }
}

/// No room became free within [`ROOM_TIMEOUT`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

impl<P: Clone + Eq + Hash> MemoryBudget<P> {
    /// A quarter of the bytes is for what is small. The rest holds at least two things of the largest size, so that the
    /// half of one principal holds one.
    pub(crate) fn new(bytes: usize, largest: usize, has_shares: bool) -> Self {
        let small = (bytes / 4).max(2 * SMALL_BYTES);
        let large = (bytes - bytes / 4).max(largest.div_ceil(UNIT).saturating_mul(2 * UNIT));
        Self { small: Pool::new(small), large: Pool::new(large), has_shares }
    }

    /// Returns the bytes that are taken.
    pub(crate) fn used_bytes(&self) -> usize {
        [&self.small, &self.large].iter().map(|pool| (pool.units - pool.free.available_permits()) * UNIT).sum()
    }

    /// Takes room for the first bytes of something, at most [`SMALL_BYTES`].
    pub(crate) async fn small(&self, principal: Option<&P>, bytes: usize) -> Result<Room, BudgetExhausted> {
        self.take(&self.small, principal, bytes).await
    }

    /// Takes room for something of a known size.
    pub(crate) async fn whole(&self, principal: Option<&P>, bytes: usize) -> Result<Room, BudgetExhausted> {
        let pool = if bytes <= SMALL_BYTES { &self.small } else { &self.large };
        self.take(pool, principal, bytes).await
    }

    /// Takes room for further bytes of something.
    pub(crate) async fn large(&self, principal: Option<&P>, bytes: usize) -> Result<Room, BudgetExhausted> {
        self.take(&self.large, principal, bytes).await
    }

    async fn take(&self, pool: &Pool<P>, principal: Option<&P>, bytes: usize) -> Result<Room, BudgetExhausted> {
        let principal = principal.filter(|_| self.has_shares);
        timeout(ROOM_TIMEOUT, pool.take(principal, bytes)).await.map_err(|_| BudgetExhausted)?
    }
}

struct Pool<P> {
    units: usize,
    free: Arc<Semaphore>,
    /// The free units of each principal that has room in this pool.
    shares: Mutex<HashMap<P, Weak<Semaphore>>>,
}

impl<P: Clone + Eq + Hash> Pool<P> {
    fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(2, Semaphore::MAX_PERMITS);
        Self { units, free: Arc::new(Semaphore::new(units)), shares: Mutex::default() }
    }

    /// The share comes first: a principal that waits for its own room keeps nothing from others.
    async fn take(&self, principal: Option<&P>, bytes: usize) -> Result<Room, BudgetExhausted> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| BudgetExhausted)?;
        let of_principal = match principal {
            Some(principal) => Some(acquire(self.share(principal), units).await?),
            None => None,
        };
        Ok(Room { of_principal, of_pool: acquire(self.free.clone(), units).await? })
    }

    fn share(&self, principal: &P) -> Arc<Semaphore> {
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

    fn budget() -> MemoryBudget<String> {
        MemoryBudget::new(8 * MEGABYTE, MEGABYTE, true)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_room_is_refused_after_five_seconds() {
        let budget = budget();
        let held = budget.large(None, 6 * MEGABYTE).await.unwrap();
        let started = tokio::time::Instant::now();
        assert_eq!(budget.large(None, 1).await.err(), Some(BudgetExhausted));
        assert_eq!(started.elapsed(), ROOM_TIMEOUT);
        // Small bodies have their own pool.
        let small = budget.small(None, SMALL_BYTES).await.unwrap();
        drop(held);
        drop(budget.large(None, 6 * MEGABYTE).await.unwrap());
        drop(small);
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_gets_half() {
        let budget = budget();
        let [ada, bob] = ["ada", "bob"].map(str::to_owned);
        let adas = budget.large(Some(&ada), 3 * MEGABYTE).await.unwrap();
        assert!(budget.large(Some(&ada), 1).await.is_err());
        let bobs = budget.large(Some(&bob), 3 * MEGABYTE).await.unwrap();
        drop(adas);
        drop(budget.large(Some(&ada), 3 * MEGABYTE).await.unwrap());
        drop(bobs);
        let alone = MemoryBudget::new(8 * MEGABYTE, MEGABYTE, false);
        drop(alone.large(Some(&ada), 6 * MEGABYTE).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn room_that_is_not_needed_is_given_back() {
        let (budget, ada) = (budget(), "ada".to_owned());
        let mut room = budget.large(Some(&ada), 3 * MEGABYTE).await.unwrap();
        room.shrink_to(MEGABYTE);
        assert_eq!(budget.used_bytes(), MEGABYTE);
        drop(budget.large(Some(&ada), 2 * MEGABYTE).await.unwrap());
        room.shrink_to(2 * MEGABYTE);
        assert_eq!(budget.used_bytes(), MEGABYTE);
    }

    #[tokio::test]
    async fn principals_without_room_are_forgotten() {
        let budget = budget();
        for number in 0..10_000 {
            drop(budget.large(Some(&number.to_string()), UNIT).await.unwrap());
        }
        assert!(budget.large.shares.lock().len() < 100);
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_body_has_room_in_a_small_budget() {
        let budget = MemoryBudget::new(0, MEGABYTE + 1, true);
        let ada = "ada".to_owned();
        drop(budget.small(Some(&ada), SMALL_BYTES).await.unwrap());
        drop(budget.large(Some(&ada), MEGABYTE + 1).await.unwrap());
    }
}
