//! Signals and announcements: notifications that another process has changed something in a shared store.
//!
//! A signal carries no data; its receiver reads the store. Signals are lost while the connection
//! that carries them is down, so a receiver also polls: every few 100 ms while
//! [`is_live`](Signals::is_live) is `false`, every few seconds otherwise. An announcement is a
//! text. Its receiver does not poll, so it gets `None` when announcements may have been lost.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use smart_default::SmartDefault;
use tokio::sync::{broadcast, watch};

use super::{RunNumber, ThreadNumber};

/// The subject of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Topic {
    /// The run with this number has new events in its log, if its thread is [followed](super::SharedStore::follow), or has ended.
    Run(RunNumber),
    /// The run of the thread with this number has ended.
    Thread(ThreadNumber),
    /// A run was asked to be cancelled.
    Cancels,
    /// A lease was released before its time.
    Leases,
}

/// Distributes signals to the tasks that wait for them. Clones share their watches.
///
/// A [`SharedStore`](super::SharedStore) has one, and calls [`set_live`](Self::set_live),
/// [`raise`](Self::raise) and [`deliver_announcement`](Self::deliver_announcement).
#[derive(Debug, Clone, SmartDefault)]
pub struct Signals {
    topics: Arc<Mutex<Topics>>,
    is_live: Arc<AtomicBool>,
    /// `None` if some may have been lost.
    #[default(broadcast::Sender::new(MAX_BEHIND))]
    announcements: broadcast::Sender<Option<Arc<str>>>,
}

/// Announcements that wait for a slow receiver. Older ones are lost.
const MAX_BEHIND: usize = 1024;

type Topics = HashMap<Topic, watch::Sender<()>>;

/// Waits for the signals of one topic.
#[derive(Debug)]
pub struct TopicWatch {
    changes: watch::Receiver<()>,
    _signals: Signals,
}

impl Signals {
    /// Starts to watch a topic. Signals that are raised from now on are received.
    pub fn watch(&self, topic: Topic) -> TopicWatch {
        let mut topics = self.topics.lock();
        // The map is cleaned only before it grows, so that a thousand watches do not each look at
        // all others.
        if topics.len() == topics.capacity() {
            topics.retain(|_, changes| changes.receiver_count() > 0);
        }
        let changes = topics.entry(topic).or_insert_with(|| watch::Sender::new(())).subscribe();
        TopicWatch { changes, _signals: self.clone() }
    }

    /// Returns whether signals of other processes arrive.
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }

    /// Sets whether signals of other processes arrive.
    pub fn set_live(&self, is_live: bool) {
        self.is_live.store(is_live, Ordering::Relaxed);
    }

    /// Wakes the watches of a topic.
    pub fn raise(&self, topic: Topic) {
        if let Some(topic) = self.topics.lock().get(&topic) {
            topic.send_replace(());
        }
    }

    /// Receives the texts that other processes announce from now on, and `None` when some may have been lost.
    pub fn announcements(&self) -> broadcast::Receiver<Option<Arc<str>>> {
        self.announcements.subscribe()
    }

    /// Passes on a text of another process, or `None` if some may have been lost.
    pub fn deliver_announcement(&self, text: Option<&str>) {
        // Fails if nobody receives announcements.
        let _ = self.announcements.send(text.map(Arc::from));
    }

    /// Wakes all watches, because signals may have been missed.
    pub fn raise_all(&self) {
        self.deliver_announcement(None);
        self.topics.lock().values().for_each(|topic| topic.send_replace(()));
    }
}

impl TopicWatch {
    /// Waits for a signal. A signal since the last call completes it at once. Cancel-safe.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // Unreachable: the watch keeps the sender.
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn each_watch_gets_a_signal_once_and_topics_without_watches_are_removed() {
        let signals = Signals::default();
        let (mut one, mut other) =
            (signals.watch(Topic::Run(RunNumber(1))), signals.watch(Topic::Run(RunNumber(1))));
        assert_eq!(one.changed().now_or_never(), None);
        signals.raise(Topic::Run(RunNumber(1)));
        signals.raise(Topic::Run(RunNumber(2)));
        assert_eq!((one.changed().now_or_never(), one.changed().now_or_never()), (Some(()), None));
        drop(one);
        assert_eq!(other.changed().now_or_never(), Some(()));
        signals.raise_all();
        assert_eq!(other.changed().now_or_never(), Some(()));
        drop(other);
        (0..1000).for_each(|run| drop(signals.watch(Topic::Run(RunNumber(run)))));
        assert!(signals.topics.lock().len() < 20);
    }
}
