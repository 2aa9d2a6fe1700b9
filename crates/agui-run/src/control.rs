//! Stops runs from other tasks, and counts the runs that have not ended.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A person has stopped it.
    Cancel = 1,
    Shutdown = 2,
    /// The lease could not be renewed, another process took it over, or the thread was deleted.
    LeaseLost = 3,
    /// The run has added more bytes than allowed.
    TooLong = 4,
    /// Its last client has left.
    Left = 5,
    /// A newer message of its thread came.
    Superseded = 6,
    /// A call that must not be repeated could not be stored before it runs.
    StoreUnavailable = 7,
    /// Its thread was deleted before it began.
    ThreadDeleted = 8,
}

/// Cancels a run from any task.
#[derive(Debug, Default)]
pub struct RunControl {
    stop: AtomicU8,
    waker: AtomicWaker,
    has_unsafe_calls: AtomicBool,
    /// True while such a call may be under way.
    has_open_calls: AtomicBool,
}

impl RunControl {
    /// Cancels the run, which then ends with the outcome `cancelled`. Has no effect on a run that has ended.
    pub fn cancel(&self) {
        self.stop(Stop::Cancel);
    }

    /// Stops the run. The first reason is used.
    pub fn stop(&self, stop: Stop) {
        let _ = self.stop.compare_exchange(0, stop as u8, Ordering::AcqRel, Ordering::Acquire);
        self.waker.wake();
    }

    pub fn requested(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            1 => Some(Stop::Cancel),
            2 => Some(Stop::Shutdown),
            3 => Some(Stop::LeaseLost),
            4 => Some(Stop::TooLong),
            5 => Some(Stop::Left),
            6 => Some(Stop::Superseded),
            7 => Some(Stop::StoreUnavailable),
            8 => Some(Stop::ThreadDeleted),
            _ => None,
        }
    }

    /// Wakes the task that polls the run.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Notes that a call starts which must not be repeated. Returns whether it is the first one.
    pub(crate) fn note_unsafe_call(&self) -> bool {
        self.has_open_calls.store(true, Ordering::Release);
        !self.has_unsafe_calls.swap(true, Ordering::AcqRel)
    }

    /// Notes what an earlier server of the run has done.
    pub(crate) fn restore_unsafe_calls(&self, has_unsafe_calls: bool) {
        self.has_unsafe_calls.store(has_unsafe_calls, Ordering::Release);
    }

    /// Notes that all calls have their results.
    pub(crate) fn settle(&self) {
        self.has_open_calls.store(false, Ordering::Release);
    }

    pub(crate) fn has_open_calls(&self) -> bool {
        self.has_open_calls.load(Ordering::Acquire)
    }

    pub(crate) fn has_unsafe_calls(&self) -> bool {
        self.has_unsafe_calls.load(Ordering::Acquire)
    }

    /// Waits for a stop, in the task that polls the run later.
    pub async fn stopped(&self) {
        poll_fn(|cx| self.poll_requested(cx).map_or(Poll::Pending, |_| Poll::Ready(()))).await;
    }

    pub(crate) fn poll_requested(&self, cx: &mut Context<'_>) -> Option<Stop> {
        self.waker.register(cx.waker());
        self.requested()
    }
}

#[derive(Debug, Default)]
pub(crate) struct LiveRuns {
    runs: Mutex<LiveEntries>,
    all_ended: Notify,
}

#[derive(Debug, Default)]
struct LiveEntries {
    next: u64,
    controls: HashMap<u64, Arc<RunControl>>,
}

impl LiveRuns {
    pub(crate) fn register(self: &Arc<Self>) -> LiveGuard {
        let control = Arc::new(RunControl::default());
        let mut runs = self.runs.lock();
        let number = runs.next;
        runs.next += 1;
        runs.controls.insert(number, control.clone());
        LiveGuard { live: self.clone(), number, control }
    }

    pub(crate) fn count(&self) -> usize {
        self.runs.lock().controls.len()
    }

    pub(crate) fn stop_all(&self, stop: Stop) {
        let controls: Vec<_> = self.runs.lock().controls.values().cloned().collect();
        controls.iter().for_each(|control| control.stop(stop));
    }

    pub(crate) async fn wait_all_ended(&self) {
        loop {
            let notified = self.all_ended.notified();
            if self.count() == 0 {
                return;
            }
            notified.await;
        }
    }
}

#[derive(Debug)]
pub struct LiveGuard {
    live: Arc<LiveRuns>,
    number: u64,
    pub control: Arc<RunControl>,
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        let mut runs = self.live.runs.lock();
        runs.controls.remove(&self.number);
        if runs.controls.is_empty() {
            self.live.all_ended.notify_waiters();
        }
    }
}
