//! Writes the logs of all runs of this process.
//!
//! A transaction for the events of a hundred runs costs about as much as one for the events of a
//! single run. Events that come within an interval after the last write are therefore written
//! together. Other events are written at once, and so are events that an agent flushes. The
//! interval follows the cost of a write, so that writing takes a small part of the time.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout_at},
};

use super::live::{LiveLog, LogEnd};
use crate::measured_store::MeasuredStore;
use agui_store::{EventBatch, StoreError};

/// The shortest and the longest interval between writes. A shared store has always the longest one,
/// because several servers write to it.
const WRITE_INTERVALS: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(40)];
/// The interval as a multiple of the time of a write, so writing takes a tenth of the time.
const INTERVAL_PER_WRITE: u32 = 10;
const RETRY_PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(crate) struct LogWriter {
    scheduled: Mutex<Vec<Arc<LiveLog>>>,
    wake: Notify,
    /// Ends the interval early.
    flush_now: Notify,
}

impl LogWriter {
    /// Schedules a log for the next write. A log may be scheduled twice.
    pub(crate) fn schedule(&self, log: &Arc<LiveLog>) {
        self.scheduled.lock().push(log.clone());
        self.wake.notify_one();
        if log.take_flush_request() {
            self.flush_now.notify_one();
        }
    }

    pub(crate) async fn run(&self, store: MeasuredStore) {
        let [shortest, longest] = WRITE_INTERVALS;
        let shortest = if store.shared().is_some() { longest } else { shortest };
        let (mut last, mut interval) = (Instant::now(), longest);
        loop {
            self.wake.notified().await;
            // A flush does not delay the write at the end of the interval.
            if timeout_at(last + interval, self.flush_now.notified()).await.is_err() {
                last = Instant::now();
            }
            let mut scheduled = std::mem::take(&mut *self.scheduled.lock());
            // Two batches of a log in one write would begin with the same number.
            scheduled.sort_unstable_by_key(Arc::as_ptr);
            scheduled.dedup_by(|one, other| Arc::ptr_eq(one, other));
            let (logs, batches): (Vec<_>, Vec<_>) = scheduled
                .into_iter()
                .filter_map(|log| log.take_pending().map(|batch| (log, batch)))
                .unzip();
            if !batches.is_empty() {
                let begin = Instant::now();
                write(&store, logs, batches).await;
                interval = (begin.elapsed() * INTERVAL_PER_WRITE).clamp(shortest, longest);
            }
        }
    }
}

async fn write(store: &MeasuredStore, logs: Vec<Arc<LiveLog>>, batches: Vec<EventBatch>) {
    let written = loop {
        match store.append(&batches).await {
            Ok(written) => break written,
            Err(error) if error.is_transient() => {
                tracing::warn!(error = ?error, runs = logs.len(), "the logs of runs could not be written; trying again");
                sleep(RETRY_PAUSE).await;
            }
            Err(error) => {
                tracing::error!(error = ?error, runs = logs.len(), "the logs of runs could not be written together; writing each one alone");
                break write_one_by_one(store, &batches).await;
            }
        }
    };
    for ((log, batch), written) in logs.into_iter().zip(batches).zip(written) {
        if written { log.confirm_written(batch) } else { log.end(LogEnd::Lost) }
    }
}

/// Writes each batch alone, so that a batch that the store rejects does not affect other runs.
async fn write_one_by_one(store: &MeasuredStore, batches: &[EventBatch]) -> Vec<bool> {
    let mut written = Vec::with_capacity(batches.len());
    for batch in batches {
        let result: Result<_, StoreError> = store.append(std::slice::from_ref(batch)).await;
        written.push(result.is_ok_and(|written| written == [true]));
    }
    written
}
