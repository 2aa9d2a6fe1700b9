//! A limit of what clients hold at the same time, such as followers: of each owner and in all.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::quota::PrincipalLimits;
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

impl OwnerLimit {
    /// Creates a limit of `max` in all, of which a principal has at most its `share_percent`.
    pub(crate) fn new(max: usize, limits: PrincipalLimits) -> Arc<Self> {
        Arc::new(Self { max, share: limits.share_of(max), counts: Mutex::default() })
    }

    /// Returns `None` if the server or the owner is at its limit. Without authentication all clients are one owner, which
    /// has no share.
    pub(crate) fn take(self: &Arc<Self>, owner: &Arc<str>) -> Option<OwnerPermit> {
        self.take_many(owner, 1)
    }

    /// As [`take`](Self::take), for several things, such as bytes.
    pub(crate) fn take_many(self: &Arc<Self>, owner: &Arc<str>, amount: usize) -> Option<OwnerPermit> {
        let share = self.share.filter(|_| **owner != *ThreadKey::ANONYMOUS);
        let mut counts = self.counts.lock();
        let of_owner = counts.of_owners.get(owner).copied().unwrap_or_default();
        if amount > self.max - counts.all || share.is_some_and(|share| of_owner + amount > share) {
            return None;
        }
        counts.all += amount;
        counts.of_owners.insert(owner.clone(), of_owner + amount);
        Some(OwnerPermit { limit: self.clone(), owner: owner.clone(), amount })
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

    fn limit(max: usize, share_percent: u8) -> Arc<OwnerLimit> {
        OwnerLimit::new(max, PrincipalLimits { share_percent, ..PrincipalLimits::default() })
    }

    #[test]
    fn an_owner_gets_its_share_and_a_dropped_permit_is_free_again() {
        let (limit, [ann, bob]) = (limit(5, 60), ["key:ann", "key:bob"].map(Arc::from));
        let of_ann = [(); 3].map(|()| limit.take(&ann).unwrap());
        assert!(limit.take(&ann).is_none(), "three of five");
        let of_bob = [(); 2].map(|()| limit.take(&bob).unwrap());
        assert!(limit.take(&bob).is_none(), "five in all");
        drop(of_ann);
        drop((limit.take(&bob).unwrap(), of_bob));
        assert!(limit.counts.lock().of_owners.is_empty() && limit.counts.lock().all == 0);
    }

    #[test]
    fn a_single_owner_gets_everything() {
        for (owner, share_percent) in [(ThreadKey::ANONYMOUS, 50), ("key:ann", 100)] {
            let (limit, owner) = (limit(2, share_percent), Arc::from(owner));
            let all = [limit.take(&owner), limit.take(&owner)];
            assert!(all.iter().all(Option::is_some) && limit.take(&owner).is_none());
        }
    }
}
