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
};

use futures::stream::{self, Stream, StreamExt as _};

use super::{
    clock::{Clock, Deadline, RunLimits},
    ending::{RunEnding, agent_failed, agent_panicked, agent_timed_out, lifecycle_ending, protocol_violated},
    guard::{Guard, RunClosing},
    progress::{Drive, EventSink, Progress},
    run_report::{FirstTimes, RunReport},
};
use crate::run::{
    control::{RunControl, Stop},
    limits::slot::Slot,
};
use crate::{
    agent::{Agent, Principal, RunContext, generated},
    observe::RunObserver,
    protocol::{
        Event, RunAgentInput, RunId, TokenUsage,
        event::{RunFinished, RunOutcome, RunStarted},
    },
    store::ThreadKey,
};

const EVENTS_PER_TIME_CHECK: u32 = 64;
const MAX_LOGGED_CHARS: usize = 80;

/// One run, which is polled or read as a stream ([`into_events`](Self::into_events)). Dropping it stops the agent.
pub struct Run {
    span: tracing::Span,
    stage: RunStage,
    control: Arc<RunControl>,
    waker: Option<Waker>,
    events: u64,
    events_until_time_check: u32,
    clock: Clock,
    first: FirstTimes,
    guard: Guard,
    cx: RunContext,
    parent_run_id: Option<RunId>,
    slot: Option<Slot>,
}

enum RunStage {
    Opening(Arc<dyn Agent>, Box<RunAgentInput>),
    /// `RUN_STARTED` was sent; the agent was not called yet.
    Opened(Arc<dyn Agent>, Box<RunAgentInput>),
    Running(generated::DrawnRun),
    Ended,
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
    /// Creates a run without a server and without limits, for tests of an agent.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agui_server::{Run, agent::builtin::Echo, protocol::{Message, RunAgentInput}};
    /// use futures::StreamExt as _;
    ///
    /// let input = RunAgentInput::new("thread", "run", vec![Message::user("m1", "Hello")]);
    /// let events: Vec<_> = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(Run::alone(Arc::new(Echo), input).into_events().collect());
    /// assert_eq!(events.len(), 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn alone(agent: Arc<dyn Agent>, input: RunAgentInput) -> Self {
        let cx = RunContext::new(input.thread_id.clone(), input.run_id.clone(), "agent");
        Self::with_control(agent, input, cx, RunLimits::default(), Arc::default())
    }

    pub(crate) fn new(
        agent: Arc<dyn Agent>,
        input: RunAgentInput,
        cx: RunContext,
        limits: RunLimits,
        slot: Slot,
    ) -> Self {
        let mut run = Self::with_control(agent, input, cx, limits, slot.live.control.clone());
        run.slot = Some(slot);
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
        // Below the span of the trace, so that spans of the agent itself belong to the trace, too.
        let span = cx.trace().span().in_scope(|| {
            tracing::info_span!(
                "run",
                agent = &*id.agent,
                thread = %LoggedId(&id.thread_id),
                run = %LoggedId(&id.run_id),
                principal = id.principal.as_ref().map(Principal::name),
            )
        });
        Self {
            guard: Guard::new(&input),
            parent_run_id: input.parent_run_id.clone(),
            stage: RunStage::Opening(agent, Box::new(input)),
            cx,
            clock: Clock::start(limits),
            first: FirstTimes::default(),
            control,
            waker: None,
            span,
            events_until_time_check: EVENTS_PER_TIME_CHECK,
            events: 0,
            slot: None,
        }
    }

    /// Returns the control that cancels the run from another task.
    pub(crate) fn control(&self) -> Arc<RunControl> {
        self.control.clone()
    }

    /// Leaves out `RUN_STARTED`, which another server has sent.
    pub(crate) fn skip_start(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, RunStage::Ended) {
            RunStage::Opening(agent, input) => RunStage::Opened(agent, input),
            stage => stage,
        };
    }

    /// Drops the agent, and leaves the run to another server.
    pub(crate) fn hand_over(&mut self) {
        self.stop_agent();
        self.report("handed over", None);
    }

    /// Drops the agent. Returns the events that end what it has drawn in part.
    fn stop_agent(&mut self) -> Vec<Event> {
        let stage = std::mem::replace(&mut self.stage, RunStage::Ended);
        let stop = move || if let RunStage::Running(drawn) = stage { drawn.stop() } else { Vec::new() };
        catch_unwind(AssertUnwindSafe(stop)).unwrap_or_else(|_| {
            tracing::error!("the agent panicked while it was dropped");
            Vec::new()
        })
    }

    /// Drops the run, and returns its slot, with which it counts as running until its end is stored.
    pub(crate) fn into_slot(mut self) -> Option<Slot> {
        self.slot.take()
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Sends `RUN_STARTED` and returns before the agent is called, so that a slow agent does not delay the event.
    fn progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress> {
        loop {
            let RunStage::Running(drawn) = &mut self.stage else {
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
            let polled = catch_unwind(AssertUnwindSafe(|| drawn.events.poll_next_unpin(cx)));
            let ending = match polled {
                Ok(Poll::Pending) if self.cx.is_connection_cut() => return Poll::Ready(Progress::Cut),
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
                if matches!(progress, Progress::Ended | Progress::Cut) {
                    return Poll::Ready(ready.next());
                }
            }
        })
    }

    /// Returns `None` if the agent is to be polled.
    fn advance_stage(&mut self, sink: &mut impl EventSink) -> Option<Progress> {
        match std::mem::replace(&mut self.stage, RunStage::Ended) {
            RunStage::Opening(agent, input) => {
                let id = self.cx.identity();
                let mut started = RunStarted::new(id.thread_id.clone(), id.run_id.clone());
                started.parent_run_id = self.parent_run_id.take();
                self.events += 1;
                sink.emit(&started.into());
                self.clock.note_event();
                self.stage = RunStage::Opened(agent, input);
                Some(Progress::Moved)
            }
            RunStage::Opened(agent, input) => {
                let context = self.cx.clone();
                match catch_unwind(AssertUnwindSafe(|| generated::run(&*agent, *input, context))) {
                    Ok(drawn) => {
                        self.stage = RunStage::Running(drawn);
                        None
                    }
                    Err(panic) => {
                        self.close(agent_panicked(panic), sink);
                        Some(Progress::Moved)
                    }
                }
            }
            stage @ RunStage::Running(_) => {
                self.stage = stage;
                None
            }
            RunStage::Ended => Some(Progress::Ended),
        }
    }

    fn forward(&mut self, event: Event, sink: &mut impl EventSink) -> Poll<Progress> {
        self.clock.note_event();
        if !self.first.are_known() {
            self.first.note(&event, &self.clock);
        }
        let ending = if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
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
                return self.end(RunEnding::Cancelled("time limit"), sink);
            }
        }
        Poll::Ready(Progress::Moved)
    }

    /// A run with a journal goes on in another process: a shutdown leaves it without a terminal event, to be handed over.
    fn stop(&mut self, stop: Stop, sink: &mut impl EventSink) -> Poll<Progress> {
        if stop == Stop::Shutdown && self.cx.is_journaled() {
            return Poll::Ready(Progress::Ended);
        }
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
            Deadline::TimeLimit => RunEnding::Cancelled("time limit"),
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
            RunEnding::Cancelled(why) => {
                self.guard.close_all(&RunClosing::Cancelled, &mut sink);
                let (thread, run) = (self.cx.thread_id().clone(), self.cx.run_id().clone());
                let mut finished = RunFinished::new(thread, run, RunOutcome::Cancelled);
                finished.usage = self.cx.usage();
                (finished.into(), why)
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
        let (duration, repairs) = (self.clock.elapsed(), self.guard.repairs());
        let (cx, events, first) = (&self.cx, self.events, &self.first);
        RunReport { cx, outcome, code, events, duration, first, repairs }.publish();
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
        let owner = self.cx.principal().map_or(ThreadKey::ANONYMOUS, Principal::id);
        let debug = self.slot.as_ref().and_then(|slot| slot.live.debug().sender(owner));
        let is_recorded = self.cx.observer::<RunObserver>().is_some_and(|observer| observer.recording.is_some());
        if debug.is_none() && !is_recorded {
            return self.progress(cx, sink);
        }
        let context = self.cx.clone();
        let recording = context.observer::<RunObserver>().and_then(|observer| observer.recording.as_ref());
        let mut copied = |event: &Event| {
            if let Some(readers) = &debug {
                readers.send(context.identity(), event);
            }
            if let Some(recording) = recording {
                recording.event(event);
            }
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

/// An identifier of a client in the log: cut to [`MAX_LOGGED_CHARS`], and escaped so that it cannot look like another field.
struct LoggedId<'a>(&'a str);

impl fmt::Display for LoggedId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars().take(MAX_LOGGED_CHARS) {
            if char == ' ' { f.write_str("\\u{20}")? } else { char.escape_debug().fmt(f)? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
