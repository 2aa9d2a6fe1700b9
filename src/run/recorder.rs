//! Records a run of a stored thread, and stores its end before the client is told.
//!
//! The run's events pass on as they come, and through the [`Transcript`]. Its terminal event is held back until the end
//! is stored: a client that has seen a run end finds its messages, its state and its interrupts, whatever happens to the
//! server then.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::{
    Run, Threads, Transcript,
    branch::LoadedThread,
    control::Stop,
    drive::{Drive as _, EventSink, Progress},
    queue::TurnGuard,
    transcript::Changes,
};
use crate::{
    protocol::{
        Event, Interrupt, Message, TokenUsage,
        event::{MessagesSnapshot, RunOutcome, StateSnapshot},
    },
    store::{
        BranchWrite, EventBatch, FinishedRun, Lease, MessageOrigin, RunEnd, RunFailure, RunStatus, StoreError,
        ThreadKey, now,
    },
};

/// For how long a store that does not answer is asked again before the client is told.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts, at first and at most.
const STORE_BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// What an event other than a delta counts against the bytes that a run may add: about the smallest message or call.
const EVENT_BYTES: usize = 100;

/// The result of moving on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Moved,
    Heartbeat,
    /// The terminal event is there, and held back.
    Terminal,
}

/// A run and its record.
pub(super) struct RunRecorder {
    record: Record,
    run: Box<Run>,
    /// The thread as the run has begun.
    thread: LoadedThread,
    guards: RunGuards,
}

/// What is known of the run so far.
struct Record {
    /// How many more bytes the run may add.
    bytes_left: usize,
    is_too_long: bool,
    transcript: Transcript,
    terminal: Option<Box<Event>>,
    /// How many events were added to the run's own.
    added: u64,
    sends_state: bool,
    snapshots: Vec<Event>,
}

/// What a run holds until its end is stored.
pub(super) struct RunGuards {
    pub(super) threads: Arc<Threads>,
    pub(super) key: ThreadKey,
    pub(super) lease: Lease,
    /// Held, not read: no other run of the thread begins before this one's end is stored.
    pub(super) _turn: TurnGuard,
}

impl RunRecorder {
    pub(super) fn new(run: Box<Run>, transcript: Transcript, thread: LoadedThread, guards: RunGuards) -> Self {
        let bytes_left = usize::try_from(guards.threads.options.max_run_bytes).unwrap_or(usize::MAX);
        let record = Record {
            bytes_left,
            is_too_long: false,
            transcript,
            terminal: None,
            added: 0,
            sends_state: false,
            snapshots: Vec::new(),
        };
        Self { record, run, thread, guards }
    }

    /// Sends the state that the run starts from after the run's first event.
    pub(super) fn with_state_snapshot(mut self) -> Self {
        self.record.sends_state = true;
        self
    }

    /// Sends these events after that.
    pub(super) fn with_snapshots(mut self, snapshots: Vec<Event>) -> Self {
        self.record.snapshots = snapshots;
        self
    }

    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    pub(super) fn threads(&self) -> &Arc<Threads> {
        &self.guards.threads
    }

    pub(super) fn guards(&self) -> &RunGuards {
        &self.guards
    }

    /// Stops the run.
    pub(super) fn stop(&self, stop: Stop) {
        self.run.control().stop(stop);
    }

    /// Moves the run on by about one event.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Step> {
        let mut recording = Recording { record: &mut self.record, sink, is_terminal: false };
        let progress = ready!(self.run.poll_progress(cx, &mut recording));
        let is_terminal = recording.is_terminal || progress == Progress::Ended;
        if self.record.is_too_long {
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

    /// Stores how the run ended, together with the last events of its log. All guards are held until that is done.
    /// `delivered` says whether a client is there to be told.
    pub(super) fn commit(
        self,
        delivered: bool,
        last_events: Option<EventBatch>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let Self { record: Record { added, terminal, transcript, .. }, run, thread, guards } = self;
        let end = Ended::of(terminal.as_deref(), run.events() + added);
        let span = run.span().clone();
        let counted = run.into_counted();
        let future = async move {
            let changes = transcript.into_changes();
            let result = guards.store_end(thread, changes, end, delivered, last_events.as_ref()).await;
            if let Err(error) = &result {
                tracing::error!(?error, "the end of the run could not be stored");
            }
            drop(counted);
            drop(guards);
            result
        };
        Box::pin(tracing::Instrument::instrument(future, span))
    }
}

impl RunGuards {
    async fn store_end(
        &self,
        mut thread: LoadedThread,
        changes: Changes,
        ended: Ended,
        delivered: bool,
        last_events: Option<&EventBatch>,
    ) -> Result<(), StoreError> {
        if !ended.interrupts.is_empty() {
            thread.interrupts = ended.interrupts;
        }
        let Changes { kept, updated, new, state } = &changes;
        let own = MessageOrigin::Run { run: self.lease.run, delivered };
        // A copy of an earlier message, behind one that was inserted, keeps its origin.
        let copied = |message: &Message| (*kept < thread.branch.len()).then(|| thread.branch.origin_of(message.id()));
        let origins: Vec<_> = new.iter().map(|message| copied(message).flatten().unwrap_or(own)).collect();
        let end = RunEnd {
            status: ended.status,
            ended_at: now(),
            events: ended.events,
            usage: &ended.usage,
            failure: ended.failure.as_ref(),
            branch: BranchWrite {
                base: thread.branch.number_before(*kept),
                new: new.iter().zip(origins.iter().map(|origin| origin.run())).collect(),
                updated: updated.iter().map(|(position, text)| (thread.branch.number(*position), text)).collect(),
            },
            state: state.as_ref(),
            interrupts: &thread.interrupts,
            delivered,
            last_events,
        };
        let finished = self.finish(&end).await?;
        drop(end);
        if let Some(finished) = finished {
            self.cache(thread, changes, origins, finished);
        }
        Ok(())
    }

    /// Stores the end; asks a store that does not answer again.
    async fn finish(&self, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let begin = Instant::now();
        let [mut pause, longest] = STORE_BACKOFF;
        loop {
            match self.threads.store.finish(&self.lease, end).await {
                Err(error) if error.is_transient() && begin.elapsed() < STORE_TIMEOUT => {
                    tracing::warn!(?error, "the end of the run cannot be stored yet; trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                result => return result,
            }
        }
    }

    /// Keeps the thread for the next run.
    fn cache(&self, mut thread: LoadedThread, changes: Changes, origins: Vec<MessageOrigin>, finished: FinishedRun) {
        let Changes { kept, updated, new, state } = changes;
        let first = finished.last_message - new.len() as i64 + 1;
        thread.branch.truncate(kept);
        updated.into_iter().for_each(|(position, text)| thread.branch.replace(position, text));
        for ((message, origin), number) in new.into_iter().zip(origins).zip(first..) {
            thread.branch.push(message, number, origin);
        }
        thread.version.version = finished.version;
        thread.bytes = finished.bytes;
        if state.is_some() {
            thread.state = finished.state_number.zip(state);
        }
        self.threads.cache.put(self.key.clone(), thread);
    }
}

/// How a run ended.
struct Ended {
    status: RunStatus,
    events: u64,
    usage: Vec<TokenUsage>,
    failure: Option<RunFailure>,
    interrupts: Vec<Interrupt>,
}

impl Ended {
    fn of(terminal: Option<&Event>, events: u64) -> Self {
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
        let interrupts = terminal.map(interrupts).unwrap_or_default().to_vec();
        Self { status, events, usage, failure, interrupts }
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

/// The bytes that an event adds to the thread.
fn added_bytes(event: &Event) -> usize {
    match event {
        Event::TextMessageContent(e) => e.delta.len(),
        Event::ReasoningMessageContent(e) => e.delta.len(),
        Event::ToolCallArgs(e) => e.delta.len(),
        _ => EVENT_BYTES,
    }
}

/// Passes a run's events on, and into the transcript; holds the terminal one back.
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

    fn lifecycle(&mut self, event: &Event) {
        if matches!(event, Event::RunStarted(_)) {
            self.sink.emit(event);
            if self.record.sends_state {
                self.add_state();
            }
            for snapshot in std::mem::take(&mut self.record.snapshots) {
                self.add(&snapshot);
            }
            return;
        }
        if !interrupts(event).is_empty() {
            // A client that answers, perhaps another one, has to hold what the answer is about.
            self.add_state();
            self.add(&MessagesSnapshot::new(self.record.transcript.messages()).into());
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
        let bytes_left = self.record.bytes_left.checked_sub(added_bytes(event));
        self.record.is_too_long |= bytes_left.is_none();
        self.record.bytes_left = bytes_left.unwrap_or(0);
        self.record.transcript.apply(event);
        self.sink.emit(event);
    }
}
