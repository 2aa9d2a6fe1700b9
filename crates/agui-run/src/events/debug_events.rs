//! The [tap](Tap) of inspectors: the events of runs for the readers of their owner. Costs one
//! atomic read a poll while there are no readers.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast::error::RecvError;

use super::{
    owner_hub::{OwnerEvents, OwnerHub},
    tap::Tap,
};
use agui_agent::{
    Principal, RunContext,
    host::{RunIdentity, owner_of},
};
use agui_base::permits::{Permit, Permits};
use agui_protocol::Event;
use agui_store::ThreadKey;

/// The number of events that a slow reader may be behind. Then it loses the oldest ones.
const MAX_BEHIND: usize = 1024;
/// The size of the unread events of all owners, in bytes. A principal has half of it. An event that
/// does not fit is lost.
const MAX_UNREAD_BYTES: usize = 16 * 1024 * 1024;
/// The memory of an event beside its JSON, in bytes.
const BYTES_PER_EVENT: usize = 256;

/// An event of a run.
#[derive(Debug)]
pub struct DebugEvent {
    /// The run.
    pub run: RunIdentity,
    /// The event as JSON.
    pub event: Box<RawValue>,
    /// Given back when all readers have the event, or it is lost.
    _bytes: Permit,
}

/// Reads the events of a principal's runs in this process.
#[derive(Debug)]
pub struct DebugEvents {
    pub events: OwnerEvents<Arc<DebugEvent>, MAX_BEHIND>,
}

/// Distributes the events of runs to the readers of their owner.
#[derive(Debug)]
pub(crate) struct DebugHub {
    pub readers: Arc<OwnerHub<Arc<DebugEvent>, MAX_BEHIND>>,
    unread: Arc<Permits>,
}

impl Default for DebugHub {
    fn default() -> Self {
        let unread = Permits::new(MAX_UNREAD_BYTES, Some(MAX_UNREAD_BYTES / 2));
        Self { readers: Arc::default(), unread }
    }
}

impl Tap for DebugHub {
    fn is_open(&self, run: &RunContext) -> bool {
        self.readers.has_readers(|| run.principal().map_or(ThreadKey::ANONYMOUS, Principal::id))
    }

    fn event(&self, run: &RunContext, event: &Event) {
        let Ok(event) = to_raw_value(event) else { return };
        let owner = owner_of(run.principal());
        let bytes = event.get().len() + BYTES_PER_EVENT;
        let Ok(permit) = self.unread.try_take(&owner, bytes) else { return };
        self.readers.send(
            &owner,
            Arc::new(DebugEvent { run: run.identity().clone(), event, _bytes: permit }),
        );
    }
}

impl DebugEvents {
    /// Waits for the next event. Returns `None` when the server shuts down. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<DebugEvent>> {
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
    use agui_protocol::event::StepStarted;

    /// Sends the steps of a run without authentication.
    fn send(hub: &DebugHub, names: impl IntoIterator<Item = String>) -> Vec<Event> {
        let run = RunContext::new("t", "r", "a");
        let sent: Vec<Event> =
            names.into_iter().map(|name| StepStarted::new(name).into()).collect();
        sent.iter().for_each(|event| hub.event(&run, event));
        sent
    }

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_events() {
        let hub = DebugHub::default();
        let mut reader = DebugEvents { events: hub.readers.subscribe("none".into()).unwrap() };
        let sent = send(&hub, (0..MAX_BEHIND + 2).map(|step| step.to_string()));
        assert_eq!(
            reader.next().await.unwrap().event.get(),
            serde_json::to_string(&sent[2]).unwrap()
        );
    }

    #[tokio::test]
    async fn the_bytes_that_wait_for_readers_are_bounded_and_given_back() {
        let hub = DebugHub::default();
        let mut reader = DebugEvents { events: hub.readers.subscribe("none".into()).unwrap() };
        let large = || "x".repeat(1024 * 1024);
        for _ in 0..2 {
            send(&hub, std::iter::repeat_with(large).take(20));
            for _ in 0..15 {
                assert!(reader.next().await.is_some(), "15 of 1 MiB fit");
            }
            send(&hub, ["small".to_owned()]);
            let next = reader.next().await.unwrap();
            assert!(next.event.get().contains("small"), "5 of 1 MiB are lost");
        }
    }
}
