//! A run of this process, from its request until its end is stored: one machine for all that other requests ask of it.
//!
//! ```text
//! queued ─▶ has turn ─▶ running ─▶ left ─▶ over
//!                          └────────────────▲
//! ```
//! A running run with a log is detached: it was begun so, or was *promoted* because a second request wants it, or because it was
//! about to make a call that must not be repeated.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

use crate::{
    control::{RunControl, Stop},
    conversation::asked::RequestDigest,
    log::LiveLog,
};
use agui_base::permits::Permit;
use agui_protocol::RunId;
use agui_store::{Lease, RunNumber};

/// The time that a call which must not be repeated has to end after the last client has left.
const MAX_OPEN_CALL: Duration = Duration::from_secs(5);

/// The stages only follow each other; a stage can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum LiveStage {
    Queued,
    /// It is the first of its thread in this process, and is being begun in the store.
    HasTurn,
    Running,
    /// Its last client has left, and its end is being stored.
    Left,
    /// Its end is stored, or it never began.
    Over,
}

/// The reason for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunTrigger {
    Message,
    /// A reply to an interrupt. It supersedes no run: no interrupt is open during a run, so the
    /// reply is late or repeated.
    Reply,
}

/// The response that polls a run, and can give it away.
pub(crate) trait PolledByResponse: Send + Sync {
    /// Makes the run a detached one, between two events.
    fn promote(&self);
}

/// The responses that keep a run alive.
#[derive(Debug, Default)]
struct Clients {
    count: usize,
    /// Grows when a page takes the run over from the connections that it has lost. These decide nothing any more.
    generation: u64,
}

/// A run of this process.
pub struct LiveRun {
    pub run_id: RunId,
    pub control: Arc<RunControl>,
    /// What its request asked; `None` if it equals no other request.
    pub(crate) asked: Option<RequestDigest>,
    pub(super) trigger: RunTrigger,
    stage: AtomicU8,
    changed: Notify,
    lease: OnceLock<Lease>,
    log: OnceLock<Arc<LiveLog>>,
    response: OnceLock<Arc<dyn PolledByResponse>>,
    /// Another id of the run: of a page that asked again after it had lost its connection.
    alias: OnceLock<RunId>,
    /// The first run that was running on the thread while this one was queued.
    came_during: OnceLock<RunNumber>,
    clients: Mutex<Clients>,
    /// True if it continues without clients.
    continues: AtomicBool,
    /// True if another run waits for this one.
    has_waiter: AtomicBool,
    /// True if its request is stored until it begins.
    is_stored: AtomicBool,
    /// The end of a stored request that is no run of this process.
    unbegun: OnceLock<Unbegun>,
    /// The place of a promoted run among the detached ones.
    place: Mutex<Option<Permit>>,
}

/// What became of a stored request that is no run of this process.
#[derive(Debug, Clone)]
pub(crate) enum Unbegun {
    /// The lines of its whole response.
    Ended(Vec<String>),
    ThreadDeleted,
    /// Another process begins it, or this one later.
    Elsewhere,
}

impl fmt::Debug for LiveRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut run = f.debug_struct("LiveRun");
        run.field("run_id", &self.run_id).field("stage", &self.stage()).finish_non_exhaustive()
    }
}

impl LiveRun {
    pub(crate) fn new(
        run_id: RunId,
        asked: Option<RequestDigest>,
        trigger: RunTrigger,
        control: Arc<RunControl>,
    ) -> Self {
        Self {
            run_id,
            control,
            asked,
            trigger,
            stage: AtomicU8::new(LiveStage::Queued as u8),
            changed: Notify::new(),
            lease: OnceLock::new(),
            log: OnceLock::new(),
            response: OnceLock::new(),
            alias: OnceLock::new(),
            came_during: OnceLock::new(),
            clients: Mutex::default(),
            continues: AtomicBool::new(false),
            has_waiter: AtomicBool::new(false),
            is_stored: AtomicBool::new(false),
            unbegun: OnceLock::new(),
            place: Mutex::default(),
        }
    }

    pub(crate) fn stage(&self) -> LiveStage {
        match self.stage.load(Ordering::Acquire) {
            0 => LiveStage::Queued,
            1 => LiveStage::HasTurn,
            2 => LiveStage::Running,
            3 => LiveStage::Left,
            _ => LiveStage::Over,
        }
    }

    /// Enters a stage. A run never returns to an earlier one.
    pub(crate) fn enter(&self, stage: LiveStage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
        if stage == LiveStage::Over {
            // A slow client can hold the run for longer.
            *self.place.lock() = None;
        }
        self.changed.notify_waiters();
    }

    pub(crate) async fn reached(&self, stage: LiveStage) {
        self.until(|| self.stage() >= stage).await;
    }

    async fn until(&self, is_true: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_true() {
                return;
            }
            changed.await;
        }
    }

    /// Notes that the request of the queued run is stored.
    pub(crate) fn stored(&self) {
        self.is_stored.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Acquire)
    }

    /// Waits until the run is running, or is stored as a queued one. Returns whether it is queued.
    pub(crate) async fn acknowledged(&self) -> bool {
        self.until(|| self.is_stored() || self.stage() >= LiveStage::Running).await;
        self.stage() < LiveStage::Running
    }

    /// Notes that the stored request is no run of this process.
    pub(crate) fn set_unbegun(&self, unbegun: Unbegun) {
        let _ = self.unbegun.set(unbegun);
        self.changed.notify_waiters();
    }

    /// Waits until the stored request is a run with a log, or will not be one here.
    pub(crate) async fn begun_or_not(&self) -> Result<Arc<LiveLog>, Unbegun> {
        self.until(|| self.log().is_some() || self.unbegun.get().is_some()).await;
        match self.log() {
            Some(log) => Ok(log.clone()),
            None => Err(self.unbegun.get().cloned().unwrap_or(Unbegun::Elsewhere)),
        }
    }

    /// Returns whether an id is one of this run.
    pub(crate) fn is_called(&self, run_id: &RunId) -> bool {
        self.run_id == *run_id || self.alias.get() == Some(run_id)
    }

    /// Lets a running run have another id if the same request comes under it, once. Returns whether it has it now.
    pub(super) fn takes_alias(&self, asked: &RequestDigest, run_id: &RunId) -> bool {
        let is_same = asked.has_ids && self.asked.as_ref() == Some(asked);
        if !is_same
            || self.run_id == *run_id
            || self.stage() != LiveStage::Running
            || self.control.requested().is_some()
        {
            return false;
        }
        if self.alias.set(run_id.clone()).is_ok() {
            let mut clients = self.clients.lock();
            *clients = Clients { count: 0, generation: clients.generation + 1 };
        }
        self.alias.get() == Some(run_id)
    }

    /// Notes that another run was running when this one was asked for. Its client has seen neither the end of the first such
    /// run, nor later ones.
    pub(crate) fn note_came_during(&self, run: RunNumber) {
        let _ = self.came_during.set(run);
    }

    pub(crate) fn came_during(&self) -> Option<RunNumber> {
        self.came_during.get().copied()
    }

    /// The lease of a run that has begun.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.get()
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.lease.get().is_some()
    }

    /// Notes the lease of a run that has begun; `log` is that of a detached one.
    pub(crate) fn begun(&self, lease: Lease, log: Option<Arc<LiveLog>>) {
        let _ = self.lease.set(lease);
        if let Some(log) = log {
            let _ = self.log.set(log);
        }
        self.enter(LiveStage::Running);
    }

    /// The log of a detached run.
    pub(crate) fn log(&self) -> Option<&Arc<LiveLog>> {
        self.log.get()
    }

    pub(crate) fn polled_by(&self, response: Arc<dyn PolledByResponse>) {
        let _ = self.response.set(response);
    }

    /// Notes that the run was made a detached one.
    pub(crate) fn promoted(&self, log: Arc<LiveLog>) {
        let _ = self.log.set(log);
        self.changed.notify_waiters();
    }

    /// Returns the log of a running run. One that a response polls is promoted first. Returns `None` if the run ends before.
    pub(crate) async fn shared_log(&self) -> Option<Arc<LiveLog>> {
        if self.log().is_none()
            && let Some(response) = self.response.get()
        {
            response.promote();
        }
        self.until(|| self.log().is_some() || self.stage() > LiveStage::Running).await;
        self.log().cloned()
    }

    /// Notes that all calls of the run have their results.
    pub(crate) fn settled(&self) {
        self.control.settle();
        self.changed.notify_waiters();
    }

    /// Notes that another run waits for this one.
    pub(super) fn note_waiter(&self) {
        if !self.has_waiter.swap(true, Ordering::AcqRel) {
            self.changed.notify_waiters();
        }
    }

    /// True if the run continues without clients.
    pub(crate) fn continues(&self) -> bool {
        self.continues.load(Ordering::Relaxed)
    }

    /// Lets the run continue without clients.
    pub(crate) fn let_continue(&self) {
        self.continues.store(true, Ordering::Relaxed);
    }

    /// Holds a place among the detached runs until the run is over.
    pub(crate) fn hold_place(&self, place: Permit) {
        self.place.lock().get_or_insert(place);
    }

    /// Waits until the end of the run is stored, for at most `max`, if its last client has left or leaves within `notice`. A client
    /// that returns to a thread would otherwise read it before the run that it left has ended.
    pub(crate) async fn wait_if_abandoned(&self, notice: Duration, max: Duration) {
        if timeout(notice, self.reached(LiveStage::Left)).await.is_ok() {
            // After the timeout the caller reads the thread without the end of the run.
            let _ = timeout(max, self.reached(LiveStage::Over)).await;
        }
    }
}

/// A response that reads a run. A run that does not continue by itself ends when the last one is dropped.
#[derive(Debug)]
pub(crate) struct RunClient {
    run: Arc<LiveRun>,
    generation: u64,
}

impl RunClient {
    pub(crate) fn of(run: &Arc<LiveRun>) -> Self {
        let mut clients = run.clients.lock();
        clients.count += 1;
        Self { run: run.clone(), generation: clients.generation }
    }
}

impl Drop for RunClient {
    fn drop(&mut self) {
        let mut clients = self.run.clients.lock();
        if clients.generation != self.generation {
            return;
        }
        clients.count -= 1;
        let is_last = clients.count == 0;
        drop(clients);
        if is_last && !self.run.continues() && self.run.stage() <= LiveStage::Running {
            self.run.enter(LiveStage::Left);
            stop_left(&self.run);
        }
    }
}

/// Stops a run without clients. A call under way that must not be repeated has some time to end, so that its result is known.
fn stop_left(run: &Arc<LiveRun>) {
    let runtime = tokio::runtime::Handle::try_current();
    let Some(runtime) = runtime.ok().filter(|_| run.control.has_open_calls()) else {
        return run.control.stop(Stop::Left);
    };
    let run = run.clone();
    runtime.spawn(async move {
        let is_settled = || {
            let has_waiter = run.has_waiter.load(Ordering::Acquire);
            has_waiter || !run.control.has_open_calls() || run.stage() == LiveStage::Over
        };
        let _ = timeout(MAX_OPEN_CALL, run.until(is_settled)).await;
        run.control.stop(Stop::Left);
    });
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_open_call_that_must_not_be_repeated_has_five_seconds_after_the_last_client_left() {
        let ended_after = async |change: fn(&LiveRun)| {
            let run = LiveRun::new("r".into(), None, RunTrigger::Message, Arc::default());
            let run = Arc::new(run);
            run.control.note_unsafe_call();
            let left = Instant::now();
            drop(RunClient::of(&run));
            tokio::task::yield_now().await;
            assert_eq!(run.control.requested(), None);
            change(&run);
            run.control.stopped().await;
            assert_eq!(run.control.requested(), Some(Stop::Left));
            left.elapsed()
        };
        assert_eq!(ended_after(|_| {}).await, MAX_OPEN_CALL);
        assert_eq!(ended_after(LiveRun::settled).await, Duration::ZERO, "it has its result");
        assert_eq!(ended_after(LiveRun::note_waiter).await, Duration::ZERO, "another run waits");
    }
}
