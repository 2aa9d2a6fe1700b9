//! Notifies other processes of committed changes.
//!
//! Changes are collected for 10 ms and sent with one statement: a `NOTIFY` inside each transaction costs 90 % of the
//! throughput, because Postgres commits such transactions one at a time. A failed notification is not repeated, because
//! receivers also poll.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};

use super::pool::Pool;
use crate::store::Topic;

pub(super) const CHANNEL: &str = "agui_changes";

const COLLECT_TIME: Duration = Duration::from_millis(10);
/// The limit of Postgres is 7,999 bytes.
const MAX_PAYLOAD_BYTES: usize = 7_900;

const NOTIFY: &str = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload";

#[derive(Debug)]
pub(super) struct Notifier {
    /// The first word of each payload, which identifies this process.
    sender: String,
    changed: Mutex<BTreeSet<Topic>>,
    wake: Notify,
}

impl Notifier {
    pub(super) fn new() -> Self {
        let sender = uuid::Uuid::new_v4().simple().to_string();
        Self { sender, changed: Mutex::default(), wake: Notify::new() }
    }

    pub(super) fn notify(&self, topics: impl IntoIterator<Item = Topic>) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).extend(topics);
        self.wake.notify_one();
    }

    pub(super) async fn run(self: Arc<Self>, pool: Pool) {
        loop {
            self.wake.notified().await;
            sleep(COLLECT_TIME).await;
            let topics = std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner));
            let payloads = payloads(&self.sender, &topics);
            if let Err(error) = pool.all(sqlx::query(NOTIFY).bind(CHANNEL).bind(payloads)).await {
                tracing::debug!(?error, "other servers could not be notified");
            }
        }
    }

    /// Sends a notification without changes, which only this process acts on.
    pub(super) async fn probe(&self, pool: &Pool) -> Result<(), crate::store::StoreError> {
        pool.all(sqlx::query(NOTIFY).bind(CHANNEL).bind([&*self.sender].as_slice())).await.map(drop)
    }

    pub(super) fn has_sent(&self, payload: &str) -> bool {
        payload.starts_with(&self.sender)
    }
}

fn payloads(sender: &str, topics: &BTreeSet<Topic>) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut payload = sender.to_owned();
    for topic in topics {
        let word = match topic {
            Topic::Run(run) => format!(" r{run}"),
            Topic::Thread(thread) => format!(" t{thread}"),
            Topic::Cancels => " c".to_owned(),
        };
        if payload.len() + word.len() > MAX_PAYLOAD_BYTES {
            payloads.push(std::mem::replace(&mut payload, sender.to_owned()));
        }
        payload += &word;
    }
    payloads.push(payload);
    payloads
}

/// Parses the changes of a payload. Unknown ones are skipped, so that later versions can add topics.
pub(super) fn topics(payload: &str) -> impl Iterator<Item = Topic> + '_ {
    payload.split(' ').skip(1).filter_map(|word| match word.split_at_checked(1)? {
        ("r", run) => Some(Topic::Run(run.parse().ok()?)),
        ("t", thread) => Some(Topic::Thread(thread.parse().ok()?)),
        ("c", "") => Some(Topic::Cancels),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed_from_their_payloads() {
        let all: BTreeSet<_> =
            (0..2000).map(Topic::Run).chain((0..2000).map(|n| Topic::Thread(-n))).chain([Topic::Cancels]).collect();
        let payloads = payloads("me", &all);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8000));
        assert_eq!(payloads.iter().flat_map(|payload| topics(payload)).collect::<BTreeSet<_>>(), all);
        assert_eq!(topics("me x r rx r5 é").collect::<Vec<_>>(), [Topic::Run(5)]);
    }
}
