//! The journal of a run as its agent sees it, from the run's start: it takes marks before the run has a log.

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicBool, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    control::RunControl,
    log::{LiveLog, mark::LogMark},
    turn::live_run::{LiveRun, PolledByResponse},
};
use agui_agent::host::Journal;

/// The journal of a run. It is the run's log as soon as the run has one; before, the run asks for one when it is about to make a
/// call that must not be repeated.
pub(crate) struct AgentJournal {
    control: Arc<RunControl>,
    /// True if a log outlives this process.
    is_durable: bool,
    run: OnceLock<Arc<LiveRun>>,
    response: OnceLock<Weak<dyn PolledByResponse>>,
    log: OnceLock<Arc<LiveLog>>,
    has_log: Notify,
    early: Mutex<EarlyMarks>,
    /// True if the number of messages at the last mark is not known yet.
    is_mark_new: AtomicBool,
}

/// The marks before the run had a log.
#[derive(Default)]
pub(crate) struct EarlyMarks {
    pub(crate) marks: Vec<Value>,
    /// The number of the run's messages at the last mark.
    pub(crate) messages: usize,
}

impl AgentJournal {
    pub(crate) fn new(control: Arc<RunControl>, is_durable: bool) -> Arc<Self> {
        Arc::new(Self {
            control,
            is_durable,
            run: OnceLock::new(),
            response: OnceLock::new(),
            log: OnceLock::new(),
            has_log: Notify::new(),
            early: Mutex::default(),
            is_mark_new: AtomicBool::new(false),
        })
    }

    /// Notes the run, once it has begun.
    pub(crate) fn of_run(&self, run: Arc<LiveRun>) {
        let _ = self.run.set(run);
    }

    pub(crate) fn polled_by(&self, response: Weak<dyn PolledByResponse>) {
        let _ = self.response.set(response);
    }

    /// The run has a log from now on.
    pub(crate) fn begin_log(&self, log: Arc<LiveLog>) {
        let mut early = self.early.lock();
        // Of a task of the agent, while the log was being stored.
        std::mem::take(&mut early.marks)
            .into_iter()
            .for_each(|mark| log.note(&LogMark::Agent(mark)));
        let _ = self.log.set(log);
        drop(early);
        self.has_log.notify_waiters();
    }

    /// Notes the number of messages at a new mark, before an event adds to them.
    pub(crate) fn place_mark(&self, messages: impl FnOnce() -> usize) {
        if self.is_mark_new.load(Ordering::Relaxed) {
            self.is_mark_new.store(false, Ordering::Relaxed);
            self.early.lock().messages = messages();
        }
    }

    /// Takes the marks so far. They come into the log with what was said until then.
    pub(crate) fn take_early(&self) -> EarlyMarks {
        std::mem::take(&mut self.early.lock())
    }

    async fn log(&self) -> &Arc<LiveLog> {
        loop {
            let changed = self.has_log.notified();
            if let Some(log) = self.log.get() {
                return log;
            }
            if let Some(response) = self.response.get().and_then(Weak::upgrade) {
                response.promote();
            }
            changed.await;
        }
    }
}

impl Journal for AgentJournal {
    fn mark(&self, mark: Value) {
        if !self.is_durable {
            return;
        }
        let mut early = self.early.lock();
        match self.log.get() {
            Some(log) => log.note(&LogMark::Agent(mark)),
            None => {
                early.marks.push(mark);
                self.is_mark_new.store(true, Ordering::Relaxed);
            }
        }
    }

    fn written(&self) -> BoxFuture<'_, ()> {
        let written = async {
            if self.control.note_unsafe_call()
                && let Some(log) = self.log.get()
            {
                log.note(&LogMark::UnsafeCall);
            }
            if self.is_durable {
                self.log().await.written().await;
            }
        };
        written.boxed()
    }

    fn is_kept(&self) -> bool {
        self.is_durable
            && self.log.get().is_some()
            && self.run.get().is_some_and(|run| run.continues())
    }

    fn is_left(&self) -> bool {
        self.log.get().is_some_and(|log| log.is_left())
    }
}
