//! Follows a run's log from any event to its end, wherever the run goes on.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::live::{End, LiveLog, Newest};
use crate::{
    protocol::{RunId, ThreadId},
    store::{RunStatus, Store, StoreError},
};

/// How much is read from the store at a time.
const PAGE: usize = 256 * 1024;
/// How often the store is asked about a run of another process. More seldom while nothing happens.
const POLL: Duration = Duration::from_millis(50);
const SLOWEST_POLL: Duration = Duration::from_millis(400);
/// For how long a store that does not answer is asked again.
const PATIENCE: Duration = Duration::from_secs(30);

/// Consecutive events of a run.
#[derive(Debug, Clone)]
pub struct Chunk {
    first: u64,
    events: Arc<[String]>,
    /// How many of them to pass over.
    skip: usize,
}

impl Chunk {
    /// Events, each as one line of JSON; the first has this number. A run's events are numbered from 1.
    pub(super) fn new(first: u64, events: Vec<String>) -> Self {
        Self { first, events: events.into(), skip: 0 }
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        (self.first + self.events.len() as u64).saturating_sub(1)
    }

    /// The events with their numbers, each as one line of JSON.
    pub fn events(&self) -> impl Iterator<Item = (u64, &str)> {
        (self.first..).zip(self.events.iter().map(String::as_str)).skip(self.skip)
    }

    /// Whether the event that follows the one with number `after` is in it.
    pub(super) fn continues(&self, after: u64) -> bool {
        self.first <= after + 1 && self.last() > after
    }

    /// How many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        self.events.iter().map(String::len).sum()
    }

    fn after(mut self, after: u64) -> Self {
        self.skip = usize::try_from((after + 1).saturating_sub(self.first)).unwrap_or(usize::MAX);
        self
    }
}

/// Why a log cannot be followed to its end.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The thread was deleted, or the run replaced or its log removed.
    #[error("the log of this run is gone")]
    Gone,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Follows a run's log.
pub struct Tail {
    store: Arc<dyn Store>,
    thread_id: ThreadId,
    run_id: RunId,
    run_number: i64,
    after: u64,
    live: Option<Arc<LiveLog>>,
}

impl Tail {
    pub(in crate::run) fn new(
        store: Arc<dyn Store>,
        (thread_id, run_id, run_number): (ThreadId, RunId, i64),
        after: u64,
        live: Option<Arc<LiveLog>>,
    ) -> Self {
        Self { store, thread_id, run_id, run_number, after, live }
    }

    /// The thread that the run belongs to.
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The number of the last event that was returned.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The next events: those that are there, or the next ones that come. `None` after the last one. Dropping the
    /// future loses nothing.
    ///
    /// # Errors
    /// When the log is gone, or the store fails for longer than a while.
    pub async fn next(&mut self) -> Result<Option<Chunk>, TailError> {
        let chunk = match self.live.clone() {
            Some(live) => self.next_live(&live).await?,
            None => self.next_stored().await?,
        };
        Ok(chunk.map(|chunk| {
            let rest = chunk.after(self.after);
            self.after = self.after.max(rest.last());
            rest
        }))
    }

    async fn next_live(&mut self, live: &LiveLog) -> Result<Option<Chunk>, TailError> {
        loop {
            let changed = live.changed();
            match live.newest(self.after) {
                Newest::Chunk(chunk) => return Ok(Some(chunk)),
                Newest::Older => return self.next_stored().await,
                Newest::End(End::Complete) => return Ok(None),
                Newest::End(End::Lost) => {
                    // Whoever took the run over ends it.
                    self.live = None;
                    return self.next_stored().await;
                }
                Newest::None => changed.await,
            }
        }
    }

    async fn next_stored(&self) -> Result<Option<Chunk>, TailError> {
        let (mut poll, mut failing_since) = (POLL, None);
        loop {
            match self.store.events(&self.thread_id, &self.run_id, self.after, PAGE).await {
                Ok(Some(page)) if page.run.number == self.run_number => {
                    if !page.events.is_empty() {
                        return Ok(Some(Chunk::new(page.first, page.events)));
                    }
                    match page.run.status {
                        RunStatus::Running => {}
                        // The log of an ended run is removed some day.
                        _ if page.run.events > self.after => return Err(TailError::Gone),
                        _ => return Ok(None),
                    }
                    failing_since = None;
                }
                Ok(_) => return Err(TailError::Gone),
                Err(error) if error.is_transient() => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            sleep(poll).await;
            poll = (poll * 2).min(SLOWEST_POLL);
        }
    }
}
