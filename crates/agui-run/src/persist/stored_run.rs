//! A run on a stored thread that its response polls. Stores its end before it sends the terminal event. Once the run is promoted,
//! the response follows its log.

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
    polled_run::{Polled, PolledRun, PromotedLog},
    promoted_run::PromotedRun,
    transcribed_run::{Committed, EndCommit, TranscribedRun},
};
use crate::{
    control::Stop,
    drive::{
        ending::thread_deleted,
        progress::{Drive, EventSink, Progress},
    },
    turn::{
        held_lease::HeldLease,
        live_run::{LiveRun, RunClient},
        thread_core::ThreadCore,
    },
};
use agui_base::RunErrorCode;
use agui_protocol::{Event, event::RunError};
use agui_store::ThreadKey;

/// The time that the last events are held back until the end is stored, so that they are sent
/// together with the terminal event.
const MAX_HOLD: Duration = Duration::from_millis(50);
/// The time in which the store can say that a run has lost its lease because its thread was deleted. Then the response breaks.
const LEASE_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// A run on a stored thread. Dropping it cancels the run, unless other clients have it, and stores its messages so far.
pub struct StoredRun {
    stage: StoredStage,
    span: tracing::Span,
    heartbeat: Option<Duration>,
    threads: Arc<ThreadCore>,
    key: ThreadKey,
    run: Arc<LiveRun>,
    client: Option<RunClient>,
}

enum StoredStage {
    Polled(Arc<PolledRun>),
    Committing {
        commit: BoxFuture<'static, Committed>,
        /// `None` if it was sent already.
        terminal: Option<Box<Event>>,
        /// Ends the time of [`MAX_HOLD`]. Set when the run waits for the store.
        hold_timer: Option<Pin<Box<Sleep>>>,
    },
    Promoted(Box<PromotedRun>),
    /// The end is stored, or could not be.
    Over {
        /// Set if the end was stored as delivered, and the client has not read the response to its end yet.
        undelivered: Option<HeldLease>,
    },
    /// Another server has the thread, and stores the end of the run.
    Lost,
}

impl StoredRun {
    pub fn new(mut transcribed: TranscribedRun) -> Self {
        let client = transcribed.held.take_client();
        let held = &transcribed.held;
        let (threads, key, run) = (held.threads.clone(), held.key.clone(), held.run.clone());
        let (span, heartbeat) = (transcribed.run.span().clone(), transcribed.run.heartbeat());
        let stage = StoredStage::Polled(PolledRun::new(transcribed));
        Self { stage, span, heartbeat, threads, key, run, client }
    }

    fn commit(&mut self, run: TranscribedRun, sink: &mut impl EventSink) -> Option<Progress> {
        let mut terminal = run.terminal().cloned().map(Box::new);
        // At shutdown, thousands of runs may end at once. Their clients do not wait for the store.
        let at_once = terminal.take_if(|terminal| is_shutdown(terminal));
        let commit = run.commit(true, None);
        self.stage = StoredStage::Committing { commit, terminal, hold_timer: None };
        at_once.map(|terminal| {
            sink.emit(&terminal);
            Progress::Moved
        })
    }

    fn follow(&mut self, promoted: PromotedLog) {
        let PromotedLog { log, told } = promoted;
        let followed = PromotedRun::new(&self.threads, &self.key, &self.run, log, told);
        self.stage = StoredStage::Promoted(Box::new(followed.with_heartbeat(self.heartbeat)));
    }

    fn poll_end(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
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
            let is_lost = self.run.control.poll_requested(cx) == Some(Stop::LeaseLost);
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
}

impl Drive for StoredRun {
    fn span(&self) -> &tracing::Span {
        &self.span
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        if let StoredStage::Polled(polled) = &self.stage {
            match polled.poll(cx, sink) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Polled::Progress(progress)) => return Poll::Ready(progress),
                Poll::Ready(Polled::Promoted(log)) => self.follow(log),
                Poll::Ready(Polled::Ended(run)) => {
                    if let Some(progress) = self.commit(*run, sink) {
                        return Poll::Ready(progress);
                    }
                }
            }
        }
        match &mut self.stage {
            StoredStage::Promoted(promoted) => promoted.poll_progress(cx, sink),
            _ => self.poll_end(cx, sink),
        }
    }

    fn is_ending(&self) -> bool {
        let StoredStage::Committing { hold_timer: Some(hold_timer), .. } = &self.stage else {
            return false;
        };
        !hold_timer.is_elapsed()
    }

    fn delivered(&mut self) {
        match &mut self.stage {
            StoredStage::Over { undelivered } => *undelivered = None,
            StoredStage::Promoted(promoted) => promoted.delivered(),
            _ => {}
        }
    }
}

impl Drop for StoredRun {
    fn drop(&mut self) {
        // Ends the run if this was its last client.
        self.client = None;
        let stage = mem::replace(&mut self.stage, StoredStage::Over { undelivered: None });
        if matches!(
            stage,
            StoredStage::Over { undelivered: None } | StoredStage::Promoted(_) | StoredStage::Lost
        ) {
            return;
        }
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
        StoredStage::Promoted(_) | StoredStage::Lost => None,
        StoredStage::Committing { commit, .. } => {
            let Committed { end, held, .. } = commit.await;
            (end == EndCommit::Stored).then_some(held)
        }
        StoredStage::Polled(polled) => {
            let ended = poll_fn(|cx| {
                loop {
                    match polled.poll(cx, &mut |_: &Event| {}) {
                        Poll::Ready(Polled::Progress(Progress::Ended) | Polled::Promoted(_)) => {
                            return Poll::Ready(None);
                        }
                        Poll::Ready(Polled::Progress(_)) => {}
                        Poll::Ready(Polled::Ended(run)) => return Poll::Ready(Some(run)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
            });
            if let Some(run) = ended.await {
                let _ = run.commit(false, None).await;
            }
            None
        }
    };
    if let Some(HeldLease { threads, key, lease, .. }) = &undelivered {
        threads.set_delivered(key, lease.thread, lease.run, false).await;
    }
}

fn is_shutdown(terminal: &Event) -> bool {
    matches!(terminal, Event::RunError(error) if error.code.as_deref() == Some(RunErrorCode::ServerShutdown.as_str()))
}

fn end_not_stored() -> Event {
    RunError::new(
        RunErrorCode::StoreUnavailable,
        "the end of the run could not be stored; please try again",
    )
    .into()
}
