//! A run that a response polls, until it ends, or is promoted: from then on a task polls it, and all its clients follow its log.
//!
//! The response and the promoter share the run by a lock that is free except while the run is polled. So a run whose client does not
//! read any more can be promoted, too.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{detached, transcribed_run::TranscribedRun};
use crate::{
    control::Stop,
    drive::progress::{Drive as _, EventSink, Progress},
    log::LiveLog,
    turn::{live_run::PolledByResponse, thread_core::ThreadCore},
};
use agui_store::{EventBatch, Lease, StoreError};

/// The time that storing the begin of a log is retried while the store is unavailable.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
const STORE_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A run in a response.
pub(crate) struct PolledRun {
    this: Weak<Self>,
    slot: Mutex<Slot>,
    is_log_wanted: AtomicBool,
    /// Wakes the response when the log is stored.
    response: AtomicWaker,
}

enum Slot {
    Polled(Box<TranscribedRun>),
    /// The begin of its log is being stored.
    Moving,
    Detached(PromotedLog),
    /// The response has taken it to store its end.
    Taken,
}

/// The log of a promoted run, and the number of its first lines, which tell what the response has sent.
#[derive(Clone)]
pub(crate) struct PromotedLog {
    pub(crate) log: Arc<LiveLog>,
    pub(crate) told: u64,
}

/// The result of polling.
pub(crate) enum Polled {
    Progress(Progress),
    /// The run has ended. Its end is to be stored.
    Ended(Box<TranscribedRun>),
    Promoted(PromotedLog),
}

impl PolledRun {
    pub(crate) fn new(run: TranscribedRun) -> Arc<Self> {
        let polled = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            slot: Mutex::new(Slot::Taken),
            is_log_wanted: AtomicBool::new(false),
            response: AtomicWaker::new(),
        });
        run.held.run.polled_by(polled.clone());
        if let Some(journal) = &run.journal {
            let response: Arc<dyn PolledByResponse> = polled.clone();
            journal.polled_by(Arc::downgrade(&response));
        }
        *polled.slot.lock() = Slot::Polled(Box::new(run));
        polled
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Polled> {
        let mut slot = self.slot.lock();
        let polled = match &mut *slot {
            Slot::Polled(run) => match run.poll_progress(cx, sink) {
                Poll::Ready(Progress::Ended) => Poll::Ready(None),
                Poll::Ready(progress) => {
                    if run.take_log_wish() {
                        self.is_log_wanted.store(true, Ordering::SeqCst);
                    }
                    Poll::Ready(Some(Polled::Progress(progress)))
                }
                Poll::Pending => Poll::Pending,
            },
            Slot::Moving => {
                self.response.register(cx.waker());
                return Poll::Pending;
            }
            Slot::Detached(log) => return Poll::Ready(Polled::Promoted(log.clone())),
            Slot::Taken => return Poll::Ready(Polled::Progress(Progress::Ended)),
        };
        if let Poll::Ready(None) = polled
            && let Slot::Polled(run) = std::mem::replace(&mut *slot, Slot::Taken)
        {
            return Poll::Ready(Polled::Ended(run));
        }
        drop(slot);
        // A wish that came while the run was being polled.
        self.promote_if_wanted();
        match polled {
            Poll::Ready(Some(polled)) => Poll::Ready(polled),
            _ => Poll::Pending,
        }
    }

    fn promote_if_wanted(&self) {
        if !self.is_log_wanted.load(Ordering::SeqCst) {
            return;
        }
        // Who holds the lock comes here after it.
        let Some(mut slot) = self.slot.try_lock() else { return };
        if !matches!(&*slot, Slot::Polled(_)) {
            return;
        }
        if let Some(this) = self.this.upgrade()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Slot::Polled(run) = std::mem::replace(&mut *slot, Slot::Moving)
        {
            let span = run.run.span().clone();
            runtime.spawn(tracing::Instrument::instrument(this.promote_run(run), span));
        }
    }

    /// Stores the begin of the log, and polls the run from then on.
    async fn promote_run(self: Arc<Self>, mut run: Box<TranscribedRun>) {
        self.is_log_wanted.store(false, Ordering::SeqCst);
        let (first, elapsed) = (run.log_so_far(), run.run.elapsed());
        let threads = run.held.threads.clone();
        let (lease, request) = (run.held.lease.clone(), run.request.take());
        match store_begin(&threads, &lease, request.as_deref(), &first).await {
            Ok(true) => {
                let told = first.events.len() as u64;
                let log = LiveLog::new(lease, 0, threads.options.runs.max_run_bytes);
                let log = Arc::new(log.begun(first).begun_before(elapsed));
                run.begin_log(&log);
                *self.slot.lock() = Slot::Detached(PromotedLog { log: log.clone(), told });
                run.held.run.promoted(log.clone());
                // The response waits for the run, or, if it was polled in the meantime, for the log.
                run.held.run.control.wake();
                self.response.wake();
                tracing::debug!(lines = told, "the run has a log from now on");
                detached::drive(*run, log).await;
            }
            not_stored => {
                let stop = match not_stored {
                    Ok(_) | Err(StoreError::LeaseLost) => Some(Stop::LeaseLost),
                    Err(error) => {
                        tracing::warn!(?error, "the begin of a run's log could not be stored");
                        // A second request is refused then, and the run continues as it was.
                        let waits = run.held.run.control.has_unsafe_calls();
                        waits.then_some(Stop::StoreUnavailable)
                    }
                };
                if let Some(stop) = stop {
                    run.stop(stop);
                }
                run.request = request;
                *self.slot.lock() = Slot::Polled(run);
                self.response.wake();
            }
        }
    }
}

impl PolledByResponse for PolledRun {
    fn promote(&self) {
        self.is_log_wanted.store(true, Ordering::SeqCst);
        self.promote_if_wanted();
    }
}

async fn store_begin(
    threads: &ThreadCore,
    lease: &Lease,
    request: Option<&str>,
    first: &EventBatch,
) -> Result<bool, StoreError> {
    let begin = Instant::now();
    loop {
        match threads.store.promote(lease, request, first).await {
            Err(error) if error.is_transient() && begin.elapsed() < STORE_TIMEOUT => {
                sleep(STORE_RETRY_PAUSE).await;
            }
            result => return result,
        }
    }
}
