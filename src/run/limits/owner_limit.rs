//! A limit of what clients hold at the same time, such as followers: of each owner and in all.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::store::ThreadKey;

/// A limit of what clients hold at the same time, of each owner and in all.
#[derive(Debug)]
pub(crate) struct OwnerLimit {
    max: usize,
    /// The share of a principal; `None` if it is not limited.
    share: Option<usize>,
    counts: Mutex<PermitCounts>,
}

#[derive(Debug, Default)]
struct PermitCounts {
    all: usize,
    of_owners: HashMap<Arc<str>, usize>,
}

/// The right to some of the things that an [`OwnerLimit`] counts.
#[must_use = "dropping a permit gives it back"]
#[derive(Debug)]
pub(crate) struct OwnerPermit {
    limit: Arc<OwnerLimit>,
    owner: Arc<str>,
    amount: usize,
}

/// The limit that leaves no room for another permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    OfServer,
    OfOwner,
}

impl OwnerLimit {
    /// Creates a limit of `max` in all, of which an owner has at most `share`.
    pub(crate) fn new(max: usize, share: Option<usize>) -> Arc<Self> {
        Arc::new(Self { max, share, counts: Mutex::default() })
    }

    /// Takes one. Without authentication all clients are one owner, which has no share.
    pub(crate) fn take(self: &Arc<Self>, owner: &Arc<str>) -> Result<OwnerPermit, LimitReached> {
        self.take_many(owner, 1)
    }

    /// As [`take`](Self::take), for several things, such as bytes.
    pub(crate) fn take_many(self: &Arc<Self>, owner: &Arc<str>, amount: usize) -> Result<OwnerPermit, LimitReached> {
        let mut counts = self.counts.lock();
        let of_owner = self.with_more(&counts, owner, amount)?;
        counts.all += amount;
        counts.of_owners.insert(owner.clone(), of_owner);
        Ok(OwnerPermit { limit: self.clone(), owner: owner.clone(), amount })
    }

    /// Returns the error that [`take`](Self::take) would return now.
    pub(crate) fn check(&self, owner: &str) -> Result<(), LimitReached> {
        self.with_more(&self.counts.lock(), owner, 1).map(drop)
    }

    /// Returns the number of things that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.counts.lock().all
    }

    /// Returns what the owner would have with so many more.
    fn with_more(&self, counts: &PermitCounts, owner: &str, amount: usize) -> Result<usize, LimitReached> {
        if amount > self.max - counts.all {
            return Err(LimitReached::OfServer);
        }
        let of_owner = counts.of_owners.get(owner).copied().unwrap_or_default() + amount;
        let share = self.share.filter(|_| *owner != *ThreadKey::ANONYMOUS);
        if share.is_some_and(|share| of_owner > share) { Err(LimitReached::OfOwner) } else { Ok(of_owner) }
    }
}

impl Drop for OwnerPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.counts.lock();
        counts.all -= self.amount;
        if let Some(of_owner) = counts.of_owners.get_mut(&self.owner) {
            *of_owner -= self.amount;
            if *of_owner == 0 {
                counts.of_owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_gets_its_share_and_a_dropped_permit_is_free_again() {
        let (limit, [ann, bob]) = (OwnerLimit::new(5, Some(3)), ["key:ann", "key:bob"].map(Arc::from));
        let of_ann = [(); 3].map(|()| limit.take(&ann).unwrap());
        assert_eq!(limit.take(&ann).unwrap_err(), LimitReached::OfOwner, "three of five");
        assert_eq!(limit.check(&bob), Ok(()));
        let of_bob = [(); 2].map(|()| limit.take(&bob).unwrap());
        assert_eq!(limit.take(&bob).unwrap_err(), LimitReached::OfServer, "five in all");
        assert_eq!(limit.check(&bob), Err(LimitReached::OfServer));
        drop(of_ann);
        drop((limit.take(&bob).unwrap(), of_bob));
        assert!(limit.counts.lock().of_owners.is_empty() && limit.counts.lock().all == 0);
    }

    #[test]
    fn a_single_owner_gets_everything() {
        for (owner, share) in [(ThreadKey::ANONYMOUS, Some(1)), ("key:ann", None)] {
            let (limit, owner) = (OwnerLimit::new(2, share), Arc::from(owner));
            let all = [limit.take(&owner), limit.take(&owner)];
            assert!(all.iter().all(Result::is_ok) && limit.take(&owner).is_err() && limit.taken() == 2);
        }
    }
}
