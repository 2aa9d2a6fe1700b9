//! The interface between a run and the response or task that polls it.

use std::task::{Context, Poll};

use agui_protocol::Event;

/// A run that a response polls for events.
pub trait Drive {
    /// Returns the span of the run's log lines.
    fn span(&self) -> &tracing::Span;

    /// Polls the run for about one event, which is emitted to the sink.
    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress>;

    /// Returns whether the terminal event is expected within 50 ms, so that the events before it
    /// can be sent together with it. After that time the task is woken, and this returns `false`.
    fn is_ending(&self) -> bool {
        false
    }

    /// Notes that the whole response was written to the connection.
    fn delivered(&mut self) {}
}

/// The result of polling a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The agent made progress. Its events, if any, were emitted to the sink.
    Moved,
    /// The stream was silent for the heartbeat interval, so the client should be sent a keep-alive.
    Heartbeat,
    /// The run has ended. No event follows.
    Ended,
    /// The events end here without the run's end. The response has to break, so that its client can tell.
    Broken,
}

/// Receives the events of a run in order.
pub trait EventSink {
    /// Receives the next event.
    fn emit(&mut self, event: &Event);
}

impl<F: FnMut(&Event)> EventSink for F {
    fn emit(&mut self, event: &Event) {
        self(event);
    }
}

impl EventSink for Vec<Event> {
    fn emit(&mut self, event: &Event) {
        self.push(event.clone());
    }
}
