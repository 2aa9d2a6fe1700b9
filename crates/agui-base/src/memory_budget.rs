//! A limit on the memory of all things of one kind, such as the bodies of requests while they
//! arrive.
//!
//! A thing takes a permit before its memory grows, and gives it back when it is dropped. There are
//! two pools: one for the first [`SMALL_BYTES`] of each thing, one for the rest of a large thing.
//! So large things always leave memory for small ones. One owner gets at most half of each pool.

use std::{sync::Arc, time::Duration};

use tokio::time::error::Elapsed;

use super::permits::{Permit, Permits};

/// The bytes of a thing that come from the pool of small ones.
pub const SMALL_BYTES: usize = 64 * 1024;
/// Time limit on a wait for memory. The client of a body sends nothing more meanwhile.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);

/// Permits for bytes.
pub struct MemoryBudget {
    small: Arc<Permits>,
    large: Arc<Permits>,
    pub largest: usize,
}

/// Says who uses a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// The server has one principal, which may use everything.
    SingleOwner,
    /// An owner may use at most half of each pool.
    PerOwner,
}

impl MemoryBudget {
    /// A quarter of the bytes is the pool of small things. The rest holds at least two things of
    /// the largest size, so that the half of one owner holds one.
    pub fn new(bytes: usize, largest: usize, sharing: Sharing) -> Self {
        let is_shared = sharing == Sharing::PerOwner;
        let pool = |bytes: usize| Permits::new(bytes, is_shared.then_some(bytes / 2));
        let small = pool((bytes / 4).max(2 * SMALL_BYTES));
        Self { small, large: pool((bytes - bytes / 4).max(largest.saturating_mul(2))), largest }
    }

    /// Returns the bytes that are taken.
    pub fn used_bytes(&self) -> usize {
        self.small.taken() + self.large.taken()
    }

    /// Waits for a permit for the first bytes of something, at most [`SMALL_BYTES`].
    pub async fn small(&self, owner: &Arc<str>, bytes: usize) -> Result<Permit, Elapsed> {
        self.small.take_within(MEMORY_TIMEOUT, owner, bytes).await
    }

    /// Waits for a permit for something of a known size. A size above `largest` takes `largest`
    /// bytes.
    pub async fn whole(&self, owner: &Arc<str>, bytes: u64) -> Result<Permit, Elapsed> {
        let bytes = usize::try_from(bytes).map_or(self.largest, |bytes| bytes.min(self.largest));
        let pool = if bytes <= SMALL_BYTES { &self.small } else { &self.large };
        pool.take_within(MEMORY_TIMEOUT, owner, bytes).await
    }

    /// Waits for a permit for further bytes of something.
    pub async fn large(&self, owner: &Arc<str>, bytes: usize) -> Result<Permit, Elapsed> {
        self.large.take_within(MEMORY_TIMEOUT, owner, bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permits::ANONYMOUS;

    const MEGABYTE: usize = 1024 * 1024;

    fn budget() -> MemoryBudget {
        MemoryBudget::new(8 * MEGABYTE, MEGABYTE, Sharing::PerOwner)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_a_permit_is_refused_after_five_seconds() {
        let (budget, anyone) = (budget(), Arc::from(ANONYMOUS));
        let held = budget.large(&anyone, 6 * MEGABYTE).await.unwrap();
        let started = tokio::time::Instant::now();
        assert!(budget.large(&anyone, 1).await.is_err());
        assert_eq!(started.elapsed(), MEMORY_TIMEOUT);
        // Small bodies have their own pool.
        let small = budget.small(&anyone, SMALL_BYTES).await.unwrap();
        drop(held);
        drop(budget.large(&anyone, 6 * MEGABYTE).await.unwrap());
        drop(small);
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_gets_half() {
        let budget = budget();
        let [ada, bob] = ["key:ada", "key:bob"].map(Arc::from);
        let adas = budget.large(&ada, 3 * MEGABYTE).await.unwrap();
        assert!(budget.large(&ada, 1).await.is_err());
        let bobs = budget.large(&bob, 3 * MEGABYTE).await.unwrap();
        assert_eq!(budget.used_bytes(), 6 * MEGABYTE);
        drop(adas);
        drop(budget.large(&ada, 3 * MEGABYTE).await.unwrap());
        drop(bobs);
        let alone = MemoryBudget::new(8 * MEGABYTE, MEGABYTE, Sharing::SingleOwner);
        drop(alone.large(&ada, 6 * MEGABYTE).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_body_fits_into_a_small_budget() {
        let budget = MemoryBudget::new(0, MEGABYTE + 1, Sharing::PerOwner);
        let ada = Arc::from("key:ada");
        drop(budget.small(&ada, SMALL_BYTES).await.unwrap());
        drop(budget.large(&ada, MEGABYTE + 1).await.unwrap());
    }
}
