//! [`HeldLease`]: the lease of a run, from its begin until its end is stored.

use std::sync::Arc;

use super::{
    live_run::{LiveRun, RunClient},
    queue::RunPlace,
    thread_core::ThreadCore,
};
use crate::log::LiveLog;
use agui_store::{Lease, ThreadKey};

/// The lease of a run in the store and its turn in this process. Dropping it gives the turn to the
/// next run of the thread. If the end of the run is not stored by then, maintenance closes the run.
pub struct HeldLease {
    pub threads: Arc<ThreadCore>,
    pub key: ThreadKey,
    pub lease: Lease,
    pub run: Arc<LiveRun>,
    place: Option<RunPlace>,
}

impl HeldLease {
    /// The run runs: it can be followed and cancelled from now on. `log` is that of a detached run.
    pub fn new(
        threads: Arc<ThreadCore>,
        key: ThreadKey,
        place: RunPlace,
        lease: Lease,
        log: Option<Arc<LiveLog>>,
    ) -> Self {
        place.run.begun(lease.clone(), log);
        Self { threads, key, lease, run: place.run.clone(), place: Some(place) }
    }

    /// Returns the claim of the response that polls the run.
    pub(crate) fn take_client(&mut self) -> Option<RunClient> {
        self.place.as_mut()?.client.take()
    }

    /// Gives the turn to the next run, after the end of this one.
    pub(crate) fn end_turn(&mut self) {
        self.place = None;
    }
}
