//! A running run of this process, for other runs and requests of its thread.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use crate::{control::RunControl, log::LiveLog};
use agui_protocol::RunId;
use agui_store::Lease;

#[derive(Debug)]
pub struct ActiveRun {
    pub run_id: RunId,
    pub lease: Lease,
    pub control: Arc<RunControl>,
    pub log: Option<Arc<LiveLog>>,
    phase: Phase,
}

/// The client has left, and the end is being stored.
const CLIENT_LEFT: u8 = 1;
const STORED: u8 = 2;

impl ActiveRun {
    pub fn new(
        run_id: RunId,
        lease: Lease,
        control: Arc<RunControl>,
        log: Option<Arc<LiveLog>>,
    ) -> Self {
        Self { run_id, lease, control, log, phase: Phase::default() }
    }

    pub(crate) fn client_left(&self) {
        self.phase.enter(CLIENT_LEFT);
    }

    pub fn stored(&self) {
        self.phase.enter(STORED);
    }

    /// Waits until the end of the run is stored, for at most `max`, if the client has left or
    /// leaves within `notice`. A client that returns to a thread would otherwise read it before the
    /// run that it left has ended.
    pub(crate) async fn wait_if_abandoned(&self, notice: Duration, max: Duration) {
        if timeout(notice, self.phase.reached(CLIENT_LEFT)).await.is_ok() {
            // After the timeout the caller reads the thread without the end of the run.
            let _ = timeout(max, self.phase.reached(STORED)).await;
        }
    }
}

/// A number that starts at 0 and only increases. A task can wait for each of its values.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    reached: AtomicU8,
    changed: Notify,
}

impl Phase {
    pub(crate) fn get(&self) -> u8 {
        self.reached.load(Ordering::Acquire)
    }

    pub(crate) fn enter(&self, phase: u8) {
        self.reached.fetch_max(phase, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    pub(crate) async fn reached(&self, phase: u8) {
        loop {
            let changed = self.changed.notified();
            if self.get() >= phase {
                return;
            }
            changed.await;
        }
    }
}
