//! Distributes changes of threads to the readers of this process. Readers of one owner share the work: a changed thread is
//! read and encoded once, and changes of a thread within 100 ms after one that was sent are sent together.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{OnceCell, broadcast::error::RecvError},
    time::sleep,
};
use utoipa::ToSchema;

use super::owner_hub::{OwnerEvents, OwnerHub};
use crate::measured_store::MeasuredStore;
use agui_protocol::ThreadId;
use agui_store::{Thread, ThreadKey};

/// The number of events that a slow reader may be behind.
const MAX_BEHIND: usize = 256;
/// The shortest time between two events of one thread.
const EVENT_INTERVAL: Duration = Duration::from_millis(100);

/// A change of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ThreadChange {
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

/// An event of [`ThreadEvents`].
#[derive(Debug, Clone)]
pub enum ThreadEvent {
    /// A thread has changed.
    Changes(Arc<ThreadChanges>),
    /// Events were lost, or retention has removed threads. The reader has to read the list again.
    Missed,
}

/// Changes of one thread, with the data that its readers share.
#[derive(Debug)]
pub struct ThreadChanges {
    pub id: ThreadId,
    /// Each kind at most once, in the order of their last changes.
    pub kinds: Vec<ThreadChange>,
    /// Set by the first reader.
    pub thread: OnceCell<ChangedThread>,
    /// The frames that `GET /threads/events` sends. Set by the first reader.
    pub frames: OnceLock<Bytes>,
}

/// A thread after its changes.
#[derive(Debug)]
pub enum ChangedThread {
    /// The thread, without its messages and its state.
    Summary(Box<Thread>),
    /// The thread no longer exists.
    Deleted,
    /// The store has failed.
    Unknown,
}

/// Reads the events of an owner's threads.
#[derive(Debug)]
pub struct ThreadEvents {
    /// `None` after the server has shut down.
    events: Option<OwnerEvents<ThreadEvent, MAX_BEHIND>>,
}

/// Distributes the changes of threads to the readers of their owner.
#[derive(Debug, Default)]
pub struct ThreadEventHub {
    pub readers: Arc<OwnerHub<ThreadEvent, MAX_BEHIND>>,
    /// The threads with an event in the last [`EVENT_INTERVAL`], and their changes since.
    recent: Mutex<HashMap<ThreadKey, Vec<ThreadChange>>>,
}

/// An event as it is announced to other processes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Announcement {
    Change {
        owner: Arc<str>,
        id: ThreadId,
        change: ThreadChange,
    },
    /// Events of all owners were missed.
    Missed,
}

impl ThreadEventHub {
    pub fn subscribe(&self, owner: Arc<str>) -> ThreadEvents {
        ThreadEvents { events: self.readers.subscribe(owner) }
    }

    /// Sends a change to the readers of the thread's owner: at once, or with further ones after [`EVENT_INTERVAL`].
    pub fn send(self: &Arc<Self>, key: &ThreadKey, change: ThreadChange) {
        if self.readers.sender(&key.owner).is_none() {
            return;
        }
        let mut recent = self.recent.lock();
        if let Some(later) = recent.get_mut(key) {
            later.retain(|earlier| *earlier != change);
            later.push(change);
            return;
        }
        recent.insert(key.clone(), Vec::new());
        drop(recent);
        self.send_now(key, vec![change]);
        tokio::spawn(self.clone().send_later(key.clone()));
    }

    async fn send_later(self: Arc<Self>, key: ThreadKey) {
        loop {
            sleep(EVENT_INTERVAL).await;
            let mut recent = self.recent.lock();
            let later = recent.get_mut(&key).map(std::mem::take).unwrap_or_default();
            if later.is_empty() {
                recent.remove(&key);
                return;
            }
            drop(recent);
            self.send_now(&key, later);
        }
    }

    fn send_now(&self, key: &ThreadKey, kinds: Vec<ThreadChange>) {
        let (thread, frames) = (OnceCell::new(), OnceLock::new());
        let changes = ThreadChanges { id: key.id.clone(), kinds, thread, frames };
        self.readers.send(&key.owner, ThreadEvent::Changes(Arc::new(changes)));
    }

    pub(crate) fn send_missed(&self) {
        self.readers.send_to_all(&ThreadEvent::Missed);
    }
}

/// Forwards the announcements of other processes. Ends when the store has no more. Calls `on_deleted` for each deleted thread.
pub(crate) async fn receive_announcements<F: Future<Output = ()>>(
    store: MeasuredStore,
    hub: Arc<ThreadEventHub>,
    on_deleted: impl Fn(ThreadKey) -> F,
) {
    let Some(mut announcements) = store.shared().map(|shared| shared.signals().announcements())
    else {
        return;
    };
    loop {
        match announcements.recv().await {
            Ok(Some(json)) => {
                match serde_json::from_str(&json) {
                    Ok(Announcement::Change { owner, id, change }) => {
                        let key = ThreadKey { owner, id };
                        hub.send(&key, change);
                        if change == ThreadChange::Deleted {
                            on_deleted(key).await;
                        }
                    }
                    Ok(Announcement::Missed) => hub.send_missed(),
                    // A later version may announce something else.
                    Err(_) => {}
                }
            }
            Ok(None) | Err(RecvError::Lagged(_)) => hub.send_missed(),
            Err(RecvError::Closed) => return,
        }
    }
}

impl ThreadEvents {
    /// Waits for the next event. Returns `None` when the server shuts down. Cancel-safe.
    pub async fn next(&mut self) -> Option<ThreadEvent> {
        match self.events.as_mut()?.next().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(_)) => Some(ThreadEvent::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    fn key(id: &str) -> ThreadKey {
        ThreadKey { owner: "ann".into(), id: id.into() }
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_that_it_has_missed_events() {
        let hub = Arc::<ThreadEventHub>::default();
        let mut reader = hub.subscribe("ann".into());
        for thread in 0..=MAX_BEHIND {
            hub.send(&key(&thread.to_string()), ThreadChange::Begun);
        }
        assert!(matches!(reader.next().await, Some(ThreadEvent::Missed)));
        assert!(matches!(reader.next().await, Some(ThreadEvent::Changes(_))));
        hub.readers.close();
        drop(reader);
        assert!(hub.subscribe("ann".into()).next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_a_thread_within_100_ms_are_one_event() {
        use ThreadChange::{Archived, Begun, Ended, Renamed};
        let (hub, start) = (Arc::<ThreadEventHub>::default(), Instant::now());
        let mut reader = hub.subscribe("ann".into());
        for change in [Begun, Renamed, Ended, Archived, Renamed] {
            hub.send(&key("t"), change);
        }
        hub.send(&key("u"), Begun);
        let mut seen = Vec::new();
        while let Ok(Some(ThreadEvent::Changes(changes))) =
            timeout(Duration::from_secs(9), reader.next()).await
        {
            seen.push((start.elapsed(), changes.id.to_string(), changes.kinds.clone()));
        }
        let (at_once, later) = (Duration::ZERO, EVENT_INTERVAL);
        let expected = [(at_once, "t", vec![Begun]), (at_once, "u", vec![Begun])];
        let expected = expected.into_iter().chain([(later, "t", vec![Ended, Archived, Renamed])]);
        let is_close = |(at, id, kinds): (Duration, &str, Vec<_>),
                        seen: &(Duration, String, Vec<_>)| {
            seen.0.abs_diff(at) < Duration::from_millis(5) && (id, &kinds) == (&*seen.1, &seen.2)
        };
        assert!(
            seen.len() == 3 && expected.zip(&seen).all(|(expected, seen)| is_close(expected, seen)),
            "{seen:?}"
        );
        assert!(hub.recent.lock().is_empty());
    }
}
