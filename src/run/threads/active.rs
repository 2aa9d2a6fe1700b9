//! The runs of threads that go on in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

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
}

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
    pub(super) fn run_id(&self) -> &RunId {
        &self.lease.run_id
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut runs = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = &self.run.lease.thread_id;
        if runs.get(thread).is_some_and(|run| Arc::ptr_eq(run, &self.run)) {
            runs.remove(thread);
        }
    }
}
