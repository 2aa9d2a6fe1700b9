//! How a process learns that another one has changed something in the store they share.
//!
//! A signal says only that something changed; its receiver then reads the store. Signals can be missed while the
//! connection that brings them is down, so a receiver also reads from time to time: often while
//! [`is_live`](Signals::is_live) is `false`, seldom otherwise.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;

/// What can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The run with this number has new events in its log, or has ended.
    Run(i64),
    /// The run of the thread with this number has ended.
    Thread(i64),
    /// A run was asked to be cancelled.
    Cancels,
}

/// Changes that other processes make. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    topics: Arc<Mutex<Topics>>,
    is_live: Arc<AtomicBool>,
}

type Topics = HashMap<Topic, watch::Sender<()>>;

/// Waits for changes of one topic.
#[derive(Debug)]
pub struct TopicWatch {
    topics: Arc<Mutex<Topics>>,
    topic: Topic,
    changes: watch::Receiver<()>,
}

impl Signals {
    /// Starts to watch a topic. Changes from now on are seen.
    pub fn watch(&self, topic: Topic) -> TopicWatch {
        let changes = lock(&self.topics).entry(topic).or_insert_with(|| watch::Sender::new(())).subscribe();
        TopicWatch { topics: self.topics.clone(), topic, changes }
    }

    /// Returns whether changes by other processes arrive.
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }

    pub(super) fn set_live(&self, is_live: bool) {
        self.is_live.store(is_live, Ordering::Relaxed);
    }

    pub(super) fn raise(&self, topic: Topic) {
        if let Some(topic) = lock(&self.topics).get(&topic) {
            topic.send_replace(());
        }
    }

    /// Raises every topic: signals may have been missed.
    pub(super) fn raise_all(&self) {
        lock(&self.topics).values().for_each(|topic| topic.send_replace(()));
    }
}

impl TopicWatch {
    /// Completes at the first change since the last call, or since the watch began. Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The sender lives as long as there are watches.
            std::future::pending().await
        }
    }
}

impl Drop for TopicWatch {
    fn drop(&mut self) {
        let mut topics = lock(&self.topics);
        if topics.get(&self.topic).is_some_and(|sender| sender.receiver_count() <= 1) {
            topics.remove(&self.topic);
        }
    }
}

fn lock(topics: &Mutex<Topics>) -> MutexGuard<'_, Topics> {
    topics.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_change_is_seen_once_by_each_watch_and_forgotten_with_them() {
        let signals = Signals::default();
        let (mut one, mut other) = (signals.watch(Topic::Run(1)), signals.watch(Topic::Run(1)));
        assert_eq!(one.changed().now_or_never(), None);
        signals.raise(Topic::Run(1));
        signals.raise(Topic::Run(2));
        assert_eq!((one.changed().now_or_never(), one.changed().now_or_never()), (Some(()), None));
        drop(one);
        assert_eq!(other.changed().now_or_never(), Some(()));
        signals.raise_all();
        assert_eq!(other.changed().now_or_never(), Some(()));
        drop(other);
        assert!(lock(&signals.topics).is_empty());
    }
}
