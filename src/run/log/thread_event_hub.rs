//! Distributes changes of threads to the readers of this process.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use utoipa::ToSchema;

use super::owner_hub::{OwnerEvents, OwnerHub};
use crate::protocol::ThreadId;
use crate::run::measured_store::MeasuredStore;

/// The number of events that a slow reader may be behind.
const MAX_BEHIND: usize = 256;

/// A change of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub(crate) enum ThreadChange {
    /// It was created as a copy, by a fork or an import.
    Created,
    /// A run has begun.
    Begun,
    /// A run has ended.
    Ended,
    /// It has another title.
    Renamed,
    /// It was archived.
    Archived,
    /// It is no longer archived.
    Unarchived,
    /// It has other metadata, or another current branch.
    Changed,
    /// It was deleted. Removal by retention is reported as [`ThreadEvent::Missed`].
    Deleted,
}

/// An event of [`ThreadRuns::follow_changes`](crate::run::thread_runs::ThreadRuns::follow_changes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadEvent {
    /// A thread has changed.
    Change(ThreadId, ThreadChange),
    /// Events were lost, or retention has removed threads. The reader has to read the list again.
    Missed,
}

/// Reads the events of an owner's threads.
#[derive(Debug)]
pub(crate) struct ThreadEvents {
    /// `None` after the server has shut down.
    pub(crate) events: Option<OwnerEvents<ThreadEvent, MAX_BEHIND>>,
}

pub(crate) type ThreadEventHub = OwnerHub<ThreadEvent, MAX_BEHIND>;

/// An event as it is announced to other processes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Announcement {
    Change {
        owner: Arc<str>,
        id: ThreadId,
        change: ThreadChange,
    },
    /// Of all owners.
    Missed,
}

/// Passes on the announcements of other processes. Ends when the store has no more.
pub(crate) async fn receive_announcements(store: MeasuredStore, hub: Arc<ThreadEventHub>) {
    let Some(mut announcements) = store.shared().map(|shared| shared.signals().announcements()) else { return };
    loop {
        match announcements.recv().await {
            Ok(Some(json)) => {
                match serde_json::from_str(&json) {
                    Ok(Announcement::Change { owner, id, change }) => hub.send(&owner, ThreadEvent::Change(id, change)),
                    Ok(Announcement::Missed) => hub.send_to_all(&ThreadEvent::Missed),
                    // A later version may announce something else.
                    Err(_) => {}
                }
            }
            Ok(None) | Err(RecvError::Lagged(_)) => hub.send_to_all(&ThreadEvent::Missed),
            Err(RecvError::Closed) => return,
        }
    }
}

impl ThreadEvents {
    /// Waits for the next event. Returns `None` when the server shuts down. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<ThreadEvent> {
        match self.events.as_mut()?.next().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(_)) => Some(ThreadEvent::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_reader_is_told_that_it_has_missed_events() {
        let hub = Arc::<ThreadEventHub>::default();
        let mut reader = ThreadEvents { events: hub.subscribe("ann".into()) };
        for _ in 0..=MAX_BEHIND {
            hub.send("ann", ThreadEvent::Change("a".into(), ThreadChange::Begun));
        }
        assert_eq!(reader.next().await, Some(ThreadEvent::Missed));
        assert!(matches!(reader.next().await, Some(ThreadEvent::Change(..))));
        hub.close();
        drop(reader);
        assert_eq!(ThreadEvents { events: hub.subscribe("ann".into()) }.next().await, None);
    }
}
