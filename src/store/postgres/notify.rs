//! Tells other processes what this one has changed, after it is committed.
//!
//! Changes are gathered for a few milliseconds and told in one statement: a `NOTIFY` in each transaction would take
//! turns with all others at the commit. What could not be told is not told again: others also read from time to time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};

use super::pool::Pool;
use crate::store::Topic;

/// The channel of all processes.
pub(super) const CHANNEL: &str = "agui_changes";

/// For how long changes are gathered.
const GATHER: Duration = Duration::from_millis(10);
/// Postgres takes less than 8,000 bytes.
const MAX_PAYLOAD: usize = 7_900;

const NOTIFY: &str = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload";

/// Gathers what this process has changed.
#[derive(Debug)]
pub(super) struct Notifier {
    /// The process, as the first word of each payload.
    sender: String,
    changed: Mutex<BTreeSet<Topic>>,
    wake: Notify,
}

impl Notifier {
    pub(super) fn new() -> Self {
        let sender = uuid::Uuid::new_v4().simple().to_string();
        Self { sender, changed: Mutex::default(), wake: Notify::new() }
    }

    /// Notes changes, which are told soon.
    pub(super) fn notify(&self, topics: impl IntoIterator<Item = Topic>) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).extend(topics);
        self.wake.notify_one();
    }

    /// Tells changes until the task is aborted.
    pub(super) async fn run(self: Arc<Self>, pool: Pool) {
        loop {
            self.wake.notified().await;
            sleep(GATHER).await;
            let topics = std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner));
            let payloads = payloads(&self.sender, &topics);
            if let Err(error) = pool.all(sqlx::query(NOTIFY).bind(CHANNEL).bind(payloads)).await {
                tracing::debug!(?error, "other servers could not be notified");
            }
        }
    }

    /// Tells nothing but that notifications arrive, to this process.
    pub(super) async fn probe(&self, pool: &Pool) -> Result<(), crate::store::StoreError> {
        pool.all(sqlx::query(NOTIFY).bind(CHANNEL).bind([&*self.sender].as_slice())).await.map(drop)
    }

    /// Returns whether this process has sent a payload.
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
        if payload.len() + word.len() > MAX_PAYLOAD {
            payloads.push(std::mem::replace(&mut payload, sender.to_owned()));
        }
        payload += &word;
    }
    payloads.push(payload);
    payloads
}

/// Reads the changes of a payload; an unknown one is left out.
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
    fn changes_come_back_from_their_payloads() {
        let all: BTreeSet<_> =
            (0..2000).map(Topic::Run).chain((0..2000).map(|n| Topic::Thread(-n))).chain([Topic::Cancels]).collect();
        let payloads = payloads("me", &all);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8000));
        assert_eq!(payloads.iter().flat_map(|payload| topics(payload)).collect::<BTreeSet<_>>(), all);
        assert_eq!(topics("me x r rx r5 é").collect::<Vec<_>>(), [Topic::Run(5)]);
    }
}
