//! The events of runs for an inspector, as the driver emits them: before snapshots are added, skipped patches removed, and the
//! end is stored. Costs one atomic read a poll while there are no readers.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast::{self, error::RecvError};

use super::owner_hub::{OwnerEvents, OwnerHub};
use crate::run::limits::owner_limit::{OwnerLimit, OwnerPermit};
use crate::{agent::RunIdentity, protocol::Event};

/// The number of events that a slow reader may be behind. Then it loses the oldest ones.
const MAX_BEHIND: usize = 1024;
/// The size of the events that wait for readers, of all owners together, in bytes. A principal has half of it. An event that
/// finds no room is lost.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// What an event takes beside its JSON, in bytes.
const BYTES_PER_EVENT: usize = 256;

/// An event of a run.
#[derive(Debug)]
pub(crate) struct DebugEvent {
    /// The run.
    pub run: RunIdentity,
    /// The event as JSON.
    pub event: Box<RawValue>,
    /// Given back when all readers have the event, or it is lost.
    _bytes: OwnerPermit,
}

/// Reads the events of a principal's runs in this process.
#[derive(Debug)]
pub(crate) struct DebugEvents {
    pub(crate) events: OwnerEvents<Arc<DebugEvent>, MAX_BEHIND>,
}

type DebugReaders = OwnerHub<Arc<DebugEvent>, MAX_BEHIND>;

/// Distributes the events of runs to the readers of their owner.
#[derive(Debug)]
pub(crate) struct DebugHub {
    pub(crate) readers: Arc<DebugReaders>,
    waiting: Arc<OwnerLimit>,
}

impl Default for DebugHub {
    fn default() -> Self {
        let waiting = OwnerLimit::new(MAX_WAITING_BYTES, Some(MAX_WAITING_BYTES / 2));
        Self { readers: Arc::default(), waiting }
    }
}

/// The way to the readers of an owner.
pub(crate) struct DebugSender {
    readers: broadcast::Sender<Arc<DebugEvent>>,
    waiting: Arc<OwnerLimit>,
    owner: Arc<str>,
}

impl DebugHub {
    /// Returns `None` if the owner has no readers.
    pub(crate) fn sender(&self, owner: &str) -> Option<DebugSender> {
        let readers = self.readers.sender(owner)?;
        Some(DebugSender { readers, waiting: self.waiting.clone(), owner: owner.into() })
    }
}

impl DebugSender {
    pub(crate) fn send(&self, run: &RunIdentity, event: &Event) {
        let Ok(event) = to_raw_value(event) else { return };
        let bytes = event.get().len() + BYTES_PER_EVENT;
        let Ok(permit) = self.waiting.take_many(&self.owner, bytes) else { return };
        // Fails if the last reader is being dropped.
        let _ = self.readers.send(Arc::new(DebugEvent { run: run.clone(), event, _bytes: permit }));
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::event::StepStarted;

    /// Sends the steps of a run without authentication.
    fn send(hub: &DebugHub, names: impl IntoIterator<Item = String>) -> Vec<Event> {
        let run = RunIdentity { thread_id: "t".into(), run_id: "r".into(), agent: "a".into(), principal: None };
        let readers = hub.sender("none").unwrap();
        let sent: Vec<Event> = names.into_iter().map(|name| StepStarted::new(name).into()).collect();
        sent.iter().for_each(|event| readers.send(&run, event));
        sent
    }

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_events() {
        let hub = DebugHub::default();
        let mut reader = DebugEvents { events: hub.readers.subscribe("none".into()).unwrap() };
        let sent = send(&hub, (0..MAX_BEHIND + 2).map(|step| step.to_string()));
        assert_eq!(reader.next().await.unwrap().event.get(), serde_json::to_string(&sent[2]).unwrap());
    }

    #[tokio::test]
    async fn the_bytes_that_wait_for_readers_are_bounded_and_given_back() {
        let hub = DebugHub::default();
        let mut reader = DebugEvents { events: hub.readers.subscribe("none".into()).unwrap() };
        let large = || "x".repeat(1024 * 1024);
        for _ in 0..2 {
            send(&hub, std::iter::repeat_with(large).take(20));
            for _ in 0..15 {
                assert!(reader.next().await.is_some(), "15 of 1 MiB have room");
            }
            send(&hub, ["small".to_owned()]);
            let next = reader.next().await.unwrap();
            assert!(next.event.get().contains("small"), "5 of 1 MiB are lost");
        }
    }
}
