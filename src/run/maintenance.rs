//! Background tasks of stored threads: renew leases, forward cancel requests, close lost runs, apply retention.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{
    control::Stop,
    events::thread_event_hub::receive_announcements,
    measured_store::MeasuredStore,
    turn::{active::ActiveRun, thread_runs::ThreadRuns},
};
use crate::store::{LostRun, SharedStore, StoreError, Topic, now};

/// The interval of polling for cancel requests of other processes: without signals, and with signals, which can be lost.
const CANCEL_POLL: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Sweeps between two calls of [`ThreadData::threads_swept`](super::thread_data::ThreadData::threads_swept) when no sweep of
/// this process removes a thread: other servers remove threads, too.
const SWEEPS_BETWEEN_CHECKS: u32 = 60;
/// More than one owner's waiting runs, which would hide those of others.
const MAX_RECOVERED_RUNS: usize = 10_000;
const MAX_CONCURRENT_RECOVERIES: usize = 4;
/// No process has this name, so all runs are runs of other holders.
const ALL_HOLDERS: &str = "";

impl ThreadRuns {
    /// Starts the background tasks and the writer of logs, unless they are running. They end when `self` is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn start_tasks(self: &Arc<Self>) {
        self.tasks.get_or_init(|| {
            let maintenance = tokio::spawn(maintain(Arc::downgrade(self)));
            let (writer, store) = (self.log_writer.clone(), self.store.clone());
            let writer = tokio::spawn(async move { writer.run(store).await });
            [maintenance.abort_handle(), writer.abort_handle()]
        });
    }

    /// Closes lost runs of other processes; [`LeaseRenewal`] closes those of this process. A run of this process is not lost
    /// if its lease was renewed too late: this process would take over its own lease, and the run could go on writing to the
    /// log that is being closed.
    async fn recover_lost(self: &Arc<Self>) -> Result<(), StoreError> {
        // A server that is stopped can hand over more runs than one page has.
        while !self.is_stopping() {
            let lost =
                self.store.call("lost_runs", |store| store.lost_runs(&self.holder, now(), MAX_RECOVERED_RUNS)).await?;
            let is_last = lost.len() < MAX_RECOVERED_RUNS;
            let others = lost.into_iter().filter(|lost| lost.lease.holder != self.holder);
            // If a run of an owner has to wait, the owner's other ones do, too: each attempt reads the whole request.
            let waiting = Mutex::new(HashSet::new());
            let recovered = stream::iter(others).map(async |lost| {
                let owner = lost.key.owner.clone();
                if waiting.lock().contains(&owner) {
                    return false;
                }
                match self.recover(lost).await {
                    // `LeaseLost`: another process has taken it over.
                    Ok(true) | Err(StoreError::LeaseLost) => true,
                    Ok(false) => {
                        waiting.lock().insert(owner);
                        false
                    }
                    Err(error) => {
                        tracing::warn!(?error, "a lost run could not be taken over; trying again");
                        false
                    }
                }
            });
            let recovered: Vec<_> = recovered.buffer_unordered(MAX_CONCURRENT_RECOVERIES).collect().await;
            // At the limit of runs none of a page is recovered.
            if is_last || !recovered.contains(&true) {
                break;
            }
        }
        Ok(())
    }
}

async fn maintain(threads: Weak<ThreadRuns>) {
    let Some(lease) = threads.upgrade().map(|threads| threads.options.lease) else { return };
    let Some((store, events)) = threads.upgrade().map(|threads| (threads.store.clone(), threads.events.clone())) else {
        return;
    };
    tokio::join!(
        maintain_leases(threads.clone(), lease),
        forward_cancels(threads.clone()),
        receive_announcements(store, events),
        sweep_regularly(threads)
    );
}

async fn sweep_regularly(threads: Weak<ThreadRuns>) {
    let mut sweeps_before_check = 0;
    loop {
        let Some(threads) = threads.upgrade() else { return };
        let swept = threads.sweep().await;
        let removed = swept.as_ref().copied().unwrap_or_default();
        warn_on_error(swept.map(drop), "surplus threads and logs could not be removed");
        let is_check_due = sweeps_before_check == 0 || removed > 0;
        sweeps_before_check = if is_check_due { SWEEPS_BETWEEN_CHECKS } else { sweeps_before_check - 1 };
        if let Some(data) = threads.data.get().filter(|_| is_check_due) {
            data.threads_swept(threads.store.unmeasured()).await;
        }
        let sweep_due = threads.sweep_due.clone();
        // Otherwise the store would stay open until the next sweep when the server is dropped.
        drop(threads);
        let _ = timeout(SWEEP_INTERVAL, sweep_due.notified()).await;
    }
}

async fn forward_cancels(threads: Weak<ThreadRuns>) {
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
                Err(error) => warn_on_error(Err(error), "cancel requests of other servers could not be read"),
            }
        }
        let [often, seldom] = CANCEL_POLL;
        let poll = if shared.signals().is_live() { seldom } else { often };
        drop(threads);
        let _ = timeout(poll, cancels.changed()).await;
    }
}

/// In a store that is not shared, no lease has to be renewed, and lost runs are runs of an earlier process.
async fn maintain_leases(threads: Weak<ThreadRuns>, lease: Duration) {
    let mut ticks = interval((lease / 3).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut renewal = LeaseRenewal { renewed: Instant::now(), unknown: HashSet::new() };
    let store = threads.upgrade().map(|threads| threads.store.clone());
    let mut released = store.as_ref().and_then(MeasuredStore::shared).map(|it| it.signals().watch(Topic::Leases));
    drop(store);
    loop {
        let is_due = match &mut released {
            Some(released) => tokio::select! { _ = ticks.tick() => true, () = released.changed() => false },
            None => {
                ticks.tick().await;
                true
            }
        };
        let Some(threads) = threads.upgrade() else { return };
        if !is_due {
            warn_on_error(threads.recover_lost().await, "lost runs could not be taken over");
            continue;
        }
        let renewed = match threads.store.shared() {
            Some(shared) => renewal.renew(&threads, shared).await,
            None => renewal.close_unknown(&threads).await,
        };
        warn_on_error(renewed, "leases could not be renewed");
        warn_on_error(threads.recover_lost().await, "lost runs could not be closed");
    }
}

fn warn_on_error(result: Result<(), StoreError>, failure: &'static str) {
    if let Err(error) = result {
        tracing::warn!(?error, "{failure}; trying again");
    }
}

struct LeaseRenewal {
    renewed: Instant,
    /// Runs whose lease this process had the last time without running them.
    unknown: HashSet<i64>,
}

impl LeaseRenewal {
    async fn renew(&mut self, threads: &ThreadRuns, shared: &dyn SharedStore) -> Result<(), StoreError> {
        let begin = Instant::now();
        let active = threads.queue.all_active();
        match shared.renew(&threads.holder, threads.lease_until(now())).await {
            Ok(held) => {
                self.renewed = begin;
                stop_lost(&active, &held);
                self.close_unlaunched(threads, held).await
            }
            Err(error) => {
                // The leases have ended, and other servers may have closed the runs.
                if self.renewed.elapsed() > threads.options.lease {
                    active.iter().for_each(|run| run.control.stop(Stop::LeaseLost));
                }
                Err(error)
            }
        }
    }

    /// Does the same in a store that is not shared, in which leases are not renewed.
    async fn close_unknown(&mut self, threads: &ThreadRuns) -> Result<(), StoreError> {
        // So many that the running ones do not hide the others.
        let limit = threads.queue.all_active().len() + MAX_RECOVERED_RUNS;
        let mut held = threads.store.call("lost_runs", |store| store.lost_runs(ALL_HOLDERS, now(), limit)).await?;
        held.retain(|run| run.lease.holder == threads.holder);
        self.close_unlaunched(threads, held).await
    }

    /// Closes runs that were begun but not launched, because the response to the write was lost, and runs whose end could
    /// not be stored. A run that is just being begun looks the same, so a run is closed when it is found twice in a row.
    async fn close_unlaunched(&mut self, threads: &ThreadRuns, held: Vec<LostRun>) -> Result<(), StoreError> {
        // The runs that are handed over are not lost.
        if threads.is_stopping() {
            return Ok(());
        }
        let known: HashSet<_> = threads.queue.all_active().iter().map(|run| run.lease.run).collect();
        let unknown: Vec<_> = held.into_iter().filter(|run| !known.contains(&run.lease.run)).collect();
        let all = unknown.iter().map(|run| run.lease.run).collect();
        let before = std::mem::replace(&mut self.unknown, all);
        for run in unknown.into_iter().filter(|run| before.contains(&run.lease.run)) {
            match threads.close_lost(&run.key, &run.run_id, &run.lease).await {
                Ok(()) | Err(StoreError::LeaseLost) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn stop_lost(active: &[Arc<ActiveRun>], held: &[LostRun]) {
    let held: HashSet<_> = held.iter().map(|held| held.lease.run).collect();
    for run in active.iter().filter(|run| !held.contains(&run.lease.run)) {
        run.control.stop(Stop::LeaseLost);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::{
        observe::metrics::Metrics,
        run::{limits::quota::PrincipalLimits, measured_store::MeasuredStore, options::ThreadOptions},
        store::MemoryStore,
    };

    #[tokio::test(start_paused = true)]
    async fn dropped_threads_release_their_store() {
        let (store, metrics) = (Arc::new(MemoryStore::new()), Metrics::default());
        let measured = MeasuredStore::new(store.clone(), metrics.clone());
        let threads = ThreadRuns::new(measured, ThreadOptions::default(), PrincipalLimits::default(), metrics);
        threads.start_tasks();
        // The tasks wait for their next turns.
        sleep(Duration::from_secs(1)).await;
        drop(threads);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&store), 1);
    }
}
