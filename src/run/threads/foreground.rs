//! A run that lives in its response, on a stored thread.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::future::BoxFuture;

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

/// A run of a stored thread. Dropping it cancels the run, and what came of it until
/// then is stored.
pub struct ForegroundRun {
    stage: Stage,
    span: tracing::Span,
    active: Arc<ActiveRun>,
}

/// The run is not in a box of its own: with hundreds of streams each event finds the caches cold, and every pointer on
/// the way to it is one more miss.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
enum Stage {
    Running(Recorded),
    /// With the terminal event, unless it was sent already.
    Committing(Commit, Option<Box<Event>>),
    Over,
}

type Commit = BoxFuture<'static, Result<(), StoreError>>;

impl ForegroundRun {
    pub(super) fn new(recorded: Recorded) -> Self {
        let (span, active) = (recorded.run().span().clone(), recorded.hold.registration.run().clone());
        Self { stage: Stage::Running(recorded), span, active }
    }
}

impl Drive for ForegroundRun {
    fn span(&self) -> &tracing::Span {
        &self.span
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        loop {
            match &mut self.stage {
                Stage::Over => return Poll::Ready(Progress::Ended),
                Stage::Running(recorded) => {
                    let step = recorded.poll_step(cx, sink);
                    let terminal = (step == Poll::Ready(Step::Terminal)).then(|| recorded.terminal().cloned());
                    let Some(terminal) = terminal.flatten() else {
                        return step.map(|step| match step {
                            Step::Heartbeat => Progress::Heartbeat,
                            Step::Moved | Step::Terminal => Progress::Moved,
                        });
                    };
                    let Stage::Running(recorded) = std::mem::replace(&mut self.stage, Stage::Over) else { continue };
                    let commit = recorded.commit(None);
                    // Thousands of runs may end with the server, and its clients wait for nothing else.
                    let at_once =
                        matches!(&terminal, Event::RunError(error) if error.code.as_deref() == Some(SHUTDOWN));
                    if at_once {
                        sink.emit(&terminal);
                        self.stage = Stage::Committing(commit, None);
                        return Poll::Ready(Progress::Moved);
                    }
                    self.stage = Stage::Committing(commit, Some(Box::new(terminal)));
                }
                Stage::Committing(commit, terminal) => {
                    let result = ready!(commit.as_mut().poll(cx));
                    let terminal = terminal.take();
                    self.stage = Stage::Over;
                    let Some(terminal) = terminal else { return Poll::Ready(Progress::Ended) };
                    sink.emit(&told(*terminal, result));
                    return Poll::Ready(Progress::Moved);
                }
            }
        }
    }
}

impl Drop for ForegroundRun {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if matches!(stage, Stage::Over) {
            return;
        }
        self.active.left();
        // Without a runtime the process is about to end, and the next one closes the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tracing::Instrument::instrument(abandon(stage), self.span.clone()));
        }
    }
}

/// What is left to do for a run whose client has gone.
async fn abandon(stage: Stage) {
    let commit = match stage {
        Stage::Over => return,
        Stage::Committing(commit, _) => commit,
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
