//! The log of a detached run, read page by page from any position.

use std::sync::Arc;

use super::{
    LookupError, Threads,
    log::{FollowError, Follower},
};
use crate::{
    agent::Principal,
    protocol::{RunId, ThreadId},
    store::{EventPage, Millis, RunRecord, RunStatus},
};

/// The size of a page, in bytes; a page has at least one event.
const PAGE_BYTES: usize = 64 * 1024;

/// The log of a detached run.
#[derive(Debug)]
pub struct RunLog {
    pub(super) threads: Arc<Threads>,
    pub(super) record: RunRecord,
    follower: Follower,
}

/// A part of a log.
#[derive(Debug)]
pub struct LogPage {
    after: u64,
    page: EventPage,
}

impl Threads {
    /// Returns the log of a detached run, to read it page by page.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn log(
        self: &Arc<Self>,
        owner: Option<&Principal>,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<RunLog, LookupError> {
        let (key, record) = self.detached_run(owner, thread, run).await?;
        let follower = self.follower(&key, &record, 0)?;
        Ok(RunLog { threads: self.clone(), record, follower })
    }
}

impl RunLog {
    /// Returns the time when the run began, in milliseconds since 1970.
    pub fn started_at(&self) -> Millis {
        self.record.started_at
    }

    /// Returns the follower that tells whether the run was delivered.
    pub fn follower(&self) -> &Follower {
        &self.follower
    }

    /// Reads the stored events that follow the event with number `after`, up to the size of a page.
    ///
    /// # Errors
    /// [`LookupError::LogRemoved`] or [`LookupError::Store`].
    pub async fn page(&self, after: u64) -> Result<LogPage, LookupError> {
        let page = self.threads.store.events(self.record.number, after, PAGE_BYTES).await?;
        let page = LogPage { after, page: page.ok_or(LookupError::LogRemoved)? };
        match page.is_empty() && page.has_ended() && page.last() < page.tail() {
            true => Err(LookupError::LogRemoved),
            false => Ok(page),
        }
    }

    /// Returns the empty page after the last stored event.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub async fn end(&self) -> Result<LogPage, LookupError> {
        let page = self.threads.store.events(self.record.number, u64::MAX, 0).await?;
        let page = page.ok_or(LookupError::LogRemoved)?;
        if page.status != RunStatus::Running && page.count > 0 {
            // A log that was removed has kept its number of events.
            self.page(page.count - 1).await?;
        }
        Ok(LogPage { after: page.count, page })
    }

    /// Waits until the log has events after the event with number `after`, or the run has ended. Cancel-safe.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub async fn changed(&mut self, after: u64) -> Result<(), LookupError> {
        self.follower.skip_to(after);
        match self.follower.next().await {
            Ok(_) => Ok(()),
            Err(FollowError::Gone) => Err(LookupError::LogRemoved),
            Err(FollowError::Store(error)) => Err(error.into()),
        }
    }
}

impl LogPage {
    /// Returns the events, each one line of JSON.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.page.events.iter().map(String::as_str)
    }

    /// Returns the events with their numbers and their times, in milliseconds since the run's start.
    pub(super) fn timed_events(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        let events = self.page.events.iter().map(String::as_str);
        (self.page.first..)
            .zip(self.page.times.iter().zip(events))
            .map(|(number, (time, event))| (number, *time, event))
    }

    /// Returns whether the page has no events.
    pub fn is_empty(&self) -> bool {
        self.page.events.is_empty()
    }

    /// Returns the number of the event before the page.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Returns the number of the page's last event; if it is empty, of the event before it.
    pub fn last(&self) -> u64 {
        self.after.saturating_add(self.page.events.len() as u64)
    }

    /// Returns the number of the log's last event when the page was read.
    pub fn tail(&self) -> u64 {
        self.page.count
    }

    /// Returns whether no stored event follows the page.
    pub fn is_up_to_date(&self) -> bool {
        self.last() >= self.tail()
    }

    /// Returns whether no event will ever follow the page.
    pub fn is_closed(&self) -> bool {
        self.has_ended() && self.is_up_to_date()
    }

    fn has_ended(&self) -> bool {
        self.page.status != RunStatus::Running
    }
}
