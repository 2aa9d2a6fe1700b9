//! One run at a time on a thread, in the order they came.
//!
//! This is the queue within one process. Between processes the thread's lease in the store decides; the run whose turn
//! it is here asks for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{active::ActiveRun, phase::Phase};
use crate::{protocol::RunId, store::ThreadKey};

/// The runs of this process by thread: one whose turn it is, and those that wait.
#[derive(Debug, Default)]
pub(super) struct ThreadQueue(Mutex<HashMap<ThreadKey, Vec<Arc<Place>>>>);

/// A run's place in the queue of its thread. The first one has the turn.
#[derive(Debug)]
struct Place {
    run_id: RunId,
    phase: Phase,
    active: Mutex<Option<Arc<ActiveRun>>>,
}

const HAS_TURN: u8 = 1;
const CANCELLED: u8 = 2;

/// Why a run gets no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EnterError {
    /// The same run has a place already.
    Twice,
    /// The queue is full.
    Full,
}

/// A place, from the queue to the run's end. Dropping it gives the turn to the next run.
#[derive(Debug)]
pub(super) struct TurnGuard {
    queue: Arc<ThreadQueue>,
    key: ThreadKey,
    place: Arc<Place>,
}

impl ThreadQueue {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadKey, Vec<Arc<Place>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a run into the queue of a thread, where up to `max_waiting` runs may wait.
    pub(super) fn enter(
        self: &Arc<Self>,
        key: &ThreadKey,
        run_id: &RunId,
        max_waiting: usize,
    ) -> Result<TurnGuard, EnterError> {
        let mut threads = self.lock();
        let places = threads.entry(key.clone()).or_default();
        if places.iter().any(|place| place.run_id == *run_id) {
            return Err(EnterError::Twice);
        }
        if places.len() > max_waiting {
            return Err(EnterError::Full);
        }
        let place = Arc::new(Place { run_id: run_id.clone(), phase: Phase::default(), active: Mutex::default() });
        if places.is_empty() {
            place.phase.enter(HAS_TURN);
        }
        places.push(place.clone());
        Ok(TurnGuard { queue: self.clone(), key: key.clone(), place })
    }

    /// The run of a thread that is running.
    pub(super) fn active(&self, key: &ThreadKey) -> Option<Arc<ActiveRun>> {
        self.lock().get(key)?.first()?.active()
    }

    /// All runs that are running.
    pub(super) fn all_active(&self) -> Vec<Arc<ActiveRun>> {
        self.lock().values().filter_map(|places| places.first()?.active()).collect()
    }

    /// Returns whether runs wait behind the one whose turn it is.
    pub(super) fn has_waiting(&self, key: &ThreadKey) -> bool {
        self.lock().get(key).is_some_and(|places| places.len() > 1)
    }

    /// Cancels a run that has not begun. Returns whether there was one.
    pub(super) fn cancel_waiting(&self, key: &ThreadKey, run_id: &RunId) -> bool {
        let threads = self.lock();
        let place = threads.get(key).and_then(|places| places.iter().find(|place| place.run_id == *run_id));
        let Some(place) = place.filter(|place| place.active().is_none()) else { return false };
        place.phase.enter(CANCELLED);
        true
    }
}

impl Place {
    fn active(&self) -> Option<Arc<ActiveRun>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TurnGuard {
    /// Waits for the turn, or for being cancelled before it.
    pub(super) async fn turn(&self) {
        self.place.phase.reached(HAS_TURN).await;
    }

    /// Waits for being cancelled.
    pub(super) async fn cancelled(&self) {
        self.place.phase.reached(CANCELLED).await;
    }

    /// Returns whether the run was cancelled before it began.
    pub(super) fn is_cancelled(&self) -> bool {
        self.place.phase.get() == CANCELLED
    }

    /// Shows the run, which has begun, to others.
    pub(super) fn activate(&self, run: Arc<ActiveRun>) {
        // Under the queue's lock, so that a cancel meets the run either waiting or running.
        let _threads = self.queue.lock();
        *self.place.active.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut threads = self.queue.lock();
        if let Some(active) = self.place.active() {
            active.stored();
        }
        let Some(places) = threads.get_mut(&self.key) else { return };
        places.retain(|place| !Arc::ptr_eq(place, &self.place));
        match places.first() {
            Some(next) => next.phase.enter(HAS_TURN),
            None => drop(threads.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn key(thread: &str) -> ThreadKey {
        ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: thread.into() }
    }

    #[test]
    fn runs_of_a_thread_take_turns_in_the_order_they_came() {
        let queue = Arc::new(ThreadQueue::default());
        let enter = |thread: &str, run: &str| queue.enter(&key(thread), &run.into(), 2);
        let first = enter("t", "1").unwrap();
        assert!(first.turn().now_or_never().is_some());
        let second = enter("t", "2").unwrap();
        for run in ["1", "2"] {
            assert_eq!(enter("t", run).unwrap_err(), EnterError::Twice);
        }
        let third = enter("t", "3").unwrap();
        assert_eq!(enter("t", "4").unwrap_err(), EnterError::Full);
        assert!(queue.has_waiting(&key("t")) && !queue.has_waiting(&key("other")));
        let other = ThreadKey { owner: "key:b".into(), ..key("t") };
        assert!(queue.enter(&other, &"1".into(), 0).unwrap().turn().now_or_never().is_some(), "another owner's thread");

        assert!(second.turn().now_or_never().is_none());
        drop(first);
        assert!(third.turn().now_or_never().is_none());
        assert!(second.turn().now_or_never().is_some());
        drop(third);
        drop(second);
        assert!(queue.lock().is_empty());
    }

    #[test]
    fn a_run_is_cancelled_before_it_begins() {
        let queue = Arc::new(ThreadQueue::default());
        let [first, second] = ["1", "2"].map(|run| queue.enter(&key("t"), &run.into(), 2).unwrap());
        assert!(!queue.cancel_waiting(&key("t"), &"3".into()));
        assert!(queue.cancel_waiting(&key("t"), &"2".into()));
        assert!(second.turn().now_or_never().is_some() && second.is_cancelled());
        drop(first);
        assert!(second.is_cancelled(), "the turn does not bring it back");
        drop(second);
        assert!(queue.lock().is_empty());
    }
}
