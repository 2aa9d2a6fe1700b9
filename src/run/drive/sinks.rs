//! Sinks between a run and the one that polls it.

use super::progress::EventSink;
use crate::{observe::recordings::LiveRecording, protocol::Event};

/// Counts the events that are sent.
pub(super) struct CountingSink<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) events: &'a mut u64,
}

impl<S: EventSink> EventSink for CountingSink<'_, S> {
    fn emit(&mut self, event: &Event) {
        *self.events += 1;
        self.sink.emit(event);
    }
}

/// Copies the events of a run to its recording.
pub(super) struct CopyingSink<'a, S> {
    pub(super) recording: Option<&'a LiveRecording>,
    pub(super) sink: &'a mut S,
}

impl<S: EventSink> EventSink for CopyingSink<'_, S> {
    fn emit(&mut self, event: &Event) {
        if let Some(recording) = self.recording {
            recording.event(event);
        }
        self.sink.emit(event);
    }
}
