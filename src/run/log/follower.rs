//! Follows the log of a run from any event to its end, in whichever process the run is.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::live::{LiveLog, LogChunk, LogEnd, NextChunk};
use crate::run::{limits::owner_limit::OwnerPermit, measured_store::MeasuredStore, turn::thread_runs::ThreadRuns};
use crate::{
    observe::metrics::{GaugeCount, Metrics},
    protocol::RunId,
    store::{RunRecord, RunStatus, SharedStore, StoreError, ThreadKey, Topic},
};

/// The size of the events that are read at once. A follower has them in memory until its client has taken them.
const PAGE_BYTES: usize = 64 * 1024;
/// The first and the longest interval of polling for events of another process, while no signals arrive.
const POLL_BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];
/// The interval while signals arrive. Signals can be lost.
const SLOW_POLL: Duration = Duration::from_secs(2);
const STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// An error of following a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FollowError {
    /// The thread was deleted, the run was replaced, or its log was removed.
    #[error("the log of this run was removed")]
    Gone,
    /// This process stops, and another one goes on with the run.
    #[error("the run was handed over to another server")]
    HandedOver,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Follows a run's log.
pub(crate) struct Follower {
    store: MeasuredStore,
    pub(crate) key: ThreadKey,
    pub(crate) run_id: RunId,
    /// The numbers of the thread and of the run.
    pub(crate) numbers: (i64, i64),
    after: u64,
    live: Option<Arc<LiveLog>>,
    is_delivered: bool,
    /// Each follower has a page of its log in memory.
    _permit: Option<OwnerPermit>,
    _count: GaugeCount,
    metrics: Metrics,
}

impl Follower {
    /// `permit` is `None` for the response that starts the run: the number of detached runs has a limit of its own.
    pub(crate) fn from_live_log(
        threads: &ThreadRuns,
        key: ThreadKey,
        run_id: RunId,
        live: Arc<LiveLog>,
        permit: Option<OwnerPermit>,
    ) -> Self {
        let numbers = (live.lease.thread, live.lease.run);
        Self { live: Some(live), ..Self::new(threads, key, run_id, numbers, permit) }
    }

    pub(crate) fn from_stored_run(
        threads: &ThreadRuns,
        key: ThreadKey,
        run: &RunRecord,
        after: u64,
        permit: OwnerPermit,
    ) -> Self {
        let follower = Self::new(threads, key, run.id.clone(), (run.thread, run.number), Some(permit));
        Self { after, is_delivered: run.delivered, ..follower }
    }

    fn new(
        threads: &ThreadRuns,
        key: ThreadKey,
        run_id: RunId,
        numbers: (i64, i64),
        permit: Option<OwnerPermit>,
    ) -> Self {
        Self {
            store: threads.store.clone(),
            key,
            run_id,
            numbers,
            after: 0,
            live: None,
            is_delivered: false,
            _permit: permit,
            _count: GaugeCount::new(&threads.metrics.runs.followers),
            metrics: threads.metrics.clone(),
        }
    }

    pub(crate) fn with_live(mut self, live: Option<Arc<LiveLog>>) -> Self {
        self.live = live;
        self
    }

    pub(crate) fn set_delivered(&self) -> bool {
        self.live.as_ref().map_or(self.is_delivered, |live| live.set_delivered())
    }

    /// Goes back to the first event.
    pub(crate) fn rewind(&mut self) {
        self.after = 0;
    }

    /// Waits for the next events. Returns `None` after the last one. Cancel-safe.
    ///
    /// # Errors
    /// [`FollowError::Gone`] if the log was removed, [`FollowError::Store`] if the store fails, or is unavailable for 30 s.
    pub(crate) async fn next(&mut self) -> Result<Option<LogChunk>, FollowError> {
        let chunk = match self.live.clone() {
            Some(live) => self.next_live(&live).await?,
            None => self.next_stored().await?,
        };
        Ok(chunk.map(|chunk| {
            let rest = chunk.skip_to(self.after);
            self.after = self.after.max(rest.last());
            rest
        }))
    }

    async fn next_live(&mut self, live: &LiveLog) -> Result<Option<LogChunk>, FollowError> {
        loop {
            let changed = live.changed();
            match live.next_chunk(self.after) {
                NextChunk::Available(chunk, lag) => {
                    self.metrics.runs.follower_lag.observe(lag as f64);
                    return Ok(Some(chunk));
                }
                NextChunk::Older => return self.next_stored().await,
                NextChunk::End(LogEnd::Complete) => return Ok(None),
                NextChunk::End(LogEnd::Lost) => {
                    // The process that took the run over writes its end to the store.
                    self.live = None;
                    return self.next_stored().await;
                }
                NextChunk::End(LogEnd::HandedOver) => return Err(FollowError::HandedOver),
                NextChunk::None => changed.await,
            }
        }
    }

    async fn next_stored(&self) -> Result<Option<LogChunk>, FollowError> {
        let [mut poll, longest] = POLL_BACKOFF;
        let signals = self.store.shared().map(SharedStore::signals);
        let mut watch = signals.map(|signals| signals.watch(Topic::Run(self.numbers.1)));
        let mut failing_since = None;
        loop {
            match self
                .store
                .call("events", |store| store.events(&self.key.owner, self.numbers.1, self.after, PAGE_BYTES))
                .await
            {
                Ok(Some(page)) => {
                    if !page.events.is_empty() {
                        let last = page.first + page.events.len() as u64 - 1;
                        self.metrics.runs.follower_lag.observe(page.count.saturating_sub(last) as f64);
                        return Ok(Some(LogChunk::new(page.first, page.events)));
                    }
                    match page.status {
                        RunStatus::Running => {}
                        // Retention removes the logs of ended runs.
                        _ if page.count > self.after => return Err(FollowError::Gone),
                        _ => return Ok(None),
                    }
                    failing_since = None;
                }
                Ok(None) => return Err(FollowError::Gone),
                Err(error) if error.is_transient() => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > STORE_TIMEOUT {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            let is_live = signals.is_some_and(crate::store::Signals::is_live);
            let interval = if is_live && failing_since.is_none() { SLOW_POLL } else { poll };
            match &mut watch {
                Some(watch) => drop(timeout(interval, watch.changed()).await),
                None => tokio::time::sleep(poll).await,
            }
            poll = (poll * 2).min(longest);
        }
    }
}
