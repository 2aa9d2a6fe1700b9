//! Distributes events of owners to the readers of this process. Readers of one owner cost the others nothing.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};

/// Distributes events to the readers of their owner. A slow reader may be `MAX_BEHIND` events behind; then it loses the
/// oldest ones. Costs one atomic read an event while there are no readers.
#[derive(Debug)]
pub struct OwnerHub<T, const MAX_BEHIND: usize> {
    readers: AtomicUsize,
    state: Mutex<HubState<T>>,
}

#[derive(Debug)]
struct HubState<T> {
    senders: HashMap<Arc<str>, broadcast::Sender<T>>,
    is_closed: bool,
}

/// Reads the events of one owner.
#[derive(Debug)]
pub struct OwnerEvents<T: Clone, const MAX_BEHIND: usize> {
    hub: Arc<OwnerHub<T, MAX_BEHIND>>,
    owner: Arc<str>,
    /// `None` while it is dropped.
    events: Option<broadcast::Receiver<T>>,
}

impl<T, const MAX_BEHIND: usize> Default for OwnerHub<T, MAX_BEHIND> {
    fn default() -> Self {
        let state = HubState { senders: HashMap::new(), is_closed: false };
        Self { readers: AtomicUsize::new(0), state: Mutex::new(state) }
    }
}

impl<T: Clone, const MAX_BEHIND: usize> OwnerHub<T, MAX_BEHIND> {
    /// Reads an owner's events from now on. Returns `None` after [`close`](Self::close).
    pub fn subscribe(self: &Arc<Self>, owner: Arc<str>) -> Option<OwnerEvents<T, MAX_BEHIND>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return None;
        }
        let sender = state
            .senders
            .entry(owner.clone())
            .or_insert_with(|| broadcast::Sender::new(MAX_BEHIND));
        let events = sender.subscribe();
        self.readers.fetch_add(1, Ordering::Relaxed);
        Some(OwnerEvents { hub: self.clone(), owner, events: Some(events) })
    }

    /// Returns the sender to an owner's readers; `None` if the owner has no readers.
    pub fn sender(&self, owner: &str) -> Option<broadcast::Sender<T>> {
        if self.readers() == 0 {
            return None;
        }
        self.state.lock().senders.get(owner).cloned()
    }

    /// Returns whether an owner has readers. Called before each event of a run.
    #[inline]
    pub(crate) fn has_readers<'o>(&self, owner: impl FnOnce() -> &'o str) -> bool {
        self.readers() > 0 && self.state.lock().senders.contains_key(owner())
    }

    pub fn send(&self, owner: &str, event: T) {
        if let Some(sender) = self.sender(owner) {
            // Fails if the last reader is being dropped.
            let _ = sender.send(event);
        }
    }

    pub(crate) fn send_to_all(&self, event: &T) {
        for sender in self.state.lock().senders.values() {
            let _ = sender.send(event.clone());
        }
    }

    /// Returns the number of readers of all owners.
    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }

    /// Ends all streams of events, at shutdown.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.senders.clear();
    }
}

impl<T: Clone, const MAX_BEHIND: usize> OwnerEvents<T, MAX_BEHIND> {
    /// Waits for the next event. Cancel-safe.
    pub async fn next(&mut self) -> Result<T, RecvError> {
        match &mut self.events {
            Some(events) => events.recv().await,
            None => Err(RecvError::Closed),
        }
    }
}

impl<T: Clone, const MAX_BEHIND: usize> Drop for OwnerEvents<T, MAX_BEHIND> {
    fn drop(&mut self) {
        let mut state = self.hub.state.lock();
        // Under the lock, so that of two last readers one sees that it is the last.
        drop(self.events.take());
        self.hub.readers.fetch_sub(1, Ordering::Relaxed);
        if state.senders.get(&self.owner).is_some_and(|sender| sender.receiver_count() == 0) {
            state.senders.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readers_get_the_events_of_their_owner_until_the_hub_closes() {
        let hub = Arc::new(OwnerHub::<_, 4>::default());
        let (mut one, mut two) =
            (hub.subscribe("ann".into()).unwrap(), hub.subscribe("ann".into()).unwrap());
        let mut other = hub.subscribe("bob".into()).unwrap();
        hub.send("ann", 1);
        assert_eq!((one.next().await, two.next().await), (Ok(1), Ok(1)));
        for number in 0..5 {
            hub.send("bob", number);
        }
        assert_eq!(
            (other.next().await, other.next().await),
            (Err(RecvError::Lagged(1)), Ok(1)),
            "a slow reader"
        );
        hub.send_to_all(&7);
        assert_eq!(two.next().await, Ok(7));
        drop((one, other));
        assert!(hub.sender("bob").is_none() && hub.sender("ann").is_some() && hub.readers() == 1);
        hub.close();
        assert_eq!(two.next().await, Err(RecvError::Closed));
        assert!(hub.subscribe("ann".into()).is_none());
    }

    #[test]
    fn readers_that_leave_at_the_same_time_leave_no_entry() {
        let hub = Arc::new(OwnerHub::<(), 1>::default());
        for _ in 0..500 {
            let readers = [(); 2].map(|()| hub.subscribe("ann".into()).unwrap());
            let both = &std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for reader in readers {
                    scope.spawn(move || {
                        both.wait();
                        drop(reader);
                    });
                }
            });
            assert!(hub.state.lock().senders.is_empty());
        }
    }
}
