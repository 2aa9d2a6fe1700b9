//! Closes lost runs that do not go on: runs whose server has crashed or cannot reach the store.

use crate::run::{
    conversation::branch::LoadedThread,
    drive::transcript::TranscriptChanges,
    events::thread_event_hub::ThreadChange,
    log::{live::to_line, log_replay::LogReplay},
    turn::thread_runs::ThreadRuns,
};
use crate::{
    protocol::{
        Event, RunId,
        event::{RunError, RunStarted},
    },
    store::{BranchWrite, EventBatch, Lease, RunEnd, RunFailure, RunRecord, RunStatus, StoreError, ThreadKey, now},
};

const SERVER_LOST: &str = "server_lost";
const MESSAGE: &str = "the server of this run was lost; please try again";

impl ThreadRuns {
    /// The caller has the lease. Stores the messages that result from the events in the run's log.
    pub(crate) async fn close_lost(&self, key: &ThreadKey, run: &RunId, lease: &Lease) -> Result<(), StoreError> {
        let Some(thread) = self.load(key).await? else { return Ok(()) };
        let run = self.store.call("run", |store| store.run(&key.owner, lease.thread, run)).await?;
        let Some(run) = run.filter(|run| run.number == lease.run) else { return Ok(()) };
        let replay = LogReplay::read(self, key, &run, &thread).await?;
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
        let terminal = RunError::new(SERVER_LOST, MESSAGE).into();
        // A server that was lost before its first write leaves an empty log.
        let begin = (logged == 0).then(|| RunStarted::new(key.id.clone(), run.id.clone()).into());
        let added: Vec<Event> = begin.into_iter().chain([terminal]).collect();
        let last = run.detached.then(|| EventBatch {
            lease: lease.clone(),
            first: logged + 1,
            events: added.iter().map(to_line).collect(),
            times: vec![now().abs_diff(run.started_at); added.len()],
        });
        let failure = RunFailure { code: Some(SERVER_LOST.to_owned()), message: MESSAGE.to_owned() };
        let TranscriptChanges { kept, updated, new, state } = &changes;
        let end = RunEnd {
            ended_at: now(),
            events: logged + last.as_ref().map_or(0, |batch| batch.events.len() as u64),
            failure: Some(&failure),
            branch: BranchWrite {
                base: thread.branch.number_before(*kept),
                new: new.iter().map(|message| (message, Some(lease.run))).collect(),
                updated: updated.iter().map(|(position, text)| (thread.branch.number(*position), text)).collect(),
            },
            state: state.as_ref(),
            interrupts: &thread.interrupts,
            last_events: last.as_ref(),
            ..RunEnd::new(RunStatus::Failed, 0)
        };
        self.store.call("finish", |store| store.finish(lease, &end)).await?;
        self.publish(key, ThreadChange::Ended);
        Ok(())
    }
}
