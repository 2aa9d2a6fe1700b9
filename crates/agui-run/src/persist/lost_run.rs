//! Closes lost runs that are not continued: their server crashed or cannot reach the store.

use super::run_result::RunResult;
use crate::{
    conversation::branch::LoadedThread,
    events::thread_event_hub::ThreadChange,
    log::{live::to_line, restored_run::RestoredRun},
    turn::thread_core::ThreadCore,
};
use agui_base::RunErrorCode;
use agui_protocol::{
    RunId,
    event::{RunError, RunStarted},
};
use agui_store::{
    EndReason, EventBatch, Lease, RunEnd, RunFailure, RunRecord, RunStatus, StoreError, ThreadKey,
    ThreadParts, host::now,
};

const MESSAGE: &str = "the server of this run was lost; please try again";

impl ThreadCore {
    /// Ends a lost run with the messages in its log. The caller has the lease.
    pub(crate) async fn close_lost(
        &self,
        key: &ThreadKey,
        run: &RunId,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        match self.restore_and_end(key, run, lease).await {
            Err(StoreError::Failed(error)) => self.end_unreadable(key, run, lease, &*error).await,
            ended => ended,
        }
    }

    async fn restore_and_end(
        &self,
        key: &ThreadKey,
        run: &RunId,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        let run = self.store.run(&key.owner, lease.thread, run).await?;
        let run = run.filter(|run| run.number == lease.run && run.status == RunStatus::Running);
        let run = run.ok_or_else(|| StoreError::Failed("it is missing, or has ended".into()))?;
        let (thread, restored) = self.restore(key, &run).await?;
        self.end_lost(key, lease, &run, thread, restored).await
    }

    /// Reads the thread of a lost run, and applies the run's log to it.
    pub async fn restore(
        &self,
        key: &ThreadKey,
        run: &RunRecord,
    ) -> Result<(LoadedThread, RestoredRun), StoreError> {
        let thread = self.load(key).await?;
        let thread = thread.ok_or_else(|| StoreError::Failed("its thread is missing".into()))?;
        let messages = thread.branch.messages().clone();
        let state = thread.state.as_ref().map(|(_, state)| state.clone());
        let restored = RestoredRun::read(&self.store, key, run, messages, state).await?;
        Ok((thread, restored))
    }

    /// Ends a run with damaged data, without the messages of its log, so that its thread can be
    /// used.
    async fn end_unreadable(
        &self,
        key: &ThreadKey,
        run: &RunId,
        lease: &Lease,
        problem: &(dyn std::error::Error + Send + Sync),
    ) -> Result<(), StoreError> {
        let view = match self.store.thread(key, ThreadParts::default()).await {
            Err(StoreError::Failed(_)) => None,
            view => view?,
        };
        let thread = view.map(|view| view.thread).filter(|thread| thread.number == lease.thread);
        let (head, interrupts) =
            thread.map(|thread| (thread.head, thread.interrupts)).unwrap_or_default();
        let code = RunErrorCode::ServerLost.as_str().to_owned();
        let failure = RunFailure { code: Some(code), message: MESSAGE.to_owned() };
        let end = RunEnd {
            failure: Some(&failure),
            interrupts: &interrupts,
            reason: Some(EndReason::Lost),
            // Unknown, so nothing is repeated.
            has_unsafe_calls: true,
            ..RunEnd::new(RunStatus::Failed, head)
        };
        self.store.finish(lease, &end).await?;
        tracing::error!(thread = key.id.as_str(), run = run.as_str(), %problem, "ended a lost run that cannot be read");
        self.publish(key, ThreadChange::Ended);
        Ok(())
    }

    async fn end_lost(
        &self,
        key: &ThreadKey,
        lease: &Lease,
        run: &RunRecord,
        thread: LoadedThread,
        mut restored: RestoredRun,
    ) -> Result<(), StoreError> {
        if let Some(files) = self.files.as_ref().filter(|_| restored.seen.has_new_media())
            && let Err(error) = files.absorb(&key.owner, restored.seen.changed_mut()).await
        {
            tracing::warn!(?error, "media of a lost run stay in its messages as they are");
        }
        tracing::warn!(
            thread = key.id.as_str(),
            run = run.id.as_str(),
            "closing a run whose server was lost"
        );
        // What cannot be read may be a call.
        let has_unsafe_calls = restored.has_unsafe_calls || restored.is_damaged;
        let (logged, changes) = (restored.lines, restored.seen.into_changes());
        let terminal = RunError::new(RunErrorCode::ServerLost, MESSAGE).into();
        let result = RunResult::new(lease, thread, changes, Some(&terminal), 0, false)
            .ended_by(Some(EndReason::Lost), has_unsafe_calls);
        let result = if run.detached {
            // A server that was lost before its first write leaves an empty log.
            let begin =
                (logged == 0).then(|| RunStarted::new(key.id.clone(), run.id.clone()).into());
            let events: Vec<_> = begin.iter().chain([&terminal]).map(to_line).collect();
            let times = vec![now().abs_diff(run.started_at); events.len()];
            result.with_last_events(EventBatch {
                lease: lease.clone(),
                first: logged + 1,
                events,
                times,
            })
        } else {
            result
        };
        let end = result.run_end();
        self.store.finish(lease, &end).await?;
        self.publish(key, ThreadChange::Ended);
        Ok(())
    }
}
