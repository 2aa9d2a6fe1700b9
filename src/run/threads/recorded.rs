//! A run whose outcome is stored before it is told.
//!
//! The run's events pass on as they come, and through the [`Transcript`]. Its terminal event is held back until the
//! thread is stored as the client will hold it: whoever has seen a run end finds its messages, its state and its
//! interrupts, whatever happens to the server then.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::{Threads, active::Registration, lanes::Turn};
use crate::{
    protocol::{
        Event, Interrupt,
        event::{MessagesSnapshot, RunOutcome, StateSnapshot},
    },
    run::{Drive as _, EventSink, Progress, Run, Transcript, control::Stop},
    store::{Append, Lease, RunEnd, RunFailure, RunStatus, Store, StoreError, ThreadContent, now},
};

/// For how long a store that does not answer is tried again, before the client is told.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two tries, at first and at most.
const BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// What came of moving on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Moved,
    Heartbeat,
    /// The terminal event is there, and held back.
    Terminal,
}

/// In the order of use: with hundreds of streams each event finds the caches cold, so what it touches lies together.
#[repr(C)]
pub(super) struct Recorded {
    record: Record,
    run: Run,
    /// The interrupts that stay open unless the run reports others.
    open_interrupts: Vec<Interrupt>,
    pub(super) hold: Hold,
}

/// What is known of the run so far.
#[repr(C)]
struct Record {
    /// How many more bytes of text the run may add.
    bytes_left: i64,
    transcript: Transcript,
    terminal: Option<Box<Event>>,
    /// How many events were added to the run's own.
    added: u64,
    /// The client gave no state, so it has to be told what the run starts from.
    announce_state: bool,
}

/// What a run of a thread holds until it is stored.
pub(super) struct Hold {
    pub(super) threads: Arc<Threads>,
    pub(super) lease: Lease,
    /// Given back in this order: no other run of the thread begins before this one is forgotten.
    pub(super) registration: Registration,
    #[allow(dead_code, reason = "held, not read")]
    pub(super) turn: Turn,
}

impl Recorded {
    pub(super) fn new(
        run: Run,
        transcript: Transcript,
        announce_state: bool,
        open_interrupts: Vec<Interrupt>,
        hold: Hold,
    ) -> Self {
        let bytes_left = i64::try_from(hold.threads.options.max_run_bytes).unwrap_or(i64::MAX);
        let record = Record { bytes_left, transcript, terminal: None, added: 0, announce_state };
        Self { record, run, open_interrupts, hold }
    }

    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// Stops the run, for a reason.
    pub(super) fn stop(&self, stop: Stop) {
        self.run.control().stop(stop);
    }

    /// Moves the run on by about one event.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Step> {
        let mut recording = Recording { record: &mut self.record, sink, is_terminal: false };
        let progress = ready!(self.run.poll_progress(cx, &mut recording));
        let is_terminal = recording.is_terminal || progress == Progress::Ended;
        if self.record.bytes_left < 0 {
            self.stop(Stop::TooLong);
        }
        Poll::Ready(match progress {
            Progress::Heartbeat => Step::Heartbeat,
            _ if is_terminal => Step::Terminal,
            _ => Step::Moved,
        })
    }

    /// The terminal event, once there is one.
    pub(super) fn terminal(&self) -> Option<&Event> {
        self.record.terminal.as_deref()
    }

    /// Stores how the run ended, together with the last events of its log. Gives the thread back when it is done,
    /// whatever came of it.
    pub(super) fn commit(self, last: Option<Append>) -> BoxFuture<'static, Result<(), StoreError>> {
        let Self { record: Record { added, terminal, transcript, .. }, run, open_interrupts, hold, .. } = self;
        let (messages, state) = transcript.into_parts();
        let reported = terminal.as_deref().map(interrupts).unwrap_or_default();
        let interrupts = if reported.is_empty() { open_interrupts } else { reported.to_vec() };
        let content = ThreadContent { messages, state: Some(state), interrupts };
        let end = run_end(terminal.as_deref(), run.events() + added);
        let span = run.span().clone();
        // The run counts as running until its end is stored; all else of it goes now.
        let place = run.into_place();
        let future = async move {
            let result = store_end(&*hold.threads.store, &hold.lease, &content, last.as_ref(), &end).await;
            if let Err(error) = &result {
                tracing::error!(?error, "the end of the run could not be stored");
            }
            drop(place);
            result
        };
        Box::pin(tracing::Instrument::instrument(future, span))
    }
}

async fn store_end(
    store: &dyn Store,
    lease: &Lease,
    content: &ThreadContent,
    last: Option<&Append>,
    end: &RunEnd,
) -> Result<(), StoreError> {
    let begin = Instant::now();
    let [mut pause, longest] = BACKOFF;
    loop {
        match store.finish(lease, Some(content), last, end).await {
            Err(error) if error.is_transient() && begin.elapsed() < PATIENCE => {
                tracing::warn!(?error, "the end of the run cannot be stored yet; trying again");
                sleep(pause).await;
                pause = (pause * 2).min(longest);
            }
            result => return result,
        }
    }
}

/// The interrupts that a terminal event reports.
fn interrupts(terminal: &Event) -> &[Interrupt] {
    match terminal {
        Event::RunFinished(finished) => match &finished.outcome {
            Some(RunOutcome::Interrupt { interrupts }) => interrupts,
            _ => &[],
        },
        _ => &[],
    }
}

fn run_end(terminal: Option<&Event>, events: u64) -> RunEnd {
    let (status, usage, failure) = match terminal {
        Some(Event::RunFinished(finished)) => {
            let status = match &finished.outcome {
                Some(RunOutcome::Interrupt { .. }) => RunStatus::Interrupted,
                Some(RunOutcome::Cancelled) => RunStatus::Cancelled,
                _ => RunStatus::Finished,
            };
            (status, finished.usage.clone(), None)
        }
        Some(Event::RunError(error)) => {
            let code = error.code.as_deref().map(str::to_owned);
            let failure = RunFailure { code, message: error.message.clone() };
            (RunStatus::Failed, error.usage.clone(), Some(failure))
        }
        _ => (RunStatus::Failed, Vec::new(), None),
    };
    RunEnd { status, at: now(), events, usage, failure }
}

/// How many bytes of text an event adds: of those that can add without end.
fn text(event: &Event) -> i64 {
    let bytes = match event {
        Event::TextMessageContent(e) => e.delta.len(),
        Event::ReasoningMessageContent(e) => e.delta.len(),
        Event::ToolCallArgs(e) => e.delta.len(),
        // About as much as the smallest message or call takes.
        _ => 100,
    };
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Takes a run's events apart: into the transcript and on their way, or held back.
struct Recording<'a, S> {
    record: &'a mut Record,
    sink: &'a mut S,
    is_terminal: bool,
}

impl<S: EventSink> Recording<'_, S> {
    fn add(&mut self, event: &Event) {
        self.record.added += 1;
        self.sink.emit(event);
    }

    fn add_state(&mut self) {
        self.add(&StateSnapshot::new(self.record.transcript.state().clone()).into());
    }

    /// An event of the run itself.
    #[inline(never)]
    fn lifecycle(&mut self, event: &Event) {
        if matches!(event, Event::RunStarted(_)) {
            self.sink.emit(event);
            if std::mem::take(&mut self.record.announce_state) {
                self.add_state();
            }
            return;
        }
        if !interrupts(event).is_empty() {
            // So that whoever answers, perhaps another client, holds what the answer is about.
            self.add_state();
            let messages = self.record.transcript.messages().to_vec();
            self.add(&MessagesSnapshot::new(messages).into());
        }
        self.record.terminal = Some(Box::new(event.clone()));
        self.is_terminal = true;
    }
}

impl<S: EventSink> EventSink for Recording<'_, S> {
    fn emit(&mut self, event: &Event) {
        if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
            return self.lifecycle(event);
        }
        self.record.bytes_left = self.record.bytes_left.saturating_sub(text(event));
        self.record.transcript.apply(event);
        self.sink.emit(event);
    }
}
