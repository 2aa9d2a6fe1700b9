//! Closes lost runs that do not go on: runs whose server has crashed or cannot reach the store.

use super::run_result::RunResult;
use crate::run::{
    conversation::branch::LoadedThread,
    events::thread_event_hub::ThreadChange,
    log::{live::to_line, log_replay::LogReplay},
    turn::thread_runs::ThreadRuns,
};
use crate::{
    base::RunErrorCode,
    protocol::{
        RunId,
        event::{RunError, RunStarted},
    },
    store::{EventBatch, Lease, RunRecord, StoreError, ThreadKey, now},
};

const MESSAGE: &str = "the server of this run was lost; please try again";

impl ThreadRuns {
    /// The caller has the lease. Stores the messages that result from the events in the run's log.
    pub(crate) async fn close_lost(&self, key: &ThreadKey, run: &RunId, lease: &Lease) -> Result<(), StoreError> {
        let Some(thread) = self.load(key).await? else { return Ok(()) };
        let run = self.store.call("run", |store| store.run(&key.owner, lease.thread, run)).await?;
        let Some(run) = run.filter(|run| run.number == lease.run) else { return Ok(()) };
        let replay = LogReplay::read(&self.store, key, &run, &thread).await?;
        self.end_lost(key, lease, &run, thread, replay).await
    }

    pub(crate) async fn end_lost(
        &self,
        key: &ThreadKey,
        lease: &Lease,
        run: &RunRecord,
        thread: LoadedThread,
        replay: LogReplay,
    ) -> Result<(), StoreError> {
        tracing::warn!(thread = ?key.id, run = ?run.id, "closing a run whose server was lost");
        let (logged, changes) = (replay.lines, replay.seen.into_changes());
        let terminal = RunError::new(RunErrorCode::ServerLost, MESSAGE).into();
        let result = RunResult::new(lease, thread, changes, Some(&terminal), 0, false);
        let result = match run.detached {
            true => {
                // A server that was lost before its first write leaves an empty log.
                let begin = (logged == 0).then(|| RunStarted::new(key.id.clone(), run.id.clone()).into());
                let events: Vec<_> = begin.iter().chain([&terminal]).map(to_line).collect();
                let times = vec![now().abs_diff(run.started_at); events.len()];
                result.with_last_events(EventBatch { lease: lease.clone(), first: logged + 1, events, times })
            }
            false => result,
        };
        let end = result.run_end();
        self.store.call("finish", |store| store.finish(lease, &end)).await?;
        self.publish(key, ThreadChange::Ended);
        Ok(())
    }
}
