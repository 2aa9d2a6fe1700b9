//! How a run is polled, and where its events go.

use std::task::{Context, Poll};

use crate::protocol::Event;

/// A run that its consumer polls for events.
pub trait Drive {
    /// The span that the run's log lines belong to.
    fn span(&self) -> &tracing::Span;

    /// Moves the run on by about one event, which goes to the sink.
    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress>;

    /// Returns whether the terminal event follows within moments, so that earlier events may wait for it and leave
    /// together with it. If it does not follow, the task is woken, and the answer is no.
    fn is_ending(&self) -> bool {
        false
    }

    /// Notes that the whole response was handed to the connection.
    fn delivered(&mut self) {}
}

impl<R: Drive> Drive for Box<R> {
    fn span(&self) -> &tracing::Span {
        (**self).span()
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        (**self).poll_progress(cx, sink)
    }

    fn is_ending(&self) -> bool {
        (**self).is_ending()
    }

    fn delivered(&mut self) {
        (**self).delivered();
    }
}

/// The result of polling a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The agent moved; its events, if there were any, are in the sink.
    Moved,
    /// The stream has been silent for so long that the client should be sent a keep-alive.
    Heartbeat,
    /// The run has ended; nothing follows.
    Ended,
}

/// Takes the events of a run, in order. An event is only borrowed: an encoder writes it out at once.
pub trait EventSink {
    /// Takes the next event.
    fn emit(&mut self, event: &Event);
}

impl EventSink for Vec<Event> {
    fn emit(&mut self, event: &Event) {
        self.push(event.clone());
    }
}
