//! [`HeldLease`]: the lease of a run, from its begin until its end is stored.

use std::sync::Arc;

use super::{active::ActiveRun, queue::TurnGuard, thread_core::ThreadCore};
use agui_store::ThreadKey;

/// The lease of a run in the store and its turn in this process. Dropping it gives the turn to the
/// next run of the thread. If the end of the run is not stored by then, maintenance closes the run.
pub struct HeldLease {
    pub threads: Arc<ThreadCore>,
    pub key: ThreadKey,
    pub run: Arc<ActiveRun>,
    turn: Option<TurnGuard>,
}

impl HeldLease {
    /// Activates the run: it can be followed and cancelled from now on.
    pub fn new(threads: Arc<ThreadCore>, key: ThreadKey, turn: TurnGuard, run: ActiveRun) -> Self {
        let run = Arc::new(run);
        turn.activate(run.clone());
        Self { threads, key, run, turn: Some(turn) }
    }

    /// Returns whether the run was cancelled while it was queued or being begun.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(TurnGuard::is_cancelled)
    }

    /// Gives the turn to the next run, after the end of this one.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }
}
