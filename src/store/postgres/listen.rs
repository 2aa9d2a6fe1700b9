//! Hears what other processes have changed.

use std::{sync::Arc, time::Duration};

use sqlx::postgres::PgListener;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    notify::{CHANNEL, Notifier, topics},
    pool::Pool,
};
use crate::store::{Signals, StoreError};

/// How often this process sends a notification to itself to see that they arrive.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause before the next attempt.
const RETRY: Duration = Duration::from_secs(2);

/// Listens until the task is aborted. While it cannot, the signals are not live, and what waits for them polls.
pub(super) async fn listen(pool: Pool, notifier: Arc<Notifier>, signals: Signals) {
    let mut is_reported = false;
    loop {
        let error = match listen_once(&pool, &notifier, &signals, &mut is_reported).await {
            Ok(()) => "notifications do not arrive; PgBouncer in transaction mode cannot deliver them".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        signals.set_live(false);
        signals.raise_all();
        if !is_reported {
            tracing::warn!(error, "cannot listen for changes by other servers; polling until that works");
            is_reported = true;
        }
        sleep(RETRY).await;
    }
}

/// Listens until a probe does not arrive.
async fn listen_once(
    pool: &Pool,
    notifier: &Notifier,
    signals: &Signals,
    is_reported: &mut bool,
) -> Result<(), StoreError> {
    let mut listener = PgListener::connect_with(pool.sqlx()).await?;
    listener.listen(CHANNEL).await?;
    loop {
        let begin = Instant::now();
        notifier.probe(pool).await?;
        let mut has_arrived = false;
        loop {
            let deadline = begin + if has_arrived { PROBE_INTERVAL } else { PROBE_TIMEOUT };
            let Ok(received) = timeout_at(deadline, listener.try_recv()).await else { break };
            // Without a notification the connection was lost.
            let Some(notification) = received? else { return Err(StoreError::Unavailable("connection lost".into())) };
            let payload = notification.payload();
            if !notifier.has_sent(payload) {
                topics(payload).for_each(|topic| signals.raise(topic));
            } else if !has_arrived {
                has_arrived = true;
                if !signals.is_live() {
                    signals.set_live(true);
                    // What happened before was not heard.
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
