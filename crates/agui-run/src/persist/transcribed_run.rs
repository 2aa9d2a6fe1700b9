//! A run on a stored thread with its transcript. Stores the end of the run.
//!
//! The run's events are applied to the [`Transcript`] and passed on at once, except for the terminal event, which is held
//! back until the end is stored. A client that has received the end of a run therefore finds its messages, state and
//! interrupts in the store, also after a crash of the server.

use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;

use super::run_result::{RunResult, interrupts};
use crate::{
    control::Stop,
    conversation::branch::LoadedThread,
    drive::{
        driver::Run,
        progress::{Drive as _, EventSink, Progress},
        transcript::{Effect, Transcript},
    },
    turn::held_lease::HeldLease,
};
use agui_protocol::{
    Event,
    event::{ActivityDelta, MessagesSnapshot, StateSnapshot},
};
use agui_store::{EventBatch, StoreError, host::json_len};

/// The least bytes that an event other than a delta counts for `max_run_bytes`: about the smallest
/// message or call.
const EVENT_OVERHEAD_BYTES: u64 = 100;

pub struct TranscribedRun {
    transcription: Transcription,
    pub(super) run: Box<Run>,
    /// The thread after the begin of the run.
    thread: LoadedThread,
    pub(super) held: HeldLease,
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
    snapshots: Vec<Event>,
    /// True if a snapshot of the messages comes before the terminal event.
    needs_messages_snapshot: bool,
    /// True if media are stored as files.
    has_files: bool,
}

/// Whether the end of a run is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndCommit {
    Stored,
    ThreadDeleted,
    /// Another server has the thread, or is about to have it.
    LeaseLost,
    /// The store failed. Another process or the next start closes the run.
    Failed,
}

/// The result of storing the end of a run.
pub(crate) struct Committed {
    pub end: EndCommit,
    pub held: HeldLease,
    /// The snapshot before the terminal event: with it, the client has files in place of data.
    pub snapshot: Option<Box<Event>>,
}

impl TranscribedRun {
    /// Creates the run. The snapshots are sent after `RUN_STARTED`.
    pub fn new(
        run: Box<Run>,
        transcript: Transcript,
        thread: LoadedThread,
        held: HeldLease,
        snapshots: Vec<Event>,
    ) -> Self {
        let transcription = Transcription {
            bytes_left: held.threads.options.runs.max_run_bytes,
            is_too_long: false,
            transcript,
            terminal: None,
            added_events: 0,
            skipped_events: 0,
            snapshots,
            needs_messages_snapshot: false,
            has_files: held.threads.files.is_some(),
        };
        Self { transcription, run, thread, held }
    }

    /// Adds a snapshot at the end of the run, if the client sent data that were stored as files:
    /// the client gets their names.
    pub(crate) fn with_final_snapshot(mut self, had_inline_media: bool) -> Self {
        self.transcription.needs_messages_snapshot = had_inline_media;
        self
    }

    /// Stores the media that the run has added as files. Returns the snapshot before the terminal
    /// event, with the names of the files: clients would otherwise send the data again with each
    /// request.
    pub(crate) async fn absorb(&mut self) -> Option<Event> {
        let Self {
            transcription: Transcription { transcript, needs_messages_snapshot, added_events, .. },
            held,
            ..
        } = self;
        if let Some(files) = held.threads.files.as_ref().filter(|_| transcript.has_new_media()) {
            match files.absorb(&held.key.owner, transcript.changed_mut()).await {
                Ok(has_stored) => *needs_messages_snapshot |= has_stored,
                Err(error) => {
                    tracing::warn!(?error, "media of a run stay in its messages as they are")
                }
            }
        }
        if !std::mem::take(needs_messages_snapshot) {
            return None;
        }
        *added_events += 1;
        Some(MessagesSnapshot::new(transcript.messages()).into())
    }

    pub fn stop(&self, stop: Stop) {
        self.run.control().stop(stop);
    }

    /// Drops the agent. The run has no end in this process.
    pub(crate) fn stop_agent(&mut self) {
        self.run.hand_over();
    }

    /// Polls the run, which ends with its terminal event. That event is kept, not emitted.
    pub fn poll_progress(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut impl EventSink,
    ) -> Poll<Progress> {
        let transcription = &mut self.transcription;
        let progress = ready!(
            self.run.poll_progress(cx, &mut |event: &Event| transcription.pass(event, sink))
        );
        if self.transcription.is_too_long {
            self.stop(Stop::TooLong);
        }
        Poll::Ready(if self.transcription.terminal.is_some() { Progress::Ended } else { progress })
    }

    /// Returns the terminal event. A run that has ended without one has to be handed over.
    pub fn terminal(&self) -> Option<&Event> {
        self.transcription.terminal.as_deref()
    }

    /// Stores the end of the run, and keeps the permit and the turn until then. `delivered` is true
    /// if the response is being sent to a client.
    pub(crate) fn commit(
        mut self,
        delivered: bool,
        last_events: Option<EventBatch>,
    ) -> BoxFuture<'static, Committed> {
        let span = self.run.span().clone();
        let future = async move {
            let snapshot = self.absorb().await.map(Box::new);
            let Self { transcription, run, thread, mut held } = self;
            let Transcription { added_events, skipped_events, terminal, transcript, .. } =
                transcription;
            let events = run.events() + added_events - skipped_events;
            let permit = run.into_permit();
            let changes = transcript.into_changes();
            let result = RunResult::new(
                &held.run.lease,
                thread,
                changes,
                terminal.as_deref(),
                events,
                delivered,
            );
            let result = match last_events {
                Some(batch) => result.with_last_events(batch),
                None => result,
            };
            let end = held.commit(result).await;
            drop(permit);
            held.end_turn();
            Committed { end, held, snapshot }
        };
        Box::pin(tracing::Instrument::instrument(future, span))
    }
}

impl HeldLease {
    async fn commit(&self, result: RunResult) -> EndCommit {
        match self.store_end(result).await {
            Ok(()) => EndCommit::Stored,
            Err(StoreError::LeaseLost) => {
                let store = &self.threads.store;
                let is_deleted = store.is_deleted(&self.key, self.run.lease.thread).await;
                let end = match is_deleted {
                    Ok(true) => EndCommit::ThreadDeleted,
                    _ => EndCommit::LeaseLost,
                };
                tracing::info!(reason = ?end, "the end of the run was not stored");
                end
            }
            Err(error) => {
                tracing::error!(?error, "the end of the run could not be stored");
                EndCommit::Failed
            }
        }
    }
}

impl Transcription {
    fn pass(&mut self, event: &Event, sink: &mut impl EventSink) {
        match event {
            Event::RunStarted(_) => {
                sink.emit(event);
                for snapshot in std::mem::take(&mut self.snapshots) {
                    self.emit_extra(&snapshot, sink);
                }
                return;
            }
            Event::RunFinished(_) | Event::RunError(_) => return self.hold_terminal(event, sink),
            _ => {}
        }
        let bytes_left = self.bytes_left.checked_sub(added_bytes(event));
        self.is_too_long |= bytes_left.is_none();
        self.bytes_left = bytes_left.unwrap_or(0);
        let effect = self.transcript.try_apply(event);
        self.is_too_long |= self.transcript.is_patch_budget_spent();
        match (effect, event) {
            (Effect::Whole, _) => sink.emit(event),
            (Effect::WithoutPatch, Event::ActivityDelta(delta)) => {
                sink.emit(&ActivityDelta { patch: Vec::new(), ..delta.clone() }.into());
            }
            _ => self.skipped_events += 1,
        }
    }

    fn hold_terminal(&mut self, event: &Event, sink: &mut impl EventSink) {
        if !interrupts(event).is_empty() {
            // Another client may reply, and needs the state and the messages that the interrupts
            // refer to.
            self.emit_extra(&StateSnapshot::new(self.transcript.state().clone()).into(), sink);
            self.needs_messages_snapshot = self.has_files && self.transcript.has_new_media();
            if !self.needs_messages_snapshot {
                self.emit_extra(&MessagesSnapshot::new(self.transcript.messages()).into(), sink);
            }
        }
        self.terminal = Some(Box::new(event.clone()));
    }

    fn emit_extra(&mut self, event: &Event, sink: &mut impl EventSink) {
        self.added_events += 1;
        sink.emit(event);
    }
}

/// Returns the most bytes that an event adds to the messages, with its metadata. A state replaces
/// the one before it.
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
        let end: Event =
            serde_json::from_value(json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" }))
                .unwrap();
        assert_eq!(added_bytes(&end), EVENT_OVERHEAD_BYTES);
    }
}
