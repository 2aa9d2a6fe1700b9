//! The pauses of lost runs that could neither be continued nor closed. Such a run must not take the
//! time of others.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use agui_store::{RunNumber, StoreError};

/// The first and the longest pause before a lost run is tried again.
const BACKOFF: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(600)];
/// Above this number of runs, the runs that are due again are forgotten.
const MAX_PAUSED_RUNS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct LostRunBackoff(Mutex<TriedRuns>);

#[derive(Debug, Default)]
struct TriedRuns {
    /// The last pause of a run and its end, by the number of the run.
    paused: HashMap<RunNumber, (Duration, Instant)>,
    under_way: HashSet<RunNumber>,
}

/// Marks a lost run as under way until it is dropped.
pub(crate) struct LostRunGuard<'b> {
    backoff: &'b LostRunBackoff,
    run: RunNumber,
}

impl LostRunBackoff {
    pub(crate) fn begin(&self, run: RunNumber) -> LostRunGuard<'_> {
        self.0.lock().under_way.insert(run);
        LostRunGuard { backoff: self, run }
    }

    /// Returns whether a run may be tried now: it is neither under way nor paused.
    pub(crate) fn is_due(&self, run: RunNumber) -> bool {
        let all = self.0.lock();
        !all.under_way.contains(&run)
            && all.paused.get(&run).is_none_or(|(_, due)| Instant::now() >= *due)
    }

    /// Pauses a run whose error is permanent. A transient error ends with the outage of the store,
    /// so it pauses nothing.
    pub(crate) fn failed(&self, run: RunNumber, error: &StoreError) {
        if error.is_transient() {
            return;
        }
        let mut all = self.0.lock();
        let now = Instant::now();
        let [first, longest] = BACKOFF;
        let paused = &mut all.paused;
        if paused.len() >= MAX_PAUSED_RUNS {
            paused.retain(|_, (_, due)| now < *due);
        }
        let pause = paused.get(&run).map_or(first, |(pause, _)| (*pause * 2).min(longest));
        paused.insert(run, (pause, now + pause));
    }
}

impl Drop for LostRunGuard<'_> {
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
        const RUN: RunNumber = RunNumber(7);
        let backoff = LostRunBackoff::default();
        let [mut pause, longest] = BACKOFF;
        backoff.failed(RUN, &StoreError::Unavailable("an outage".into()));
        for _ in 0..20 {
            assert!(backoff.is_due(RUN));
            let under_way = backoff.begin(RUN);
            assert!(!backoff.is_due(RUN));
            drop(under_way);
            backoff.failed(RUN, &StoreError::Failed("damaged".into()));
            advance(pause - Duration::from_secs(1)).await;
            assert!(!backoff.is_due(RUN) && backoff.is_due(RunNumber(8)));
            advance(Duration::from_secs(1)).await;
            pause = (pause * 2).min(longest);
        }
    }
}
