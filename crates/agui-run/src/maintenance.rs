//! Background tasks of stored threads: renew leases, forward cancel requests, continue or close
//! lost runs, apply retention.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout, timeout_at};

use super::{
    control::Stop,
    events::thread_event_hub::receive_announcements,
    measured_store::MeasuredStore,
    runs::Runs,
    turn::{live_run::LiveRun, thread_core::ThreadCore},
};
use agui_store::{LostRun, RunNumber, SharedStore, StoreError, ThreadKey, Topic, host::now};

/// The interval of polling for cancel requests of other processes: without signals, and with
/// signals, which can be lost.
const CANCEL_POLL: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Sweeps between two calls of `ThreadData::threads_swept` when no sweep of this process removes a
/// thread: other servers remove threads, too.
const SWEEPS_BETWEEN_CHECKS: u32 = 60;
/// The number of lost runs that are read at once. One owner has fewer, so they hide no others.
const MAX_LOST_RUNS: usize = 10_000;
const MAX_CONCURRENT_CONTINUATIONS: usize = 4;
/// The time for a renewal that begins when the leases have ended already.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(2);
/// No process has this name, so all runs belong to other holders.
const ALL_HOLDERS: &str = "";

impl Runs {
    /// Starts the background tasks, the writer and the reader of logs, unless they are running.
    /// They end when the [`ThreadCore`] is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_tasks(self: &Arc<Self>) {
        let threads = &self.threads;
        threads.tasks.get_or_init(|| {
            let maintenance = tokio::spawn(maintain(Arc::downgrade(self), Arc::downgrade(threads)));
            let (writer, store) = (threads.log_writer.clone(), threads.store.clone());
            let writer = tokio::spawn(async move { writer.run(store).await });
            let logs = threads.followed_logs.clone();
            let reader = tokio::spawn(async move { logs.read_regularly().await });
            [maintenance.abort_handle(), writer.abort_handle(), reader.abort_handle()]
        });
    }

    /// Continues or closes lost runs of other processes; [`LeaseRenewal`] closes those of this
    /// process. A run of this process is not lost if its lease was renewed too late: this process
    /// would take over its own lease, and the run could still write to the log that is being
    /// closed.
    async fn continue_lost(&self, threads: &Arc<ThreadCore>) -> Result<(), StoreError> {
        // A server that is stopped can hand over more runs than one page has.
        while !threads.is_stopping() {
            let lost = threads.store.lost_runs(&threads.holder, now(), MAX_LOST_RUNS).await?;
            let is_last = lost.len() < MAX_LOST_RUNS;
            let is_due = |lost: &LostRun| threads.lost_run_backoff.is_due(lost.lease.run);
            let others =
                lost.into_iter().filter(|lost| lost.lease.holder != threads.holder && is_due(lost));
            // If a limit refuses a run, the owner's other runs are skipped, too: each would read
            // its whole request.
            let refused = Mutex::new(HashSet::new());
            let done = stream::iter(others).map(async |lost| {
                let (owner, run) = (lost.key.owner.clone(), lost.lease.run);
                if refused.lock().contains(&owner) {
                    return false;
                }
                match self.continue_or_close(threads, &lost).await {
                    // `LeaseLost`: another process took over the lease.
                    Ok(true) | Err(StoreError::LeaseLost) => true,
                    Ok(false) => {
                        refused.lock().insert(owner);
                        false
                    }
                    Err(error) => {
                        tracing::warn!(
                            run = run.0,
                            ?error,
                            "a lost run could not be continued or closed; trying again"
                        );
                        threads.lost_run_backoff.failed(run, &error);
                        false
                    }
                }
            });
            let done: Vec<_> = done.buffer_unordered(MAX_CONCURRENT_CONTINUATIONS).collect().await;
            // At a limit, no run of a page is continued or closed.
            if is_last || !done.contains(&true) {
                break;
            }
        }
        Ok(())
    }
}

async fn maintain(runs: Weak<Runs>, threads: Weak<ThreadCore>) {
    let Some(lease) = threads.upgrade().map(|threads| threads.options.lease) else { return };
    let Some((store, events)) =
        threads.upgrade().map(|threads| (threads.store.clone(), threads.events.clone()))
    else {
        return;
    };
    tokio::join!(
        renew_regularly(threads.clone(), lease),
        continue_lost_regularly(runs, threads.clone(), lease),
        forward_cancels(threads.clone()),
        receive_announcements(store, events, |key| stop_deleted(threads.clone(), key)),
        sweep_regularly(threads.clone())
    );
}

/// Stops the run of this process on a thread that another process has deleted. The key may have a newer thread.
async fn stop_deleted(threads: Weak<ThreadCore>, key: ThreadKey) {
    let Some(threads) = threads.upgrade() else { return };
    if let Some(running) = threads.queue.running(&key)
        && let Some(lease) = running.lease()
        && threads.store.is_deleted(&key, lease.thread).await.is_ok_and(|deleted| deleted)
    {
        running.control.cancel();
    }
}

async fn sweep_regularly(threads: Weak<ThreadCore>) {
    let mut sweeps_before_check = 0;
    loop {
        let Some(threads) = threads.upgrade() else { return };
        let swept = threads.sweep().await;
        let removed = swept.as_ref().copied().unwrap_or_default();
        warn_on_error(swept.map(drop), "surplus threads and logs could not be removed");
        let is_check_due = sweeps_before_check == 0 || removed > 0;
        sweeps_before_check =
            if is_check_due { SWEEPS_BETWEEN_CHECKS } else { sweeps_before_check - 1 };
        if let Some(data) = threads.data.get().filter(|_| is_check_due) {
            data.threads_swept(&*threads.store.store).await;
        }
        let sweep_due = threads.sweep_due.clone();
        // Otherwise the store of a dropped server would stay open until the next sweep.
        drop(threads);
        let _ = timeout(SWEEP_INTERVAL, sweep_due.notified()).await;
    }
}

async fn forward_cancels(threads: Weak<ThreadCore>) {
    let Some(mut cancels) = threads.upgrade().and_then(|threads| {
        threads.store.shared().map(|shared| shared.signals().watch(Topic::Cancels))
    }) else {
        return;
    };
    while let Some(threads) = threads.upgrade() {
        let Some(shared) = threads.store.shared() else { return };
        let active = threads.queue.all_running();
        if !active.is_empty() {
            match shared.cancel_requests(&threads.holder).await {
                Ok(runs) => active
                    .iter()
                    .filter(|run| run.lease().is_some_and(|lease| runs.contains(&lease.run)))
                    .for_each(|run| run.control.cancel()),
                Err(error) => {
                    warn_on_error(Err(error), "cancel requests of other servers could not be read")
                }
            }
        }
        let [fast_poll, slow_poll] = CANCEL_POLL;
        let poll = if shared.signals().is_live() { slow_poll } else { fast_poll };
        drop(threads);
        let _ = timeout(poll, cancels.changed()).await;
    }
}

fn ticks(lease: Duration) -> Interval {
    let mut ticks = interval((lease / 3).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Renews the leases of this process. In a store that is not shared, no lease has to be renewed,
/// and lost runs belong to an earlier process.
async fn renew_regularly(threads: Weak<ThreadCore>, lease: Duration) {
    let mut ticks = ticks(lease);
    let mut renewal = LeaseRenewal { renewed: Instant::now(), unknown: HashSet::new() };
    loop {
        ticks.tick().await;
        let Some(threads) = threads.upgrade() else { return };
        let renewed = match threads.store.shared() {
            Some(shared) => renewal.renew(&threads, shared).await,
            None => renewal.close_unknown(&threads).await,
        };
        warn_on_error(renewed, "leases could not be renewed");
    }
}

/// Runs beside the renewal of leases, which must not wait until a long log is read.
async fn continue_lost_regularly(runs: Weak<Runs>, threads: Weak<ThreadCore>, lease: Duration) {
    let mut ticks = ticks(lease);
    let store = threads.upgrade().map(|threads| threads.store.clone());
    let mut released = store
        .as_ref()
        .and_then(MeasuredStore::shared)
        .map(|store| store.signals().watch(Topic::Leases));
    drop(store);
    loop {
        match &mut released {
            Some(released) => {
                tokio::select! { _ = ticks.tick() => {}, () = released.changed() => {} }
            }
            None => _ = ticks.tick().await,
        }
        let Some(threads) = threads.upgrade() else { return };
        if let Some(runs) = runs.upgrade() {
            warn_on_error(
                runs.continue_lost(&threads).await,
                "lost runs could not be continued or closed",
            );
            let taken = runs.take_lost_queued(&threads).await;
            warn_on_error(taken, "lost queued runs could not be taken");
        }
    }
}

fn warn_on_error(result: Result<(), StoreError>, failure: &'static str) {
    if let Err(error) = result {
        tracing::warn!(?error, "{failure}; trying again");
    }
}

struct LeaseRenewal {
    renewed: Instant,
    /// Runs whose lease this process held at the last check without running them.
    unknown: HashSet<RunNumber>,
}

impl LeaseRenewal {
    async fn renew(
        &mut self,
        threads: &ThreadCore,
        shared: &dyn SharedStore,
    ) -> Result<(), StoreError> {
        let begin = Instant::now();
        let active = threads.queue.all_running();
        let stop_all = || active.iter().for_each(|run| run.control.stop(Stop::LeaseLost));
        let lease_end = self.renewed + threads.options.lease;
        // A renewal that comes late, on a busy machine, has a chance.
        let deadline = lease_end.max(begin + RENEWAL_TIMEOUT);
        let mut renewal = shared.renew(&threads.holder, threads.lease_until(now()));
        let renewed = match timeout_at(deadline, &mut renewal).await {
            Ok(renewed) => renewed,
            // Other servers may have taken over the runs. Their clients ask again there.
            Err(_) => {
                stop_all();
                renewal.await
            }
        };
        match renewed {
            Ok(held) => {
                self.renewed = begin;
                stop_lost(&active, &held);
                self.close_unlaunched(threads, held).await
            }
            Err(error) => {
                if Instant::now() >= lease_end {
                    stop_all();
                }
                Err(error)
            }
        }
    }

    /// Closes runs as [`renew`](Self::renew) does, in a store that is not shared and renews no
    /// leases.
    async fn close_unknown(&mut self, threads: &ThreadCore) -> Result<(), StoreError> {
        // The running runs must not hide the others.
        let limit = threads.queue.all_running().len() + MAX_LOST_RUNS;
        let mut held = threads.store.lost_runs(ALL_HOLDERS, now(), limit).await?;
        held.retain(|run| run.lease.holder == threads.holder);
        self.close_unlaunched(threads, held).await
    }

    /// Closes runs that were begun but not launched, because the response to the write was lost,
    /// and runs whose end could not be stored. A run that is just being begun looks the same, so a
    /// run is closed when it is found twice in a row.
    async fn close_unlaunched(
        &mut self,
        threads: &ThreadCore,
        held: Vec<LostRun>,
    ) -> Result<(), StoreError> {
        // A run that is handed over is not lost.
        if threads.is_stopping() {
            return Ok(());
        }
        let running = threads.queue.all_running();
        let known: HashSet<_> =
            running.iter().filter_map(|run| run.lease()).map(|lease| lease.run).collect();
        let unknown: Vec<_> =
            held.into_iter().filter(|run| !known.contains(&run.lease.run)).collect();
        let all = unknown.iter().map(|run| run.lease.run).collect();
        let before = std::mem::replace(&mut self.unknown, all);
        let is_due = |run: &LostRun| {
            before.contains(&run.lease.run) && threads.lost_run_backoff.is_due(run.lease.run)
        };
        for run in unknown.into_iter().filter(is_due) {
            match threads.close_lost(&run.key, &run.run_id, &run.lease).await {
                Ok(()) | Err(StoreError::LeaseLost) => {}
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::error!(
                        run = run.lease.run.0,
                        ?error,
                        "a lost run could not be closed; trying again"
                    );
                    threads.lost_run_backoff.failed(run.lease.run, &error);
                }
            }
        }
        Ok(())
    }
}

fn stop_lost(running: &[Arc<LiveRun>], held: &[LostRun]) {
    let held: HashSet<_> = held.iter().map(|held| held.lease.run).collect();
    let is_lost = |run: &&Arc<LiveRun>| run.lease().is_some_and(|lease| !held.contains(&lease.run));
    running.iter().filter(is_lost).for_each(|run| run.control.stop(Stop::LeaseLost));
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::runs::RunsBuilder;
    use agui_store::MemoryStore;

    #[tokio::test(start_paused = true)]
    async fn dropped_threads_release_their_store() {
        let store = Arc::new(MemoryStore::new());
        let runs = RunsBuilder { store: store.clone(), ..Runs::builder() }.build();
        runs.start_tasks();
        // The tasks wait for their next ticks.
        sleep(Duration::from_secs(1)).await;
        drop(runs);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&store), 1);
    }
}
