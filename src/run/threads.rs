//! [`Threads`]: the store of a server, with the queue, cache and background tasks of the runs on its threads.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
};

use super::{
    ThreadOptions,
    branch::{BranchCache, LoadedThread},
    log::LogWriter,
    queue::ThreadQueue,
};
use crate::{
    agent::Principal,
    protocol::ThreadId,
    store::{Millis, Store, StoreError, ThreadKey, ThreadParts},
};

/// The stored threads of a server.
pub struct Threads {
    pub(super) store: Arc<dyn Store>,
    pub(super) options: ThreadOptions,
    pub(super) holder: Arc<str>,
    pub(super) queue: Arc<ThreadQueue>,
    pub(super) cache: BranchCache,
    pub(super) log_writer: Arc<LogWriter>,
    pub(super) detached: Arc<Semaphore>,
    new_threads: AtomicU64,
    pub(super) sweep_due: Notify,
    pub(super) tasks: OnceLock<[AbortHandle; 2]>,
}

/// A sweep is due when 1/20 of the maximum number of threads was created since the last one.
const SWEEP_DIVISOR: u64 = 20;

impl Threads {
    pub(super) fn new(store: Arc<dyn Store>, options: ThreadOptions) -> Arc<Self> {
        Arc::new(Self {
            store,
            holder: uuid::Uuid::new_v4().simple().to_string().into(),
            queue: Arc::default(),
            cache: BranchCache::default(),
            log_writer: Arc::default(),
            detached: Arc::new(Semaphore::new(options.max_detached.min(Semaphore::MAX_PERMITS))),
            new_threads: AtomicU64::new(0),
            sweep_due: Notify::new(),
            tasks: OnceLock::new(),
            options,
        })
    }

    /// Checks that the store can be used.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    pub(super) fn key(&self, owner: Option<&Principal>, id: &ThreadId) -> ThreadKey {
        let owner = owner.map_or_else(|| ThreadKey::ANONYMOUS.into(), |principal| principal.shared_id().clone());
        ThreadKey { owner, id: id.clone() }
    }

    pub(super) async fn load(&self, key: &ThreadKey) -> Result<Option<LoadedThread>, StoreError> {
        let view = self.store.thread(key, ThreadParts { messages: true, runs: 0 }).await?;
        Ok(view.map(LoadedThread::from))
    }

    pub(super) fn lease_until(&self, now: Millis) -> Millis {
        now.saturating_add(Millis::try_from(self.options.lease.as_millis()).unwrap_or(Millis::MAX))
    }

    pub(super) fn count_new_thread(&self) {
        let retention = &self.options.retention;
        let Some(max) = retention.owner_threads.into_iter().chain(retention.threads).min() else { return };
        if self.new_threads.fetch_add(1, Ordering::Relaxed) + 1 >= (max / SWEEP_DIVISOR).max(1) {
            self.sweep_due.notify_one();
        }
    }

    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        self.new_threads.store(0, Ordering::Relaxed);
        let swept = self.store.sweep(&self.options.retention, crate::store::now()).await?;
        if swept != crate::store::SweepResult::default() {
            tracing::info!(threads = swept.threads, logs = swept.logs, "removed threads and logs by retention");
        }
        Ok(())
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.tasks.get().into_iter().flatten().for_each(AbortHandle::abort);
    }
}
