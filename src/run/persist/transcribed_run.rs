//! A run on a stored thread with its transcript, and the end that is stored of it.
//!
//! The run's events are applied to the [`Transcript`] and passed on at once, except for the terminal event, which is held
//! back until the end is stored. A client that has received the end of a run therefore finds its messages, state and
//! interrupts in the store, also after a crash of the server.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::run::{
    control::Stop,
    conversation::branch::LoadedThread,
    drive::{
        driver::Run,
        progress::{Drive as _, EventSink, Progress},
        transcript::{Effect, Transcript, TranscriptChanges},
    },
    events::thread_event_hub::ThreadChange,
    turn::{queue::TurnGuard, thread_runs::ThreadRuns},
};
use crate::{
    protocol::{
        Event, Interrupt, Message, TokenUsage,
        event::{ActivityDelta, MessagesSnapshot, RunOutcome, StateSnapshot},
    },
    store::{
        BranchWrite, EventBatch, FinishedRun, Lease, MessageOrigin, RunEnd, RunFailure, RunStatus, StoreError,
        ThreadKey, json_len, now,
    },
};

/// The time that an end is tried again while the store is unavailable. Then the client gets an error.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
const STORE_RETRY_BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// The version of a thread that a run has created.
const VERSION_OF_FIRST_RUN: i64 = 1;
/// The bytes that an event other than a delta counts at least for `max_run_bytes`: about the smallest message or call.
const EVENT_OVERHEAD_BYTES: u64 = 100;

pub(crate) struct TranscribedRun {
    transcription: Transcription,
    run: Box<Run>,
    /// The thread after the begin of the run.
    thread: LoadedThread,
    guards: RunGuards,
}

/// Separate from the run, so that the run can be polled with a sink that borrows it.
struct Transcription {
    bytes_left: u64,
    is_too_long: bool,
    transcript: Transcript,
    terminal: Option<Box<Event>>,
    /// The number of snapshots that were sent in addition to the run's own events.
    added_events: u64,
    /// The number of the run's patches that were not sent, because they do not apply.
    skipped_events: u64,
    sends_state: bool,
    snapshots: Vec<Event>,
}

pub(crate) struct RunGuards {
    pub(crate) threads: Arc<ThreadRuns>,
    pub(crate) key: ThreadKey,
    pub(crate) lease: Lease,
    /// Keeps the next run of the thread waiting until the end of this one is stored.
    pub(crate) _turn: TurnGuard,
}

impl TranscribedRun {
    pub(crate) fn new(run: Box<Run>, transcript: Transcript, thread: LoadedThread, guards: RunGuards) -> Self {
        let bytes_left = guards.threads.options.max_run_bytes;
        let transcription = Transcription {
            bytes_left,
            is_too_long: false,
            transcript,
            terminal: None,
            added_events: 0,
            skipped_events: 0,
            sends_state: false,
            snapshots: Vec::new(),
        };
        Self { transcription, run, thread, guards }
    }

    pub(crate) fn with_state_snapshot(mut self) -> Self {
        self.transcription.sends_state = true;
        self
    }

    /// Sends these events after `RUN_STARTED` and the state.
    pub(crate) fn with_snapshots(mut self, snapshots: Vec<Event>) -> Self {
        self.transcription.snapshots = snapshots;
        self
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn guards(&self) -> &RunGuards {
        &self.guards
    }

    pub(crate) fn stop(&self, stop: Stop) {
        self.run.control().stop(stop);
    }

    /// Drops the agent. The run has no end in this process.
    pub(crate) fn stop_agent(&mut self) {
        self.run.hand_over();
    }

    /// Has ended as soon as it has the terminal event, which it keeps.
    pub(crate) fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        let mut sink = TranscriptSink { transcription: &mut self.transcription, sink, is_terminal: false };
        let progress = ready!(self.run.poll_progress(cx, &mut sink));
        let has_ended = sink.is_terminal;
        if self.transcription.is_too_long {
            self.stop(Stop::TooLong);
        }
        Poll::Ready(if has_ended { Progress::Ended } else { progress })
    }

    /// Returns the terminal event. A run that has ended without one is to be handed over.
    pub(crate) fn terminal(&self) -> Option<&Event> {
        self.transcription.terminal.as_deref()
    }

    /// Keeps all guards until the end is stored. `delivered` says that the response is being sent to a client.
    pub(crate) fn commit(
        self,
        delivered: bool,
        last_events: Option<EventBatch>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let Self { transcription, run, thread, guards } = self;
        let Transcription { added_events, skipped_events, terminal, transcript, .. } = transcription;
        // The log of a run has also marks, and the events from before the run was continued.
        let sent = run.events() + added_events - skipped_events;
        let events = last_events.as_ref().map_or(sent, |batch| batch.first + batch.events.len() as u64 - 1);
        let end = RunSummary::of(terminal.as_deref(), events);
        let span = run.span().clone();
        let slot = run.into_slot();
        let future = async move {
            let changes = transcript.into_changes();
            let result = guards.store_end(thread, changes, end, delivered, last_events.as_ref()).await;
            match &result {
                Ok(()) => {}
                Err(StoreError::LeaseLost) => {
                    tracing::info!(
                        "the run was not stored: its thread was deleted, or another server has taken it over"
                    );
                }
                Err(error) => tracing::error!(?error, "the end of the run could not be stored"),
            }
            drop(slot);
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
        changes: TranscriptChanges,
        summary: RunSummary,
        delivered: bool,
        last_events: Option<&EventBatch>,
    ) -> Result<(), StoreError> {
        if !summary.interrupts.is_empty() {
            thread.interrupts = summary.interrupts;
        }
        let TranscriptChanges { kept, updated, new, state } = &changes;
        let own = MessageOrigin::Run { run: self.lease.run, delivered };
        // A copy of an earlier message, which follows an inserted one, keeps its origin.
        let copied = |message: &Message| (*kept < thread.branch.len()).then(|| thread.branch.origin_of(message.id()));
        let origins: Vec<_> = new.iter().map(|message| copied(message).flatten().unwrap_or(own)).collect();
        let end = RunEnd {
            status: summary.status,
            ended_at: now(),
            events: summary.events,
            usage: &summary.usage,
            failure: summary.failure.as_ref(),
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
        let is_first_run = thread.version.version == VERSION_OF_FIRST_RUN;
        let has_succeeded = end.status == RunStatus::Finished || end.status == RunStatus::Interrupted;
        let finished = self.finish(&end).await?;
        drop(end);
        self.threads.publish(&self.key, ThreadChange::Ended);
        if let Some(finished) = finished {
            self.cache(thread, changes, origins, finished, is_first_run && has_succeeded);
        }
        Ok(())
    }

    async fn finish(&self, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let begin = Instant::now();
        let [mut pause, longest] = STORE_RETRY_BACKOFF;
        loop {
            match self.threads.store.call("finish", |store| store.finish(&self.lease, end)).await {
                Err(error) if error.is_transient() && begin.elapsed() < STORE_TIMEOUT => {
                    tracing::warn!(?error, "the end of the run could not be stored; trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                result => return result,
            }
        }
    }

    fn cache(
        &self,
        mut thread: LoadedThread,
        changes: TranscriptChanges,
        origins: Vec<MessageOrigin>,
        finished: FinishedRun,
        makes_title: bool,
    ) {
        let TranscriptChanges { kept, updated, new, state } = changes;
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
        if makes_title {
            self.threads.first_run_ended.get().inspect(|ended| ended(&self.key, thread.branch.messages()));
        }
        self.threads.cache.put(self.key.clone(), thread);
    }
}

struct RunSummary {
    status: RunStatus,
    events: u64,
    usage: Vec<TokenUsage>,
    failure: Option<RunFailure>,
    interrupts: Vec<Interrupt>,
}

impl RunSummary {
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

fn interrupts(terminal: &Event) -> &[Interrupt] {
    match terminal {
        Event::RunFinished(finished) => match &finished.outcome {
            Some(RunOutcome::Interrupt { interrupts }) => interrupts,
            _ => &[],
        },
        _ => &[],
    }
}

/// Returns how much an event adds at most to the messages, with its metadata. A state replaces the one before it.
fn added_bytes(event: &Event) -> u64 {
    let metadata = event.base().metadata().map_or(0, json_len);
    match event {
        Event::TextMessageContent(e) => e.delta.len() as u64 + metadata,
        Event::ReasoningMessageContent(e) => e.delta.len() as u64 + metadata,
        Event::ToolCallArgs(e) => e.delta.len() as u64 + metadata,
        Event::TextMessageStart(_)
        | Event::ReasoningMessageStart(_)
        | Event::ReasoningEncryptedValue(_)
        | Event::ToolCallStart(_)
        | Event::ToolCallResult(_)
        | Event::ActivitySnapshot(_)
        | Event::ActivityDelta(_)
        | Event::MessagesSnapshot(_) => json_len(event).max(EVENT_OVERHEAD_BYTES),
        _ => EVENT_OVERHEAD_BYTES + metadata,
    }
}

struct TranscriptSink<'a, S> {
    transcription: &'a mut Transcription,
    sink: &'a mut S,
    is_terminal: bool,
}

impl<S: EventSink> TranscriptSink<'_, S> {
    fn emit_extra(&mut self, event: &Event) {
        self.transcription.added_events += 1;
        self.sink.emit(event);
    }

    fn emit_state(&mut self) {
        self.emit_extra(&StateSnapshot::new(self.transcription.transcript.state().clone()).into());
    }

    fn hold_lifecycle(&mut self, event: &Event) {
        if matches!(event, Event::RunStarted(_)) {
            self.sink.emit(event);
            if self.transcription.sends_state {
                self.emit_state();
            }
            for snapshot in std::mem::take(&mut self.transcription.snapshots) {
                self.emit_extra(&snapshot);
            }
            return;
        }
        if !interrupts(event).is_empty() {
            // The client that answers may be another one, and needs the state and messages that the interrupts refer to.
            self.emit_state();
            self.emit_extra(&MessagesSnapshot::new(self.transcription.transcript.messages()).into());
        }
        self.transcription.terminal = Some(Box::new(event.clone()));
        self.is_terminal = true;
    }
}

impl<S: EventSink> EventSink for TranscriptSink<'_, S> {
    fn emit(&mut self, event: &Event) {
        if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
            return self.hold_lifecycle(event);
        }
        let bytes_left = self.transcription.bytes_left.checked_sub(added_bytes(event));
        self.transcription.is_too_long |= bytes_left.is_none();
        self.transcription.bytes_left = bytes_left.unwrap_or(0);
        let effect = self.transcription.transcript.try_apply(event);
        self.transcription.is_too_long |= self.transcription.transcript.is_patch_budget_spent();
        match (effect, event) {
            (Effect::Whole, _) => self.sink.emit(event),
            (Effect::WithoutPatch, Event::ActivityDelta(delta)) => {
                self.sink.emit(&ActivityDelta { patch: Vec::new(), ..delta.clone() }.into());
            }
            _ => self.transcription.skipped_events += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_an_event_adds_to_the_messages_is_counted() {
        let long = "x".repeat(5_000);
        for event in [
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x", "metadata": { "a": long } }),
            json!({ "type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": { "a": long } }),
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": long }),
            json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": long }),
            json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": long }),
            json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": { "a": long } }),
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "id": "m", "role": "user", "content": long }] }),
        ] {
            let event: Event = serde_json::from_value(event).unwrap();
            let added = added_bytes(&event);
            assert!((5_000..6_000).contains(&added), "{added}: {event:?}");
        }
        let end: Event = serde_json::from_value(json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" })).unwrap();
        assert_eq!(added_bytes(&end), EVENT_OVERHEAD_BYTES);
    }
}
