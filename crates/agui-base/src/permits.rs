//! Permits: counted rights that owners share, such as rights to concurrent runs, to reads or to
//! bytes of memory.
//!
//! An owner has at most its share. A request that waits is in the queue of its owner, and a grant
//! serves one request of one owner, in the [`GrantOrder`]. So the number of one owner's requests
//! does not delay the others. An owner that has held fewer permits, or for a shorter time, is
//! first.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, error::Elapsed, timeout},
};

use super::grant_order::GrantOrder;

/// The owner of everything on a server without authentication. It may have all permits.
pub const ANONYMOUS: &str = "none";

/// Permits of one kind.
#[derive(Debug)]
pub struct Permits {
    max: usize,
    /// The most that one owner may have.
    share: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    free: usize,
    owners: HashMap<Arc<str>, OwnerCounts>,
    order: GrantOrder,
}

#[derive(Debug, Default)]
struct OwnerCounts {
    taken: usize,
    waiting: VecDeque<PermitRequest>,
    /// True while the owner is in the order, also after its requests were dropped.
    is_waiting: bool,
}

#[derive(Debug)]
struct PermitRequest {
    amount: usize,
    granted: oneshot::Sender<Permit>,
}

/// A right to an amount of what [`Permits`] count.
#[must_use = "dropping a permit gives it back"]
#[derive(Debug)]
pub struct Permit {
    permits: Arc<Permits>,
    owner: Arc<str>,
    amount: usize,
    since: Instant,
}

/// The limit that leaves no further permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    OfServer,
    OfOwner,
}

impl Permits {
    /// Creates `max` permits, of which an owner has at most `share`; with `None`, an owner may have
    /// all.
    pub fn new(max: usize, share: Option<usize>) -> Arc<Self> {
        let counts = Counts { free: max, owners: HashMap::new(), order: GrantOrder::default() };
        Arc::new(Self { max, share: share.unwrap_or(max), counts: Mutex::new(counts) })
    }

    /// Takes an amount if it is free now.
    pub fn try_take(
        self: &Arc<Self>,
        owner: &Arc<str>,
        amount: usize,
    ) -> Result<Permit, LimitReached> {
        self.grant(&mut self.counts.lock(), owner, amount)
    }

    /// Waits until an amount is free. It must not exceed the share. Cancel-safe: a dropped future
    /// leaves the queue.
    pub async fn take(self: &Arc<Self>, owner: &Arc<str>, amount: usize) -> Permit {
        let mut waiting = {
            let counts = &mut *self.counts.lock();
            if counts.order.is_empty()
                && let Ok(permit) = self.grant(counts, owner, amount)
            {
                return permit;
            }
            let (granted, received) = oneshot::channel();
            let of_owner = counts.owners.entry(owner.clone()).or_default();
            of_owner.waiting.push_back(PermitRequest { amount, granted });
            if !std::mem::replace(&mut of_owner.is_waiting, true) {
                counts.order.add(owner.clone());
            }
            self.hand_out(counts);
            WaitingRequest { permits: self, received }
        };
        match (&mut waiting.received).await {
            Ok(permit) => permit,
            // Unreachable: a sender is in its queue until it has sent.
            Err(_) => std::future::pending().await,
        }
    }

    /// Does the same as [`take`](Self::take), within a time limit.
    pub(crate) async fn take_within(
        self: &Arc<Self>,
        limit: Duration,
        owner: &Arc<str>,
        amount: usize,
    ) -> Result<Permit, Elapsed> {
        timeout(limit, self.take(owner, amount)).await
    }

    /// Returns the error that [`try_take`](Self::try_take) would return now for an amount of one.
    pub fn check(&self, owner: &str) -> Result<(), LimitReached> {
        self.fits(&self.counts.lock(), owner, 1)
    }

    /// Returns the amount that is taken.
    pub fn taken(&self) -> usize {
        self.max - self.counts.lock().free
    }

    fn share_of(&self, owner: &str) -> usize {
        if owner == ANONYMOUS { self.max } else { self.share }
    }

    fn fits(&self, counts: &Counts, owner: &str, amount: usize) -> Result<(), LimitReached> {
        if amount > counts.free {
            return Err(LimitReached::OfServer);
        }
        let taken = || counts.owners.get(owner).map_or(0, |of_owner| of_owner.taken);
        let share = self.share_of(owner);
        if share < self.max && taken() + amount > share {
            Err(LimitReached::OfOwner)
        } else {
            Ok(())
        }
    }

    fn grant(
        self: &Arc<Self>,
        counts: &mut Counts,
        owner: &Arc<str>,
        amount: usize,
    ) -> Result<Permit, LimitReached> {
        self.fits(counts, owner, amount)?;
        if amount > 0 {
            counts.free -= amount;
            counts.owners.entry(owner.clone()).or_default().taken += amount;
        }
        Ok(self.permit(owner.clone(), amount))
    }

    fn permit(self: &Arc<Self>, owner: Arc<str>, amount: usize) -> Permit {
        Permit { permits: self.clone(), owner, amount, since: Instant::now() }
    }

    /// Grants free permits to waiting owners. An amount that is not free yet stops all later
    /// grants, because small amounts would pass it forever.
    fn hand_out(self: &Arc<Self>, counts: &mut Counts) {
        let Counts { free, owners, order } = counts;
        loop {
            let next = order.next(|owner| {
                owners.get_mut(owner).is_none_or(|of_owner| {
                    while of_owner
                        .waiting
                        .pop_front_if(|request| request.granted.is_closed())
                        .is_some()
                    {}
                    of_owner.taken.saturating_add(of_owner.next_amount()) <= self.share_of(owner)
                })
            });
            let Some((at, owner)) = next else { return };
            let Some(of_owner) = owners.get_mut(&owner) else {
                order.take(at);
                continue;
            };
            let amount = of_owner.next_amount();
            if amount > *free {
                return;
            }
            order.take(at);
            if let Some(request) = of_owner.waiting.pop_front() {
                match request.granted.send(self.permit(owner.clone(), amount)) {
                    Ok(()) => (*free, of_owner.taken) = (*free - amount, of_owner.taken + amount),
                    // Its future was dropped just now. Giving the amount back would lock the counts
                    // again.
                    Err(mut permit) => permit.amount = 0,
                }
            }
            of_owner.is_waiting = !of_owner.waiting.is_empty();
            if of_owner.is_waiting {
                order.add(owner);
            } else if of_owner.taken == 0 {
                owners.remove(&owner);
            }
        }
    }
}

impl OwnerCounts {
    /// Returns the amount of the owner's next request, or 0 if it has none.
    fn next_amount(&self) -> usize {
        self.waiting.front().map_or(0, |request| request.amount)
    }
}

impl Permit {
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Gives back the permits above this amount.
    pub fn shrink_to(&mut self, amount: usize) {
        let more = self.amount.saturating_sub(amount);
        if more == 0 {
            return;
        }
        self.amount -= more;
        let counts = &mut *self.permits.counts.lock();
        counts.free += more;
        let micros = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        counts.order.charge(&self.owner, micros.saturating_mul(more as u64));
        if let Entry::Occupied(mut of_owner) = counts.owners.entry(self.owner.clone()) {
            of_owner.get_mut().taken -= more;
            if of_owner.get().taken == 0 && !of_owner.get().is_waiting {
                of_owner.remove();
            }
        }
        self.permits.hand_out(counts);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// Leaves the queue when it is dropped.
struct WaitingRequest<'a> {
    permits: &'a Arc<Permits>,
    received: oneshot::Receiver<Permit>,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if self.received.is_terminated() {
            return;
        }
        self.received.close();
        // The permit may have been sent, but not received.
        drop(self.received.try_recv());
        // Smaller amounts may have waited for this one.
        self.permits.hand_out(&mut self.permits.counts.lock());
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn owners<const N: usize>(names: [&str; N]) -> [Arc<str>; N] {
        names.map(Arc::from)
    }

    fn is_unused(permits: &Permits) -> bool {
        let counts = permits.counts.lock();
        counts.owners.is_empty() && counts.order.is_empty() && counts.free == permits.max
    }

    #[test]
    fn an_owner_that_asks_and_leaves_again_and_again_waits_once() {
        let (permits, [ann, bob, cat]) =
            (Permits::new(1, None), owners(["key:ann", "key:bob", "key:cat"]));
        let held = permits.try_take(&cat, 1).unwrap();
        permits.counts.lock().order.charge(&ann, 100);
        let mut of_bob = Box::pin(permits.take(&bob, 1));
        assert!(of_bob.as_mut().now_or_never().is_none());
        for _ in 0..10 {
            assert!(permits.take(&ann, 1).now_or_never().is_none());
        }
        assert_eq!(permits.counts.lock().order.len(), 2);
        drop(held);
        drop(of_bob.as_mut().now_or_never().unwrap());
        assert!(is_unused(&permits));
    }

    #[test]
    fn an_owner_gets_its_share_and_a_dropped_permit_is_free_again() {
        let (permits, [ann, bob]) = (Permits::new(5, Some(3)), owners(["key:ann", "key:bob"]));
        let of_ann = [(); 3].map(|()| permits.try_take(&ann, 1).unwrap());
        assert_eq!(permits.try_take(&ann, 1).unwrap_err(), LimitReached::OfOwner, "three of five");
        assert_eq!(permits.check(&bob), Ok(()));
        let of_bob = permits.try_take(&bob, 2).unwrap();
        assert_eq!(permits.try_take(&bob, 1).unwrap_err(), LimitReached::OfServer, "five in all");
        assert_eq!(permits.check(&bob), Err(LimitReached::OfServer));
        drop(of_ann);
        drop((permits.try_take(&bob, 1).unwrap(), of_bob, permits.try_take(&bob, 0).unwrap()));
        assert!(is_unused(&permits));
    }

    #[test]
    fn a_single_owner_gets_everything() {
        for (owner, share) in [(ANONYMOUS, Some(1)), ("key:ann", None)] {
            let (permits, owner) = (Permits::new(2, share), Arc::from(owner));
            let all = [permits.try_take(&owner, 1), permits.try_take(&owner, 1)];
            assert!(
                all.iter().all(Result::is_ok)
                    && permits.try_take(&owner, 1).is_err()
                    && permits.taken() == 2
            );
        }
    }

    #[tokio::test]
    async fn an_owner_waits_for_its_own_permits_while_another_one_finds_some() {
        let (permits, [ann, bob]) = (Permits::new(4, Some(2)), owners(["ann", "bob"]));
        let of_ann = [permits.take(&ann, 1).await, permits.take(&ann, 1).await];
        let mut third = Box::pin(permits.take(&ann, 1));
        assert!((&mut third).now_or_never().is_none());
        let of_bob = permits.take(&bob, 1).now_or_never();
        assert!(of_bob.is_some());
        drop(of_ann);
        assert!(third.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_owner_with_many_requests_delays_no_other_owner() {
        let permits = Permits::new(1, None);
        let first = permits.take(&"ann".into(), 1).await;
        let served = Mutex::new(Vec::new());
        let waiting = ["ann", "ann", "ann", "bob", "cat"].map(async |owner| {
            let permit = permits.take(&owner.into(), 1).await;
            served.lock().push(owner);
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(permit);
        });
        let release = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(first);
        };
        futures::future::join(futures::future::join_all(waiting), release).await;
        assert_eq!(*served.lock(), ["bob", "cat", "ann", "ann", "ann"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_comes_now_and_then_does_not_wait_for_a_round_of_all_others() {
        let permits = Permits::new(2, Some(1));
        let take = async |owner: &str, millis: u64| {
            let permit = permits.take(&owner.into(), 1).await;
            tokio::time::sleep(Duration::from_millis(millis)).await;
            drop(permit);
        };
        // Each of 48 clients is one of 199 principals after the other.
        let busy = (0..48).map(async |client| {
            for number in 0.. {
                take(&format!("{}", (client + 48 * number) % 199), 250).await;
            }
        });
        take("bob", 1).await;
        let now_and_then = async {
            let mut longest = Duration::ZERO;
            // The first round of all takes 25 seconds.
            for seconds in [1, 2, 3, 5, 20, 60] {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let asked_at = tokio::time::Instant::now();
                take("bob", 1).await;
                longest = longest.max(asked_at.elapsed());
            }
            longest
        };
        tokio::select! {
            _ = futures::future::join_all(busy) => unreachable!(),
            longest = now_and_then => assert!(longest <= Duration::from_millis(501), "{longest:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_amount_is_not_passed_by_newcomers_forever() {
        let permits = Permits::new(4, None);
        let [large, small]: [Arc<str>; 2] = owners(["large", "small"]);
        let held = permits.take(&small, 4).await;
        let mut earlier = Box::pin(permits.take(&large, 1));
        assert!((&mut earlier).now_or_never().is_none());
        drop(held);
        drop(earlier.await);
        let newcomers = async {
            for number in 0.. {
                let permit = permits.take(&number.to_string().into(), 1).await;
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    drop(permit);
                });
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let waiting = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            permits.take(&large, 4).await
        };
        let limit = timeout(Duration::from_secs(10), async {
            tokio::select! { () = newcomers => None, permit = waiting => Some(permit) }
        });
        assert!(limit.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_dropped_request_leaves_its_queue_and_loses_no_permit() {
        let (permits, [ann]) = (Permits::new(1, None), owners(["ann"]));
        let first = permits.take(&ann, 1).await;
        let mut dropped_before = Box::pin(permits.take(&ann, 1));
        let mut dropped_after = Box::pin(permits.take(&ann, 1));
        let mut served = Box::pin(permits.take(&ann, 1));
        assert!((&mut dropped_before).now_or_never().is_none());
        assert!((&mut dropped_after).now_or_never().is_none());
        assert!((&mut served).now_or_never().is_none());
        drop(dropped_before);
        drop(first);
        // It was granted its permit, and has not received it.
        drop(dropped_after);
        drop(served.now_or_never().unwrap());
        assert!(is_unused(&permits));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_amount_is_not_passed_by_small_ones_until_its_time_is_over() {
        let (permits, [ann, bob, cat]) = (Permits::new(4, None), owners(["ann", "bob", "cat"]));
        let held = permits.take(&ann, 2).await;
        let limit = Duration::from_secs(5);
        let large = permits.take_within(limit, &cat, 3);
        let small = async {
            let started = tokio::time::Instant::now();
            drop(permits.take(&bob, 1).await);
            started.elapsed()
        };
        let (large, waited) = tokio::join!(large, small);
        assert!(large.is_err() && waited == limit);
        drop(held);
        drop(permits.take_within(limit, &cat, 3).await.unwrap());
        assert!(is_unused(&permits));
    }

    #[tokio::test]
    async fn what_exceeds_a_smaller_amount_is_given_back() {
        let (permits, [ann]) = (Permits::new(4, Some(3)), owners(["ann"]));
        let mut permit = permits.take(&ann, 3).await;
        let mut next = Box::pin(permits.take(&ann, 2));
        assert!((&mut next).now_or_never().is_none());
        permit.shrink_to(1);
        assert!(next.now_or_never().is_some());
        permit.shrink_to(2);
        assert_eq!((permit.amount(), permits.taken()), (1, 1));
    }
}
