//! Runs: their ends, durations and repairs, the runs and followers of the moment, and leases.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use smart_default::SmartDefault;

use super::labels::{BoundedNames, Counters, Histograms, Labels, known_code};
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

#[derive(SmartDefault)]
pub(crate) struct RunMetrics {
    names: BoundedNames,
    ended: Counters<3>,
    #[default(Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)))]
    duration: Histograms<1>,
    #[default(Family::new_with_constructor(|| Histogram::new(FIRST_BUCKETS)))]
    first_event: Histograms<1>,
    #[default(Family::new_with_constructor(|| Histogram::new(FIRST_BUCKETS)))]
    first_token: Histograms<1>,
    repairs: Counters<1>,
    violations: Counters<1>,
    /// This one and the next three are set when the metrics are requested.
    pub(crate) active: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) detached: Gauge,
    pub(crate) titles: Gauge,
    pub(crate) followers: Gauge,
    #[default(Histogram::new(LAG_BUCKETS))]
    pub(crate) follower_lag: Histogram,
    pub(crate) thread_event_readers: Gauge,
    pub(crate) leases_taken_over: Counter,
    continuations: Counters<2>,
}

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

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("runs", "Ended runs by agent, outcome and error code", self.ended.clone());
        registry.register_with_unit(
            "run_duration",
            "Time from the start to the end of a run",
            Unit::Seconds,
            self.duration.clone(),
        );
        let text = "Time from the start of a run to the first event of its agent";
        registry.register_with_unit("run_first_event", text, Unit::Seconds, self.first_event.clone());
        let text = "Time from the start of a run to the first piece of text, reasoning or arguments";
        registry.register_with_unit("run_first_token", text, Unit::Seconds, self.first_token.clone());
        let text = "Events of agents that the guard replaced or left out, such as the end of an item that is not open";
        registry.register("guard_repairs", text, self.repairs.clone());
        registry.register("guard_violations", "Runs that broke the protocol", self.violations.clone());
        registry.register("runs_active", "Runs that have not ended", self.active.clone());
        registry.register("runs_waiting", "Runs that wait for another run of their thread", self.waiting.clone());
        registry.register("runs_detached", "Detached runs that have not ended", self.detached.clone());
        registry.register("title_runs_active", "Titles that an agent is writing", self.titles.clone());
        registry.register("followers", "Responses that follow the log of a detached run", self.followers.clone());
        let text = "Events that a follower is behind its run when it takes the next ones";
        registry.register("follower_lag_events", text, self.follower_lag.clone());
        let text = "Clients that read the changes of their threads";
        registry.register("thread_event_readers", text, self.thread_event_readers.clone());
        let text = "Leases of lost runs that this server took over";
        registry.register("leases_taken_over", text, self.leases_taken_over.clone());
        let text = "Lost runs by cause and outcome: continued, or given up at the limit of continuations";
        registry.register("run_continuations", text, self.continuations.clone());
    }
}
