//! Notifies other processes of committed changes.
//!
//! Changes of 10 ms are sent with one statement: a `NOTIFY` inside each transaction costs 90 % of
//! the throughput, because Postgres commits such transactions one at a time. A failed notification
//! is not repeated, because receivers also poll, and is not written to the disk, which would cost
//! as much as a change. Receivers of announcements do not poll, so the next notification that
//! succeeds says that some were lost.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::pool::PostgresPool;
use crate::{RunNumber, SIGNAL_COVERS, StoreResult, Topic};

pub(super) const CHANNEL: &str = "agui_changes";

const COLLECT_TIME: Duration = Duration::from_millis(10);
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The limit of Postgres is 7,999 bytes.
const MAX_PAYLOAD_BYTES: usize = 7_900;

/// The number of announcements that may wait.
const MAX_ANNOUNCED: usize = 4096;
/// Separates the sender from the text of an announcement. The text is empty if announcements were
/// lost.
const ANNOUNCEMENT: char = '!';

const NOTIFY: &str = "
    SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, payload) FROM unnest($2::text[]) AS payload";

#[derive(Debug)]
pub(super) struct Notifier {
    /// The first word of each payload, which identifies this process.
    sender: String,
    waiting: Mutex<Waiting>,
    appended: Mutex<Appended>,
    wake: Notify,
}

/// The runs with a notified append, and the time of the first one. Cleared after [`SIGNAL_COVERS`].
#[derive(Debug)]
struct Appended {
    runs: HashSet<RunNumber>,
    since: Instant,
}

#[derive(Debug, Default)]
struct Waiting {
    changed: BTreeSet<Topic>,
    announced: Vec<String>,
    /// True if announcements were lost and the other processes have not been told.
    is_incomplete: bool,
}

impl Notifier {
    pub(super) fn new() -> Self {
        let sender = uuid::Uuid::new_v4().simple().to_string();
        let appended = Mutex::new(Appended { runs: HashSet::new(), since: Instant::now() });
        Self { sender, waiting: Mutex::default(), appended, wake: Notify::new() }
    }

    fn add(&self, add: impl FnOnce(&mut Waiting)) {
        add(&mut self.waiting.lock());
        self.wake.notify_one();
    }

    pub(super) fn notify(&self, topics: impl IntoIterator<Item = Topic>) {
        self.add(|waiting| waiting.changed.extend(topics));
    }

    /// Notifies of appends to the logs of these runs, unless an earlier signal covers them.
    pub(super) fn notify_appended(&self, runs: &[RunNumber]) {
        let mut appended = self.appended.lock();
        if appended.since.elapsed() > SIGNAL_COVERS {
            appended.runs.clear();
            appended.since = Instant::now();
        }
        let uncovered: Vec<_> = runs
            .iter()
            .filter(|run| appended.runs.insert(**run))
            .map(|run| Topic::Run(*run))
            .collect();
        drop(appended);
        if !uncovered.is_empty() {
            self.notify(uncovered);
        }
    }

    /// Sends a text. A text that is too long, or that comes while too many wait, is lost.
    pub(super) fn announce(&self, text: String) {
        let is_short = text.len() <= MAX_PAYLOAD_BYTES - self.sender.len();
        self.add(|waiting| match is_short && waiting.announced.len() < MAX_ANNOUNCED {
            true => waiting.announced.push(text),
            false => waiting.is_incomplete = true,
        });
    }

    pub(super) async fn run(self: Arc<Self>, pool: PostgresPool) {
        let mut next = Instant::now();
        loop {
            self.wake.notified().await;
            sleep_until(next).await;
            next = Instant::now() + COLLECT_TIME;
            if let Err(error) =
                pool.all(sqlx::query(NOTIFY).bind(CHANNEL).bind(self.take_payloads())).await
            {
                tracing::debug!(?error, "other servers could not be notified");
                sleep(RETRY_PAUSE).await;
                self.add(|waiting| waiting.is_incomplete = true);
            }
        }
    }

    fn take_payloads(&self) -> Vec<String> {
        let mut waiting = std::mem::take(&mut *self.waiting.lock());
        if waiting.is_incomplete {
            waiting.announced.push(String::new());
        }
        let mut payloads = payloads(&self.sender, &waiting.changed);
        payloads.extend(
            waiting.announced.iter().map(|text| format!("{}{ANNOUNCEMENT}{text}", self.sender)),
        );
        payloads
    }

    /// Sends without collecting more changes, because this process may be at its end.
    pub(super) async fn notify_at_once(
        &self,
        pool: &PostgresPool,
        topics: impl IntoIterator<Item = Topic>,
    ) -> StoreResult<()> {
        let payloads = payloads(&self.sender, &topics.into_iter().collect());
        pool.all(sqlx::query(NOTIFY).bind(CHANNEL).bind(payloads)).await.map(drop)
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
            Topic::Leases => " l".to_owned(),
        };
        if payload.len() + word.len() > MAX_PAYLOAD_BYTES {
            payloads.push(std::mem::replace(&mut payload, sender.to_owned()));
        }
        payload += &word;
    }
    payloads.push(payload);
    payloads
}

/// Returns the text of an announcement; `None` for a payload with changes, which has no such character.
pub(super) fn announcement(payload: &str) -> Option<&str> {
    payload.split_once(ANNOUNCEMENT).map(|(_, text)| text)
}

/// Parses the changes of a payload. Unknown ones are skipped, so that later versions can add topics.
pub(super) fn topics(payload: &str) -> impl Iterator<Item = Topic> + '_ {
    payload.split(' ').skip(1).filter_map(|word| match word.split_at_checked(1)? {
        ("r", run) => Some(Topic::Run(run.parse().ok()?)),
        ("t", thread) => Some(Topic::Thread(thread.parse().ok()?)),
        ("c", "") => Some(Topic::Cancels),
        ("l", "") => Some(Topic::Leases),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadNumber;

    #[test]
    fn lost_announcements_are_reported_once() {
        let notifier = Notifier::new();
        let lost = format!("{}{ANNOUNCEMENT}", notifier.sender);
        notifier.announce("a".to_owned());
        assert!(!notifier.take_payloads().contains(&lost));
        for _ in 0..=MAX_ANNOUNCED {
            notifier.announce("a".to_owned());
        }
        assert_eq!(notifier.take_payloads().pop(), Some(lost.clone()), "too many");
        assert!(!notifier.take_payloads().contains(&lost));
        notifier.announce("x".repeat(MAX_PAYLOAD_BYTES));
        assert_eq!(notifier.take_payloads().pop(), Some(lost), "too long");
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_stands_for_the_appends_of_half_a_second() {
        let notifier = Notifier::new();
        let sent = |runs: &[i64]| {
            notifier.notify_appended(&runs.iter().copied().map(RunNumber).collect::<Vec<_>>());
            std::mem::take(&mut notifier.waiting.lock().changed).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(sent(&[1]), [Topic::Run(RunNumber(1))]);
        assert_eq!(sent(&[1, 2]), [Topic::Run(RunNumber(2))]);
        tokio::time::advance(SIGNAL_COVERS).await;
        assert_eq!(sent(&[1]), []);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(sent(&[1]), [Topic::Run(RunNumber(1))]);
    }

    #[test]
    fn changes_are_parsed_from_their_payloads() {
        let all: BTreeSet<_> = (0..2000)
            .map(|n| Topic::Run(RunNumber(n)))
            .chain((0..2000).map(|n| Topic::Thread(ThreadNumber(-n))))
            .chain([Topic::Cancels, Topic::Leases])
            .collect();
        let payloads = payloads("me", &all);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8000));
        assert_eq!(
            payloads.iter().flat_map(|payload| topics(payload)).collect::<BTreeSet<_>>(),
            all
        );
        assert_eq!((announcement("me r5"), announcement("me!a!b r5")), (None, Some("a!b r5")));
        assert_eq!(topics("me x r rx r5 é").collect::<Vec<_>>(), [Topic::Run(RunNumber(5))]);
    }
}
