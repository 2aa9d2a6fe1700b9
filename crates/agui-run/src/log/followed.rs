//! The logs of runs that are followed here while another process runs them.
//!
//! One reader reads all logs with new events in one statement, and shares the events with their
//! followers. A statement for each follower costs the database a core for 160 followers. A new
//! follower reads the log's pages by itself until it is at the end.
//!
//! The process stores which runs it follows. The store signals appends to the logs of these runs
//! only.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::live::{LogChunk, LogEnd, NextChunk, RecentChunks, next_chunk};
use crate::measured_store::MeasuredStore;
use agui_store::{EventPage, RunNumber, RunStatus, SIGNAL_COVERS, StoreError, ThreadNumber, Topic};

/// The interval of polling while no signals arrive.
pub(super) const POLL: Duration = Duration::from_millis(100);
/// The time after which a log without signals is read. Signals can be lost.
const SLOW_POLL: Duration = Duration::from_secs(2);
/// The time within which the signals of several runs lead to one statement.
const READ_INTERVAL: Duration = Duration::from_millis(30);
/// The time that a log is polled after a signal, because not each append is signalled. With a
/// signal for each append, the database has 670 commits a second in place of 530 for 100 runs on
/// eight servers, and notifies each server of 200 of them in place of 17.
const READ_ON: Duration = SIGNAL_COVERS.saturating_add(READ_INTERVAL.saturating_mul(2));
/// The interval of storing the followed runs again. The store keeps them longer.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(20);
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of logs that are read with one statement.
const MAX_LOGS: usize = 256;
/// The approximate size of the events that are read of each log.
const PAGE_BYTES: usize = 16 * 1024;
/// The bytes of the newest events of a log that are kept for its followers.
const MAX_RECENT_BYTES: usize = 16 * 1024;

/// The logs of other processes that are followed here.
pub(crate) struct FollowedLogs {
    pub store: MeasuredStore,
    logs: Mutex<HashMap<RunNumber, Weak<FollowedLog>>>,
    due: Arc<Notify>,
}

/// A log of another process. Its followers own it.
pub(crate) struct FollowedLog {
    thread: ThreadNumber,
    run: RunNumber,
    is_due: Arc<AtomicBool>,
    state: Mutex<FollowedState>,
    changed: Notify,
    /// Waits for signals. Aborted when it is dropped.
    _signals: JoinSet<()>,
}

struct FollowedState {
    recent: RecentChunks,
    /// The number of the last event that was read.
    last: u64,
    read_at: Option<Instant>,
    read_on_until: Instant,
    end: Option<LogEnd>,
}

impl FollowedLogs {
    pub(crate) fn new(store: MeasuredStore) -> Arc<Self> {
        Arc::new(Self { store, logs: Mutex::default(), due: Arc::default() })
    }

    /// Returns the log of a run. If nobody follows it yet, it begins after the event with number `after`.
    pub(crate) fn join(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        after: u64,
    ) -> Arc<FollowedLog> {
        let mut logs = self.logs.lock();
        if let Some(log) =
            logs.get(&run).and_then(Weak::upgrade).filter(|log| log.state.lock().end.is_none())
        {
            return log;
        }
        let (is_due, mut signals) = (Arc::new(AtomicBool::new(true)), JoinSet::new());
        if let Some(shared) = self.store.shared() {
            let mut watch = shared.signals().watch(Topic::Run(run));
            let is_due = is_due.clone();
            let due = self.due.clone();
            signals.spawn(async move {
                loop {
                    watch.changed().await;
                    is_due.store(true, Ordering::Relaxed);
                    due.notify_one();
                }
            });
        }
        let (recent, read_on_until) = (RecentChunks::default(), Instant::now());
        let state = FollowedState { recent, last: after, read_at: None, read_on_until, end: None };
        let (state, changed) = (Mutex::new(state), Notify::new());
        let log = Arc::new(FollowedLog { thread, run, is_due, state, changed, _signals: signals });
        logs.insert(run, Arc::downgrade(&log));
        self.due.notify_one();
        log
    }

    /// Reads the logs that have new events, in a loop.
    pub(crate) async fn read_regularly(&self) {
        let mut next = Instant::now();
        let mut renewed = Instant::now();
        let mut failing_since = None;
        let mut reads_on = false;
        loop {
            let is_live = self.store.shared().is_some_and(|shared| shared.signals().is_live());
            let interval = if is_live && failing_since.is_none() { SLOW_POLL } else { POLL };
            let is_idle = self.logs.lock().is_empty();
            if !reads_on {
                let _ =
                    timeout(if is_idle { Duration::MAX } else { interval }, self.due.notified())
                        .await;
            }
            sleep_until(next).await;
            next = Instant::now() + READ_INTERVAL;
            let logs = self.followed();
            let is_renewal = renewed.elapsed() > RENEWAL_INTERVAL;
            if is_renewal {
                renewed = Instant::now();
            }
            let due: Vec<_> = logs.iter().filter(|log| log.take_due(interval)).collect();
            reads_on = due.iter().any(|log| log.reads_on());
            let Err(error) =
                self.read(if is_renewal { logs.iter().collect() } else { Vec::new() }, &due).await
            else {
                failing_since = None;
                continue;
            };
            let is_over = failing_since.get_or_insert(next).elapsed() > STORE_TIMEOUT;
            if error.is_transient() && !is_over {
                due.iter().for_each(|log| log.is_due.store(true, Ordering::Relaxed));
            } else {
                tracing::error!(%error, runs = due.len(), "the logs of runs could not be read together; reading each one alone");
                due.iter().for_each(|log| log.end(LogEnd::Lost));
            }
        }
    }

    /// Returns the logs that have followers.
    fn followed(&self) -> Vec<Arc<FollowedLog>> {
        let mut logs = self.logs.lock();
        logs.retain(|_, log| log.strong_count() > 0);
        logs.values().filter_map(Weak::upgrade).collect()
    }

    /// Reads the logs that are due. First stores that this process follows the new ones and
    /// `renewal`.
    async fn read(
        &self,
        mut renewal: Vec<&Arc<FollowedLog>>,
        due: &[&Arc<FollowedLog>],
    ) -> Result<(), StoreError> {
        renewal.extend(due.iter().filter(|log| log.state.lock().read_at.is_none()));
        if let Some(shared) = self.store.shared().filter(|_| !renewal.is_empty()) {
            shared.follow(&renewal.iter().map(|log| log.thread).collect::<Vec<_>>()).await?;
        }
        for logs in due.chunks(MAX_LOGS) {
            let after = logs.iter().map(|log| (log.run, log.state.lock().last)).collect();
            let mut pages = self.store.events_of_runs(&after, PAGE_BYTES).await?;
            for log in logs {
                if log.add(pages.remove(&log.run)) {
                    log.is_due.store(true, Ordering::Relaxed);
                    self.due.notify_one();
                }
            }
        }
        Ok(())
    }
}

impl FollowedLog {
    /// Waits until there is something after the event with number `after`.
    pub(crate) async fn next(&self, after: u64) -> NextChunk {
        next_chunk(&self.changed, || {
            let state = self.state.lock();
            state.recent.next(after, state.last, state.end)
        })
        .await
    }

    fn take_due(&self, interval: Duration) -> bool {
        let mut state = self.state.lock();
        if self.is_due.swap(false, Ordering::Relaxed) {
            state.read_on_until = Instant::now() + READ_ON;
        }
        let is_silent = state.read_at.is_none_or(|at| at.elapsed() >= interval);
        state.end.is_none() && (is_silent || Instant::now() < state.read_on_until)
    }

    fn reads_on(&self) -> bool {
        Instant::now() < self.state.lock().read_on_until
    }

    fn end(&self, end: LogEnd) {
        self.state.lock().end.get_or_insert(end);
        self.changed.notify_waiters();
    }

    /// Adds a page; `None` if there is no such run. Returns whether more events are stored.
    fn add(&self, page: Option<EventPage>) -> bool {
        // Each follower then reads alone, and finds the reason.
        let Some(page) = page else {
            self.end(LogEnd::Lost);
            return false;
        };
        let mut state = self.state.lock();
        state.read_at = Some(Instant::now());
        let has_events = !page.events.is_empty();
        if has_events {
            let chunk = LogChunk::new(page.first, page.events);
            state.last = chunk.last();
            state.recent.push(chunk, MAX_RECENT_BYTES);
        }
        let is_all = state.last >= page.count;
        if page.status != RunStatus::Running && (is_all || !has_events) {
            // Retention removes the logs of ended runs.
            state.end = Some(if is_all { LogEnd::Complete } else { LogEnd::Lost });
        }
        drop(state);
        self.changed.notify_waiters();
        has_events && !is_all
    }
}
