//! Runs: their ends, durations and repairs, the runs and followers of the moment, and leases.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};

use super::{
    area::metrics,
    labels::{Counters, Histograms, Labels, MAX_NAMES, OTHER, known_code},
};
use agui_base::RunErrorCode;

/// In seconds.
const DURATION_BUCKETS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];
const FIRST_BUCKETS: [f64; 12] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// In events.
const LAG_BUCKETS: [f64; 8] = [0.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 10_000.0, 100_000.0];

/// A run that has ended.
#[derive(Debug, Default)]
pub struct CountedRunEnd<'r> {
    pub agent: &'r str,
    pub outcome: &'static str,
    pub code: Option<&'r str>,
    pub duration: Duration,
    /// Since the start of the run.
    pub first_event: Option<Duration>,
    pub first_token: Option<Duration>,
    pub repairs: u64,
}

/// The counts of an agent's runs. They are kept by name, because a look-up by labels took 2 % of
/// the instructions of a short run. Agents beyond [`MAX_NAMES`] are counted together, as [`OTHER`].
struct AgentRuns {
    label: (&'static str, Cow<'static, str>),
    duration: Histogram,
    first_event: Histogram,
    first_token: Histogram,
    repairs: Counter,
    violations: Counter,
}

metrics! { RunMetrics {
    agents: RwLock<BTreeMap<String, Arc<AgentRuns>>>,
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
    pub active: Gauge = "runs_active",
    /// Runs that wait for their turn on a thread
    pub queued: Gauge = "runs_queued",
    /// Detached runs that have not ended
    pub detached: Gauge = "runs_detached",
    /// Titles that an agent is writing
    pub titles: Gauge = "title_runs_active",
    /// Responses that follow the log of a detached run
    pub followers: Gauge = "followers",
    /// Events that a follower is behind its run when it takes the next ones
    pub follower_lag: Histogram = "follower_lag_events" in buckets LAG_BUCKETS,
    /// Clients that read the changes of their threads
    pub thread_event_readers: Gauge = "thread_event_readers",
    /// Leases of lost runs that this server took over
    pub leases_taken_over: Counter = "leases_taken_over",
    /// Lost runs by cause and outcome: continued, or given up at the limit of continuations
    continuations: Counters<2> = "run_continuations",
} }

impl RunMetrics {
    /// Counts a lost run, which this server has continued or given up.
    pub fn continued(&self, cause: &'static str, outcome: &'static str) {
        self.continuations
            .get_or_create(&[("cause", cause.into()), ("outcome", outcome.into())])
            .inc();
    }

    pub fn ended(&self, run: &CountedRunEnd<'_>) {
        let CountedRunEnd { outcome, duration, first_event, first_token, repairs, .. } = *run;
        let (agent, code) = (self.agent(run.agent), run.code.map_or("", known_code));
        self.ended
            .get_or_create(&[
                agent.label.clone(),
                ("outcome", outcome.into()),
                ("code", code.into()),
            ])
            .inc();
        agent.duration.observe(duration.as_secs_f64());
        for (histogram, time) in
            [(&agent.first_event, first_event), (&agent.first_token, first_token)]
        {
            time.into_iter().for_each(|time| histogram.observe(time.as_secs_f64()));
        }
        agent.repairs.inc_by(repairs);
        agent.violations.inc_by(u64::from(code == RunErrorCode::ProtocolViolation.as_str()));
    }

    fn agent(&self, name: &str) -> Arc<AgentRuns> {
        if let Some(known) = self.agents.read().get(name) {
            return known.clone();
        }
        let mut agents = self.agents.write();
        let name = if agents.len() < MAX_NAMES || agents.contains_key(name) { name } else { OTHER };
        let agent = agents.entry(name.to_owned()).or_insert_with(|| {
            let label = ("agent", Cow::from(name.to_owned()));
            let labels: Labels<1> = [label.clone()];
            Arc::new(AgentRuns {
                duration: self.duration.get_or_create_owned(&labels),
                first_event: self.first_event.get_or_create_owned(&labels),
                first_token: self.first_token.get_or_create_owned(&labels),
                repairs: self.repairs.get_or_create_owned(&labels),
                violations: self.violations.get_or_create_owned(&labels),
                label,
            })
        });
        agent.clone()
    }
}
