//! A run of a stored thread that is running in this process, as others see it.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{RunControl, log::LiveLog, phase::Phase};
use crate::{protocol::RunId, store::Lease};

/// A running run.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) run_id: RunId,
    pub(super) lease: Lease,
    pub(super) control: Arc<RunControl>,
    /// The log of a detached run.
    pub(super) log: Option<Arc<LiveLog>>,
    phase: Phase,
}

/// The client has left, and the end is being stored.
const CLIENT_LEFT: u8 = 1;
/// The end is stored.
const STORED: u8 = 2;

impl ActiveRun {
    pub(super) fn new(run_id: RunId, lease: Lease, control: Arc<RunControl>, log: Option<Arc<LiveLog>>) -> Self {
        Self { run_id, lease, control, log, phase: Phase::default() }
    }

    /// Notes that the client has left.
    pub(super) fn client_left(&self) {
        self.phase.enter(CLIENT_LEFT);
    }

    /// Notes that the end is stored.
    pub(super) fn stored(&self) {
        self.phase.enter(STORED);
    }

    /// Waits up to `patience` until the end of the run is stored, if its client has left or leaves within `notice`. A
    /// client that comes back to a thread may be quicker than the end of the run that it left.
    pub(super) async fn settled(&self, notice: Duration, patience: Duration) {
        if timeout(notice, self.phase.reached(CLIENT_LEFT)).await.is_ok() {
            // After that time the caller reads what is stored by then.
            let _ = timeout(patience, self.phase.reached(STORED)).await;
        }
    }
}
