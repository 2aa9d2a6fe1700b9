//! Runs: their ends, durations and repairs, the runs and followers of the moment, and leases.

use std::time::Duration;

use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};

use super::{
    area::metrics,
    labels::{BoundedNames, Counters, Histograms, Labels, known_code},
};
use crate::base::RunErrorCode;

/// In seconds.
const DURATION_BUCKETS: [f64; 14] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];
const FIRST_BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// In events.
const LAG_BUCKETS: [f64; 8] = [0.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 10_000.0, 100_000.0];

/// A run that has ended.
#[derive(Debug, Default)]
pub(crate) struct CountedRunEnd<'r> {
    pub(crate) agent: &'r str,
    pub(crate) outcome: &'static str,
    pub(crate) code: Option<&'r str>,
    pub(crate) duration: Duration,
    /// Since the start of the run.
    pub(crate) first_event: Option<Duration>,
    pub(crate) first_token: Option<Duration>,
    pub(crate) repairs: u64,
}

metrics! { RunMetrics {
    names: BoundedNames,
    /// Ended runs by agent, outcome and error code
    ended: Counters<3> = "runs",
    /// Time from the start to the end of a run
    duration: Histograms<1> = "run_duration" in seconds DURATION_BUCKETS,
    /// Time from the start of a run to the first event of its agent
    first_event: Histograms<1> = "run_first_event" in seconds FIRST_BUCKETS,
    /// Time from the start of a run to the first piece of text, reasoning or arguments
    first_token: Histograms<1> = "run_first_token" in seconds FIRST_BUCKETS,
    /// Events of agents that the guard replaced or left out, such as the end of an item that is not open
    repairs: Counters<1> = "guard_repairs",
    /// Runs that broke the protocol
    violations: Counters<1> = "guard_violations",
    // This one and the next three are set when the metrics are requested.
    /// Runs that have not ended
    pub(crate) active: Gauge = "runs_active",
    /// Runs that wait for another run of their thread
    pub(crate) waiting: Gauge = "runs_waiting",
    /// Detached runs that have not ended
    pub(crate) detached: Gauge = "runs_detached",
    /// Titles that an agent is writing
    pub(crate) titles: Gauge = "title_runs_active",
    /// Responses that follow the log of a detached run
    pub(crate) followers: Gauge = "followers",
    /// Events that a follower is behind its run when it takes the next ones
    pub(crate) follower_lag: Histogram = "follower_lag_events" in buckets LAG_BUCKETS,
    /// Clients that read the changes of their threads
    pub(crate) thread_event_readers: Gauge = "thread_event_readers",
    /// Leases of lost runs that this server took over
    pub(crate) leases_taken_over: Counter = "leases_taken_over",
    /// Lost runs by cause and outcome: continued, or given up at the limit of continuations
    continuations: Counters<2> = "run_continuations",
} }

impl RunMetrics {
    /// Counts a lost run that goes on here, or not.
    pub(crate) fn continued(&self, cause: &'static str, outcome: &'static str) {
        self.continuations.get_or_create(&[("cause", cause.into()), ("outcome", outcome.into())]).inc();
    }

    pub(crate) fn ended(&self, run: &CountedRunEnd<'_>) {
        let CountedRunEnd { outcome, duration, first_event, first_token, repairs, .. } = *run;
        let labels: Labels<1> = [("agent", self.names.bounded(run.agent).into())];
        let code = run.code.map_or("", known_code);
        let [agent] = labels.clone();
        self.ended.get_or_create(&[agent, ("outcome", outcome.into()), ("code", code.into())]).inc();
        self.duration.get_or_create(&labels).observe(duration.as_secs_f64());
        if let Some(time) = first_event {
            self.first_event.get_or_create(&labels).observe(time.as_secs_f64());
        }
        if let Some(time) = first_token {
            self.first_token.get_or_create(&labels).observe(time.as_secs_f64());
        }
        self.repairs.get_or_create(&labels).inc_by(repairs);
        self.violations.get_or_create(&labels).inc_by(u64::from(code == RunErrorCode::ProtocolViolation.as_str()));
    }
}
