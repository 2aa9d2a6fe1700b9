//! The result of a run for the store and the cache: its outcome, its messages and its state.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    conversation::branch::LoadedThread, drive::transcript::TranscriptChanges,
    events::thread_event_hub::ThreadChange, turn::held_lease::HeldLease,
};
use agui_protocol::{Event, Interrupt, Message, TokenUsage, event::RunOutcome};
use agui_store::{
    BranchWrite, EndReason, EventBatch, FinishedRun, Lease, MessageOrigin, RunEnd, RunFailure,
    RunStatus, StoreError, host::now,
};

/// The time that storing an end is retried while the store is unavailable. Then the client gets an
/// error.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
const STORE_RETRY_BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// The version of a thread that a run has created.
const VERSION_OF_FIRST_RUN: i64 = 1;

pub(crate) struct RunResult {
    /// The thread after the begin of the run, with the interrupts that are open after its end.
    thread: LoadedThread,
    changes: TranscriptChanges,
    /// The origins of the new messages.
    origins: Vec<MessageOrigin>,
    status: RunStatus,
    usage: Vec<TokenUsage>,
    failure: Option<RunFailure>,
    events: u64,
    /// True if the response is being sent to a client.
    delivered: bool,
    last_events: Option<EventBatch>,
    reason: Option<EndReason>,
    has_unsafe_calls: bool,
}

impl RunResult {
    /// Creates the result. `thread` is the thread after the begin of the run. A run without a
    /// terminal event has failed.
    pub(super) fn new(
        lease: &Lease,
        mut thread: LoadedThread,
        changes: TranscriptChanges,
        terminal: Option<&Event>,
        events: u64,
        delivered: bool,
    ) -> Self {
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
        let raised = terminal.map(interrupts).unwrap_or_default();
        if !raised.is_empty() {
            thread.interrupts = raised.to_vec();
        }
        // A client drops the answer of a run that failed. What the run did stays in the conversation.
        let delivered = delivered && failure.is_none();
        let own = MessageOrigin::Run { run: lease.run, delivered };
        // A copy of an earlier message, which follows an inserted one, keeps its origin.
        let has_copies = changes.kept < thread.branch.len();
        let copied =
            |message: &Message| has_copies.then(|| thread.branch.origin_of(message.id())).flatten();
        let origins = changes.new.iter().map(|message| copied(message).unwrap_or(own)).collect();
        Self {
            thread,
            changes,
            origins,
            status,
            usage,
            failure,
            events,
            delivered,
            last_events: None,
            reason: None,
            has_unsafe_calls: false,
        }
    }

    /// Adds why the run ended before its agent was done, and whether it made calls that must not be repeated.
    pub(crate) fn ended_by(self, reason: Option<EndReason>, has_unsafe_calls: bool) -> Self {
        Self { reason, has_unsafe_calls, ..self }
    }

    /// Adds the last lines of the run's log, which are stored with its end. The number of events
    /// then includes marks, and the events from before the run was continued.
    pub(crate) fn with_last_events(self, batch: EventBatch) -> Self {
        let events = batch.first + batch.events.len() as u64 - 1;
        Self { events, last_events: Some(batch), ..self }
    }

    pub(crate) fn run_end(&self) -> RunEnd<'_> {
        let Self { thread: LoadedThread { branch, interrupts, .. }, changes, .. } = self;
        RunEnd {
            status: self.status,
            ended_at: now(),
            events: self.events,
            usage: &self.usage,
            failure: self.failure.as_ref(),
            branch: BranchWrite {
                base: branch.number_before(changes.kept),
                new: changes
                    .new
                    .iter()
                    .zip(self.origins.iter().map(|origin| origin.run()))
                    .collect(),
                updated: changes
                    .updated
                    .iter()
                    .map(|(position, text)| (branch.number(*position), text))
                    .collect(),
            },
            state: changes.state.as_ref(),
            interrupts,
            delivered: self.delivered,
            last_events: self.last_events.as_ref(),
            reason: self.reason,
            has_unsafe_calls: self.has_unsafe_calls,
        }
    }

    /// Returns the thread after the end of the run.
    fn into_thread(self, finished: FinishedRun) -> LoadedThread {
        let Self {
            mut thread,
            changes: TranscriptChanges { kept, updated, new, state },
            origins,
            ..
        } = self;
        let numbers = finished.last_message.newest(new.len());
        thread.branch.truncate(kept);
        updated.into_iter().for_each(|(position, text)| thread.branch.replace(position, text));
        for ((message, origin), number) in new.into_iter().zip(origins).zip(numbers) {
            thread.branch.push(message, number, origin);
        }
        thread.version.version = finished.version;
        thread.bytes = finished.bytes;
        if state.is_some() {
            thread.state = finished.state_number.zip(state);
        }
        thread
    }
}

impl HeldLease {
    /// Stores the end of the run, which releases the lease in the store, and caches the thread.
    pub(super) async fn store_end(&self, result: RunResult) -> Result<(), StoreError> {
        let end = result.run_end();
        let finished = self.finish(&end).await?;
        drop(end);
        self.threads.publish(&self.key, ThreadChange::Ended);
        let Some(finished) = finished else { return Ok(()) };
        let is_first = result.thread.version.version == VERSION_OF_FIRST_RUN
            && matches!(result.status, RunStatus::Finished | RunStatus::Interrupted);
        let thread = result.into_thread(finished);
        if let Some(agent) = self.threads.title_agent.as_ref().filter(|_| is_first) {
            self.threads.make_title(agent.clone(), &self.key, thread.branch.messages());
        }
        self.threads.cache.put(self.key.clone(), thread);
        Ok(())
    }

    async fn finish(&self, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let begin = Instant::now();
        let [mut pause, longest] = STORE_RETRY_BACKOFF;
        loop {
            match self.threads.store.finish(&self.lease, end).await {
                Err(error) if error.is_transient() && begin.elapsed() < STORE_TIMEOUT => {
                    tracing::warn!(?error, "the end of the run could not be stored; trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                result => return result,
            }
        }
    }
}

/// Returns the interrupts that a terminal event raises.
pub(super) fn interrupts(terminal: &Event) -> &[Interrupt] {
    match terminal {
        Event::RunFinished(finished) => match &finished.outcome {
            Some(RunOutcome::Interrupt { interrupts }) => interrupts,
            _ => &[],
        },
        _ => &[],
    }
}
