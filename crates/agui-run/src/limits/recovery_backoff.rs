//! Which lost runs are being recovered, and when those are tried again that could not be. A run that can never be recovered must not
//! take the time of others.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use agui_store::StoreError;

/// The time before the second attempt, and the longest time between two.
const BACKOFF: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(600)];
/// The number of runs from which those are forgotten that are due again.
const MANY_RUNS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct RecoveryBackoff(Mutex<Recoveries>);

#[derive(Debug, Default)]
struct Recoveries {
    /// The pause after the last attempt, and its end, by the number of the run.
    paused: HashMap<i64, (Duration, Instant)>,
    under_way: HashSet<i64>,
}

/// A recovery that is under way, until it is dropped.
pub(crate) struct Recovery<'b> {
    backoff: &'b RecoveryBackoff,
    run: i64,
}

impl RecoveryBackoff {
    pub(crate) fn begin(&self, run: i64) -> Recovery<'_> {
        self.0.lock().under_way.insert(run);
        Recovery { backoff: self, run }
    }

    /// Returns whether a run may be recovered now: it is not being recovered, and does not wait.
    pub(crate) fn is_due(&self, run: i64) -> bool {
        let all = self.0.lock();
        !all.under_way.contains(&run)
            && all.paused.get(&run).is_none_or(|(_, due)| Instant::now() >= *due)
    }

    /// Lets a run wait that would fail again. Other errors end with an outage of the store, and then nothing is to wait.
    pub(crate) fn failed(&self, run: i64, error: &StoreError) {
        if error.is_transient() {
            return;
        }
        let (mut all, now, [first, longest]) = (self.0.lock(), Instant::now(), BACKOFF);
        let paused = &mut all.paused;
        if paused.len() >= MANY_RUNS {
            paused.retain(|_, (_, due)| now < *due);
        }
        let pause = paused.get(&run).map_or(first, |(pause, _)| (*pause * 2).min(longest));
        paused.insert(run, (pause, now + pause));
    }
}

impl Drop for Recovery<'_> {
    fn drop(&mut self) {
        self.backoff.0.lock().under_way.remove(&self.run);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pauses_of_a_run_become_longer_and_those_of_others_do_not() {
        let backoff = RecoveryBackoff::default();
        let [mut pause, longest] = BACKOFF;
        backoff.failed(7, &StoreError::Unavailable("an outage".into()));
        for _ in 0..20 {
            assert!(backoff.is_due(7));
            let under_way = backoff.begin(7);
            assert!(!backoff.is_due(7));
            drop(under_way);
            backoff.failed(7, &StoreError::Failed("damaged".into()));
            advance(pause - Duration::from_secs(1)).await;
            assert!(!backoff.is_due(7) && backoff.is_due(8));
            advance(Duration::from_secs(1)).await;
            pause = (pause * 2).min(longest);
        }
    }
}
