//! A run's deadlines, all behind one timer.
//!
//! Deadlines that follow the last event move with every event. Instead of resetting a timer each
//! time, the timer stays where it was armed, fires early, and is then armed anew: an event costs the
//! clock nothing, and a pause one look at the time.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

/// How long a run may take, and how long it may be silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// The longest a run may take; it then ends as cancelled.
    pub max: Option<Duration>,
    /// The longest an agent may go without an event; the run then fails.
    pub idle: Option<Duration>,
    /// How long a stream is silent before the client is sent a sign of life.
    pub heartbeat: Option<Duration>,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Heartbeat,
    IdleLimit,
    TimeLimit,
}

/// The deadlines of one run.
pub(super) struct Clock {
    /// Whether there were events since the time was last looked at.
    stale: bool,
    /// When the alarm wakes the task that polled last.
    armed: Option<Instant>,
    last_event: Instant,
    /// The last event or heartbeat.
    last_sign: Instant,
    alarm: Option<Pin<Box<Sleep>>>,
    limits: RunLimits,
    started: Instant,
}

impl Clock {
    pub(super) fn start(limits: RunLimits) -> Self {
        let now = Instant::now();
        Self { limits, started: now, last_event: now, last_sign: now, stale: false, alarm: None, armed: None }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// An event passed.
    pub(super) fn event(&mut self) {
        self.stale = true;
    }

    /// Whether the run's time is over: for a stream that never pauses, and so never polls the alarm.
    pub(super) fn time_is_over(&self) -> bool {
        self.limits.max.is_some_and(|max| self.started.elapsed() >= max)
    }

    /// Waits for the next deadline. Call it while there is nothing else to do; `same_task` is whether it was last
    /// called from the same one, which the alarm then knows already.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, same_task: bool) -> Poll<Due> {
        if self.stale {
            self.stale = false;
            self.last_event = Instant::now();
            self.last_sign = self.last_event;
            if same_task && self.armed.is_some_and(|at| self.last_event < at) {
                return Poll::Pending;
            }
        }
        self.armed = None;
        loop {
            let Some(next) = self.next() else { return Poll::Pending };
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if alarm.as_mut().poll(cx).is_pending() {
                self.armed = Some(alarm.deadline());
                return Poll::Pending;
            }
            let now = Instant::now();
            let due = self.due(now);
            if due == Some(Due::Heartbeat) {
                self.last_sign = now;
            }
            let next = self.next().unwrap_or(next);
            if let Some(alarm) = &mut self.alarm {
                alarm.as_mut().reset(next);
            }
            if let Some(due) = due {
                return Poll::Ready(due);
            }
        }
    }

    fn deadlines(&self) -> [(Due, Option<Instant>); 3] {
        // A duration so long that the sum overflows is no deadline.
        let after = |from: Instant, limit: Option<Duration>| limit.and_then(|limit| from.checked_add(limit));
        [
            (Due::TimeLimit, after(self.started, self.limits.max)),
            (Due::IdleLimit, after(self.last_event, self.limits.idle)),
            (Due::Heartbeat, after(self.last_sign, self.limits.heartbeat)),
        ]
    }

    fn next(&self) -> Option<Instant> {
        self.deadlines().into_iter().filter_map(|(_, at)| at).min()
    }

    fn due(&self, now: Instant) -> Option<Due> {
        self.deadlines().into_iter().find(|(_, at)| at.is_some_and(|at| at <= now)).map(|(due, _)| due)
    }
}
