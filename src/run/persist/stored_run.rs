//! A run on a stored thread that its response polls. Stores its end before it sends the terminal event.

use std::{
    future::poll_fn,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::time::{Sleep, sleep};

use super::transcribed_run::TranscribedRun;
use crate::run::{
    control::Stop,
    drive::{
        ending::{SHUTDOWN_CODE, lease_lost},
        progress::{Drive, EventSink, Progress},
    },
    turn::thread_runs::ThreadRuns,
};
use crate::{
    protocol::{Event, event::RunError},
    store::{Lease, StoreError, ThreadKey},
};

/// The time that the last events may wait for the end to be stored, so that they are sent together with the terminal event.
const MAX_HOLD: Duration = Duration::from_millis(50);

/// A run on a stored thread. Dropping it cancels the run and stores its messages so far.
pub(crate) struct StoredRun {
    stage: StoredStage,
    span: tracing::Span,
    /// Needed after the transcribed run is gone, if the end was stored as delivered and the client has left.
    run: Arc<RunRef>,
}

struct RunRef {
    threads: Arc<ThreadRuns>,
    key: ThreadKey,
    lease: Lease,
}

#[allow(clippy::large_enum_variant, reason = "nearly all values are of the large variant")]
enum StoredStage {
    Running(TranscribedRun),
    Committing(PendingCommit),
    /// The end is stored, or could not be.
    Over {
        /// True if the end was stored as delivered, and the client has not read the response to its end yet.
        is_undelivered: bool,
    },
}

struct PendingCommit {
    commit: BoxFuture<'static, Result<(), StoreError>>,
    /// `None` if it was sent already.
    terminal: Option<Box<Event>>,
    /// Ends the time of [`MAX_HOLD`]. Set when the run waits for the store.
    hold_timer: Option<Pin<Box<Sleep>>>,
}

impl StoredRun {
    pub(crate) fn new(transcribed: TranscribedRun) -> Self {
        let guards = transcribed.guards();
        let (threads, key, lease) = (guards.threads.clone(), guards.key.clone(), guards.lease.clone());
        let span = transcribed.run().span().clone();
        Self { stage: StoredStage::Running(transcribed), span, run: Arc::new(RunRef { threads, key, lease }) }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if matches!(self.stage, StoredStage::Running(_))
            && let StoredStage::Running(transcribed) = self.take_stage()
        {
            let mut terminal = transcribed.terminal().cloned().map(Box::new);
            // At shutdown, thousands of runs may end at once. Their clients do not wait for the store.
            let at_once = terminal.take_if(|terminal| is_shutdown(terminal));
            let commit = transcribed.commit(true, None);
            self.stage = StoredStage::Committing(PendingCommit { commit, terminal, hold_timer: None });
            if let Some(terminal) = at_once {
                sink.emit(&terminal);
                return Poll::Ready(Progress::Moved);
            }
        }
        let StoredStage::Committing(PendingCommit { commit, terminal, hold_timer }) = &mut self.stage else {
            return Poll::Ready(Progress::Ended);
        };
        let Poll::Ready(result) = commit.as_mut().poll(cx) else {
            if terminal.is_some() {
                let hold_timer = hold_timer.get_or_insert_with(|| Box::pin(sleep(MAX_HOLD)));
                // The timer only wakes the task, which then calls `is_ending` again.
                let _ = hold_timer.is_elapsed() || hold_timer.poll_unpin(cx).is_ready();
            }
            return Poll::Pending;
        };
        let terminal = terminal.take();
        self.stage = StoredStage::Over { is_undelivered: result.is_ok() };
        let Some(terminal) = terminal else { return Poll::Ready(Progress::Ended) };
        sink.emit(&with_store_result(*terminal, result));
        Poll::Ready(Progress::Moved)
    }

    fn take_stage(&mut self) -> StoredStage {
        mem::replace(&mut self.stage, StoredStage::Over { is_undelivered: false })
    }
}

impl Drive for StoredRun {
    fn span(&self) -> &tracing::Span {
        &self.span
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if let StoredStage::Running(transcribed) = &mut self.stage {
            match transcribed.poll_progress(cx, sink) {
                Poll::Ready(Progress::Ended) => {}
                polled => return polled,
            }
        }
        self.poll_end(cx, sink)
    }

    fn is_ending(&self) -> bool {
        let StoredStage::Committing(PendingCommit { hold_timer: Some(hold_timer), .. }) = &self.stage else {
            return false;
        };
        !hold_timer.is_elapsed()
    }

    fn delivered(&mut self) {
        if let StoredStage::Over { is_undelivered } = &mut self.stage {
            *is_undelivered = false;
        }
    }
}

impl Drop for StoredRun {
    fn drop(&mut self) {
        let stage = self.take_stage();
        if matches!(stage, StoredStage::Over { is_undelivered: false }) {
            return;
        }
        let RunRef { threads, key, lease } = &*self.run;
        if let Some(active) = threads.queue.active(key).filter(|active| active.lease == *lease) {
            active.client_left();
        }
        // Without a runtime the process is ending. The next start or another server closes the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tracing::Instrument::instrument(abandon(stage, self.run.clone()), self.span.clone()));
        }
    }
}

async fn abandon(stage: StoredStage, run: Arc<RunRef>) {
    // The transcribed run has logged an end that could not be stored.
    let is_undelivered = match stage {
        StoredStage::Over { is_undelivered } => is_undelivered,
        StoredStage::Committing(PendingCommit { commit, .. }) => commit.await.is_ok(),
        StoredStage::Running(mut transcribed) => {
            tracing::debug!("the client left");
            transcribed.stop(Stop::Cancel);
            while poll_fn(|cx| transcribed.poll_progress(cx, &mut |_: &Event| {})).await != Progress::Ended {}
            let _ = transcribed.commit(false, None).await;
            false
        }
    };
    if is_undelivered {
        let RunRef { threads, key, lease } = &*run;
        threads.set_delivered(key, lease.thread, lease.run, false).await;
    }
}

fn is_shutdown(terminal: &Event) -> bool {
    matches!(terminal, Event::RunError(error) if error.code.as_deref() == Some(SHUTDOWN_CODE))
}

fn with_store_result(terminal: Event, stored: Result<(), StoreError>) -> Event {
    match stored {
        Ok(()) => terminal,
        Err(StoreError::LeaseLost) => lease_lost().into(),
        Err(_) => RunError::new("store_unavailable", "the end of the run could not be stored; please try again").into(),
    }
}
