//! Closes lost runs that do not go on: runs whose server has crashed or cannot reach the store.

use crate::run::{
    conversation::branch::LoadedThread,
    drive::transcript::{Transcript, TranscriptChanges},
    log::thread_event_hub::ThreadChange,
    thread_runs::ThreadRuns,
};
use crate::{
    protocol::{
        Event, RunId,
        event::{RunError, RunStarted},
    },
    store::{
        BranchWrite, EventBatch, Lease, RunEnd, RunFailure, RunRecord, RunStatus, StoreError, ThreadKey, ThreadParts,
        now,
    },
};

const SERVER_LOST: &str = "server_lost";
const MESSAGE: &str = "the server of this run was lost; please try again";
const PAGE_BYTES: usize = 1024 * 1024;

impl ThreadRuns {
    /// The caller has the lease. Stores the messages that result from the events in the run's log.
    pub(crate) async fn close_lost(&self, key: &ThreadKey, run: &RunId, lease: &Lease) -> Result<(), StoreError> {
        let Some(view) = self
            .store
            .call("thread", |store| store.thread(key, ThreadParts { messages: true, state: true, runs: 0 }))
            .await?
        else {
            return Ok(());
        };
        let thread = LoadedThread::from(view);
        let Some(run) = self
            .store
            .call("run", |store| store.run(&key.owner, lease.thread, run))
            .await?
            .filter(|run| run.number == lease.run)
        else {
            return Ok(());
        };
        tracing::warn!(thread = ?key.id, run = ?run.id, "closing a run whose server was lost");
        let (changes, logged) = self.replay(&key.owner, &run, &thread).await?;
        let terminal = RunError::new(SERVER_LOST, MESSAGE).into();
        // A server that was lost before its first write leaves an empty log.
        let begin = (logged == 0).then(|| RunStarted::new(key.id.clone(), run.id.clone()).into());
        let added: Vec<Event> = begin.into_iter().chain([terminal]).collect();
        let last = run.detached.then(|| EventBatch {
            lease: lease.clone(),
            first: logged + 1,
            events: added.iter().map(|event| serde_json::to_string(event).unwrap_or_default()).collect(),
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

    async fn replay(
        &self,
        owner: &str,
        run: &RunRecord,
        thread: &LoadedThread,
    ) -> Result<(TranscriptChanges, u64), StoreError> {
        let state = thread.state.as_ref().map_or_else(|| serde_json::json!({}), |(_, state)| state.clone());
        let mut transcript = Transcript::new(thread.branch.messages().clone(), state);
        let mut logged = 0;
        while run.detached
            && let Some(page) =
                self.store.call("events", |store| store.events(owner, run.number, logged, PAGE_BYTES)).await?
            && !page.events.is_empty()
        {
            logged += page.events.len() as u64;
            // A mark is not an event.
            for event in page.events.iter().filter_map(|line| serde_json::from_str::<Event>(line).ok()) {
                transcript.apply(&event);
            }
        }
        Ok((transcript.into_changes(), logged))
    }
}
