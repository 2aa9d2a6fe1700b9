//! The operations of an owner on stored threads: list, read, follow, cancel, delete.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{ThreadError, Threads};
use crate::{
    events::thread_event_hub::{ChangedThread, ThreadChange, ThreadChanges},
    log::{Follower, mark::is_mark},
    turn::live_run::{LiveRun, RunClient},
};
use agui_base::complete_on_drop::CompleteOnDrop;
use agui_protocol::{RunId, ThreadId};
use agui_store::{
    CancelRequest, RunRecord, RunStatus, StoreError, Thread, ThreadKey, ThreadPage, ThreadParts,
    ThreadView,
};

/// The time that a run may take to end when its thread is deleted or its client has left.
const RUN_END_TIMEOUT: Duration = Duration::from_secs(3);
/// The time in which the server usually notices that a client has left.
const LEAVE_NOTICE: Duration = Duration::from_millis(250);
const RUN_END_POLL: Duration = Duration::from_millis(20);
/// The number of threads that are listed at once to delete all of them.
const DELETED_PER_PAGE: usize = 100;
/// The number of threads in which the thread of a run is searched.
const MAX_SEARCHED_THREADS: usize = 200;
/// The number of runs whose logs are read together.
const MAX_LOGS: usize = 50;
/// The largest size of these logs together.
const MAX_EVENT_BYTES: usize = 4 << 20;
const PAGE_BYTES: usize = 256 * 1024;

/// A thread for a client that connects to it.
pub struct ThreadConnection {
    /// The thread with its messages, without those of a running run. `None` if there is no such thread.
    pub view: Option<ThreadView>,
    /// Follows a running detached run from its first event.
    pub running: Option<Follower>,
}

impl Threads {
    /// Lists the threads of an owner, those with the newest run first.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn list(&self, owner: &str, page: &ThreadPage) -> Result<Vec<Thread>, StoreError> {
        self.core.store.threads(owner, page).await
    }

    /// Reads a thread with its messages and its state.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn read(&self, key: &ThreadKey) -> Result<ThreadView, ThreadError> {
        self.wait_if_abandoned(key).await;
        self.view(key, ThreadParts { messages: true, state: true, ..ThreadParts::default() }).await
    }

    /// Returns a thread after its changes. The first reader reads it from the store for all
    /// readers.
    pub async fn changed<'a>(
        &self,
        owner: &Arc<str>,
        changes: &'a ThreadChanges,
    ) -> &'a ChangedThread {
        let read = async || {
            if changes.kinds == [ThreadChange::Deleted] {
                return ChangedThread::Deleted;
            }
            match self.thread(&ThreadKey { owner: owner.clone(), id: changes.id.clone() }).await {
                Ok(thread) => ChangedThread::Summary(Box::new(thread)),
                Err(ThreadError::NoThread) => ChangedThread::Deleted,
                Err(error) => {
                    tracing::warn!(
                        thread = changes.id.as_str(),
                        ?error,
                        "cannot read a thread that has changed"
                    );
                    ChangedThread::Unknown
                }
            }
        };
        changes.thread.get_or_init(read).await
    }

    /// Finds the thread whose newest run has this id, among the owner's 200 threads with the newest
    /// runs. If several threads have such a run, returns the one with the newest run. An index of
    /// run ids would have to be changed by each run.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn thread_of_run(&self, owner: &str, run: &RunId) -> Result<ThreadId, ThreadError> {
        let newest = self.list(owner, &ThreadPage::first(MAX_SEARCHED_THREADS)).await?;
        let found = newest.into_iter().find(|thread| thread.run_id == *run);
        found.map(|thread| thread.key.id).ok_or(ThreadError::NoRun)
    }

    /// Follows the log of a run after the event with number `after`. Returns `None` if the run has
    /// ended and no event follows.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn follow(
        &self,
        key: &ThreadKey,
        run: &RunId,
        after: u64,
    ) -> Result<Option<Follower>, ThreadError> {
        let record = match self.detached_run(key, run).await {
            Err(ThreadError::NoRun) => {
                let queued = self.follow_queued(key, run).await?;
                return queued.map(|queued| Some(queued.after(after))).ok_or(ThreadError::NoRun);
            }
            record => record?,
        };
        if record.status != RunStatus::Running {
            if after >= record.events {
                return Ok(None);
            }
            let page = self.core.store.events(&key.owner, record.number, after, 1).await?;
            if page.is_none_or(|page| page.events.is_empty()) {
                return Err(ThreadError::LogRemoved);
            }
        }
        self.follower(key, &record, after).map(|follower| Some(follower.called(run)))
    }

    /// Returns the events of the newest stored logs, the oldest first, each as one line of JSON. A
    /// log that would exceed [`MAX_EVENT_BYTES`], and the logs before it, are left out.
    ///
    /// # Errors
    /// [`ThreadError::NoThread`] or [`ThreadError::Store`].
    pub async fn newest_events(&self, key: &ThreadKey) -> Result<Vec<String>, ThreadError> {
        self.wait_if_abandoned(key).await;
        let view = self.view(key, ThreadParts { runs: MAX_LOGS, ..ThreadParts::default() }).await?;
        let (mut logs, mut bytes) = (Vec::new(), 0);
        'runs: for run in view.runs.iter().filter(|run| run.detached) {
            let mut log = Vec::new();
            loop {
                let after = log.len() as u64;
                let read = self.core.store.events(&key.owner, run.number, after, PAGE_BYTES);
                let Some(page) = read.await?.filter(|page| !page.events.is_empty()) else { break };
                bytes += page.events.iter().map(String::len).sum::<usize>();
                if bytes > MAX_EVENT_BYTES {
                    break 'runs;
                }
                log.extend(page.events);
            }
            logs.push(log);
        }
        Ok(logs.into_iter().rev().flatten().filter(|line| !is_mark(line)).collect())
    }

    pub async fn detached_run(
        &self,
        key: &ThreadKey,
        run: &RunId,
    ) -> Result<RunRecord, ThreadError> {
        self.server.start_tasks();
        let record = self.run(&self.thread(key).await?, run).await?;
        if record.detached { Ok(record) } else { Err(ThreadError::NoLog) }
    }

    /// Follows a queued run from its begin. Returns `None` if no queued run has this id.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn follow_queued(
        &self,
        key: &ThreadKey,
        run: &RunId,
    ) -> Result<Option<Follower>, ThreadError> {
        let thread = self.thread(key).await?;
        let queued = self.core.queued_runs(&key.owner, thread.number).await?;
        let queued = queued.into_iter().find(|queued| queued.run_id == *run);
        let here = self.core.queue.find(key, run).filter(|live| live.is_stored());
        let follower = queued.map(|queued| match here {
            Some(live) => self.core.follow_queued(key, &live, run),
            None => self.core.follow_stored(queued),
        });
        follower.transpose().map_err(|_| ThreadError::TooManyFollowers)
    }

    pub fn follower(
        &self,
        key: &ThreadKey,
        run: &RunRecord,
        after: u64,
    ) -> Result<Follower, ThreadError> {
        let permit = self
            .core
            .followers
            .try_take(&key.owner, 1)
            .map_err(|_| ThreadError::TooManyFollowers)?;
        let is_it = |live: &Arc<LiveRun>| live.lease().is_some_and(|lease| lease.run == run.number);
        let here = self.core.queue.running(key).filter(is_it);
        let live = here.as_ref().and_then(|live| live.log().cloned());
        let follower =
            Follower::from_stored_run(&self.core.followed_logs, key.clone(), run, after, permit)
                .with_live(live);
        // A run that was promoted ends with its last client.
        let client = here.filter(|live| !live.continues()).map(|live| RunClient::of(&live));
        Ok(follower.holding(client))
    }

    /// Waits for the end of a run whose client has left or is leaving. A page that is reloaded
    /// leaves its run.
    pub async fn wait_for_leaving(&self, key: &ThreadKey) {
        self.wait_within(LEAVE_NOTICE, key).await;
    }

    /// Waits for the end of a run whose client has left, so that the run's messages are stored.
    pub(super) async fn wait_if_abandoned(&self, key: &ThreadKey) {
        self.wait_within(Duration::ZERO, key).await;
    }

    async fn wait_within(&self, notice: Duration, key: &ThreadKey) {
        if let Some(run) = self.core.queue.running(key).filter(|run| !run.continues()) {
            run.wait_if_abandoned(notice, RUN_END_TIMEOUT).await;
        }
    }

    /// Returns a thread with its messages, its newest `runs` runs with their states, and a follower
    /// of its running detached run.
    ///
    /// # Errors
    /// [`ThreadError::TooManyFollowers`] or [`ThreadError::Store`].
    pub async fn connect(
        &self,
        key: &ThreadKey,
        runs: NonZeroUsize,
    ) -> Result<ThreadConnection, ThreadError> {
        self.server.start_tasks();
        self.wait_for_leaving(key).await;
        let include = ThreadParts {
            messages: true,
            state: true,
            runs: runs.get(),
            run_states: runs > NonZeroUsize::MIN,
        };
        let view = self.core.store.thread(key, include).await?;
        let running =
            view.as_ref().filter(|view| view.thread.is_running).and_then(|view| view.runs.first());
        let running =
            running.filter(|run| run.detached).map(|run| self.follower(key, run, 0)).transpose()?;
        Ok(ThreadConnection { view, running })
    }

    /// Cancels a run that is running or queued. Returns the run if it had already ended.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn cancel(
        &self,
        key: &ThreadKey,
        run: &RunId,
    ) -> Result<Option<RunRecord>, ThreadError> {
        if self.core.queue.cancel_begun(key, run) {
            return Ok(None);
        }
        let thread = self.thread(key).await;
        let mut was_queued = false;
        if let (Ok(thread), Some(queue)) = (&thread, self.core.store.store.queue()) {
            was_queued = queue.remove_queued_run(thread.number, run).await?;
        }
        if self.core.queue.cancel(key, run) || was_queued {
            return Ok(None);
        }
        self.cancel_stored(&thread?, run).await
    }

    async fn cancel_stored(
        &self,
        thread: &Thread,
        run: &RunId,
    ) -> Result<Option<RunRecord>, ThreadError> {
        let record = self.run(thread, run).await?;
        if let Some(shared) = self.core.store.shared() {
            return match shared.request_cancel(thread.number, &record.id).await? {
                CancelRequest::Requested => Ok(None),
                CancelRequest::Ended(record) => Ok(Some(record)),
                CancelRequest::Unknown => Err(ThreadError::NoRun),
            };
        }
        // One that is running is of an earlier process. Maintenance closes it.
        Ok(Some(record).filter(|record| record.status != RunStatus::Running))
    }

    /// Deletes a thread with all its runs. Stops the running one: the streams of its clients end with `thread_deleted`.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn delete(&self, key: &ThreadKey) -> Result<(), ThreadError> {
        let thread = self.thread(key).await?;
        // Completes even if the client leaves.
        CompleteOnDrop::new(self.clone().delete_stored(thread)).await
    }

    /// Deletes all threads of an owner, also if the client leaves. Returns their number.
    ///
    /// # Errors
    /// The error of the store. The threads deleted until then stay deleted.
    pub async fn delete_all(&self, owner: Arc<str>) -> Result<u64, ThreadError> {
        let threads = self.clone();
        CompleteOnDrop::new(async move {
            let mut deleted = 0;
            loop {
                let page = threads.list(&owner, &ThreadPage::first(DELETED_PER_PAGE)).await?;
                if page.is_empty() {
                    let core = &threads.core;
                    deleted += core.store.delete_all(&owner).await?;
                    if let Some(files) = &core.files {
                        files.delete_objects().await?;
                    }
                    return Ok(deleted);
                }
                for thread in page {
                    match threads.clone().delete_stored(thread).await {
                        Ok(()) => deleted += 1,
                        Err(ThreadError::NoThread) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        })
        .await
    }

    async fn delete_stored(self, thread: Thread) -> Result<(), ThreadError> {
        self.core.cache.take(&thread.key);
        let existed = self.core.store.delete(thread.number).await?;
        self.core.publish(&thread.key, ThreadChange::Deleted);
        self.core.queue.stop_queued_of_deleted(&thread.key);
        self.stop_run_of_deleted(&thread).await;
        self.core.stored_bytes.forget(&thread.key.owner);
        self.core.remove_data(&thread.key).await;
        if existed { Ok(()) } else { Err(ThreadError::NoThread) }
    }

    /// Stops the running run of this process, and waits for its end: it may use the data of the thread.
    async fn stop_run_of_deleted(&self, thread: &Thread) {
        let deadline = Instant::now() + RUN_END_TIMEOUT;
        let is_of_thread =
            |run: &Arc<LiveRun>| run.lease().is_some_and(|lease| lease.thread == thread.number);
        let running = || self.core.queue.running(&thread.key).filter(is_of_thread);
        while let Some(running) = running().filter(|_| Instant::now() < deadline) {
            running.control.cancel();
            sleep(RUN_END_POLL).await;
        }
    }

    /// Stores that a follower's client received its run to the end.
    pub async fn delivered(&self, follower: &Follower) {
        if !follower.set_delivered() {
            let (thread, run) = follower.numbers;
            self.core.set_delivered(&follower.key, thread, run, true).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt as _;
    use tokio::{sync::Notify, time::timeout};

    use super::*;
    use crate::{
        Runs,
        host::{RunsBuilder, ThreadData, ThreadEvent},
    };
    use agui_store::{
        CopiedRun, MemoryStore, MessageNumber, RunNumber, Store, ThreadContent, ThreadNumber,
    };

    /// Data whose removal waits.
    #[derive(Default)]
    struct SlowData(Notify);

    #[async_trait::async_trait]
    impl ThreadData for SlowData {
        async fn thread_deleted(&self, _: &ThreadKey) {
            self.0.notified().await;
        }

        async fn threads_swept(&self, _: &dyn Store) {}
    }

    /// The content of a thread with one run.
    fn content(run: &str) -> ThreadContent {
        let record = RunRecord::new(RunNumber(0), ThreadNumber(0), run.into(), "echo".to_owned());
        let run = CopiedRun {
            record,
            head: MessageNumber::ROOT,
            state: None,
            interrupts: Vec::new(),
            answered: Vec::new(),
        };
        ThreadContent { runs: vec![run], ..ThreadContent::default() }
    }

    fn key(owner: &str, id: &str) -> ThreadKey {
        ThreadKey { owner: owner.into(), id: id.into() }
    }

    #[tokio::test]
    async fn a_thread_is_found_by_its_newest_run_among_200() {
        let store = Arc::new(MemoryStore::new());
        let threads = Threads::of(&RunsBuilder { store: store.clone(), ..Runs::builder() }.build());
        let insert = async |owner: &str, id: &str, run: &str| {
            assert!(store.insert(&key(owner, id), &content(run)).await.unwrap());
        };
        let found = async |run: &str| match threads
            .thread_of_run(ThreadKey::ANONYMOUS, &run.into())
            .await
        {
            Ok(thread) => Some(thread.to_string()),
            Err(error) => {
                assert!(matches!(error, ThreadError::NoRun), "{error:?}");
                None
            }
        };
        for (id, run) in [("a", "r"), ("b", "s"), ("c", "r")] {
            insert(ThreadKey::ANONYMOUS, id, run).await;
        }
        insert("key:ann", "d", "r").await;
        assert_eq!(found("r").await.as_deref(), Some("c"), "the newest of the owner");
        assert_eq!((found("s").await.as_deref(), found("other").await), (Some("b"), None));
        for number in 0..MAX_SEARCHED_THREADS {
            assert_eq!(found("s").await.is_some(), number < MAX_SEARCHED_THREADS - 1, "{number}");
            insert(ThreadKey::ANONYMOUS, &number.to_string(), "newer").await;
        }
    }

    #[tokio::test]
    async fn a_deletion_completes_when_its_client_leaves() {
        let (store, data) = (MemoryStore::new(), Arc::<SlowData>::default());
        let key = key(ThreadKey::ANONYMOUS, "t");
        assert!(store.insert(&key, &content("r")).await.unwrap());
        let threads =
            Threads::of(&RunsBuilder { store: Arc::new(store), ..Runs::builder() }.build());
        threads.core.set_data(data.clone());
        let mut changes = threads.follow_changes(key.owner.clone());
        let mut delete = Box::pin(threads.delete(&key));
        assert!((&mut delete).now_or_never().is_none());
        drop(delete);
        data.0.notify_one();
        let change = timeout(Duration::from_secs(9), changes.next()).await.unwrap();
        let Some(ThreadEvent::Changes(change)) = change else {
            panic!("the deletion is announced")
        };
        assert_eq!(change.kinds, [ThreadChange::Deleted]);
    }
}
