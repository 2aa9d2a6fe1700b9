//! A run that lives in its response, on a stored thread.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::time::{Sleep, sleep};

use super::{
    active::ActiveRun,
    recorded::{Recorded, Step},
};
use crate::{
    protocol::{Event, event::RunError},
    run::{
        Drive, EventSink, Progress,
        control::Stop,
        driver::{SHUTDOWN, lease_lost},
    },
    store::StoreError,
};

/// For how long the last of a run's text may wait for the end to be stored, so that both leave together.
const HOLD: Duration = Duration::from_millis(50);

/// A run of a stored thread. Dropping it cancels the run, and what came of it until
/// then is stored.
#[repr(C)]
pub struct ForegroundRun {
    stage: Stage,
    active: Arc<ActiveRun>,
}

/// The run is not in a box of its own: with hundreds of streams each event finds the caches cold, and every pointer on
/// the way to it is one more miss. For the same reason the tag comes first: what `Recorded` begins with is next to it.
#[repr(u8)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
enum Stage {
    Running(Recorded),
    Committing(Committing),
    Over(tracing::Span),
}

struct Committing {
    span: tracing::Span,
    commit: Commit,
    /// Unless it was sent already.
    terminal: Option<Box<Event>>,
    /// Until when what was sent last may wait; set when there is something to wait for.
    hold: Option<Pin<Box<Sleep>>>,
}

type Commit = BoxFuture<'static, Result<(), StoreError>>;

impl ForegroundRun {
    pub(super) fn new(recorded: Recorded) -> Self {
        let active = recorded.hold.registration.run().clone();
        Self { stage: Stage::Running(recorded), active }
    }

    /// Stores the end, then tells it.
    #[inline(never)]
    fn poll_end(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if let Stage::Running(recorded) = &self.stage
            && let span = recorded.run().span().clone()
            && let Stage::Running(recorded) = std::mem::replace(&mut self.stage, Stage::Over(span.clone()))
        {
            let terminal = recorded.terminal().cloned().map(Box::new);
            let mut committing = Committing { span, commit: recorded.commit(None), terminal, hold: None };
            // Thousands of runs may end with the server, and its clients wait for nothing else.
            let at_once = committing.terminal.take_if(
                |terminal| matches!(&**terminal, Event::RunError(error) if error.code.as_deref() == Some(SHUTDOWN)),
            );
            self.stage = Stage::Committing(committing);
            if let Some(terminal) = at_once {
                sink.emit(&terminal);
                return Poll::Ready(Progress::Moved);
            }
        }
        let Stage::Committing(Committing { span, commit, terminal, hold }) = &mut self.stage else {
            return Poll::Ready(Progress::Ended);
        };
        let Poll::Ready(result) = commit.as_mut().poll(cx) else {
            if terminal.is_some() {
                let hold = hold.get_or_insert_with(|| Box::pin(sleep(HOLD)));
                // It only has to wake the task, which then asks `is_ending` again.
                let _ = hold.is_elapsed() || hold.poll_unpin(cx).is_ready();
            }
            return Poll::Pending;
        };
        let (span, terminal) = (span.clone(), terminal.take());
        self.stage = Stage::Over(span);
        let Some(terminal) = terminal else { return Poll::Ready(Progress::Ended) };
        sink.emit(&told(*terminal, result));
        Poll::Ready(Progress::Moved)
    }
}

impl Drive for ForegroundRun {
    fn span(&self) -> &tracing::Span {
        match &self.stage {
            Stage::Running(recorded) => recorded.run().span(),
            Stage::Committing(Committing { span, .. }) | Stage::Over(span) => span,
        }
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if let Stage::Running(recorded) = &mut self.stage {
            match recorded.poll_step(cx, sink) {
                Poll::Ready(Step::Terminal) => {}
                step => {
                    return step
                        .map(|step| if step == Step::Heartbeat { Progress::Heartbeat } else { Progress::Moved });
                }
            }
        }
        self.poll_end(cx, sink)
    }

    fn is_ending(&self) -> bool {
        let Stage::Committing(Committing { hold: Some(hold), .. }) = &self.stage else { return false };
        !hold.is_elapsed()
    }
}

impl Drop for ForegroundRun {
    fn drop(&mut self) {
        // Nearly all of them are over, and what they were is not copied once more.
        if matches!(self.stage, Stage::Over(_)) {
            return;
        }
        let span = self.span().clone();
        let stage = std::mem::replace(&mut self.stage, Stage::Over(span.clone()));
        self.active.left();
        // Without a runtime the process is about to end, and the next one closes the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tracing::Instrument::instrument(abandon(stage), span));
        }
    }
}

/// What is left to do for a run whose client has gone.
async fn abandon(stage: Stage) {
    let commit = match stage {
        Stage::Over(_) => return,
        Stage::Committing(Committing { commit, .. }) => commit,
        Stage::Running(mut recorded) => {
            tracing::debug!("the client left");
            recorded.stop(Stop::Cancel);
            while poll_fn(|cx| recorded.poll_step(cx, &mut Nobody)).await != Step::Terminal {}
            recorded.commit(None)
        }
    };
    // A failure is in the log already, and there is nobody else to tell.
    let _ = commit.await;
}

struct Nobody;

impl EventSink for Nobody {
    fn emit(&mut self, _: &Event) {}
}

/// The terminal event that a client is told, given whether it could be stored.
pub(super) fn told(terminal: Event, stored: Result<(), StoreError>) -> Event {
    match stored {
        Ok(()) => terminal,
        Err(StoreError::LeaseLost) => lease_lost().into(),
        Err(_) => RunError::new("store_unavailable", "the end of the run could not be stored; please try again").into(),
    }
}
