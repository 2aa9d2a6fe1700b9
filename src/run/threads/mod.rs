//! Runs on stored threads: what a thread holds comes to the agent, and what the run makes of it is stored.
//!
//! - [`Threads`] opens runs ([`open`]), one at a time on each thread ([`lanes`], and the store's leases between
//!   processes), with the client's messages put into the stored ones ([`reconcile`]) and the answers to open
//!   interrupts checked ([`resume`]).
//! - A run on a thread is [`recorded`]: its outcome is stored before it is told. It lives in its response
//!   ([`foreground`]), or in a task of its own with a log that can be followed ([`detached`]).
//! - [`keeper`] renews leases and removes what is outdated; [`recover`] closes runs whose server was lost.

mod active;
mod detached;
mod foreground;
mod keeper;
mod lanes;
mod open;
mod options;
mod reconcile;
mod recorded;
mod recover;
mod resume;
mod through;
mod view;

use std::sync::{Arc, OnceLock};

use tokio::{sync::Semaphore, task::AbortHandle};

pub use foreground::ForegroundRun;
pub use open::{OpenError, Opened, RunRequest};
pub use options::{ConcurrentRuns, OnDisconnect, ThreadOptions};
pub use resume::has_expired;
pub use view::{Cancelled, Connection, LookupError};

use self::{active::ActiveRuns, lanes::Lanes};
use super::{Runner, log::Writer};
use crate::store::{Millis, Store, StoreError, now};

/// Stored threads, and the runs on them.
pub struct Threads {
    runner: Arc<Runner>,
    store: Arc<dyn Store>,
    options: ThreadOptions,
    /// Names this process to the store.
    holder: String,
    lanes: Arc<Lanes>,
    active: Arc<ActiveRuns>,
    detached: Arc<Semaphore>,
    writer: Arc<Writer>,
    tasks: OnceLock<[AbortHandle; 2]>,
}

impl Threads {
    /// Threads in a store.
    pub fn new(runner: Arc<Runner>, store: Arc<dyn Store>, options: ThreadOptions) -> Arc<Self> {
        Arc::new(Self {
            runner,
            store,
            holder: uuid::Uuid::new_v4().simple().to_string(),
            lanes: Arc::default(),
            active: Arc::default(),
            detached: Arc::new(Semaphore::new(options.max_detached.min(Semaphore::MAX_PERMITS))),
            writer: Arc::default(),
            tasks: OnceLock::new(),
            options,
        })
    }

    /// Starts what has to be done all the time. Runs start it if nobody did; a second time does nothing. It ends when
    /// the threads are dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self: &Arc<Self>) {
        self.tasks.get_or_init(|| {
            let keeper = tokio::spawn(keeper::keep(Arc::downgrade(self), self.options.lease));
            let (writer, store) = (self.writer.clone(), self.store.clone());
            let writer = tokio::spawn(async move { writer.run(store).await });
            [keeper.abort_handle(), writer.abort_handle()]
        });
    }

    /// Closes the runs that were lost, as many as `limit`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recover_lost(&self, limit: usize) -> Result<(), StoreError> {
        for lost in self.store.lost(&self.holder, now(), limit).await? {
            match self.recover(&lost).await {
                // Somebody else was faster.
                Ok(()) | Err(StoreError::LeaseLost) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the store can be used.
    ///
    /// # Errors
    /// When it cannot.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    /// Until when a lease is taken now.
    fn until(&self, now: Millis) -> Millis {
        now.saturating_add(Millis::try_from(self.options.lease.as_millis()).unwrap_or(Millis::MAX))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.tasks.get().into_iter().flatten().for_each(AbortHandle::abort);
    }
}
