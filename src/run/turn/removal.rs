//! Removes the data that is kept of threads outside of the store.

use std::sync::Arc;

use super::thread_data::ThreadData;
use crate::run::thread_runs::ThreadRuns;
use crate::store::ThreadKey;

/// Sweeps between two calls of [`ThreadData::threads_swept`] when no sweep of this process removes a thread: other
/// servers remove threads, too.
const SWEEPS_BETWEEN_CHECKS: u32 = 60;

/// Decides after which sweeps the data of threads is checked.
#[derive(Default)]
pub(crate) struct SweepCounter(u32);

impl ThreadRuns {
    /// Sets the data that is removed with threads. Only the first call has an effect.
    pub(crate) fn set_data(&self, data: Arc<dyn ThreadData>) {
        let _ = self.data.set(data);
    }

    pub(crate) async fn remove_data(&self, key: &ThreadKey) {
        if let Some(data) = self.data.get() {
            data.thread_deleted(key).await;
        }
    }

    pub(crate) async fn check_data(&self, counter: &mut SweepCounter, removed_threads: u64) {
        let is_due = counter.0 == 0 || removed_threads > 0;
        counter.0 = if is_due { SWEEPS_BETWEEN_CHECKS } else { counter.0 - 1 };
        if let Some(data) = self.data.get().filter(|_| is_due) {
            data.threads_swept(self.store.unmeasured()).await;
        }
    }
}
