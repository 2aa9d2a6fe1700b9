//! A phase that only goes forward, and can be waited for.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// The phase that something has reached. Phases are numbered upwards from 0.
#[derive(Debug, Default)]
pub(super) struct Phase {
    reached: AtomicU8,
    changed: Notify,
}

impl Phase {
    pub(super) fn get(&self) -> u8 {
        self.reached.load(Ordering::Acquire)
    }

    /// Goes forward to a phase, if it is a later one.
    pub(super) fn enter(&self, phase: u8) {
        self.reached.fetch_max(phase, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Waits until a phase or a later one is reached.
    pub(super) async fn reached(&self, phase: u8) {
        loop {
            let changed = self.changed.notified();
            if self.get() >= phase {
                return;
            }
            changed.await;
        }
    }
}
