//! [`HeldLease`]: the lease of a run, from its begin until its end is stored.

use std::sync::Arc;

use super::{active::ActiveRun, queue::TurnGuard, thread_runs::ThreadRuns};
use agui_store::ThreadKey;

/// The lease of a run in the store and its turn in this process. Dropping it gives the turn to the next run of the thread. If
/// the end of the run is not stored then, maintenance closes the run.
pub struct HeldLease {
    pub threads: Arc<ThreadRuns>,
    pub key: ThreadKey,
    pub run: Arc<ActiveRun>,
    turn: Option<TurnGuard>,
}

impl HeldLease {
    /// The run can be followed and cancelled from now on.
    pub fn new(threads: Arc<ThreadRuns>, key: ThreadKey, turn: TurnGuard, run: ActiveRun) -> Self {
        let run = Arc::new(run);
        turn.activate(run.clone());
        Self { threads, key, run, turn: Some(turn) }
    }

    /// Returns whether the run was cancelled while it waited for its turn or for the store.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(TurnGuard::is_cancelled)
    }

    /// Gives the turn to the next run, after the end of this one.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }
}
