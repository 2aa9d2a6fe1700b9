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

use super::transcribed_run::{Committed, EndCommit, TranscribedRun};
use crate::{
    control::Stop,
    drive::progress::{Drive, EventSink, Progress},
    turn::{active::ActiveRun, held_lease::HeldLease},
};
use agui_base::RunErrorCode;
use agui_protocol::{Event, event::RunError};

/// The time that the last events are held back until the end is stored, so that they are sent
/// together with the terminal event.
const MAX_HOLD: Duration = Duration::from_millis(50);
/// The time in which the store can say that a run has lost its lease because its thread was deleted. Then the response breaks.
const LEASE_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// A run on a stored thread. Dropping it cancels the run and stores its messages so far.
pub struct StoredRun {
    stage: StoredStage,
    span: tracing::Span,
    active: Arc<ActiveRun>,
}

#[allow(clippy::large_enum_variant, reason = "nearly all values are of the large variant")]
enum StoredStage {
    Running(TranscribedRun),
    Committing {
        commit: BoxFuture<'static, Committed>,
        /// `None` if it was sent already.
        terminal: Option<Box<Event>>,
        /// Ends the time of [`MAX_HOLD`]. Set when the run waits for the store.
        hold_timer: Option<Pin<Box<Sleep>>>,
    },
    /// The end is stored, or could not be.
    Over {
        /// Set if the end was stored as delivered, and the client has not read the response to its end yet.
        undelivered: Option<HeldLease>,
    },
    /// Another server has the thread, and stores the end of the run.
    Lost,
}

impl StoredRun {
    pub fn new(transcribed: TranscribedRun) -> Self {
        let (span, active) = (transcribed.run.span().clone(), transcribed.held.run.clone());
        Self { stage: StoredStage::Running(transcribed), span, active }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if matches!(self.stage, StoredStage::Running(_))
            && let StoredStage::Running(transcribed) = self.take_stage()
        {
            let mut terminal = transcribed.terminal().cloned().map(Box::new);
            // At shutdown, thousands of runs may end at once. Their clients do not wait for the store.
            let at_once = terminal.take_if(|terminal| is_shutdown(terminal));
            let commit = transcribed.commit(true, None);
            self.stage = StoredStage::Committing { commit, terminal, hold_timer: None };
            if let Some(terminal) = at_once {
                sink.emit(&terminal);
                return Poll::Ready(Progress::Moved);
            }
        }
        let (commit, terminal, hold_timer) = match &mut self.stage {
            StoredStage::Committing { commit, terminal, hold_timer } => {
                (commit, terminal, hold_timer)
            }
            StoredStage::Lost => return Poll::Ready(Progress::Broken),
            _ => return Poll::Ready(Progress::Ended),
        };
        let Poll::Ready(Committed { end, held, snapshot }) = commit.as_mut().poll(cx) else {
            if terminal.is_none() {
                return Poll::Pending;
            }
            let is_lost = self.active.control.poll_requested(cx) == Some(Stop::LeaseLost);
            let hold = if is_lost { LEASE_CHECK_TIMEOUT } else { MAX_HOLD };
            let hold_timer = hold_timer.get_or_insert_with(|| Box::pin(sleep(hold)));
            let is_elapsed = hold_timer.is_elapsed() || hold_timer.poll_unpin(cx).is_ready();
            // Storing the end goes on after the response. Otherwise the timer only wakes the task, which then calls
            // `is_ending` again.
            return if is_lost && is_elapsed {
                Poll::Ready(Progress::Broken)
            } else {
                Poll::Pending
            };
        };
        let terminal = terminal.take();
        self.stage = StoredStage::Over { undelivered: (end == EndCommit::Stored).then_some(held) };
        let Some(terminal) = terminal else { return Poll::Ready(Progress::Ended) };
        match end {
            EndCommit::Stored => {
                snapshot.into_iter().for_each(|snapshot| sink.emit(&snapshot));
                sink.emit(&terminal);
            }
            EndCommit::ThreadDeleted => sink.emit(&thread_deleted()),
            EndCommit::LeaseLost => {
                self.stage = StoredStage::Lost;
                return Poll::Ready(Progress::Broken);
            }
            EndCommit::Failed => sink.emit(&end_not_stored()),
        }
        Poll::Ready(Progress::Moved)
    }

    fn take_stage(&mut self) -> StoredStage {
        mem::replace(&mut self.stage, StoredStage::Over { undelivered: None })
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
        let StoredStage::Committing { hold_timer: Some(hold_timer), .. } = &self.stage else {
            return false;
        };
        !hold_timer.is_elapsed()
    }

    fn delivered(&mut self) {
        if let StoredStage::Over { undelivered } = &mut self.stage {
            *undelivered = None;
        }
    }
}

impl Drop for StoredRun {
    fn drop(&mut self) {
        let stage = self.take_stage();
        if matches!(stage, StoredStage::Over { undelivered: None } | StoredStage::Lost) {
            return;
        }
        self.active.client_left();
        // Without a runtime the process is ending. The next start or another server closes the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tracing::Instrument::instrument(abandon(stage), self.span.clone()));
        }
    }
}

async fn abandon(stage: StoredStage) {
    // The transcribed run has logged an end that could not be stored.
    let undelivered = match stage {
        StoredStage::Over { undelivered } => undelivered,
        StoredStage::Lost => None,
        StoredStage::Committing { commit, .. } => {
            let Committed { end, held, .. } = commit.await;
            (end == EndCommit::Stored).then_some(held)
        }
        StoredStage::Running(mut transcribed) => {
            tracing::debug!("the client left");
            transcribed.stop(Stop::Cancel);
            while poll_fn(|cx| transcribed.poll_progress(cx, &mut |_: &Event| {})).await
                != Progress::Ended
            {}
            let _ = transcribed.commit(false, None).await;
            None
        }
    };
    if let Some(HeldLease { threads, key, run, .. }) = &undelivered {
        threads.set_delivered(key, run.lease.thread, run.lease.run, false).await;
    }
}

fn is_shutdown(terminal: &Event) -> bool {
    matches!(terminal, Event::RunError(error) if error.code.as_deref() == Some(RunErrorCode::ServerShutdown.as_str()))
}

/// Returns the end of a stream whose thread was deleted. It is an end, so that no client asks for the rest.
pub fn thread_deleted() -> Event {
    RunError::new(RunErrorCode::ThreadDeleted, "the thread of this run was deleted").into()
}

fn end_not_stored() -> Event {
    RunError::new(
        RunErrorCode::StoreUnavailable,
        "the end of the run could not be stored; please try again",
    )
    .into()
}
