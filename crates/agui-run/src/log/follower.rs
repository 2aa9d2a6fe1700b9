//! Follows the log of a run from any event to its end, in whichever process the run is.

use std::{any::Any, borrow::Cow, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::{
    followed::{FollowedLog, FollowedLogs, POLL, STORE_TIMEOUT},
    live::{LiveLog, LogChunk, LogEnd, NextChunk, to_line},
};
use agui_base::permits::Permit;
use agui_observe::metrics::GaugeCount;
use agui_protocol::{Event, RunId};
use agui_store::{EventPage, RunNumber, RunRecord, RunStatus, StoreError, ThreadKey, ThreadNumber};

/// The size of the events that are read at once. A follower keeps them until its client has read
/// them.
const PAGE_BYTES: usize = 64 * 1024;
/// The time of the first read after this process has lost the log.
const LOST_READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Events of this type name the run. Events are written with their type first.
const LIFECYCLE: &str = r#"{"type":"RUN_"#;

/// An error of following a log.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The thread was deleted.
    #[error("the thread of this run was deleted")]
    ThreadDeleted,
    /// The log of the run was removed.
    #[error("the log of this run was removed")]
    Gone,
    /// This process stops, and another one continues the run.
    #[error("the run was handed over to another server")]
    HandedOver,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The begin of a queued run.
pub(crate) enum QueueEnd {
    Begun(Box<Follower>),
    /// It has no log. These lines are its whole response.
    NotBegun(Vec<String>),
}

/// Follows a run's log.
pub struct Follower {
    logs: Arc<FollowedLogs>,
    pub key: ThreadKey,
    pub run_id: RunId,
    /// The numbers of the thread and of the run.
    pub numbers: (ThreadNumber, RunNumber),
    after: u64,
    /// The begin of a run that is queued.
    queued: Option<Mutex<BoxFuture<'static, Result<QueueEnd, FollowError>>>>,
    is_complete: bool,
    /// Events for this reader after the first one of the log.
    snapshots: Vec<Event>,
    /// The log, if this process runs the run.
    live: Option<Arc<LiveLog>>,
    /// The log, if another process runs the run and this follower has read all older events.
    followed: Option<Arc<FollowedLog>>,
    /// True if nothing is to be stored after the last event: the run was delivered before, or failed.
    has_no_delivery: bool,
    /// The id by which the reader's client calls the run, if it is another one.
    alias: Option<RunId>,
    /// Dropped with the follower: ends a run that has no other client.
    _held: Option<Box<dyn Any + Send + Sync>>,
    /// True after this process has lost the log, until the store has been read. It may have lost the store, too.
    is_lost: bool,
    /// Each follower has a page of its log in memory.
    _permit: Option<Permit>,
    _count: GaugeCount,
}

impl Follower {
    /// Follows a run of this process. `permit` is `None` for the response that starts the run: the
    /// number of detached runs has its own limit.
    pub(crate) fn from_live_log(
        logs: &Arc<FollowedLogs>,
        key: ThreadKey,
        run_id: RunId,
        live: Arc<LiveLog>,
        permit: Option<Permit>,
    ) -> Self {
        let numbers = (live.lease.thread, live.lease.run);
        Self { live: Some(live), ..Self::new(logs, key, run_id, numbers, permit) }
    }

    pub(crate) fn from_stored_run(
        logs: &Arc<FollowedLogs>,
        key: ThreadKey,
        run: &RunRecord,
        after: u64,
        permit: Permit,
    ) -> Self {
        let follower = Self::new(logs, key, run.id.clone(), (run.thread, run.number), Some(permit));
        Self { after, has_no_delivery: run.delivered, ..follower }
    }

    /// Follows a queued run from its begin.
    pub(crate) fn from_queued_run(
        logs: &Arc<FollowedLogs>,
        key: ThreadKey,
        run_id: RunId,
        permit: Option<Permit>,
        queued: impl Future<Output = Result<QueueEnd, FollowError>> + Send + 'static,
    ) -> Self {
        let queued: BoxFuture<'static, _> = Box::pin(queued);
        let follower = Self::new(logs, key, run_id, Default::default(), permit);
        Self { queued: Some(Mutex::new(queued)), has_no_delivery: true, ..follower }
    }

    fn new(
        logs: &Arc<FollowedLogs>,
        key: ThreadKey,
        run_id: RunId,
        numbers: (ThreadNumber, RunNumber),
        permit: Option<Permit>,
    ) -> Self {
        Self {
            logs: logs.clone(),
            key,
            run_id,
            numbers,
            after: 0,
            queued: None,
            is_complete: false,
            snapshots: Vec::new(),
            live: None,
            followed: None,
            has_no_delivery: false,
            alias: None,
            _held: None,
            is_lost: false,
            _permit: permit,
            _count: GaugeCount::new(&logs.store.metrics().runs.followers),
        }
    }

    /// Adds events for this reader, which come after the first one of the log.
    pub(crate) fn with_snapshots(self, snapshots: Vec<Event>) -> Self {
        Self { snapshots, ..self }
    }

    /// Takes the events that come after the first one of the log.
    pub fn take_snapshots(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.snapshots)
    }

    /// Returns whether events come after the first one of the log.
    pub fn has_snapshots(&self) -> bool {
        !self.snapshots.is_empty()
    }

    /// Holds a value until the follower is dropped.
    pub(crate) fn holding(self, held: impl Send + Sync + 'static) -> Self {
        Self { _held: Some(Box::new(held)), ..self }
    }

    /// The reader's client calls the run so.
    pub(crate) fn called(self, run_id: &RunId) -> Self {
        let alias = (self.run_id != *run_id).then(|| run_id.clone());
        Self { alias, ..self }
    }

    /// Returns a line of the log with the id by which the reader's client calls the run.
    pub fn renamed<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let Some(alias) = self.alias.as_ref().filter(|_| line.starts_with(LIFECYCLE)) else {
            return line.into();
        };
        match serde_json::from_str(line) {
            Ok(Event::RunStarted(mut started)) => {
                started.run_id = alias.clone();
                to_line(&Event::RunStarted(started)).into()
            }
            Ok(Event::RunFinished(mut finished)) => {
                finished.run_id = alias.clone();
                to_line(&Event::RunFinished(finished)).into()
            }
            _ => line.into(),
        }
    }

    /// Continues after the event with this number.
    pub(crate) fn after(self, number: u64) -> Self {
        Self { after: number, ..self }
    }

    pub(crate) fn with_live(mut self, live: Option<Arc<LiveLog>>) -> Self {
        self.live = live;
        self
    }

    /// Notes that a client received the run to its end. Returns whether that needs no write.
    pub fn set_delivered(&self) -> bool {
        self.has_no_delivery || self.live.as_ref().is_some_and(|live| live.set_delivered())
    }

    /// Returns to the first event.
    pub fn rewind(&mut self) {
        self.after = 0;
    }

    /// Waits for the next events. Returns `None` after the last one. Cancel-safe.
    ///
    /// # Errors
    /// [`FollowError::ThreadDeleted`], [`FollowError::Gone`] if the log was removed, [`FollowError::HandedOver`] if this
    /// process stops, and [`FollowError::Store`] if the store fails, is unavailable for 30 seconds, or is unavailable after
    /// this process has lost the log.
    pub async fn next(&mut self) -> Result<Option<LogChunk>, FollowError> {
        if let Some(queued) = &mut self.queued {
            let begun = queued.get_mut().await;
            self.queued = None;
            match begun? {
                QueueEnd::Begun(follower) => {
                    let Self { alias, _permit, after, .. } = std::mem::replace(self, *follower);
                    (self.alias, self.after) = (alias.or(self.alias.take()), after);
                    self._permit = _permit.or(self._permit.take());
                }
                QueueEnd::NotBegun(lines) => {
                    self.is_complete = true;
                    return Ok(Some(LogChunk::new(1, lines)));
                }
            }
        }
        if self.is_complete {
            return Ok(None);
        }
        loop {
            let next = match (&self.live, &self.followed) {
                (Some(live), _) => live.next(self.after).await,
                (None, Some(followed)) => followed.next(self.after).await,
                (None, None) => NextChunk::Older,
            };
            let next = if let NextChunk::Older = next { self.next_page().await? } else { next };
            match next {
                NextChunk::Available(chunk, lag) => {
                    self.logs.store.metrics().runs.follower_lag.observe(lag as f64);
                    let rest = chunk.skip_to(self.after);
                    self.after = self.after.max(rest.last());
                    self.has_no_delivery |= rest.ends_with_error();
                    return Ok(Some(rest));
                }
                // There is no new event yet.
                NextChunk::Older => {}
                NextChunk::End(LogEnd::Complete) => return Ok(None),
                // The process that continues the run stores its end, or the store was unavailable
                // for long.
                NextChunk::End(LogEnd::Lost) => {
                    (self.live, self.followed, self.is_lost) = (None, None, true)
                }
                NextChunk::End(LogEnd::HandedOver) => return Err(FollowError::HandedOver),
            }
        }
    }

    /// Reads a page of the log from the store. Joins the other followers of the run when nothing follows the page.
    async fn next_page(&mut self) -> Result<NextChunk, FollowError> {
        let mut failing_since = None;
        let (thread, run) = self.numbers;
        loop {
            let after = self.after;
            match self.read(run).await {
                Ok(Some(page)) => {
                    self.is_lost = false;
                    let last = after + page.events.len() as u64;
                    let (is_running, is_newest) =
                        (page.status == RunStatus::Running, page.count <= last);
                    if is_running && is_newest && self.live.is_none() {
                        self.followed = Some(self.logs.join(thread, run, last));
                    }
                    match (page.events.is_empty(), is_running) {
                        (false, _) => {
                            let lag = page.count.saturating_sub(last);
                            return Ok(NextChunk::Available(
                                LogChunk::new(page.first, page.events),
                                lag,
                            ));
                        }
                        (true, true) if self.followed.is_some() => return Ok(NextChunk::Older),
                        // The log in memory is older than the stored one.
                        (true, true) => failing_since = None,
                        // Retention removes the logs of ended runs, and a deletion the rows of a log in steps.
                        (true, false) if !is_newest => return Err(self.removed(thread).await?),
                        (true, false) => return Ok(NextChunk::End(LogEnd::Complete)),
                    }
                }
                Ok(None) => return Err(self.removed(thread).await?),
                Err(error) if error.is_transient() && !self.is_lost => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > STORE_TIMEOUT {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            sleep(POLL).await;
        }
    }

    /// Returns why the log cannot be read any more.
    async fn removed(&self, thread: ThreadNumber) -> Result<FollowError, StoreError> {
        let is_deleted = self.logs.store.is_deleted(&self.key, thread).await?;
        Ok(if is_deleted { FollowError::ThreadDeleted } else { FollowError::Gone })
    }

    async fn read(&self, run: RunNumber) -> Result<Option<EventPage>, StoreError> {
        let read = self.logs.store.events(&self.key.owner, run, self.after, PAGE_BYTES);
        if !self.is_lost {
            return read.await;
        }
        let read = timeout(LOST_READ_TIMEOUT, read).await;
        read.map_err(|_| StoreError::Unavailable("no response after the lease was lost".into()))?
    }
}
