//! One run's log while the run goes on in this process.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures::task::AtomicWaker;
use tokio::sync::Notify;

use super::chunk::LogChunk;
use crate::{
    protocol::Event,
    run::{control::Stop, drive::EventSink},
    store::{EventBatch, Lease},
};

/// How many bytes may wait to be written before the agent has to wait.
const MAX_PENDING_BYTES: usize = 256 * 1024;
/// How many bytes of the newest events are kept for followers.
const MAX_RECENT_BYTES: usize = 64 * 1024;

/// Events on their way to the store, and the newest that are there.
#[derive(Debug)]
pub(in crate::run) struct LiveLog {
    lease: Lease,
    max_bytes: u64,
    is_delivered: AtomicBool,
    state: Mutex<State>,
    /// Wakes the run's task when there is room again or everything is written.
    producer: AtomicWaker,
    /// Wakes followers.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<String>,
    pending_bytes: usize,
    /// How many events the writer is writing.
    in_flight: usize,
    recent: VecDeque<LogChunk>,
    recent_bytes: usize,
    /// The number of the last event that is in the store.
    written: u64,
    /// All bytes that ever came in.
    bytes: u64,
    end: Option<LogEnd>,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum LogEnd {
    /// The run has ended, and all of it is in the store.
    Complete,
    /// Another process writes this log now, or the store does not take it.
    Lost,
}

/// What follows an event in a live log.
#[derive(Debug)]
pub(super) enum Newest {
    LogChunk(LogChunk),
    /// It has to be read from the store.
    Older,
    /// There is nothing new yet.
    None,
    End(LogEnd),
}

impl LiveLog {
    pub(in crate::run) fn new(lease: Lease, max_bytes: u64) -> Self {
        let (state, producer, changed) = (Mutex::default(), AtomicWaker::new(), Notify::new());
        let is_delivered = AtomicBool::new(false);
        Self { lease, max_bytes, is_delivered, state, producer, changed }
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Notes that a client was sent the run to its end. Returns whether that was known.
    pub(super) fn set_delivered(&self) -> bool {
        self.is_delivered.swap(true, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for more events. Returns why there never will be, if so.
    pub(in crate::run) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Option<Stop>> {
        let state = self.lock();
        if state.end.is_some() {
            return Poll::Ready(Some(Stop::LeaseLost));
        }
        if state.bytes > self.max_bytes {
            return Poll::Ready(Some(Stop::TooLong));
        }
        if state.pending_bytes < MAX_PENDING_BYTES {
            return Poll::Ready(None);
        }
        // Under the lock, which the writer takes before it wakes.
        self.producer.register(cx.waker());
        Poll::Pending
    }

    /// Waits until every event is in the store. Returns `false` when that is never going to happen.
    pub(in crate::run) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.producer.register(cx.waker());
        let state = self.lock();
        match state.end {
            Some(end) => Poll::Ready(end == LogEnd::Complete),
            None if state.pending.is_empty() && state.in_flight == 0 => Poll::Ready(true),
            None => Poll::Pending,
        }
    }

    /// Returns whether there is something to write.
    pub(in crate::run) fn has_pending(&self) -> bool {
        !self.lock().pending.is_empty()
    }

    /// The terminal event, to be written together with how the run ended.
    pub(in crate::run) fn last(&self, terminal: &Event) -> EventBatch {
        let first = self.lock().written + 1;
        EventBatch { lease: self.lease.clone(), first, events: vec![line(terminal)] }
    }

    /// Takes what has gathered, to be written.
    pub(super) fn take_pending(&self) -> Option<EventBatch> {
        let mut state = self.lock();
        if state.pending.is_empty() || state.end.is_some() {
            return None;
        }
        let events = std::mem::take(&mut state.pending);
        state.in_flight = events.len();
        Some(EventBatch { lease: self.lease.clone(), first: state.written + 1, events })
    }

    /// The batch is in the store.
    pub(in crate::run) fn written(&self, batch: EventBatch) {
        let mut state = self.lock();
        let chunk = LogChunk::new(batch.first, batch.events);
        state.pending_bytes = state.pending_bytes.saturating_sub(chunk.bytes());
        state.in_flight = 0;
        state.written = chunk.last();
        state.recent_bytes += chunk.bytes();
        state.recent.push_back(chunk);
        while state.recent_bytes > MAX_RECENT_BYTES && state.recent.len() > 1 {
            state.recent_bytes -= state.recent.pop_front().map_or(0, |oldest| oldest.bytes());
        }
        drop(state);
        self.producer.wake();
        self.changed.notify_waiters();
    }

    /// Nothing more comes.
    pub(in crate::run) fn end(&self, end: LogEnd) {
        self.lock().end.get_or_insert(end);
        self.producer.wake();
        self.changed.notify_waiters();
    }

    /// Returns what follows the event with number `after`.
    pub(super) fn newest(&self, after: u64) -> Newest {
        let state = self.lock();
        if after >= state.written {
            return state.end.map_or(Newest::None, Newest::End);
        }
        let chunk = state.recent.iter().find(|chunk| chunk.continues(after));
        chunk.cloned().map_or(Newest::Older, Newest::LogChunk)
    }

    /// To be created before [`newest`](Self::newest) is asked, so that no change is missed.
    pub(super) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

/// A run's events go into its log through this.
pub(in crate::run) struct LogSink<'a>(pub(in crate::run) &'a Arc<LiveLog>);

impl EventSink for LogSink<'_> {
    fn emit(&mut self, event: &Event) {
        let line = line(event);
        let mut state = self.0.lock();
        state.pending_bytes += line.len();
        state.bytes += line.len() as u64;
        state.pending.push(line);
    }
}

/// An event as one line of JSON.
fn line(event: &Event) -> String {
    // Nothing in an event can fail to be written as JSON.
    serde_json::to_string(event).unwrap_or_default()
}
