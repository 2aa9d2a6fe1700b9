//! What has to be done for threads all the time: leases renewed, cancels passed on, lost runs closed, the outdated
//! removed.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Threads, active::ActiveRun};
use crate::{
    run::control::Stop,
    store::{Held, Lease, StoreError, now},
};

/// How often another process's wish to cancel a run is looked for.
const CANCELS: Duration = Duration::from_millis(200);
/// How often what is outdated is removed.
const PRUNE: Duration = Duration::from_secs(60);
/// How many lost runs are closed at a time.
const LOST: usize = 100;

/// Keeps the threads in order until they are dropped.
pub(super) async fn keep(threads: Weak<Threads>, lease: Duration) {
    let ticks = |period: Duration| {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let (mut renewals, mut cancels, mut prunes) = (ticks(lease / 3), ticks(CANCELS), ticks(PRUNE));
    let mut keeper = Keeper { renewed: Instant::now(), strangers: HashSet::new() };
    loop {
        enum Due {
            Renewal,
            Cancels,
            Prune,
        }
        let due = tokio::select! {
            _ = renewals.tick() => Due::Renewal,
            _ = cancels.tick() => Due::Cancels,
            _ = prunes.tick() => Due::Prune,
        };
        let Some(threads) = threads.upgrade() else { return };
        let result = match due {
            Due::Renewal => keeper.renew_and_recover(&threads).await,
            Due::Cancels => pass_cancels_on(&threads).await,
            Due::Prune => prune(&threads).await,
        };
        if let Err(error) = result {
            tracing::warn!(?error, "the stored threads could not be kept in order; trying again");
        }
    }
}

struct Keeper {
    /// When the leases were last renewed.
    renewed: Instant,
    /// Leases that this process has and does not know, as of the last renewal.
    strangers: HashSet<(i64, i64)>,
}

impl Keeper {
    async fn renew_and_recover(&mut self, threads: &Threads) -> Result<(), StoreError> {
        let begin = Instant::now();
        let active = threads.active.all();
        match threads.store.renew(&threads.holder, threads.until(now())).await {
            Ok(held) => {
                self.renewed = begin;
                stop_lost(&active, &held);
                self.close_strangers(threads, &held).await?;
            }
            Err(error) => {
                // By now others may have closed these runs: nothing of them may go on here.
                if self.renewed.elapsed() > threads.options.lease {
                    active.iter().for_each(|run| run.control.stop(Stop::LeaseLost));
                }
                return Err(error);
            }
        }
        threads.recover_lost(LOST).await
    }

    /// Closes runs that were begun and never driven: the write succeeded, but its answer was lost. A run that is just
    /// being begun is not known either, so this takes two looks.
    async fn close_strangers(&mut self, threads: &Threads, held: &[Held]) -> Result<(), StoreError> {
        let known: HashSet<_> = threads.active.all().iter().map(|run| lease_key(&run.lease)).collect();
        let strangers: Vec<_> = held.iter().filter(|held| !known.contains(&held_key(held))).collect();
        let all = strangers.iter().map(|held| held_key(held)).collect();
        let before = std::mem::replace(&mut self.strangers, all);
        for held in strangers.into_iter().filter(|held| before.contains(&held_key(held))) {
            let Held { thread_id, thread_number, token, .. } = held;
            let thread = threads.store.thread(thread_id).await?;
            let Some(run_id) = thread.and_then(|thread| thread.active_run) else { continue };
            let Some(run) = threads.store.run(thread_id, &run_id).await? else { continue };
            let lease = Lease {
                thread_id: thread_id.clone(),
                thread_number: *thread_number,
                run_id,
                run_number: run.number,
                token: *token,
            };
            match threads.close_lost(&lease).await {
                Ok(()) | Err(StoreError::LeaseLost) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Stops the runs whose lease this process does not have any more.
fn stop_lost(active: &[Arc<ActiveRun>], held: &[Held]) {
    let held: HashSet<_> = held.iter().map(held_key).collect();
    for run in active.iter().filter(|run| !held.contains(&lease_key(&run.lease))) {
        run.control.stop(Stop::LeaseLost);
    }
}

/// Tells leases apart.
fn lease_key(lease: &Lease) -> (i64, i64) {
    (lease.thread_number, lease.token)
}

fn held_key(held: &Held) -> (i64, i64) {
    (held.thread_number, held.token)
}

async fn pass_cancels_on(threads: &Threads) -> Result<(), StoreError> {
    // Within one process a cancel needs no store.
    if !threads.store.is_shared() {
        return Ok(());
    }
    let active = threads.active.all();
    if active.is_empty() {
        return Ok(());
    }
    for request in threads.store.cancel_requests(&threads.holder).await? {
        let run = active.iter().find(|run| lease_key(&run.lease) == held_key(&request));
        if let Some(run) = run {
            run.control.cancel();
        }
    }
    Ok(())
}

async fn prune(threads: &Threads) -> Result<(), StoreError> {
    let pruned = threads.store.prune(&threads.options.retention, now()).await?;
    if pruned != crate::store::Pruned::default() {
        tracing::info!(threads = pruned.threads, logs = pruned.logs, "removed what need not be kept");
    }
    Ok(())
}
