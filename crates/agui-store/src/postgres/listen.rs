//! Receives the notifications of other processes and raises signals for them.

use std::{sync::Arc, time::Duration};

use sqlx::{PgPool, postgres::PgListener};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    notify::{CHANNEL, Notifier, announcement, topics},
    pool::PostgresPool,
};
use crate::{Signals, StoreError, StoreResult};

/// The time between two probes: notifications that this process sends to itself to check that they arrive.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_PAUSE: Duration = Duration::from_secs(2);

const NOT_DELIVERED: &str = "notifications do not arrive: PgBouncer in transaction mode does not deliver them; set store.listen_url to the URL of \
                             Postgres itself";

/// While notifications do not arrive, the signals are not live, and their receivers poll.
pub(super) async fn listen(pool: PostgresPool, notifier: Arc<Notifier>, signals: Signals) {
    let Some(listener) = &pool.listener else {
        tracing::warn!(
            error = NOT_DELIVERED,
            "cannot listen for changes by other servers; polling"
        );
        return;
    };
    let mut is_reported = false;
    loop {
        let error = match listen_once(&pool, listener, &notifier, &signals, &mut is_reported).await
        {
            Ok(()) => NOT_DELIVERED.to_owned(),
            Err(error) => format!("{error:?}"),
        };
        signals.set_live(false);
        signals.raise_all();
        if !is_reported {
            tracing::warn!(
                error,
                "cannot listen for changes by other servers; polling until it works"
            );
            is_reported = true;
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Listens until a probe is lost.
async fn listen_once(
    pool: &PostgresPool,
    listener: &PgPool,
    notifier: &Notifier,
    signals: &Signals,
    is_reported: &mut bool,
) -> StoreResult<()> {
    let mut listener = PgListener::connect_with(listener).await?;
    listener.listen(CHANNEL).await?;
    loop {
        let begin = Instant::now();
        // A notification without changes, which only this process acts on.
        notifier.notify_at_once(pool, []).await?;
        let mut has_arrived = false;
        loop {
            let deadline = begin + if has_arrived { PROBE_INTERVAL } else { PROBE_TIMEOUT };
            let Ok(received) = timeout_at(deadline, listener.try_recv()).await else { break };
            // `None` means that the connection was lost.
            let Some(notification) = received? else {
                return Err(StoreError::Unavailable("connection lost".into()));
            };
            let payload = notification.payload();
            if !notifier.has_sent(payload) {
                match announcement(payload) {
                    Some(text) => {
                        signals.deliver_announcement(Some(text).filter(|text| !text.is_empty()))
                    }
                    None => topics(payload).for_each(|topic| signals.raise(topic)),
                }
            } else if !has_arrived {
                has_arrived = true;
                if !signals.is_live() {
                    signals.set_live(true);
                    // Earlier notifications were lost.
                    signals.raise_all();
                    *is_reported = false;
                }
            }
        }
        if !has_arrived {
            return Ok(());
        }
    }
}
