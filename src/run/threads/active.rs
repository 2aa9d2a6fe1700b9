//! The runs of threads that go on in this process.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use crate::{
    protocol::{RunId, ThreadId},
    run::{RunControl, log::LiveLog},
    store::Lease,
};

/// By thread: each has one at most.
#[derive(Debug, Default)]
pub(super) struct ActiveRuns(Mutex<HashMap<ThreadId, Arc<ActiveRun>>>);

#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) lease: Lease,
    pub(super) owner: Option<String>,
    pub(super) control: Arc<RunControl>,
    /// The log of a detached run.
    pub(super) log: Option<Arc<LiveLog>>,
    /// One of the phases below, and who waits for the next. There is one for each stream, so it is small.
    phase: AtomicU8,
    changed: Notify,
}

const RUNNING: u8 = 0;
/// Its client has left, and what came of the run is being stored.
const LEFT: u8 = 1;
/// It is stored.
const OVER: u8 = 2;

/// A run's entry; dropping it takes the run out.
#[derive(Debug)]
pub(super) struct Registration {
    all: Arc<ActiveRuns>,
    run: Arc<ActiveRun>,
}

impl ActiveRuns {
    pub(super) fn enter(self: &Arc<Self>, run: ActiveRun) -> Registration {
        let run = Arc::new(run);
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(run.lease.thread_id.clone(), run.clone());
        drop(runs);
        Registration { all: self.clone(), run }
    }

    /// The run of a thread.
    pub(super) fn of(&self, thread: &ThreadId) -> Option<Arc<ActiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(thread).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<ActiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl ActiveRun {
    pub(super) fn new(
        lease: Lease,
        owner: Option<String>,
        control: Arc<RunControl>,
        log: Option<Arc<LiveLog>>,
    ) -> Self {
        Self { lease, owner, control, log, phase: AtomicU8::new(RUNNING), changed: Notify::new() }
    }

    /// Says that the client has left.
    pub(super) fn left(&self) {
        self.enter(LEFT);
    }

    fn enter(&self, phase: u8) {
        self.phase.fetch_max(phase, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    async fn reached(&self, phase: u8) {
        loop {
            let changed = self.changed.notified();
            if self.phase.load(Ordering::Acquire) >= phase {
                return;
            }
            changed.await;
        }
    }

    /// Waits until what came of the run is stored: for `patience`, if its client has left, or leaves within
    /// `notice`. Who comes back to a thread may be quicker than the end of the run that they left.
    pub(super) async fn settled(&self, notice: Duration, patience: Duration) {
        if timeout(notice, self.reached(LEFT)).await.is_ok() {
            // Late or not, whoever waits gets what there is.
            let _ = timeout(patience, self.reached(OVER)).await;
        }
    }

    pub(super) fn run_id(&self) -> &RunId {
        &self.lease.run_id
    }
}

impl Registration {
    pub(super) fn run(&self) -> &Arc<ActiveRun> {
        &self.run
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.run.enter(OVER);
        let mut runs = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = &self.run.lease.thread_id;
        if runs.get(thread).is_some_and(|run| Arc::ptr_eq(run, &self.run)) {
            runs.remove(thread);
        }
    }
}
