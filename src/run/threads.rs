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
    PrincipalLimits, ThreadOptions,
    branch::{BranchCache, LoadedThread},
    log::LogWriter,
    owner_limit::OwnerLimit,
    queue::ThreadQueue,
    thread_data::ThreadData,
    thread_event_hub::ThreadEventHub,
    title::TitleAgent,
};
use crate::{
    agent::Principal,
    metrics::Metrics,
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
    pub(super) followers: Arc<OwnerLimit>,
    new_threads: AtomicU64,
    pub(super) sweep_due: Notify,
    pub(super) tasks: OnceLock<[AbortHandle; 2]>,
    pub(super) data: OnceLock<Arc<dyn ThreadData>>,
    pub(super) events: Arc<ThreadEventHub>,
    pub(super) title_agent: OnceLock<TitleAgent>,
    pub(super) metrics: Metrics,
}

/// A sweep is due when 1/20 of the maximum number of threads was created since the last one.
const SWEEP_DIVISOR: u64 = 20;

impl Threads {
    pub(super) fn new(
        store: Arc<dyn Store>,
        options: ThreadOptions,
        limits: PrincipalLimits,
        metrics: Metrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            holder: uuid::Uuid::new_v4().simple().to_string().into(),
            queue: Arc::default(),
            cache: BranchCache::default(),
            log_writer: Arc::default(),
            detached: Arc::new(Semaphore::new(options.max_detached.min(Semaphore::MAX_PERMITS))),
            followers: OwnerLimit::new(options.max_followers, limits),
            new_threads: AtomicU64::new(0),
            sweep_due: Notify::new(),
            tasks: OnceLock::new(),
            data: OnceLock::new(),
            events: Arc::default(),
            title_agent: OnceLock::new(),
            metrics,
            options,
        })
    }

    /// Returns whether a run can be detached, so that its response can be continued.
    pub fn accepts_detached_runs(&self) -> bool {
        self.options.max_detached > 0
    }

    /// Checks that the store can be read and written, by a small write.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    pub(super) fn key(&self, owner: Option<&Principal>, id: &ThreadId) -> ThreadKey {
        ThreadKey { owner: Self::owner(owner), id: id.clone() }
    }

    /// Returns the owner of a principal's threads; `None` is the owner of all threads on a server without authentication.
    pub(crate) fn owner(principal: Option<&Principal>) -> Arc<str> {
        principal.map_or_else(|| ThreadKey::ANONYMOUS.into(), |principal| principal.shared_id().clone())
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

    /// Returns the number of removed threads.
    pub(super) async fn sweep(&self) -> Result<u64, StoreError> {
        self.new_threads.store(0, Ordering::Relaxed);
        let swept = self.store.sweep(&self.options.retention, crate::store::now()).await?;
        if swept != crate::store::SweepResult::default() {
            tracing::info!(threads = swept.threads, logs = swept.logs, "removed threads and logs by retention");
        }
        if swept.threads > 0 {
            self.publish_missed();
        }
        Ok(swept.threads)
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
