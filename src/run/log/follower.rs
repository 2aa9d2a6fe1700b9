//! Follows a run's log from any event to its end, wherever the run goes on.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{
    chunk::LogChunk,
    live::{LiveLog, LogEnd, Newest},
};
use crate::{
    protocol::RunId,
    store::{RunRecord, RunStatus, SharedStore, Store, StoreError, ThreadKey, Topic},
};

/// How much is read from the store at a time.
const PAGE_BYTES: usize = 256 * 1024;
/// How often the store is asked about a run of another process while no signals arrive, at first and at most.
const POLL: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];
/// The same while signals arrive, which can be missed.
const POLL_BESIDE_SIGNALS: Duration = Duration::from_secs(2);
/// For how long a store that does not answer is asked again.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a log cannot be followed to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// The thread was deleted, or the run replaced or its log removed.
    #[error("the log of this run is gone")]
    Gone,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Follows a run's log.
pub struct Follower {
    store: Arc<dyn Store>,
    key: ThreadKey,
    run_id: RunId,
    /// The thread's and the run's number.
    numbers: (i64, i64),
    after: u64,
    live: Option<Arc<LiveLog>>,
    /// Whether it is known that a client was sent the whole run.
    is_delivered: bool,
}

impl Follower {
    /// Follows a run of this process from its first event.
    pub(in crate::run) fn of_live(store: Arc<dyn Store>, key: ThreadKey, run_id: RunId, live: Arc<LiveLog>) -> Self {
        let numbers = (live.lease().thread, live.lease().run);
        Self { store, key, run_id, numbers, after: 0, live: Some(live), is_delivered: false }
    }

    /// Follows a stored run after the event with a number.
    pub(in crate::run) fn of_stored(store: Arc<dyn Store>, key: ThreadKey, run: &RunRecord, after: u64) -> Self {
        let (numbers, is_delivered) = ((run.thread, run.number), run.delivered);
        Self { store, key, run_id: run.id.clone(), numbers, after, live: None, is_delivered }
    }

    /// Reads the newest events from memory, if they are there.
    pub(in crate::run) fn with_live(mut self, live: Option<Arc<LiveLog>>) -> Self {
        self.live = live;
        self
    }

    /// The thread that the run belongs to.
    pub(in crate::run) fn key(&self) -> &ThreadKey {
        &self.key
    }

    pub(in crate::run) fn numbers(&self) -> (i64, i64) {
        self.numbers
    }

    /// Returns whether it is known that a client was sent the run to its end. From now on it is.
    pub(in crate::run) fn is_delivered(&self) -> bool {
        self.live.as_ref().map_or(self.is_delivered, |live| live.set_delivered())
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The number of the last event that was returned.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Returns the next events: those that are there, or the next ones that come. `None` after the last one. Dropping
    /// the future loses nothing.
    ///
    /// # Errors
    /// [`FollowError::Gone`] when the log is gone, [`FollowError::Store`] when the store fails for longer than 30 s.
    pub async fn next(&mut self) -> Result<Option<LogChunk>, FollowError> {
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

    async fn next_live(&mut self, live: &LiveLog) -> Result<Option<LogChunk>, FollowError> {
        loop {
            let changed = live.changed();
            match live.newest(self.after) {
                Newest::LogChunk(chunk) => return Ok(Some(chunk)),
                Newest::Older => return self.next_stored().await,
                Newest::End(LogEnd::Complete) => return Ok(None),
                Newest::End(LogEnd::Lost) => {
                    // Whoever took the run over ends it.
                    self.live = None;
                    return self.next_stored().await;
                }
                Newest::None => changed.await,
            }
        }
    }

    async fn next_stored(&self) -> Result<Option<LogChunk>, FollowError> {
        let [mut poll, slowest] = POLL;
        let signals = self.store.shared().map(SharedStore::signals);
        let mut watch = signals.map(|signals| signals.watch(Topic::Run(self.numbers.1)));
        let mut failing_since = None;
        loop {
            match self.store.events(self.numbers.1, self.after, PAGE_BYTES).await {
                Ok(Some(page)) => {
                    if !page.events.is_empty() {
                        return Ok(Some(LogChunk::new(page.first, page.events)));
                    }
                    match page.status {
                        RunStatus::Running => {}
                        // The log of an ended run is removed some day.
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
            let patience = if is_live && failing_since.is_none() { POLL_BESIDE_SIGNALS } else { poll };
            match &mut watch {
                // After that time the store is asked all the same.
                Some(watch) => drop(timeout(patience, watch.changed()).await),
                None => tokio::time::sleep(poll).await,
            }
            poll = (poll * 2).min(slowest);
        }
    }
}
