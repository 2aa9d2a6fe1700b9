//! The queue of runs on each thread within this process: one run at a time, first come, first served.
//!
//! Between processes the lease in the store decides: the run that has the turn here takes the
//! lease.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::active::{ActiveRun, Phase};
use crate::limits::start_error::StartError;
use agui_protocol::RunId;
use agui_store::ThreadKey;

/// The runs of this process by thread. The first one of a thread has the turn, the others are
/// queued.
#[derive(Debug, Default)]
pub struct ThreadQueue(Mutex<HashMap<ThreadKey, Vec<Arc<QueuedRun>>>>);

/// The reason for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunTrigger {
    Message,
    /// A reply to an interrupt. It supersedes no run: no interrupt is open during a run, so the
    /// reply is late or repeated.
    Reply,
}

#[derive(Debug)]
struct QueuedRun {
    run_id: RunId,
    trigger: RunTrigger,
    phase: Phase,
    active: Mutex<Option<Arc<ActiveRun>>>,
}

const HAS_TURN: u8 = 1;
const CANCELLED: u8 = 2;

/// The place of a run in the queue until its end. Dropping it gives the turn to the next run.
#[derive(Debug)]
pub struct TurnGuard {
    queue: Arc<ThreadQueue>,
    key: ThreadKey,
    run: Arc<QueuedRun>,
}

impl ThreadQueue {
    /// Enters a run behind at most `max_queued` queued ones.
    ///
    /// # Errors
    /// [`StartError::RunIsRunning`], [`StartError::QueueFull`], or [`StartError::ThreadIsBusy`] if
    /// `max_queued` is 0.
    pub fn enter(
        self: &Arc<Self>,
        key: &ThreadKey,
        run_id: &RunId,
        trigger: RunTrigger,
        max_queued: usize,
    ) -> Result<TurnGuard, StartError> {
        let mut threads = self.0.lock();
        let runs = threads.entry(key.clone()).or_default();
        if runs.iter().any(|run| run.run_id == *run_id) {
            return Err(StartError::RunIsRunning);
        }
        if runs.len() > max_queued {
            return Err(if max_queued == 0 {
                StartError::ThreadIsBusy
            } else {
                StartError::QueueFull
            });
        }
        let run = Arc::new(QueuedRun::new(run_id, trigger));
        if runs.is_empty() {
            run.phase.enter(HAS_TURN);
        }
        runs.push(run.clone());
        Ok(TurnGuard { queue: self.clone(), key: key.clone(), run })
    }

    /// Enters a run that has the lease already, before all others. A run that has the turn then
    /// waits for the lease.
    pub(crate) fn enter_first(self: &Arc<Self>, key: &ThreadKey, run_id: &RunId) -> TurnGuard {
        let run = Arc::new(QueuedRun::new(run_id, RunTrigger::Message));
        run.phase.enter(HAS_TURN);
        self.0.lock().entry(key.clone()).or_default().insert(0, run.clone());
        TurnGuard { queue: self.clone(), key: key.clone(), run }
    }

    pub fn active(&self, key: &ThreadKey) -> Option<Arc<ActiveRun>> {
        self.0.lock().get(key)?.first()?.active()
    }

    pub(crate) fn all_active(&self) -> Vec<Arc<ActiveRun>> {
        self.0.lock().values().filter_map(|runs| runs.first()?.active()).collect()
    }

    /// Returns whether a queued run may supersede the one that has the turn.
    pub(crate) fn has_superseding(&self, key: &ThreadKey) -> bool {
        let is_superseding = |run: &Arc<QueuedRun>| run.trigger == RunTrigger::Message;
        self.0.lock().get(key).is_some_and(|runs| runs.iter().skip(1).any(is_superseding))
    }

    /// Returns the number of queued runs in this process.
    pub(crate) fn queued(&self) -> usize {
        self.0.lock().values().map(|runs| runs.len().saturating_sub(1)).sum()
    }

    /// Cancels a run that has not begun. Returns whether the run was in the queue.
    pub(crate) fn cancel_queued(&self, key: &ThreadKey, run_id: &RunId) -> bool {
        let threads = self.0.lock();
        let run = threads.get(key).and_then(|runs| runs.iter().find(|run| run.run_id == *run_id));
        let Some(run) = run.filter(|run| run.active().is_none()) else { return false };
        run.phase.enter(CANCELLED);
        true
    }
}

impl QueuedRun {
    fn new(run_id: &RunId, trigger: RunTrigger) -> Self {
        Self { run_id: run_id.clone(), trigger, phase: Phase::default(), active: Mutex::default() }
    }

    fn active(&self) -> Option<Arc<ActiveRun>> {
        self.active.lock().clone()
    }
}

impl TurnGuard {
    /// Waits until the run has the turn or is cancelled.
    pub(crate) async fn turn(&self) {
        self.run.phase.reached(HAS_TURN).await;
    }

    pub async fn cancelled(&self) {
        self.run.phase.reached(CANCELLED).await;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.run.phase.get() == CANCELLED
    }

    pub(crate) fn activate(&self, run: Arc<ActiveRun>) {
        // Under the queue's lock, so that a concurrent cancel finds the run either queued or
        // running.
        let _threads = self.queue.0.lock();
        *self.run.active.lock() = Some(run);
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut threads = self.queue.0.lock();
        if let Some(active) = self.run.active() {
            active.stored();
        }
        let Some(runs) = threads.get_mut(&self.key) else { return };
        runs.retain(|run| !Arc::ptr_eq(run, &self.run));
        match runs.first() {
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
    fn runs_of_a_thread_take_turns_in_order() {
        let queue = Arc::new(ThreadQueue::default());
        let enter = |thread: &str, run: &str| {
            queue.enter(&key(thread), &run.into(), RunTrigger::Message, 2)
        };
        let first = enter("t", "1").unwrap();
        assert!(first.turn().now_or_never().is_some());
        let second = enter("t", "2").unwrap();
        for run in ["1", "2"] {
            assert!(matches!(enter("t", run), Err(StartError::RunIsRunning)));
        }
        let third = enter("t", "3").unwrap();
        assert!(matches!(enter("t", "4"), Err(StartError::QueueFull)));
        assert!(matches!(
            queue.enter(&key("t"), &"4".into(), RunTrigger::Message, 0),
            Err(StartError::ThreadIsBusy)
        ));
        assert!(queue.has_superseding(&key("t")) && !queue.has_superseding(&key("other")));
        let other = ThreadKey { owner: "key:b".into(), ..key("t") };
        assert!(
            queue
                .enter(&other, &"1".into(), RunTrigger::Message, 0)
                .unwrap()
                .turn()
                .now_or_never()
                .is_some(),
            "another owner's thread"
        );

        assert!(second.turn().now_or_never().is_none());
        drop(first);
        assert!(third.turn().now_or_never().is_none());
        assert!(second.turn().now_or_never().is_some());
        drop(third);
        drop(second);
        assert!(queue.0.lock().is_empty());
    }

    #[test]
    fn a_queued_run_can_be_cancelled() {
        let queue = Arc::new(ThreadQueue::default());
        let [first, second] = ["1", "2"]
            .map(|run| queue.enter(&key("t"), &run.into(), RunTrigger::Message, 2).unwrap());
        assert!(!queue.cancel_queued(&key("t"), &"3".into()));
        assert!(queue.cancel_queued(&key("t"), &"2".into()));
        assert!(second.turn().now_or_never().is_some() && second.is_cancelled());
        drop(first);
        assert!(second.is_cancelled(), "a turn does not undo the cancel");
        drop(second);
        assert!(queue.0.lock().is_empty());
    }
}
