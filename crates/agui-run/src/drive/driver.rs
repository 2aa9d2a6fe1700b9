//! Drives one run from `RUN_STARTED` to its terminal event.
//!
//! `RUN_STARTED` is sent before the agent is called. Exactly one terminal event comes last: `RUN_FINISHED` if the agent's
//! stream ends or the run is cancelled, `RUN_ERROR` if the agent fails, panics, is silent for too long or breaks the
//! protocol, or the server shuts down. Items that the agent left open are closed before it.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures::stream::{self, Stream, StreamExt as _};

use super::{
    clock::{Clock, Deadline, RunLimits},
    ending::{
        RunEnding, agent_failed, agent_panicked, agent_timed_out, lifecycle_ending,
        protocol_violated,
    },
    guard::{Guard, RunClosing},
    progress::{Drive, EventSink, Progress},
    run_report::report_end,
};
use crate::{
    control::{RunControl, Stop},
    events::tap::Taps,
    limits::run_permit::RunPermit,
};
use agui_agent::{Agent, BeginDrawing, Drawing, EventStream, Principal, RunContext};
use agui_base::text::NAME_CHARS;
use agui_protocol::{
    Event, RunAgentInput, RunId, TokenUsage,
    event::{RunFinished, RunOutcome, RunStarted},
};
use agui_store::EndReason;

const EVENTS_PER_TIME_CHECK: u32 = 64;

/// One run, which is polled or read as a stream ([`into_events`](Self::into_events)). Dropping it
/// stops the agent.
pub struct Run {
    span: tracing::Span,
    stage: RunStage,
    control: Arc<RunControl>,
    waker: Option<Waker>,
    events: u64,
    events_until_time_check: u32,
    clock: Clock,
    guard: Guard,
    cx: RunContext,
    begin_drawing: Option<BeginDrawing>,
    taps: Taps,
    permit: Option<RunPermit>,
    parent_run_id: Option<RunId>,
    end_reason: Option<EndReason>,
}

enum RunStage {
    Opening(RunSource, Box<RunAgentInput>),
    /// `RUN_STARTED` was sent; the agent was not called yet.
    Opened(RunSource, Box<RunAgentInput>),
    Running(EventStream, Option<Box<dyn Drawing>>),
    Ended,
}

/// The source of a run's events between the first and the last one.
pub(crate) enum RunSource {
    Agent(Arc<dyn Agent>),
    /// The agent's response to a request of an MCP app.
    App(Arc<dyn Agent>),
    /// These events: no agent is called.
    Events(Vec<Event>),
}

impl RunSource {
    /// Calls the agent.
    fn open(
        self,
        mut input: RunAgentInput,
        mut cx: RunContext,
        begin_drawing: Option<BeginDrawing>,
    ) -> RunStage {
        match self {
            Self::Agent(agent) => {
                let drawing = begin_drawing.and_then(|begin| begin(&*agent, &mut input, &mut cx));
                let events = agent.run(input, cx);
                match drawing {
                    None => RunStage::Running(events, None),
                    Some(mut begun) => RunStage::Running(begun.draw(events), Some(begun)),
                }
            }
            Self::App(agent) => RunStage::Running(agent.respond_to_app(input, cx), None),
            Self::Events(events) => RunStage::Running(agui_agent::events(events), None),
        }
    }
}

/// Returns the first event of a run.
pub(crate) fn run_started(input: &RunAgentInput) -> Event {
    let started = RunStarted::new(input.thread_id.clone(), input.run_id.clone());
    RunStarted { parent_run_id: input.parent_run_id.clone(), ..started }.into()
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("identity", self.cx.identity())
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Creates a run. `permit` is `None` for a run without a server.
    pub(crate) fn new(
        source: RunSource,
        input: RunAgentInput,
        cx: RunContext,
        limits: RunLimits,
        begin_drawing: Option<BeginDrawing>,
        taps: Taps,
        permit: Option<RunPermit>,
    ) -> Self {
        let id = cx.identity();
        // Below the span of the trace, so that spans of the agent itself belong to the trace, too.
        let span = cx.trace().span().in_scope(|| {
            tracing::info_span!(
                "run",
                agent = &*id.agent,
                thread = %logged_id(&id.thread_id),
                run = %logged_id(&id.run_id),
                principal = id.principal.as_ref().map(Principal::name),
            )
        });
        Self {
            guard: Guard::new(&input),
            parent_run_id: input.parent_run_id.clone(),
            end_reason: None,
            stage: RunStage::Opening(source, Box::new(input)),
            cx,
            clock: Clock::start(limits),
            control: permit
                .as_ref()
                .map_or_else(Arc::default, |permit| permit.live.control.clone()),
            waker: None,
            span,
            events_until_time_check: EVENTS_PER_TIME_CHECK,
            events: 0,
            begin_drawing,
            taps,
            permit,
        }
    }

    /// Returns the control that cancels the run from another task.
    pub(crate) fn control(&self) -> Arc<RunControl> {
        self.control.clone()
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns the first event of the run.
    pub(crate) fn started(&self) -> Event {
        let (thread, run) = (self.cx.thread_id().clone(), self.cx.run_id().clone());
        let started = RunStarted::new(thread, run);
        RunStarted { parent_run_id: self.parent_run_id.clone(), ..started }.into()
    }

    /// Returns the time since the run's start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Returns the time without an event after which the client is sent a keep-alive.
    pub(crate) fn heartbeat(&self) -> Option<Duration> {
        self.clock.heartbeat()
    }

    /// Returns why the run ended before its agent was done.
    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        self.end_reason
    }

    /// Leaves out `RUN_STARTED`, which another server sent.
    pub(crate) fn skip_start(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, RunStage::Ended) {
            RunStage::Opening(source, input) => RunStage::Opened(source, input),
            stage => stage,
        };
    }

    /// Drops the agent, and hands the run over to another server.
    pub(crate) fn hand_over(&mut self) {
        self.stop_agent();
        self.report("handed over", None);
    }

    /// Drops the agent. Returns the events that end its partly drawn surfaces.
    fn stop_agent(&mut self) -> Vec<Event> {
        let stage = std::mem::replace(&mut self.stage, RunStage::Ended);
        let stop = move || {
            let RunStage::Running(events, drawing) = stage else { return Vec::new() };
            drop(events);
            drawing.map(|mut drawing| drawing.stop()).unwrap_or_default()
        };
        catch_unwind(AssertUnwindSafe(stop)).unwrap_or_else(|_| {
            tracing::error!("the agent panicked while it was dropped");
            Vec::new()
        })
    }

    /// Drops the run, and returns its permit, with which it counts as running until its end is stored.
    pub(crate) fn into_permit(mut self) -> Option<RunPermit> {
        self.permit.take()
    }

    #[doc(hidden)]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Sends `RUN_STARTED` and returns before the agent is called, so that a slow agent does not delay the event.
    fn progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        loop {
            let RunStage::Running(events, _) = &mut self.stage else {
                if matches!(self.stage, RunStage::Opened(..))
                    && let Some(stop) = self.control.requested()
                {
                    return self.stop(stop, sink);
                }
                match self.advance_stage(sink) {
                    Some(progress) => return Poll::Ready(progress),
                    None => continue,
                }
            };
            if let Some(stop) = self.control.requested() {
                return self.stop(stop, sink);
            }
            let polled = catch_unwind(AssertUnwindSafe(|| events.poll_next_unpin(cx)));
            let ending = match polled {
                Ok(Poll::Pending) => return self.on_pending(cx, sink),
                Ok(Poll::Ready(Some(Ok(event)))) => return self.forward(event, sink),
                Ok(Poll::Ready(Some(Err(error)))) => agent_failed(error),
                Ok(Poll::Ready(None)) => RunEnding::Finished(self.finished(RunOutcome::success())),
                Err(panic) => agent_panicked(panic),
            };
            return self.end(ending, sink);
        }
    }

    /// Returns the run as a stream of events, which ends after the terminal event.
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

    /// Advances to the next stage. Returns `None` if the agent has to be polled.
    fn advance_stage(&mut self, sink: &mut impl EventSink) -> Option<Progress> {
        match std::mem::replace(&mut self.stage, RunStage::Ended) {
            RunStage::Opening(source, input) => {
                self.events += 1;
                sink.emit(&run_started(&input));
                self.clock.note_event();
                self.stage = RunStage::Opened(source, input);
                Some(Progress::Moved)
            }
            RunStage::Opened(source, input) => {
                let (cx, begin_drawing) = (self.cx.clone(), self.begin_drawing);
                let call = move || source.open(*input, cx, begin_drawing);
                match catch_unwind(AssertUnwindSafe(call)) {
                    Ok(running) => {
                        self.stage = running;
                        None
                    }
                    Err(panic) => {
                        self.close(agent_panicked(panic), sink);
                        Some(Progress::Moved)
                    }
                }
            }
            stage @ RunStage::Running(..) => {
                self.stage = stage;
                None
            }
            RunStage::Ended => Some(Progress::Ended),
        }
    }

    fn forward(&mut self, event: Event, sink: &mut impl EventSink) -> Poll<Progress> {
        self.clock.note_event();
        if self.clock.first_token.is_none() {
            self.clock.note_first(&event);
        }
        let ending =
            if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
                lifecycle_ending(event)
            } else {
                let mut counted = |event: &Event| {
                    self.events += 1;
                    sink.emit(event);
                };
                self.guard.admit(event, &mut counted).err().map(protocol_violated)
            };
        if let Some(ending) = ending {
            return self.end(ending, sink);
        }
        self.events_until_time_check -= 1;
        if self.events_until_time_check == 0 {
            self.events_until_time_check = EVENTS_PER_TIME_CHECK;
            if self.clock.is_time_over() {
                return self.end(RunEnding::Cancelled(EndReason::Time), sink);
            }
        }
        Poll::Ready(Progress::Moved)
    }

    /// Stops the run. A shutdown ends a run with a journal without a terminal event, to hand it
    /// over.
    fn stop(&mut self, stop: Stop, sink: &mut impl EventSink) -> Poll<Progress> {
        if stop == Stop::Shutdown && self.cx.is_kept() {
            return Poll::Ready(Progress::Ended);
        }
        self.end_reason =
            matches!(stop, Stop::Shutdown | Stop::LeaseLost).then_some(EndReason::Lost);
        self.end(stop.into(), sink)
    }

    fn on_pending(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        // The control keeps the waker, so it is registered again only when the task has changed.
        let same_task = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if !same_task {
            if let Some(stop) = self.control.poll_requested(cx) {
                return self.stop(stop, sink);
            }
            self.waker = Some(cx.waker().clone());
        }
        let ending = match ready!(self.clock.poll(cx, same_task)) {
            Deadline::Heartbeat => return Poll::Ready(Progress::Heartbeat),
            Deadline::TimeLimit => RunEnding::Cancelled(EndReason::Time),
            Deadline::IdleLimit => agent_timed_out(),
        };
        self.end(ending, sink)
    }

    #[inline(never)]
    fn end(&mut self, ending: RunEnding, sink: &mut impl EventSink) -> Poll<Progress> {
        self.close(ending, sink);
        Poll::Ready(Progress::Moved)
    }

    fn close(&mut self, ending: RunEnding, sink: &mut impl EventSink) {
        // The agent is dropped first, so that nothing of it runs after the terminal event. The client gets that event even
        // if a destructor panics.
        let drawn = self.stop_agent();
        let ending = match ending {
            RunEnding::Finished(finished) => match self.guard.check_ending(&finished) {
                Ok(()) => RunEnding::Finished(finished),
                Err(violation) => protocol_violated(violation),
            },
            other => other,
        };
        let mut sink = |event: &Event| {
            self.events += 1;
            sink.emit(event);
        };
        if !matches!(ending, RunEnding::Finished(_)) {
            // An activity that the guard refuses has broken the protocol before.
            drawn.into_iter().for_each(|event| drop(self.guard.admit(event, &mut sink)));
        }
        let (event, outcome) = match ending {
            RunEnding::Finished(mut finished) => {
                finished.thread_id = self.cx.thread_id().clone();
                finished.run_id = self.cx.run_id().clone();
                let outcome = self.guard.finish(&mut finished, &mut sink);
                finished.usage = total_usage(finished.usage, &self.cx);
                (Event::from(finished), outcome)
            }
            RunEnding::Cancelled(reason) => {
                self.end_reason = Some(reason);
                self.guard.close_all(&RunClosing::Cancelled, &mut sink);
                let (thread, run) = (self.cx.thread_id().clone(), self.cx.run_id().clone());
                let mut finished = RunFinished::new(thread, run, RunOutcome::Cancelled);
                finished.usage = self.cx.usage();
                (
                    finished.into(),
                    if reason == EndReason::Time { "time limit" } else { "cancelled" },
                )
            }
            RunEnding::Failed(mut error) => {
                self.guard.close_all(&RunClosing::Failed, &mut sink);
                error.usage = total_usage(error.usage, &self.cx);
                (error.into(), "failed")
            }
        };
        sink.emit(&event);
        let code = match &event {
            Event::RunError(error) => error.code.as_deref(),
            _ => None,
        };
        self.report(outcome, code);
    }

    fn report(&self, outcome: &'static str, code: Option<&str>) {
        report_end(&self.cx, outcome, code, self.events, self.guard.repairs, &self.clock);
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
        if !self.taps.iter().any(|tap| tap.is_open(&self.cx)) {
            return self.progress(cx, sink);
        }
        let (run, taps) = (self.cx.clone(), self.taps.clone());
        let mut copied = |event: &Event| {
            taps.iter().filter(|tap| tap.is_open(&run)).for_each(|tap| tap.event(&run, event));
            sink.emit(event);
        };
        self.progress(cx, &mut copied)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !matches!(self.stage, RunStage::Ended) {
            let _entered = self.span.enter();
            self.report("abandoned", None);
        }
    }
}

fn total_usage(own: Vec<TokenUsage>, cx: &RunContext) -> Vec<TokenUsage> {
    own.into_iter().for_each(|usage| cx.add_usage(usage));
    cx.usage()
}

/// Returns an identifier of a client for the log: cut to [`NAME_CHARS`], and escaped so that
/// it cannot look like another field.
fn logged_id(id: &str) -> impl fmt::Display {
    fmt::from_fn(|f| {
        for char in id.chars().take(NAME_CHARS) {
            if char == ' ' {
                f.write_str("\\u{20}")?
            } else {
                fmt::Display::fmt(&char.escape_debug(), f)?
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
