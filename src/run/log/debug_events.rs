//! The events of runs for an inspector, as the driver emits them: before snapshots are added, skipped patches removed, and the
//! end is stored. Costs one atomic read a poll while nobody reads them.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use super::owner_hub::{OwnerEvents, OwnerHub};
use crate::run::drive::progress::EventSink;
use crate::{agent::RunIdentity, protocol::Event};

/// The number of events that a slow reader may be behind. Then it loses the oldest ones.
const MAX_BEHIND: usize = 1024;

/// An event of a run.
#[derive(Debug)]
pub(crate) struct DebugEvent {
    /// The run.
    pub run: RunIdentity,
    /// The event.
    pub event: Event,
}

/// Reads the events of a principal's runs in this process.
#[derive(Debug)]
pub(crate) struct DebugEvents {
    pub(crate) events: OwnerEvents<Arc<DebugEvent>, MAX_BEHIND>,
}

pub(crate) type DebugHub = OwnerHub<Arc<DebugEvent>, MAX_BEHIND>;

impl DebugEvents {
    /// Waits for the next event. Returns `None` when the server shuts down. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<DebugEvent>> {
        loop {
            match self.events.next().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Copies the events of a run to the readers.
pub(crate) struct DebugSink<'a, S> {
    pub(crate) readers: broadcast::Sender<Arc<DebugEvent>>,
    pub(crate) run: &'a RunIdentity,
    pub(crate) sink: &'a mut S,
}

impl<S: EventSink> EventSink for DebugSink<'_, S> {
    fn emit(&mut self, event: &Event) {
        // Fails if the last reader is being dropped.
        let _ = self.readers.send(Arc::new(DebugEvent { run: self.run.clone(), event: event.clone() }));
        self.sink.emit(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::event::StepStarted;

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_events() {
        let hub = Arc::<DebugHub>::default();
        let mut reader = DebugEvents { events: hub.subscribe("ann".into()).unwrap() };
        let run = RunIdentity { thread_id: "t".into(), run_id: "r".into(), agent: "a".into(), principal: None };
        let mut sent = Vec::<Event>::new();
        let mut sink = DebugSink { readers: hub.sender("ann").unwrap(), run: &run, sink: &mut sent };
        for step in 0..MAX_BEHIND + 2 {
            sink.emit(&StepStarted::new(step.to_string()).into());
        }
        assert_eq!(reader.next().await.unwrap().event, sent[2]);
    }
}
