//! [`Tap`] gets a copy of each event of a run as the driver emits it, before snapshots are added,
//! skipped patches removed, and the end is stored.

use std::sync::Arc;

use agui_agent::RunContext;
use agui_protocol::Event;

/// Gets copies of the events of all runs of a server.
pub(crate) trait Tap: Send + Sync {
    /// Returns whether the next events of a run are wanted.
    fn is_open(&self, run: &RunContext) -> bool;

    /// Takes a copy of the next event of a run.
    fn event(&self, run: &RunContext, event: &Event);
}

/// The taps of a server, in their order.
pub(crate) type Taps = Arc<[Arc<dyn Tap>]>;

/// Copies events to the recordings of their runs.
pub(crate) struct RecordingTap;

impl Tap for RecordingTap {
    fn is_open(&self, run: &RunContext) -> bool {
        run.observer().is_some_and(|observer| observer.recording.is_some())
    }

    fn event(&self, run: &RunContext, event: &Event) {
        if let Some(recording) = run.observer().and_then(|observer| observer.recording.as_ref()) {
            recording.event(event);
        }
    }
}
