//! One run at a time on a thread, in the order they came.
//!
//! This is the queue within one process. Between processes the thread's lease in the store decides; whoever is first
//! in a lane asks for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::protocol::{RunId, ThreadId};

#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<ThreadId, Lane>>);

#[derive(Debug)]
struct Lane {
    turn: Arc<Semaphore>,
    /// Who is in it, the one whose turn it is among them.
    runs: Vec<RunId>,
}

/// A place in a lane; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    lanes: Arc<Lanes>,
    thread: ThreadId,
    run: RunId,
    turn: Arc<Semaphore>,
}

/// What came of asking for a place.
#[derive(Debug)]
pub(super) enum Entered {
    Place(Place),
    /// This very run has one already.
    Twice,
    /// As many as may are waiting.
    Full,
}

/// The turn, and with it the place; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Turn {
    // Given back before the place, which forgets the lane when nobody is in it.
    _permit: OwnedSemaphorePermit,
    _place: Place,
}

impl Lanes {
    /// A place for a run in a thread's lane, where `max` of them may wait.
    pub(super) fn enter(self: &Arc<Self>, thread: &ThreadId, run: &RunId, max: usize) -> Entered {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lane =
            lanes.entry(thread.clone()).or_insert_with(|| Lane { turn: Arc::new(Semaphore::new(1)), runs: Vec::new() });
        if lane.runs.contains(run) {
            return Entered::Twice;
        }
        if lane.runs.len() > max {
            return Entered::Full;
        }
        lane.runs.push(run.clone());
        let (thread, run, turn) = (thread.clone(), run.clone(), lane.turn.clone());
        Entered::Place(Place { lanes: self.clone(), thread, run, turn })
    }

    /// Whether somebody waits behind the one whose turn it is.
    pub(super) fn has_waiting(&self, thread: &ThreadId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(thread).is_some_and(|lane| lane.runs.len() > 1)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Place {
    /// Waits for its turn.
    pub(super) async fn turn(self) -> Turn {
        let turn = self.turn.clone();
        // The semaphore is never closed.
        match turn.acquire_owned().await {
            Ok(permit) => Turn { _permit: permit, _place: self },
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lanes = self.lanes.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get_mut(&self.thread) {
            lane.runs.retain(|run| *run != self.run);
            if lane.runs.is_empty() {
                lanes.remove(&self.thread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_lane_is_one_at_a_time_in_order_bounded_and_forgotten() {
        let lanes = Arc::new(Lanes::default());
        let enter = |thread: &str, run: &str| match lanes.enter(&thread.into(), &run.into(), 2) {
            Entered::Place(place) => place,
            other => panic!("{other:?}"),
        };
        let first = enter("t", "1").turn().now_or_never().expect("nobody is before it");
        let second = enter("t", "2");
        assert!(matches!(lanes.enter(&"t".into(), &"1".into(), 2), Entered::Twice), "it has its turn");
        assert!(matches!(lanes.enter(&"t".into(), &"2".into(), 2), Entered::Twice), "it waits");
        let third = enter("t", "3");
        assert!(matches!(lanes.enter(&"t".into(), &"4".into(), 2), Entered::Full), "two wait");
        drop(enter("other", "1"));

        let mut second = Box::pin(second.turn());
        let mut third = Box::pin(third.turn());
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "it is the second's turn");
        let second = second.now_or_never().expect("its turn");
        drop(third);
        drop(second);
        assert_eq!(lanes.len(), 0);
    }
}
