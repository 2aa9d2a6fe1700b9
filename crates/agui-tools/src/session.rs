//! The part of a run that its tool calls share: the state, and the events that wait for the run's stream.
//!
//! Calls emit events from within their futures, several calls at a time. The agent takes the events out between two
//! polls of the calls and yields them in the order of emission. A change of the state is applied when it is emitted,
//! under the lock of the queue, so that the client applies the changes in the same order. A call that emits nothing
//! costs no allocation here.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use super::error::ToolError;
use agui_agent::RunContext;
use agui_protocol::{Event, patch};

/// The state of a run and the queue of its tools' events. Clones share both.
#[derive(Clone)]
pub struct ToolSession(Arc<Shared>);

struct Shared {
    run: RunContext,
    inner: Mutex<SessionState>,
    /// Notified when the last waiting event is taken, and when the reader is dropped.
    drained: Notify,
}

struct SessionState {
    state: Arc<Value>,
    events: VecDeque<Event>,
    reader: ReaderState,
}

enum ReaderState {
    /// Events are kept until they are taken; emitting does not wait.
    Absent,
    Present(Option<Waker>),
    Dropped,
}

impl ToolSession {
    /// Creates a session without a reader, in which emitting does not wait.
    pub fn new(run: RunContext, state: Value) -> Self {
        let inner = SessionState {
            state: Arc::new(state),
            events: VecDeque::new(),
            reader: ReaderState::Absent,
        };
        Self(Arc::new(Shared { run, inner: Mutex::new(inner), drained: Notify::new() }))
    }

    /// Returns the context of the run.
    pub fn run(&self) -> &RunContext {
        &self.0.run
    }

    /// Returns the current state. Later changes do not change the returned value.
    pub fn state(&self) -> Arc<Value> {
        self.0.inner.lock().state.clone()
    }

    /// Fails, without any change, if a state delta does not apply or the call is over.
    pub fn emit(&self, event: Event) -> Result<(), ToolError> {
        self.change_state(|state| applied(state, event).map(Some)).map(drop)
    }

    /// Changes the state by an event of the model's answer, which the caller sends. Fails, without
    /// any change, if a state delta does not apply.
    pub fn apply(&self, event: Event) -> Result<Event, ToolError> {
        applied(&mut self.0.inner.lock().state, event)
    }

    /// Replaces the state `before` by `new`, and queues its `event`. Returns `false`, without any
    /// change, if the state is no longer `before`. Fails if the call is over.
    pub fn replace_state(
        &self,
        before: &Arc<Value>,
        new: Value,
        event: Event,
    ) -> Result<bool, ToolError> {
        self.change_state(|state| {
            let is_before = Arc::ptr_eq(state, before);
            if is_before {
                *state = Arc::new(new);
            }
            Ok(is_before.then_some(event))
        })
    }

    /// Queues the event that `change` returns, and returns whether there is one. If `change` fails,
    /// it must leave the state unchanged. Fails if the call is over.
    fn change_state(
        &self,
        change: impl FnOnce(&mut Arc<Value>) -> Result<Option<Event>, ToolError>,
    ) -> Result<bool, ToolError> {
        let mut inner = self.0.inner.lock();
        if matches!(inner.reader, ReaderState::Dropped) {
            return Err(ToolError::new("the call is over"));
        }
        let event = change(&mut inner.state)?;
        let is_changed = event.is_some();
        inner.events.extend(event);
        if let ReaderState::Present(waker) = &mut inner.reader
            && let Some(waker) = waker.take()
        {
            waker.wake();
        }
        Ok(is_changed)
    }

    /// Completes when the reader has taken all events.
    pub(crate) async fn drained(&self) {
        loop {
            let drained = self.0.drained.notified();
            {
                let inner = self.0.inner.lock();
                if inner.events.is_empty() || !matches!(inner.reader, ReaderState::Present(_)) {
                    return;
                }
            }
            drained.await;
        }
    }

    pub(crate) fn take_events(&self) -> Vec<Event> {
        self.0.inner.lock().events.drain(..).collect()
    }

    /// Makes the reader of the events. From then on, emitting waits until the events are taken.
    pub fn reader(&self) -> ToolEvents {
        self.0.inner.lock().reader = ReaderState::Present(None);
        ToolEvents(self.clone())
    }
}

fn applied(state: &mut Arc<Value>, event: Event) -> Result<Event, ToolError> {
    match &event {
        Event::StateSnapshot(event) => *state = Arc::new(event.snapshot.clone()),
        Event::StateDelta(event) => {
            let failed = |problem: String| {
                ToolError::new(format!("the state delta does not apply: {problem}"))
            };
            patch::check(&event.delta).map_err(failed)?;
            patch::apply(Arc::make_mut(state), &event.delta)
                .map(drop)
                .map_err(|error| failed(error.to_string()))?;
        }
        _ => {}
    }
    Ok(event)
}

/// The reader of a session's events. After it is dropped, nothing can be emitted.
pub struct ToolEvents(ToolSession);

impl ToolEvents {
    /// Polls for the next event. Never completes after the last one, as calls may emit further ones.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let mut inner = self.0.0.inner.lock();
        let Some(event) = inner.events.pop_front() else {
            inner.reader = ReaderState::Present(Some(cx.waker().clone()));
            return Poll::Pending;
        };
        if inner.events.is_empty() {
            self.0.0.drained.notify_waiters();
        }
        Poll::Ready(event)
    }
}

impl Drop for ToolEvents {
    fn drop(&mut self) {
        self.0.0.inner.lock().reader = ReaderState::Dropped;
        self.0.0.drained.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::poll_fn};
    use serde_json::json;

    use super::*;
    use crate::ToolContext;
    use agui_agent::emit::state;
    use agui_protocol::{PatchKind, PatchOperation};

    #[tokio::test]
    async fn a_state_delta_that_would_end_the_run_is_an_error_of_the_tool() {
        let cx = ToolContext::for_test("t");
        for (operation, problem) in [
            (
                PatchKind::Move { from: "/l/0".into(), path: "/l/0/x".into() }.into(),
                "moved into itself",
            ),
            (PatchOperation::remove("l"), "not a JSON Pointer"),
        ] {
            let patch = [PatchOperation::add("/l", json!([1, {}])), operation];
            let error = cx.emit(state::delta(patch)).await.unwrap_err();
            assert!(error.message().contains(problem), "{error:?}");
            assert_eq!(*cx.state(), json!({}));
        }
    }

    #[tokio::test]
    async fn emitting_waits_until_the_event_is_taken_and_fails_after_the_call() {
        let cx = ToolContext::for_test("t");
        let session = ToolSession::new(cx.run().clone(), json!({}));
        let cx = ToolContext::for_call(
            session.clone(),
            "c".into(),
            "t".to_owned(),
            &Default::default(),
            Default::default(),
        );
        let mut events = session.reader();
        let mut emit = Box::pin(cx.emit(state::snapshot(json!({ "n": 1 }))));
        assert!((&mut emit).now_or_never().is_none());
        assert_eq!(*cx.state(), json!({ "n": 1 }), "the state changes at once");
        assert!(matches!(poll_fn(|task| events.poll_next(task)).await, Event::StateSnapshot(_)));
        emit.await.unwrap();
        let late = tokio::spawn({
            let cx = cx.clone();
            async move { cx.report_progress("late", None).await }
        });
        assert!(matches!(poll_fn(|task| events.poll_next(task)).await, Event::ActivitySnapshot(_)));
        late.await.unwrap().unwrap();
        drop(events);
        let error = cx.emit(state::snapshot(json!({ "n": 2 }))).await.unwrap_err();
        assert_eq!((error.message(), &*cx.state()), ("the call is over", &json!({ "n": 1 })));
    }
}
