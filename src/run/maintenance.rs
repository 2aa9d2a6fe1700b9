//! What has to be done for threads all the time: leases renewed, cancels passed on, lost runs closed, surplus removed.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{Threads, active::ActiveRun, control::Stop};
use crate::store::{HeldLease, SharedStore, StoreError, Topic, now};

/// How often cancels by other processes are looked for while no signals arrive, and beside signals.
const CANCEL_POLL: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];
/// How often surplus is removed, at least.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// How many lost runs are closed at a time.
const MAX_RECOVERED_AT_ONCE: usize = 100;

impl Threads {
    /// Starts maintenance and the writer of logs, if they are not running. They end when the threads are dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn keep_running(self: &Arc<Self>) {
        self.tasks.get_or_init(|| {
            let maintenance = tokio::spawn(maintain(Arc::downgrade(self)));
            let (writer, store) = (self.log_writer.clone(), self.store.clone());
            let writer = tokio::spawn(async move { writer.run(store).await });
            [maintenance.abort_handle(), writer.abort_handle()]
        });
    }

    /// Closes runs that were lost.
    async fn recover_lost(&self) -> Result<(), StoreError> {
        for lost in self.store.lost_runs(&self.holder, now(), MAX_RECOVERED_AT_ONCE).await? {
            match self.recover(&lost.key, &lost.run_id, &lost.lease).await {
                // Another process was faster.
                Ok(()) | Err(StoreError::LeaseLost) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

async fn maintain(threads: Weak<Threads>) {
    let Some(lease) = threads.upgrade().map(|threads| threads.options.lease) else { return };
    tokio::join!(keep_leases(threads.clone(), lease), pass_cancels(threads.clone()), sweep(threads));
}

/// Removes what retention does not keep.
async fn sweep(threads: Weak<Threads>) {
    while let Some(threads) = threads.upgrade() {
        report(threads.sweep().await, "surplus threads and logs could not be removed");
        // Earlier when many threads were made.
        let _ = timeout(SWEEP_INTERVAL, threads.sweep_due.notified()).await;
    }
}

/// Passes cancels by other processes on.
async fn pass_cancels(threads: Weak<Threads>) {
    let Some(mut cancels) =
        threads.upgrade().and_then(|it| it.store.shared().map(|shared| shared.signals().watch(Topic::Cancels)))
    else {
        return;
    };
    while let Some(threads) = threads.upgrade() {
        let Some(shared) = threads.store.shared() else { return };
        let active = threads.queue.all_active();
        if !active.is_empty() {
            match shared.cancel_requests(&threads.holder).await {
                Ok(runs) => {
                    active.iter().filter(|run| runs.contains(&run.lease.run)).for_each(|run| run.control.cancel())
                }
                Err(error) => report(Err(error), "cancels by other servers could not be read"),
            }
        }
        let [often, seldom] = CANCEL_POLL;
        let poll = if shared.signals().is_live() { seldom } else { often };
        let _ = timeout(poll, cancels.changed()).await;
    }
}

/// Renews leases, and closes the runs of lost servers. In a store of this process alone, runs can only have been lost
/// before it was opened.
async fn keep_leases(threads: Weak<Threads>, lease: Duration) {
    let mut ticks = interval(lease / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keeper = LeaseKeeper { renewed: Instant::now(), unknown: HashSet::new() };
    loop {
        ticks.tick().await;
        let Some(threads) = threads.upgrade() else { return };
        let renewed = match threads.store.shared() {
            Some(shared) => keeper.renew(&threads, shared).await,
            None => Ok(()),
        };
        report(renewed, "leases could not be renewed");
        report(threads.recover_lost().await, "lost runs could not be closed");
    }
}

fn report(result: Result<(), StoreError>, failure: &'static str) {
    if let Err(error) = result {
        tracing::warn!(?error, "{failure}; trying again");
    }
}

struct LeaseKeeper {
    /// When the leases were last renewed.
    renewed: Instant,
    /// Runs whose lease this process has and which it did not know at the last renewal.
    unknown: HashSet<i64>,
}

impl LeaseKeeper {
    async fn renew(&mut self, threads: &Threads, shared: &dyn SharedStore) -> Result<(), StoreError> {
        let begin = Instant::now();
        let active = threads.queue.all_active();
        match shared.renew(&threads.holder, threads.lease_until(now())).await {
            Ok(held) => {
                self.renewed = begin;
                stop_lost(&active, &held);
                self.close_unknown(threads, &held).await
            }
            Err(error) => {
                // By now other servers may have closed these runs: nothing of them may go on here.
                if self.renewed.elapsed() > threads.options.lease {
                    active.iter().for_each(|run| run.control.stop(Stop::LeaseLost));
                }
                Err(error)
            }
        }
    }

    /// Closes runs that were begun and never launched: the write succeeded, but its response was lost. A run that is just
    /// being begun is unknown as well, so a run is closed when it is unknown twice.
    async fn close_unknown(&mut self, threads: &Threads, held: &[HeldLease]) -> Result<(), StoreError> {
        let known: HashSet<_> = threads.queue.all_active().iter().map(|run| run.lease.run).collect();
        let unknown: Vec<_> = held.iter().filter(|held| !known.contains(&held.run.lease.run)).collect();
        let all = unknown.iter().map(|held| held.run.lease.run).collect();
        let before = std::mem::replace(&mut self.unknown, all);
        for HeldLease { run, .. } in unknown.into_iter().filter(|held| before.contains(&held.run.lease.run)) {
            match threads.close_lost(&run.key, &run.run_id, &run.lease).await {
                Ok(()) | Err(StoreError::LeaseLost) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Stops the runs whose lease this process does not have any more.
fn stop_lost(active: &[Arc<ActiveRun>], held: &[HeldLease]) {
    let held: HashSet<_> = held.iter().map(|held| held.run.lease.run).collect();
    for run in active.iter().filter(|run| !held.contains(&run.lease.run)) {
        run.control.stop(Stop::LeaseLost);
    }
}
