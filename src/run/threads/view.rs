//! Threads and runs as their owner sees them: listed, read, followed, cancelled, deleted.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::Threads;
use crate::{
    agent::Principal,
    protocol::{RunId, ThreadId},
    run::log::Tail,
    store::{CancelRequest, RunRecord, RunStatus, StoreError, Thread, ThreadPage, ThreadSummary},
};

/// How long a deleted thread's run may take to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long a client may have left without the server having noticed.
const NOTICE: Duration = Duration::from_millis(250);
/// How often it is looked for.
const POLL: Duration = Duration::from_millis(20);

/// Why something was not found.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// There is no such thread, or it is somebody else's.
    #[error("there is no such thread")]
    NoThread,
    /// The thread has no such run.
    #[error("there is no such run")]
    NoRun,
    /// The run lives, or lived, in its response alone.
    #[error("this run has no log: it is not one that outlives its connection")]
    NoLog,
    /// The log was removed, as it was too old.
    #[error("the log of this run was removed")]
    LogRemoved,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came of a cancel.
#[derive(Debug, PartialEq)]
pub enum Cancelled {
    /// The run will end.
    Requested,
    /// It had ended before.
    Ended(RunRecord),
}

/// What somebody needs who comes back to a thread.
pub struct Connection {
    /// The thread: as it is, or as the run that goes on has found it.
    pub thread: Thread,
    /// Follows the run that goes on from its first event.
    pub running: Option<Tail>,
}

impl Threads {
    /// The threads of a principal, the most recently changed first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, owner: Option<&Principal>, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        self.store.threads(owner.map(Principal::name), page).await
    }

    /// A thread of a principal.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn thread(&self, owner: Option<&Principal>, id: &ThreadId) -> Result<Thread, LookupError> {
        let thread = self.own(owner, id).await?;
        if thread.active_run.is_some() && self.settled(id, Duration::ZERO).await {
            return self.own(owner, id).await;
        }
        Ok(thread)
    }

    async fn own(&self, owner: Option<&Principal>, id: &ThreadId) -> Result<Thread, LookupError> {
        let thread = self.store.thread(id).await?;
        thread.filter(|thread| thread.owner.as_deref() == owner.map(Principal::name)).ok_or(LookupError::NoThread)
    }

    /// Waits for the end of a run in this process whose client left, or leaves within `notice`. Answers whether
    /// there was a run to wait for.
    async fn settled(&self, id: &ThreadId, notice: Duration) -> bool {
        let Some(active) = self.active.of(id).filter(|active| active.log.is_none()) else { return false };
        active.settled(notice, LAST_WORDS).await;
        true
    }

    /// The newest runs of a thread.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn runs(&self, thread: &Thread, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        self.store.runs(&thread.id, limit).await
    }

    /// A run of a thread of a principal.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn run_of(
        &self,
        owner: Option<&Principal>,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<RunRecord, LookupError> {
        self.thread(owner, thread).await?;
        self.store.run(thread, run).await?.ok_or(LookupError::NoRun)
    }

    /// Follows the log of a run, after the event with number `after`. `None` when nothing follows it any more.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn follow(
        self: &Arc<Self>,
        owner: Option<&Principal>,
        thread: &ThreadId,
        run: &RunId,
        after: u64,
    ) -> Result<Option<Tail>, LookupError> {
        self.start();
        let record = self.run_of(owner, thread, run).await?;
        if !record.detached {
            return Err(LookupError::NoLog);
        }
        if record.status != RunStatus::Running {
            if after >= record.events {
                return Ok(None);
            }
            let page = self.store.events(thread, run, after, 1).await?;
            if page.is_none_or(|page| page.events.is_empty()) {
                return Err(LookupError::LogRemoved);
            }
        }
        Ok(Some(self.tail(&record, after)))
    }

    fn tail(&self, run: &RunRecord, after: u64) -> Tail {
        let here = self.active.of(&run.thread_id).filter(|active| active.lease.run_number == run.number);
        let log = here.and_then(|active| active.log.clone());
        Tail::new(self.store.clone(), (run.thread_id.clone(), run.run_id.clone(), run.number), after, log)
    }

    /// What a client needs to show the thread, and to go on with a run that goes on.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn connect(
        self: &Arc<Self>,
        owner: Option<&Principal>,
        thread: &ThreadId,
    ) -> Result<Connection, LookupError> {
        self.start();
        let deadline = Instant::now() + LAST_WORDS;
        loop {
            let found = self.thread(owner, thread).await?;
            let record = match &found.active_run {
                Some(run) => self.store.run(&found.id, run).await?.filter(|run| run.detached),
                None => None,
            };
            let Some(record) = record else {
                let waited = found.active_run.is_some() && self.settled(thread, NOTICE).await;
                let thread = if waited { self.own(owner, thread).await? } else { found };
                return Ok(Connection { thread, running: None });
            };
            // With its first event in the log the run has stored what it began with, which `found` may be older than.
            let begun = self.store.events(&record.thread_id, &record.run_id, 0, 1).await?;
            if begun.is_some_and(|log| !log.events.is_empty()) || Instant::now() >= deadline {
                let thread = self.thread(owner, thread).await?;
                let goes_on = thread.active_run.as_ref() == Some(&record.run_id);
                let running = goes_on.then(|| self.tail(&record, 0));
                return Ok(Connection { thread, running });
            }
            sleep(POLL).await;
        }
    }

    /// Asks for the end of a run, wherever it runs.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn cancel(
        &self,
        owner: Option<&Principal>,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<Cancelled, LookupError> {
        self.thread(owner, thread).await?;
        if let Some(active) = self.active.of(thread).filter(|active| active.run_id() == run) {
            active.control.cancel();
            return Ok(Cancelled::Requested);
        }
        match self.store.request_cancel(thread, run).await? {
            CancelRequest::Requested => Ok(Cancelled::Requested),
            CancelRequest::Ended(record) => Ok(Cancelled::Ended(record)),
            CancelRequest::Unknown => Err(LookupError::NoRun),
        }
    }

    /// Deletes a thread with all its runs. A run that goes on is cancelled first.
    ///
    /// # Errors
    /// A [`LookupError`].
    pub async fn delete(&self, owner: Option<&Principal>, id: &ThreadId) -> Result<(), LookupError> {
        let thread = self.thread(owner, id).await?;
        if let Some(run) = &thread.active_run {
            self.cancel(owner, id, run).await?;
            let deadline = Instant::now() + LAST_WORDS;
            while Instant::now() < deadline
                && self.store.run(id, run).await?.is_some_and(|run| run.status == RunStatus::Running)
            {
                sleep(POLL).await;
            }
        }
        if self.store.delete(id).await? { Ok(()) } else { Err(LookupError::NoThread) }
    }
}
