//! A run that lives in its response, on a stored thread.

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

use super::{
    Threads,
    control::Stop,
    drive::{Drive, EventSink, Progress},
    driver::{SHUTDOWN, lease_lost},
    recorder::{RunRecorder, Step},
};
use crate::{
    protocol::{Event, event::RunError},
    store::{Lease, StoreError, ThreadKey},
};

/// For how long the last of a run's text may wait for the end to be stored, so that both leave together.
const MAX_HOLD: Duration = Duration::from_millis(50);

/// A run of a stored thread. Dropping it cancels the run; what the run has said until then is stored.
pub struct StoredRun {
    stage: Stage,
    /// Which run it is, for when its end was stored as delivered and the client turns out to have left.
    whose: Arc<(Arc<Threads>, ThreadKey, Lease)>,
}

#[allow(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
enum Stage {
    Running(RunRecorder),
    Committing(Committing),
    /// The end is stored, or cannot be. Whether the client is still to take it, as was stored.
    Over {
        span: tracing::Span,
        is_undelivered: bool,
    },
}

struct Committing {
    span: tracing::Span,
    commit: BoxFuture<'static, Result<(), StoreError>>,
    /// Unless it was sent already.
    terminal: Option<Box<Event>>,
    /// Until when the events that were sent last may wait; set when the run waits for its end to be stored.
    hold: Option<Pin<Box<Sleep>>>,
}

impl StoredRun {
    pub(super) fn new(recorder: RunRecorder) -> Self {
        let guards = recorder.guards();
        let whose = Arc::new((guards.threads.clone(), guards.key.clone(), guards.lease.clone()));
        Self { stage: Stage::Running(recorder), whose }
    }

    /// Stores the end, then sends the terminal event.
    fn poll_end(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if let Stage::Running(recorder) = &self.stage {
            let span = recorder.run().span().clone();
            let over = Stage::Over { span: span.clone(), is_undelivered: false };
            if let Stage::Running(recorder) = mem::replace(&mut self.stage, over) {
                let terminal = recorder.terminal().cloned().map(Box::new);
                let mut committing = Committing { span, commit: recorder.commit(true, None), terminal, hold: None };
                // Thousands of runs may end with the server, and it waits for nothing but their clients.
                let at_once = committing.terminal.take_if(|terminal| is_shutdown(terminal));
                self.stage = Stage::Committing(committing);
                if let Some(terminal) = at_once {
                    sink.emit(&terminal);
                    return Poll::Ready(Progress::Moved);
                }
            }
        }
        let Stage::Committing(Committing { span, commit, terminal, hold }) = &mut self.stage else {
            return Poll::Ready(Progress::Ended);
        };
        let Poll::Ready(result) = commit.as_mut().poll(cx) else {
            if terminal.is_some() {
                let hold = hold.get_or_insert_with(|| Box::pin(sleep(MAX_HOLD)));
                // It only has to wake the task, which then asks `is_ending` again.
                let _ = hold.is_elapsed() || hold.poll_unpin(cx).is_ready();
            }
            return Poll::Pending;
        };
        let (span, terminal) = (span.clone(), terminal.take());
        self.stage = Stage::Over { span, is_undelivered: result.is_ok() };
        let Some(terminal) = terminal else { return Poll::Ready(Progress::Ended) };
        sink.emit(&with_store_result(*terminal, result));
        Poll::Ready(Progress::Moved)
    }
}

impl Drive for StoredRun {
    fn span(&self) -> &tracing::Span {
        match &self.stage {
            Stage::Running(recorder) => recorder.run().span(),
            Stage::Committing(Committing { span, .. }) | Stage::Over { span, .. } => span,
        }
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if let Stage::Running(recorder) = &mut self.stage {
            match recorder.poll_step(cx, sink) {
                Poll::Ready(Step::Terminal) => {}
                Poll::Ready(Step::Moved) => return Poll::Ready(Progress::Moved),
                Poll::Ready(Step::Heartbeat) => return Poll::Ready(Progress::Heartbeat),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.poll_end(cx, sink)
    }

    fn is_ending(&self) -> bool {
        let Stage::Committing(Committing { hold: Some(hold), .. }) = &self.stage else { return false };
        !hold.is_elapsed()
    }

    fn delivered(&mut self) {
        if let Stage::Over { is_undelivered, .. } = &mut self.stage {
            *is_undelivered = false;
        }
    }
}

impl Drop for StoredRun {
    fn drop(&mut self) {
        let span = match &self.stage {
            Stage::Over { is_undelivered: false, .. } => return,
            _ => self.span().clone(),
        };
        let over = Stage::Over { span: span.clone(), is_undelivered: false };
        let stage = mem::replace(&mut self.stage, over);
        let (threads, key, lease) = &*self.whose;
        if let Some(active) = threads.queue.active(key).filter(|active| active.lease == *lease) {
            active.client_left();
        }
        // Without a runtime the process is about to end, and the next one closes the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tracing::Instrument::instrument(abandon(stage, self.whose.clone()), span));
        }
    }
}

/// What is left to do for a run whose client has left.
async fn abandon(stage: Stage, whose: Arc<(Arc<Threads>, ThreadKey, Lease)>) {
    // That the end cannot be stored is in the log already.
    let is_undelivered = match stage {
        Stage::Over { is_undelivered, .. } => is_undelivered,
        Stage::Committing(Committing { commit, .. }) => commit.await.is_ok(),
        Stage::Running(mut recorder) => {
            tracing::debug!("the client left");
            recorder.stop(Stop::Cancel);
            while poll_fn(|cx| recorder.poll_step(cx, &mut Discard)).await != Step::Terminal {}
            let _ = recorder.commit(false, None).await;
            false
        }
    };
    if is_undelivered {
        let (threads, key, lease) = &*whose;
        threads.set_delivered(key, lease.thread, lease.run, false).await;
    }
}

struct Discard;

impl EventSink for Discard {
    fn emit(&mut self, _: &Event) {}
}

fn is_shutdown(terminal: &Event) -> bool {
    matches!(terminal, Event::RunError(error) if error.code.as_deref() == Some(SHUTDOWN))
}

/// Returns the terminal event that a client is sent, given whether the end could be stored.
fn with_store_result(terminal: Event, stored: Result<(), StoreError>) -> Event {
    match stored {
        Ok(()) => terminal,
        Err(StoreError::LeaseLost) => lease_lost().into(),
        Err(_) => RunError::new("store_unavailable", "the end of the run could not be stored; please try again").into(),
    }
}
