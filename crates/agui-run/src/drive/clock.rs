//! The deadlines of a run, with one timer for all of them.
//!
//! The idle and heartbeat deadlines move with every event. The timer is not reset each time: it fires at the old deadline
//! and is then set to the new one. So an event only sets a flag, and a pause reads the time once.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use agui_protocol::Event;

/// The time limits of a run. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// The maximum time of a run, which then ends as cancelled.
    pub max: Option<Duration>,
    /// The maximum time without an event of the agent. The run then fails.
    pub idle: Option<Duration>,
    /// The time without an event after which the client is sent a keep-alive.
    pub heartbeat: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    Heartbeat,
    IdleLimit,
    TimeLimit,
}

pub(crate) struct Clock {
    has_new_events: bool,
    /// The time at which the timer wakes the task that polled last.
    armed: Option<Instant>,
    last_event: Instant,
    last_output: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    /// The times of the agent's first event and of its first piece of text, reasoning or arguments, since the start.
    pub(super) first_event: Option<Duration>,
    pub(super) first_token: Option<Duration>,
    limits: RunLimits,
    started: Instant,
}

impl Clock {
    pub(crate) fn start(limits: RunLimits) -> Self {
        let now = Instant::now();
        Self {
            limits,
            started: now,
            last_event: now,
            last_output: now,
            has_new_events: false,
            timer: None,
            first_event: None,
            first_token: None,
            armed: None,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn heartbeat(&self) -> Option<Duration> {
        self.limits.heartbeat
    }

    pub(crate) fn note_event(&mut self) {
        self.has_new_events = true;
    }

    /// Notes an event of the agent up to its first token.
    #[cold]
    pub(crate) fn note_first(&mut self, event: &Event) {
        let elapsed = self.elapsed();
        self.first_event.get_or_insert(elapsed);
        let is_token = matches!(
            event,
            Event::TextMessageContent(_)
                | Event::TextMessageChunk(_)
                | Event::ReasoningMessageContent(_)
                | Event::ReasoningMessageChunk(_)
                | Event::ToolCallArgs(_)
                | Event::ToolCallChunk(_)
        );
        self.first_token = Some(elapsed).filter(|_| is_token);
    }

    /// Returns whether the time limit has passed. The timer is not polled while an agent never
    /// pauses.
    pub(crate) fn is_time_over(&self) -> bool {
        self.limits.max.is_some_and(|max| self.started.elapsed() >= max)
    }

    /// Waits for the next deadline. `same_task` is true if the timer has this task's waker from the
    /// last call.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, same_task: bool) -> Poll<Deadline> {
        if self.has_new_events {
            self.has_new_events = false;
            self.last_event = Instant::now();
            self.last_output = self.last_event;
            if same_task && self.armed.is_some_and(|at| self.last_event < at) {
                return Poll::Pending;
            }
        }
        self.armed = None;
        loop {
            let Some(next) = self.next_deadline() else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if timer.as_mut().poll(cx).is_pending() {
                self.armed = Some(timer.deadline());
                return Poll::Pending;
            }
            let now = Instant::now();
            let due = self.passed_deadline(now);
            if due == Some(Deadline::Heartbeat) {
                self.last_output = now;
            }
            let next = self.next_deadline().unwrap_or(next);
            if let Some(timer) = &mut self.timer {
                timer.as_mut().reset(next);
            }
            if let Some(due) = due {
                return Poll::Ready(due);
            }
        }
    }

    fn deadlines(&self) -> [(Deadline, Option<Instant>); 3] {
        // A limit that overflows the time is no deadline.
        let after = |from: Instant, limit: Option<Duration>| {
            limit.and_then(|limit| from.checked_add(limit))
        };
        [
            (Deadline::TimeLimit, after(self.started, self.limits.max)),
            (Deadline::IdleLimit, after(self.last_event, self.limits.idle)),
            (Deadline::Heartbeat, after(self.last_output, self.limits.heartbeat)),
        ]
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadlines().into_iter().filter_map(|(_, at)| at).min()
    }

    fn passed_deadline(&self, now: Instant) -> Option<Deadline> {
        self.deadlines()
            .into_iter()
            .find(|(_, at)| at.is_some_and(|at| at <= now))
            .map(|(due, _)| due)
    }
}
