//! Places that several owners share, such as connections for reads.
//!
//! A request waits in the queue of its owner. A free place goes to the owner whose turn it is, one place a turn. An owner that
//! has its share of the places gets no further one, so that another owner finds a place however many requests the first one
//! has.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A number of places. The type `K` identifies an owner.
#[derive(Debug)]
pub(crate) struct FairShare<K: Hash + Eq + Clone> {
    queues: Mutex<Queues<K>>,
}

#[derive(Debug)]
struct Queues<K: Hash + Eq + Clone> {
    free: usize,
    owners: HashMap<K, OwnerQueue<K>>,
    /// The owners that wait for a place, in the order of their turns.
    turns: VecDeque<K>,
}

#[derive(Debug)]
struct OwnerQueue<K: Hash + Eq + Clone> {
    taken: usize,
    /// The largest number of places that it may have.
    share: usize,
    waiting: VecDeque<oneshot::Sender<SharedPlace<K>>>,
}

/// One of the places of a [`FairShare`].
#[must_use = "dropping a place gives it back"]
#[derive(Debug)]
pub(crate) struct SharedPlace<K: Hash + Eq + Clone> {
    /// `None` if the place was not received.
    places: Option<Arc<FairShare<K>>>,
    owner: K,
}

impl<K: Hash + Eq + Clone> FairShare<K> {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        let queues = Queues { free: places, owners: HashMap::new(), turns: VecDeque::new() };
        Arc::new(Self { queues: Mutex::new(queues) })
    }

    /// Waits for a place of this owner, which has at most `share` of them. Cancel-safe: a dropped future leaves the queue.
    pub(crate) async fn take(self: &Arc<Self>, owner: &K, share: usize) -> SharedPlace<K> {
        let (place, received) = oneshot::channel();
        {
            let mut queues = self.queues.lock();
            let new = || OwnerQueue { taken: 0, share, waiting: VecDeque::new() };
            let queue = queues.owners.entry(owner.clone()).or_insert_with(new);
            let is_first = queue.waiting.is_empty();
            queue.waiting.push_back(place);
            if is_first {
                queues.turns.push_back(owner.clone());
            }
            self.hand_out(&mut queues);
        }
        match received.await {
            Ok(place) => place,
            // Unreachable: a sender stays in its queue until it has sent.
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives free places to those who wait.
    fn hand_out(self: &Arc<Self>, queues: &mut Queues<K>) {
        let Queues { free, owners, turns } = queues;
        while *free > 0 {
            let has_turn = |owner: &K| owners.get(owner).is_some_and(|queue| queue.taken < queue.share);
            let Some(owner) = turns.iter().position(has_turn).and_then(|at| turns.remove(at)) else { return };
            let Some(queue) = owners.get_mut(&owner) else { continue };
            while let Some(waiting) = queue.waiting.pop_front() {
                let place = SharedPlace { places: Some(self.clone()), owner: owner.clone() };
                match waiting.send(place) {
                    Ok(()) => {
                        (*free, queue.taken) = (*free - 1, queue.taken + 1);
                        break;
                    }
                    // Its future was dropped. Dropping the place would lock the queues once more.
                    Err(mut place) => place.places = None,
                }
            }
            if !queue.waiting.is_empty() {
                turns.push_back(owner);
            } else if queue.taken == 0 {
                owners.remove(&owner);
            }
        }
    }
}

impl<K: Hash + Eq + Clone> Drop for SharedPlace<K> {
    fn drop(&mut self) {
        let Some(places) = self.places.take() else { return };
        let queues = &mut *places.queues.lock();
        queues.free += 1;
        if let Some(queue) = queues.owners.get_mut(&self.owner) {
            queue.taken -= 1;
            if queue.taken == 0 && queue.waiting.is_empty() {
                queues.owners.remove(&self.owner);
            }
        }
        places.hand_out(queues);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_owner_has_at_most_its_share_and_another_one_finds_a_place() {
        let places = FairShare::new(4);
        let of_ann = [places.take(&"ann", 2).await, places.take(&"ann", 2).await];
        let mut third = Box::pin(places.take(&"ann", 2));
        assert!((&mut third).now_or_never().is_none());
        let of_bob = places.take(&"bob", 2).now_or_never();
        assert!(of_bob.is_some());
        drop(of_ann);
        assert!(third.now_or_never().is_some());
    }

    #[tokio::test]
    async fn owners_take_turns_however_many_requests_one_of_them_has() {
        let places = FairShare::new(1);
        let first = places.take(&"ann", 1).await;
        let mut waiting: Vec<_> =
            [&"ann", &"ann", &"ann", &"bob", &"cat"].map(|owner| Box::pin(places.take(owner, 1))).into();
        for future in &mut waiting {
            assert!(future.now_or_never().is_none());
        }
        drop(first);
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let served = waiting.iter_mut().position(|future| match future.now_or_never() {
                Some(place) => {
                    order.push(place.owner);
                    true
                }
                None => false,
            });
            drop(waiting.remove(served.unwrap()));
        }
        assert_eq!(order, ["ann", "bob", "cat", "ann", "ann"]);
    }

    #[tokio::test]
    async fn a_dropped_request_leaves_its_queue_and_loses_no_place() {
        let places = FairShare::new(1);
        let first = places.take(&1, 1).await;
        let mut dropped_before = Box::pin(places.take(&1, 1));
        let mut dropped_after = Box::pin(places.take(&1, 1));
        let mut served = Box::pin(places.take(&1, 1));
        assert!((&mut dropped_before).now_or_never().is_none());
        assert!((&mut dropped_after).now_or_never().is_none());
        assert!((&mut served).now_or_never().is_none());
        drop(dropped_before);
        drop(first);
        // It has its place, and has not taken it.
        drop(dropped_after);
        drop(served.now_or_never().unwrap());
        assert!(places.queues.lock().owners.is_empty() && places.queues.lock().free == 1);
    }
}
