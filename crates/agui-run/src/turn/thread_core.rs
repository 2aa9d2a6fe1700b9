//! [`ThreadCore`]: the store of a server, with the queue, cache and background tasks of the
//! runs on its threads.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_trait::async_trait;
use tokio::{sync::Notify, task::AbortHandle};

use super::queue::ThreadQueue;
use crate::{
    conversation::branch::{BranchCache, LoadedThread},
    events::thread_event_hub::{Announcement, ThreadChange, ThreadEventHub},
    limits::{lost_run_backoff::LostRunBackoff, quota::PrincipalLimits, stored_bytes::StoredBytes},
    log::{FollowedLogs, LogWriter},
    measured_store::MeasuredStore,
    options::ThreadOptions,
};
use agui_agent::{
    Principal,
    files::Files,
    host::{AgentEntry, UpstreamKey, owner_of},
};
use agui_base::permits::Permits;
use agui_observe::metrics::Metrics;
use agui_protocol::ThreadId;
use agui_store::{
    Millis, RunNumber, Store, StoreError, ThreadKey, ThreadNumber, ThreadParts, ThreadSize,
    ThreadVersion, ThreadView,
};

/// The number of titles that are made at a time.
const MAX_TITLES: usize = 4;

/// Data of threads outside of the store, such as files. It is removed with its thread.
#[async_trait]
pub trait ThreadData: Send + Sync + 'static {
    /// Removes the data of a deleted thread. A new thread with its key begins without them once
    /// this has returned; one that begins meanwhile can lose its own data.
    async fn thread_deleted(&self, key: &ThreadKey);

    /// Removes the data of threads that no longer exist. Called at the start, and after retention
    /// or other servers may have removed threads.
    async fn threads_swept(&self, store: &dyn Store);
}

/// The store, the queue, the cache and the limits that the runs of a server share.
pub struct ThreadCore {
    /// The store of the threads, whose calls are counted and timed.
    pub store: MeasuredStore,
    /// The options of threads, runs, retention and files.
    pub options: ThreadOptions,
    /// `None` if the store keeps no files.
    pub files: Option<Files>,
    pub(crate) upstream_key: Arc<UpstreamKey>,
    pub(crate) holder: Arc<str>,
    /// The runs of this process on each thread: the one that has the turn, and the queued ones.
    pub queue: Arc<ThreadQueue>,
    /// The threads as the last runs of this process left them.
    pub cache: BranchCache,
    pub(crate) log_writer: Arc<LogWriter>,
    pub(crate) followed_logs: Arc<FollowedLogs>,
    pub(crate) detached: Arc<Permits>,
    pub(crate) followers: Arc<Permits>,
    /// The stored bytes of owners, read from time to time for the limits of `[retention]`.
    pub stored_bytes: StoredBytes,
    new_threads: AtomicU64,
    pub(crate) sweep_due: Arc<Notify>,
    pub(crate) tasks: OnceLock<[AbortHandle; 3]>,
    pub(crate) data: OnceLock<Arc<dyn ThreadData>>,
    /// Distributes the changes of threads to their owner's readers.
    pub events: Arc<ThreadEventHub>,
    pub(crate) title_agent: Option<AgentEntry>,
    pub(crate) titles: Arc<Permits>,
    pub(crate) lost_run_backoff: LostRunBackoff,
    is_stopping: AtomicBool,
    pub(crate) metrics: Metrics,
}

/// A sweep is due when 1/20 of the maximum number of threads was created since the last one.
const SWEEP_DIVISOR: u64 = 20;

impl ThreadCore {
    pub(crate) fn new(
        store: MeasuredStore,
        options: ThreadOptions,
        title_agent: Option<AgentEntry>,
        limits: PrincipalLimits,
        metrics: Metrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            files: store.files(options.files.clone()),
            upstream_key: UpstreamKey::new(store.store.clone()),
            followed_logs: FollowedLogs::new(store.clone()),
            store,
            holder: uuid::Uuid::new_v4().simple().to_string().into(),
            queue: Arc::default(),
            cache: BranchCache::default(),
            log_writer: Arc::default(),
            detached: Permits::new(
                options.runs.max_detached(),
                limits.share_of(options.runs.max_detached()),
            ),
            followers: Permits::new(
                options.runs.max_followers,
                limits.share_of(options.runs.max_followers),
            ),
            stored_bytes: StoredBytes::default(),
            new_threads: AtomicU64::new(0),
            sweep_due: Arc::default(),
            tasks: OnceLock::new(),
            data: OnceLock::new(),
            events: Arc::default(),
            title_agent,
            titles: Permits::new(MAX_TITLES, limits.share_of(MAX_TITLES)),
            lost_run_backoff: LostRunBackoff::default(),
            is_stopping: AtomicBool::new(false),
            metrics,
            options,
        })
    }

    /// Stops continuing runs of other servers, and closing lost runs: this server hands its runs
    /// over.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Sets the data that is removed with threads. Only the first call has an effect.
    pub fn set_data(&self, data: Arc<dyn ThreadData>) {
        let _ = self.data.set(data);
    }

    pub(crate) async fn remove_data(&self, key: &ThreadKey) {
        if let Some(data) = self.data.get() {
            data.thread_deleted(key).await;
        }
    }

    pub(crate) fn key(&self, owner: Option<&Principal>, id: &ThreadId) -> ThreadKey {
        ThreadKey { owner: owner_of(owner), id: id.clone() }
    }

    /// Returns the size of a stored thread with all its branches.
    pub async fn size(&self, key: &ThreadKey) -> Result<Option<ThreadSize>, StoreError> {
        let view = self.store.thread(key, ThreadParts::default()).await?;
        Ok(view.map(|ThreadView { thread, .. }| ThreadSize {
            messages: thread.messages,
            bytes: thread.bytes,
        }))
    }

    pub(crate) async fn load(&self, key: &ThreadKey) -> Result<Option<LoadedThread>, StoreError> {
        let view = self
            .store
            .thread(key, ThreadParts { messages: true, state: true, ..ThreadParts::default() })
            .await?;
        Ok(view.map(LoadedThread::from))
    }

    pub(crate) async fn set_delivered(
        &self,
        key: &ThreadKey,
        thread: ThreadNumber,
        run: RunNumber,
        delivered: bool,
    ) {
        match self.store.set_delivered(thread, run, delivered).await {
            Ok(Some(version)) => {
                self.cache.set_delivered(
                    key,
                    ThreadVersion { number: thread, version },
                    run,
                    delivered,
                );
            }
            // The thread was deleted.
            Ok(None) => {}
            Err(error) => tracing::warn!(?error, "could not store whether a run was delivered"),
        }
    }

    /// Reports a change to the readers of this process and of all others.
    pub(crate) fn publish(&self, key: &ThreadKey, change: ThreadChange) {
        self.events.send(key, change);
        self.announce(|| Announcement::Change {
            owner: key.owner.clone(),
            id: key.id.clone(),
            change,
        });
    }

    /// Tells all readers, of this process and of all others, to read their lists again.
    pub(crate) fn publish_missed(&self) {
        self.events.send_missed();
        self.announce(|| Announcement::Missed);
    }

    fn announce(&self, announcement: impl FnOnce() -> Announcement) {
        if let Some(shared) = self.store.shared()
            && let Ok(json) = serde_json::to_string(&announcement())
        {
            shared.announce(json);
        }
    }

    pub(crate) fn lease_until(&self, now: Millis) -> Millis {
        now.saturating_add(Millis::try_from(self.options.lease.as_millis()).unwrap_or(Millis::MAX))
    }

    pub(crate) fn count_new_thread(&self) {
        let retention = &self.options.retention;
        let Some(max) = retention.owner_threads.into_iter().chain(retention.threads).min() else {
            return;
        };
        if self.new_threads.fetch_add(1, Ordering::Relaxed) + 1 >= (max / SWEEP_DIVISOR).max(1) {
            self.sweep_due.notify_one();
        }
    }

    /// Returns the number of removed threads.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.new_threads.store(0, Ordering::Relaxed);
        let swept = self.store.sweep(&self.options.retention, agui_store::host::now()).await?;
        self.metrics.store.removed(swept.threads, swept.logs);
        if swept != agui_store::SweepResult::default() {
            tracing::info!(
                threads = swept.threads,
                logs = swept.logs,
                "removed threads and logs by retention"
            );
        }
        if let Some(files) = &self.files {
            let removed = files.sweep().await?;
            if removed > 0 {
                tracing::info!(files = removed, "removed files that no thread uses");
            }
        }
        if swept.threads > 0 {
            self.publish_missed();
        }
        Ok(swept.threads)
    }
}

impl Drop for ThreadCore {
    fn drop(&mut self) {
        self.tasks.get().into_iter().flatten().for_each(AbortHandle::abort);
    }
}
