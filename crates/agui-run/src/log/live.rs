//! The log of a detached run while this process runs it: events to store, and the newest stored
//! ones.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::mark::{LogMark, is_mark};
use crate::control::Stop;
use agui_protocol::Event;
use agui_store::{EventBatch, Lease};

/// The number of unstored bytes at which the agent has to wait.
const MAX_PENDING_BYTES: usize = 256 * 1024;
/// The number of bytes of the newest events that are kept in memory for followers.
const MAX_RECENT_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct LiveLog {
    pub lease: Lease,
    max_bytes: u64,
    begun: Instant,
    is_delivered: AtomicBool,
    /// True if the agent waits until its events are stored.
    flush_requested: AtomicBool,
    state: Mutex<LogState>,
    /// Wakes the run's task when there is space again or all events are stored.
    producer: AtomicWaker,
    changed: Notify,
}

#[derive(Debug, Default)]
struct LogState {
    pending: Vec<String>,
    /// The time of each pending event, in milliseconds since the run's start.
    pending_times: Vec<u64>,
    pending_bytes: usize,
    in_flight: usize,
    recent: RecentChunks,
    /// The number of the last stored event.
    written: u64,
    total_bytes: u64,
    is_handed_over: bool,
    end: Option<LogEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    Complete,
    /// Another process took over the lease, or the store rejects the events.
    Lost,
    /// This process stops, and another one continues the run.
    HandedOver,
}

#[derive(Debug)]
pub enum NextChunk {
    /// The next chunk, and the number of stored events after it.
    Available(LogChunk, u64),
    /// The next events are no longer in memory and have to be read from the store.
    Older,
    End(LogEnd),
}

impl LiveLog {
    /// Creates a log. `stored_bytes` were stored before and count for `max_bytes`.
    pub fn new(lease: Lease, stored_bytes: u64, max_bytes: u64) -> Self {
        let state = Mutex::new(LogState { total_bytes: stored_bytes, ..LogState::default() });
        Self {
            lease,
            max_bytes,
            begun: Instant::now(),
            is_delivered: AtomicBool::new(false),
            flush_requested: AtomicBool::new(false),
            state,
            producer: AtomicWaker::new(),
            changed: Notify::new(),
        }
    }

    /// Adds the first line, which was stored with the begin of the run.
    pub(crate) fn begun_with(self, line: String) -> Self {
        let lease = self.lease.clone();
        self.begun(EventBatch { lease, first: 1, events: vec![line], times: vec![0] })
    }

    /// Adds the first lines, which are stored.
    pub fn begun(self, first: EventBatch) -> Self {
        self.state.lock().total_bytes +=
            first.events.iter().map(|line| line.len() as u64).sum::<u64>();
        self.confirm_written(first);
        self
    }

    /// Continues the log of a run that another process has begun, with `stored` lines.
    pub(crate) fn continued(self, stored: u64) -> Self {
        self.state.lock().written = stored;
        self
    }

    /// The run began before its log did.
    pub(crate) fn begun_before(self, elapsed: Duration) -> Self {
        let begun = self.begun.checked_sub(elapsed).unwrap_or(self.begun);
        Self { begun, ..self }
    }

    /// Returns the time since the run's start, in milliseconds.
    pub fn millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes that a client received the run to its end. Returns whether that was noted before.
    pub fn set_delivered(&self) -> bool {
        self.is_delivered.swap(true, Ordering::Relaxed)
    }

    /// Returns a reason to stop the run if the log takes no more events.
    pub(crate) fn poll_space(&self, cx: &mut Context<'_>) -> Poll<Option<Stop>> {
        let state = self.state.lock();
        if state.end.is_some() {
            return Poll::Ready(Some(Stop::LeaseLost));
        }
        if state.total_bytes > self.max_bytes {
            return Poll::Ready(Some(Stop::TooLong));
        }
        if state.pending_bytes < MAX_PENDING_BYTES {
            return Poll::Ready(None);
        }
        // Under the lock, so that no wake-up of the writer is missed.
        self.producer.register(cx.waker());
        Poll::Pending
    }

    /// Returns `false` if the log was lost.
    pub(crate) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.producer.register(cx.waker());
        let state = self.state.lock();
        match state.end {
            Some(end) => Poll::Ready(end == LogEnd::Complete),
            None if state.pending.is_empty() && state.in_flight == 0 => Poll::Ready(true),
            None => Poll::Pending,
        }
    }

    /// Returns and resets whether the agent waits until its events are stored.
    pub(crate) fn take_flush_request(&self) -> bool {
        self.flush_requested.load(Ordering::Relaxed)
            && self.flush_requested.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.state.lock().pending.is_empty()
    }

    pub fn note(&self, mark: &LogMark) {
        self.push(mark.to_line(), self.millis());
    }

    /// Notes that another server continues the run.
    pub(crate) fn hand_over(&self) {
        self.note(&LogMark::HandedOver);
        self.state.lock().is_handed_over = true;
    }

    /// `time` is in milliseconds since the run's start.
    pub fn push(&self, line: String, time: u64) {
        let mut state = self.state.lock();
        state.pending_bytes += line.len();
        state.total_bytes += line.len() as u64;
        state.pending.push(line);
        state.pending_times.push(time);
    }

    /// Returns the batch with the terminal event, to be stored with the end of the run. `time` is
    /// the time of the event.
    pub(crate) fn terminal_batch(&self, terminal: &Event, time: u64) -> EventBatch {
        let first = self.state.lock().written + 1;
        let (events, times) = (vec![to_line(terminal)], vec![time]);
        EventBatch { lease: self.lease.clone(), first, events, times }
    }

    pub(crate) fn take_pending(&self) -> Option<EventBatch> {
        let mut state = self.state.lock();
        if state.pending.is_empty() || state.end.is_some() {
            return None;
        }
        let (events, times) =
            (std::mem::take(&mut state.pending), std::mem::take(&mut state.pending_times));
        state.in_flight = events.len();
        Some(EventBatch { lease: self.lease.clone(), first: state.written + 1, events, times })
    }

    pub(crate) fn confirm_written(&self, batch: EventBatch) {
        let mut state = self.state.lock();
        let chunk = LogChunk::new(batch.first, batch.events);
        state.pending_bytes = state.pending_bytes.saturating_sub(chunk.bytes());
        state.in_flight = 0;
        state.written = chunk.last();
        state.recent.push(chunk, MAX_RECENT_BYTES);
        drop(state);
        self.producer.wake();
        self.changed.notify_waiters();
    }

    pub fn end(&self, end: LogEnd) {
        self.state.lock().end.get_or_insert(end);
        self.producer.wake();
        self.changed.notify_waiters();
    }

    /// Waits until there is something after the event with number `after`.
    pub async fn next(&self, after: u64) -> NextChunk {
        next_chunk(&self.changed, || {
            let state = self.state.lock();
            state.recent.next(after, state.written, state.end)
        })
        .await
    }
}

impl LiveLog {
    /// Returns whether another server continues the run.
    pub(crate) fn is_left(&self) -> bool {
        let state = self.state.lock();
        state.is_handed_over || state.end.is_some()
    }

    /// Completes when all lines so far are stored.
    pub(crate) async fn written(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                if state.end.is_none() && state.pending.is_empty() && state.in_flight == 0 {
                    return;
                }
            }
            self.flush_requested.store(true, Ordering::Relaxed);
            // A lost log is not written any more, and its run is stopped.
            changed.await;
        }
    }
}

/// The newest chunks of a log.
#[derive(Debug, Default)]
pub(crate) struct RecentChunks {
    chunks: VecDeque<LogChunk>,
    bytes: usize,
}

impl RecentChunks {
    /// Adds the newest chunk. Drops the oldest ones if there are more bytes than `max_bytes`.
    pub(crate) fn push(&mut self, chunk: LogChunk, max_bytes: usize) {
        self.bytes += chunk.bytes();
        self.chunks.push_back(chunk);
        while self.bytes > max_bytes && self.chunks.len() > 1 {
            self.bytes -= self.chunks.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// Returns what follows the event with number `after` in a log whose newest event is `last`;
    /// `None` if nothing follows yet.
    pub(crate) fn next(&self, after: u64, last: u64, end: Option<LogEnd>) -> Option<NextChunk> {
        // Most followers are at the end.
        let next = self.chunks.iter().rev().find(|chunk| chunk.first <= after + 1);
        match next.filter(|chunk| chunk.last() > after) {
            Some(chunk) => {
                Some(NextChunk::Available(chunk.clone(), last.saturating_sub(chunk.last())))
            }
            None if after < last => Some(NextChunk::Older),
            None => end.map(NextChunk::End),
        }
    }
}

/// Waits until there is a next chunk. `changed` is notified after each change of a log.
pub(super) async fn next_chunk(
    changed: &Notify,
    next: impl Fn() -> Option<NextChunk>,
) -> NextChunk {
    loop {
        let change = changed.notified();
        if let Some(next) = next() {
            return next;
        }
        change.await;
    }
}

/// Consecutive events of a run. Clones share them.
#[derive(Debug, Clone)]
pub struct LogChunk {
    first: u64,
    events: Arc<[String]>,
    skip: usize,
}

impl LogChunk {
    pub fn new(first: u64, events: Vec<String>) -> Self {
        Self { first, events: events.into(), skip: 0 }
    }

    /// Returns the number of the last event.
    pub fn last(&self) -> u64 {
        (self.first + self.events.len() as u64).saturating_sub(1)
    }

    /// Returns the events with their numbers, each one line of JSON.
    pub fn events(&self) -> impl Iterator<Item = (u64, &str)> {
        let lines = (self.first..).zip(self.events.iter().map(String::as_str)).skip(self.skip);
        lines.filter(|(_, line)| !is_mark(line))
    }

    /// Returns whether the run has failed.
    pub(crate) fn ends_with_error(&self) -> bool {
        self.events.last().is_some_and(|line| line.starts_with(r#"{"type":"RUN_ERROR""#))
    }

    pub fn bytes(&self) -> usize {
        self.events.iter().map(String::len).sum()
    }

    /// Returns the part of the chunk after the event with number `after`.
    pub(crate) fn skip_to(mut self, after: u64) -> Self {
        self.skip = usize::try_from((after + 1).saturating_sub(self.first)).unwrap_or(usize::MAX);
        self
    }
}

pub(crate) fn to_line(event: &Event) -> String {
    // Events always have a JSON form.
    serde_json::to_string(event).unwrap_or_default()
}
