//! The log of a detached run, read page by page.

use super::{ThreadError, Threads};
use crate::{
    agent::Principal,
    protocol::{RunId, ThreadId},
    run::{Follower, log::mark::is_mark},
    store::{EventPage, RunRecord, RunStatus},
};

/// The size of a page, in bytes; a page has at least one event.
const PAGE_BYTES: usize = 64 * 1024;

/// The log of a detached run.
#[derive(Debug)]
pub(crate) struct RunLog {
    pub(crate) threads: Threads,
    pub(crate) record: RunRecord,
    /// A reader of a log counts as a follower.
    follower: Follower,
}

/// A part of a log.
#[derive(Debug)]
pub(crate) struct LogPage {
    after: u64,
    page: EventPage,
}

impl Threads {
    /// Returns the log of a detached run, to read it page by page.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub(crate) async fn log(
        &self,
        owner: Option<&Principal>,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<RunLog, ThreadError> {
        let (key, record) = self.detached_run(owner, thread, run).await?;
        let follower = self.follower(&key, &record, 0)?;
        Ok(RunLog { threads: self.clone(), record, follower })
    }
}

impl RunLog {
    /// Reads the stored events that follow the event with number `after`, up to the size of a page.
    ///
    /// # Errors
    /// [`ThreadError::LogRemoved`] or [`ThreadError::Store`].
    pub(crate) async fn page(&self, after: u64) -> Result<LogPage, ThreadError> {
        let page = self
            .threads
            .runs
            .store
            .call("events", |store| store.events(&self.follower.key().owner, self.record.number, after, PAGE_BYTES))
            .await?;
        let page = LogPage { after, page: page.ok_or(ThreadError::LogRemoved)? };
        match page.is_empty() && page.has_ended() && page.last() < page.tail() {
            true => Err(ThreadError::LogRemoved),
            false => Ok(page),
        }
    }
}

impl LogPage {
    /// Returns the events with their numbers and their times, in milliseconds since the run's start.
    pub(crate) fn timed_events(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        let events = self.page.events.iter().map(String::as_str);
        (self.page.first..)
            .zip(self.page.times.iter().zip(events))
            .map(|(number, (time, event))| (number, *time, event))
            .filter(|(_, _, event)| !is_mark(event))
    }

    /// Returns whether the page has no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.page.events.is_empty()
    }

    /// Returns the number of the page's last event; if it is empty, of the event before it.
    pub(crate) fn last(&self) -> u64 {
        self.after.saturating_add(self.page.events.len() as u64)
    }

    /// Returns the number of the log's last event when the page was read.
    pub(crate) fn tail(&self) -> u64 {
        self.page.count
    }

    /// Returns whether no stored event follows the page.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.last() >= self.tail()
    }

    /// Returns whether no event will ever follow the page.
    pub(crate) fn is_closed(&self) -> bool {
        self.has_ended() && self.is_up_to_date()
    }

    fn has_ended(&self) -> bool {
        self.page.status != RunStatus::Running
    }
}
