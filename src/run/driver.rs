//! Drives one run from its first event to its last.
//!
//! The driver owns the run's frame. `RUN_STARTED` leaves before the agent is polled, and exactly one
//! terminal event comes last: `RUN_FINISHED` when the agent's stream ends or the run is stopped on
//! purpose, `RUN_ERROR` when the agent fails, panics, is silent for too long, breaks the protocol, or
//! the server shuts down. What the agent left open is closed before that.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use futures::stream::{self, Stream, StreamExt as _};

use super::{
    RunControl, RunLimits, Slot, Violation,
    clock::{Clock, Due},
    control::{LiveGuard, Stop},
    drive::{Drive, EventSink, Progress},
    guard::{Guard, RunClosing},
};
use crate::{
    agent::{Agent, AgentError, EventStream, Forwarded, Principal, RunContext, RunIdentity},
    protocol::{
        Event, RunAgentInput, RunId, TokenUsage,
        event::{RunError, RunFinished, RunOutcome, RunStarted},
    },
};

/// How many events pass between two looks at the time while the agent never pauses.
const EVENTS_PER_LOOK: u32 = 64;
/// The code of the error that ends a run with the server.
pub(super) const SHUTDOWN: &str = "server_shutdown";
/// How much of an identifier is logged.
const LOGGED_CHARS: usize = 80;

/// One run. Poll it with [`poll_progress`](Drive::poll_progress), or read it as a stream with
/// [`into_events`](Self::into_events). Dropping it stops the agent.
pub struct Run {
    span: tracing::Span,
    stage: Stage,
    control: Arc<RunControl>,
    /// The waker of the task that the control and the clock wake.
    waker: Option<Waker>,
    events: u64,
    until_look: u32,
    clock: Clock,
    guard: Guard,
    cx: RunContext,
    parent_run_id: Option<RunId>,
    counted: Option<CountedRun>,
}

/// What a run holds for as long as it counts as running.
#[derive(Debug)]
#[allow(dead_code, reason = "held, not read")]
pub(super) struct CountedRun {
    live: LiveGuard,
    slot: Slot,
}

enum Stage {
    /// Nothing was sent yet.
    Opening(Arc<dyn Agent>, Box<RunAgentInput>),
    /// `RUN_STARTED` was sent; the agent was not called yet.
    Opened(Arc<dyn Agent>, Box<RunAgentInput>),
    Running(EventStream),
    Ended,
}

/// Why a run ends.
enum Ending {
    /// The agent's stream ended, or the agent said how the run ends.
    Finished(RunFinished),
    /// Somebody or something stopped it; named for the log.
    Cancelled(&'static str),
    Failed(RunError),
}

impl Run {
    /// A run of an agent by itself, without a server and without limits: for tests of an agent.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agui_server::{agents::Echo, protocol::{Message, RunAgentInput}, run::Run};
    /// use futures::StreamExt as _;
    ///
    /// let input = RunAgentInput::new("thread", "run", vec![Message::user("m1", "Hello")]);
    /// let events: Vec<_> = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(Run::alone(Arc::new(Echo), input).into_events().collect());
    /// assert_eq!(events.len(), 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn alone(agent: Arc<dyn Agent>, input: RunAgentInput) -> Self {
        let identity = RunIdentity {
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            agent: "agent".into(),
            principal: None,
        };
        Self::with_control(agent, input, RunContext::new(identity), RunLimits::default(), Arc::default())
    }

    pub(super) fn new(
        agent: Arc<dyn Agent>,
        input: RunAgentInput,
        cx: RunContext,
        limits: RunLimits,
        live: LiveGuard,
        slot: Slot,
    ) -> Self {
        let mut run = Self::with_control(agent, input, cx, limits, live.control.clone());
        run.counted = Some(CountedRun { live, slot });
        run
    }

    fn with_control(
        agent: Arc<dyn Agent>,
        input: RunAgentInput,
        cx: RunContext,
        limits: RunLimits,
        control: Arc<RunControl>,
    ) -> Self {
        let id = cx.identity();
        let span = tracing::info_span!(
            "run",
            agent = &*id.agent,
            thread = %Short(&id.thread_id),
            run = %Short(&id.run_id),
            principal = id.principal.as_ref().map(Principal::name),
        );
        Self {
            guard: Guard::new(&input),
            parent_run_id: input.parent_run_id.clone(),
            stage: Stage::Opening(agent, Box::new(input)),
            cx,
            clock: Clock::start(limits),
            control,
            waker: None,
            span,
            until_look: EVENTS_PER_LOOK,
            events: 0,
            counted: None,
        }
    }

    /// Stops the run from elsewhere.
    pub fn control(&self) -> Arc<RunControl> {
        self.control.clone()
    }

    /// Drops the run, but still counts it as running until its end is stored.
    pub(super) fn into_counted(mut self) -> Option<CountedRun> {
        self.counted.take()
    }

    /// How many events it has sent.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Gives the agent what the request carried in headers for it. Only before the run is polled.
    pub fn with_forwarded(mut self, forwarded: Forwarded) -> Self {
        self.cx = RunContext::with_forwarded(self.cx.identity().clone(), forwarded);
        self
    }

    /// Moves the run on by about one event, which goes to the sink.
    ///
    /// The first call sends `RUN_STARTED` and returns without having called the agent, so that the
    /// event can leave before an agent takes its time.
    fn progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        loop {
            let Stage::Running(stream) = &mut self.stage else {
                if matches!(self.stage, Stage::Opened(..))
                    && let Some(stop) = self.control.requested()
                {
                    return self.end(stop.into(), sink);
                }
                match self.advance(sink) {
                    Some(progress) => return Poll::Ready(progress),
                    None => continue,
                }
            };
            if let Some(stop) = self.control.requested() {
                return self.end(stop.into(), sink);
            }
            let polled = catch_unwind(AssertUnwindSafe(|| stream.poll_next_unpin(cx)));
            let ending = match polled {
                Ok(Poll::Pending) => return self.pause(cx, sink),
                Ok(Poll::Ready(Some(Ok(event)))) => return self.pass(event, sink),
                Ok(Poll::Ready(Some(Err(error)))) => failed(error),
                Ok(Poll::Ready(None)) => Ending::Finished(self.finished(RunOutcome::success())),
                Err(panic) => panicked(panic),
            };
            return self.end(ending, sink);
        }
    }

    /// The run as a stream of events, which ends after the last one.
    pub fn into_events(self) -> impl Stream<Item = Event> {
        let mut state = (self, Vec::new().into_iter());
        stream::poll_fn(move |cx| {
            let (run, ready) = &mut state;
            loop {
                if let Some(event) = ready.next() {
                    return Poll::Ready(Some(event));
                }
                let mut sink = Vec::new();
                let progress = ready!(run.poll_progress(cx, &mut sink));
                *ready = sink.into_iter();
                if progress == Progress::Ended {
                    return Poll::Ready(ready.next());
                }
            }
        })
    }

    /// The stages in which no agent is polled. `None` is the way to the next one.
    fn advance(&mut self, sink: &mut impl EventSink) -> Option<Progress> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Opening(agent, input) => {
                let id = self.cx.identity();
                let mut started = RunStarted::new(id.thread_id.clone(), id.run_id.clone());
                started.parent_run_id = self.parent_run_id.take();
                self.events += 1;
                sink.emit(&started.into());
                self.clock.event();
                self.stage = Stage::Opened(agent, input);
                Some(Progress::Moved)
            }
            Stage::Opened(agent, input) => {
                let context = self.cx.clone();
                match catch_unwind(AssertUnwindSafe(|| agent.run(*input, context))) {
                    Ok(stream) => {
                        self.stage = Stage::Running(stream);
                        None
                    }
                    Err(panic) => {
                        self.close(panicked(panic), sink);
                        Some(Progress::Moved)
                    }
                }
            }
            stage @ Stage::Running(_) => {
                self.stage = stage;
                None
            }
            Stage::Ended => Some(Progress::Ended),
        }
    }

    /// Takes an event from the agent.
    fn pass(&mut self, event: Event, sink: &mut impl EventSink) -> Poll<Progress> {
        self.clock.event();
        let ending = if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
            lifecycle(event)
        } else {
            let mut counted = Counted { sink, events: &mut self.events };
            self.guard.admit(event, &mut counted).err().map(violated)
        };
        if let Some(ending) = ending {
            return self.end(ending, sink);
        }
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = EVENTS_PER_LOOK;
            if self.clock.time_is_over() {
                return self.end(Ending::Cancelled("time limit"), sink);
            }
        }
        Poll::Ready(Progress::Moved)
    }

    /// The agent has nothing for now.
    fn pause(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        // The control keeps the waker until a stop is requested, and that is looked at before the agent is polled.
        let same_task = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if !same_task {
            if let Some(stop) = self.control.poll_requested(cx) {
                return self.end(stop.into(), sink);
            }
            self.waker = Some(cx.waker().clone());
        }
        let ending = match ready!(self.clock.poll(cx, same_task)) {
            Due::Heartbeat => return Poll::Ready(Progress::Heartbeat),
            Due::TimeLimit => Ending::Cancelled("time limit"),
            Due::IdleLimit => silent(),
        };
        self.end(ending, sink)
    }

    #[inline(never)]
    fn end(&mut self, ending: Ending, sink: &mut impl EventSink) -> Poll<Progress> {
        self.close(ending, sink);
        Poll::Ready(Progress::Moved)
    }

    /// Stops the agent, closes what it left open, and sends the terminal event.
    fn close(&mut self, ending: Ending, sink: &mut impl EventSink) {
        // The agent goes first: nothing of it runs on behind a finished run. A destructor that panics
        // must not cost the client its terminal event.
        let agent = std::mem::replace(&mut self.stage, Stage::Ended);
        if catch_unwind(AssertUnwindSafe(|| drop(agent))).is_err() {
            tracing::error!("the agent panicked while it was dropped");
        }
        let ending = match ending {
            Ending::Finished(finished) => match self.guard.check_ending(&finished) {
                Ok(()) => Ending::Finished(finished),
                Err(violation) => violated(violation),
            },
            other => other,
        };
        let mut sink = Counted { sink, events: &mut self.events };
        let (event, outcome) = match ending {
            Ending::Finished(mut finished) => {
                finished.thread_id = self.cx.thread_id().clone();
                finished.run_id = self.cx.run_id().clone();
                let outcome = self.guard.finish(&mut finished, &mut sink);
                finished.usage = all_usage(finished.usage, &self.cx);
                (Event::from(finished), outcome)
            }
            Ending::Cancelled(why) => {
                self.guard.close_all(&RunClosing::Cancelled, &mut sink);
                let (thread, run) = (self.cx.thread_id().clone(), self.cx.run_id().clone());
                let mut finished = RunFinished::new(thread, run, RunOutcome::Cancelled);
                finished.usage = self.cx.usage();
                (finished.into(), why)
            }
            Ending::Failed(mut error) => {
                self.guard.close_all(&RunClosing::Failed, &mut sink);
                error.usage = all_usage(error.usage, &self.cx);
                (error.into(), "failed")
            }
        };
        sink.emit(&event);
        let millis = self.clock.elapsed().as_millis() as u64;
        tracing::info!(outcome, events = self.events, millis, "run ended");
    }

    fn finished(&self, outcome: RunOutcome) -> RunFinished {
        RunFinished::new(self.cx.thread_id().clone(), self.cx.run_id().clone(), outcome)
    }
}

impl Drive for Run {
    fn span(&self) -> &tracing::Span {
        &self.span
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        self.progress(cx, sink)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Ended) {
            let _entered = self.span.enter();
            let millis = self.clock.elapsed().as_millis() as u64;
            tracing::info!(outcome = "abandoned", events = self.events, millis, "the client left");
        }
    }
}

impl From<Stop> for Ending {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancel => Self::Cancelled("cancelled"),
            Stop::Shutdown => Self::Failed(RunError::new(SHUTDOWN, "the server is shutting down; please try again")),
            Stop::LeaseLost => Self::Failed(lease_lost()),
            Stop::TooLong => {
                Self::Failed(RunError::new("run_too_long", "the run has more to say than the server keeps of a run"))
            }
        }
    }
}

/// The error of a run that may no longer write to its thread.
pub(super) fn lease_lost() -> RunError {
    RunError::new("lease_lost", "the run was taken over or its thread was deleted meanwhile")
}

// What ends a run is kept out of the way of its events, which find little of the code in the caches as it is.

/// The end that the agent's own event of the run's life asks for.
#[cold]
fn lifecycle(event: Event) -> Option<Ending> {
    match event {
        Event::RunFinished(finished) => Some(Ending::Finished(*finished)),
        Event::RunError(error) => {
            tracing::error!(code = error.code.as_deref(), message = ?error.message, "the agent reported a failure");
            Some(Ending::Failed(error))
        }
        _ => {
            tracing::debug!("the agent sent RUN_STARTED, which the server has sent already");
            None
        }
    }
}

#[cold]
fn failed(error: AgentError) -> Ending {
    tracing::error!(?error, "the agent failed");
    let (code, message) = error.into_code_and_message();
    Ending::Failed(RunError::new(code, message))
}

#[cold]
fn silent() -> Ending {
    tracing::error!("the agent was silent for too long");
    Ending::Failed(RunError::new("agent_timeout", "the agent did not answer in time"))
}

#[cold]
fn violated(violation: Violation) -> Ending {
    tracing::error!(%violation, "the agent broke the protocol");
    Ending::Failed(RunError::new("protocol_violation", violation.to_string()))
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Ending {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("not a text"), "the agent panicked");
    Ending::Failed(RunError::new("agent_panic", "the agent failed unexpectedly"))
}

/// What the agent put on its own terminal event, and what it reported while it ran.
fn all_usage(own: Vec<TokenUsage>, cx: &RunContext) -> Vec<TokenUsage> {
    own.into_iter().for_each(|usage| cx.add_usage(usage));
    cx.usage()
}

/// An identifier cut short for the log, without anything that could pass for another field of the line: the
/// client chose it, and may have chosen megabytes.
struct Short<'a>(&'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars().take(LOGGED_CHARS) {
            if char == ' ' { f.write_str("\\u{20}")? } else { char.escape_debug().fmt(f)? }
        }
        Ok(())
    }
}

struct Counted<'a, S> {
    sink: &'a mut S,
    events: &'a mut u64,
}

impl<S: EventSink> EventSink for Counted<'_, S> {
    fn emit(&mut self, event: &Event) {
        *self.events += 1;
        self.sink.emit(event);
    }
}

#[cfg(test)]
mod tests;
