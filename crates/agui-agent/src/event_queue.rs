//! The queue between an agent's future and the stream of its events, which may run in different tasks.
//! [`EventQueue::send`] completes when the stream has taken the events, so an agent is never more than one call ahead
//! of its client.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use super::AgentError;
use agui_protocol::Event;

/// The events that agents may send without waiting for the stream, as tasks and joined futures do. About 16 MB.
const MAX_HELD_EVENTS: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct EventQueue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<Event>,
    pushed: u64,
    taken: u64,
    is_closed: bool,
    /// The stream's task, while the stream waits for events.
    stream: Option<Waker>,
    /// Tasks that wait until `taken` reaches a number, in the order of the numbers.
    senders: VecDeque<(u64, Waker)>,
}

impl EventQueue {
    /// Takes all of the events or none. Returns the number of the last event. A closed queue drops the events.
    pub(super) fn push(&self, events: impl IntoIterator<Item = Event>) -> Result<u64, AgentError> {
        let mut state = self.0.lock();
        if state.is_closed {
            return Ok(state.pushed);
        }
        let (before, mut events) = (state.events.len(), events.into_iter());
        state.events.extend(events.by_ref().take(MAX_HELD_EVENTS.saturating_sub(before)));
        if events.next().is_some() {
            state.events.truncate(before);
            let problem = format!(
                "more than {MAX_HELD_EVENTS} events wait for the client: await each call before the next"
            );
            return Err(AgentError::new("too_many_events", problem));
        }
        let added = state.events.len() - before;
        state.pushed += added as u64;
        let last = state.pushed;
        let stream = if state.events.is_empty() { None } else { state.stream.take() };
        drop(state);
        if let Some(waker) = stream {
            waker.wake();
        }
        Ok(last)
    }

    /// Waits until the stream has taken the events. They are sent even if the future is dropped after its first poll.
    pub(super) async fn send(
        &self,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<(), AgentError> {
        let last = self.push(events)?;
        poll_fn(|cx| self.0.lock().poll_taken(last, cx)).await
    }

    pub(super) fn take(&self, cx: &Context<'_>) -> Option<Event> {
        let mut state = self.0.lock();
        let event = state.events.pop_front()?;
        state.taken += 1;
        let taken = state.taken;
        // The agent's future is polled again before the stream waits, so a sender in the stream's own task needs no wake.
        let count = state.senders.iter().take_while(|(last, _)| *last <= taken).count();
        let woken: Vec<_> = state.senders.drain(..count).map(|(_, waker)| waker).collect();
        drop(state);
        woken.into_iter().filter(|waker| !waker.will_wake(cx.waker())).for_each(Waker::wake);
        Some(event)
    }

    /// Returns false if there is an event already.
    pub(super) fn wake_at_next(&self, cx: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        state.stream = Some(cx.waker().clone());
        state.events.is_empty()
    }

    /// Ends all waits, and drops remaining and later events.
    pub(super) fn close(&self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let (events, senders) =
            (std::mem::take(&mut state.events), std::mem::take(&mut state.senders));
        drop(state);
        drop(events);
        senders.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

impl QueueState {
    fn poll_taken(&mut self, last: u64, cx: &Context<'_>) -> Poll<Result<(), AgentError>> {
        if self.is_closed {
            return Poll::Ready(Err(AgentError::new("run_ended", "the run has ended")));
        }
        if self.taken >= last {
            return Poll::Ready(Ok(()));
        }
        let at = self.senders.partition_point(|(number, _)| *number < last);
        let mut equal = self.senders.range(at..).take_while(|(number, _)| *number == last);
        if !equal.any(|(_, waker)| waker.will_wake(cx.waker())) {
            self.senders.insert(at, (last, cx.waker().clone()));
        }
        Poll::Pending
    }
}
