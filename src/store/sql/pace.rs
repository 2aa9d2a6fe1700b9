//! How long a transaction for many runs waits for more of them.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time from the beginning of a transaction to that of the next.
const LONGEST: Duration = Duration::from_millis(25);

/// A shorter one than this is none: too few would come.
const SHORTEST: Duration = Duration::from_millis(5);

/// How many have to come in the longest time to make it worth its while.
const WORTH: f64 = 12.0;

/// How many runs there have to be for each millisecond of it. Clients that wait for one run before they ask for the
/// next would come the more seldom, the longer they are let wait.
const RUNS: f64 = 12.0;

/// How soon those who came are forgotten.
const MEMORY: Duration = Duration::from_millis(200);

/// How many come.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// About how many runs there are: those that were begun and have not ended.
    pub(super) runs: u32,
    /// When the last transaction was begun.
    last: Option<Instant>,
    /// How many had come by then, each counting the less the longer ago it came.
    recent: f64,
}

impl Pace {
    /// A transaction begins, for so many.
    pub(super) fn begin(&mut self, now: Instant, count: usize) {
        let passed = self.last.map_or(MEMORY, |last| now.saturating_duration_since(last));
        self.recent = self.recent * (-passed.as_secs_f64() / MEMORY.as_secs_f64()).exp() + count as f64;
        self.last = Some(now);
    }

    /// How long after it the next one begins, at the earliest.
    fn interval(&self) -> Duration {
        let expected = self.recent * (LONGEST.as_secs_f64() / MEMORY.as_secs_f64());
        let worth = LONGEST.mul_f64((expected / WORTH).min(1.0));
        let bearable = Duration::from_secs_f64(f64::from(self.runs) / RUNS / 1e3);
        Some(worth.min(bearable)).filter(|time| *time >= SHORTEST).unwrap_or_default()
    }

    /// When that is, if it is still to come.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let due = self.last? + self.interval();
        (due > now).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval with so many runs, after ten seconds in each of which so many came, evenly.
    fn interval(runs: u32, per_second: u32) -> Duration {
        let (mut pace, begin) = (Pace { runs, ..Pace::default() }, Instant::now());
        for number in 0..per_second * 10 {
            pace.begin(begin + Duration::from_secs(1) * number / per_second, 1);
        }
        pace.interval()
    }

    #[test]
    fn few_wait_for_nobody_and_many_for_each_other() {
        assert_eq!(interval(5_000, 20), Duration::ZERO, "runs that take their time");
        assert_eq!(interval(10, 5_000), Duration::ZERO, "clients that are busy");
        let some = interval(300, 200);
        assert!(some > LONGEST / 4 && some < LONGEST / 2, "{some:?}");
        assert_eq!(interval(300, 1_000), LONGEST);
        assert_eq!(interval(120, 1_000), Duration::from_millis(10));
    }

    #[test]
    fn a_crowd_is_forgotten() {
        let (mut pace, now) = (Pace { runs: 1_000, ..Pace::default() }, Instant::now());
        assert_eq!(pace.due(now), None);
        pace.begin(now, 500);
        assert_eq!(pace.due(now), Some(now + LONGEST));
        assert_eq!(pace.due(now + LONGEST), None);
        pace.begin(now + 10 * MEMORY, 1);
        assert_eq!(pace.due(now + 10 * MEMORY), None);
    }
}
