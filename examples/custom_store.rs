//! A custom store: `cargo run --example custom_store`
//!
//! It adds an audit log of runs and deletions to the store in memory. A store for another database implements the same methods; the
//! documentation of [`Store`] has the requirements of each.

use agui_server::{
    prelude::*,
    protocol::{MessageId, ResumeEntry, RunId},
    store::{
        BeginOutcome, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, Lease,
        LostRun, MemoryStore, MessagePage, MessageQuery, Millis, NewRun, Retention, RunEnd,
        RunNumber, RunRecord, RunStart, SharedStore, Store, StoreError, SweepResult, Thread,
        ThreadContent, ThreadKey, ThreadNumber, ThreadPage, ThreadParts, ThreadUpdate,
        ThreadVersion, ThreadView,
    },
};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tracing_subscriber::fmt().init();
    let store = AuditedStore { inner: MemoryStore::new() };
    Server::new().agent("hello", agent_fn(hello)).store(store).serve("127.0.0.1:8080").await
}

async fn hello(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    out.text(format!("The conversation has {} messages.", input.messages.len())).await
}

/// Logs runs and deletions, and passes everything on to another store.
struct AuditedStore<S> {
    inner: S,
}

#[async_trait]
impl<S: Store> Store for AuditedStore<S> {
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        let outcome = self.inner.begin(run).await?;
        if matches!(outcome, BeginOutcome::Begun(_)) {
            tracing::info!(
                run = &**run.run_id,
                agent = run.agent,
                messages = run.branch.new.len(),
                "run stored"
            );
        }
        Ok(outcome)
    }

    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        self.inner.append(batches).await
    }

    async fn promote(
        &self,
        lease: &Lease,
        request: Option<&str>,
        first: &EventBatch,
    ) -> Result<bool, StoreError> {
        self.inner.promote(lease, request, first).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        end: &RunEnd<'_>,
    ) -> Result<Option<FinishedRun>, StoreError> {
        let finished = self.inner.finish(lease, end).await?;
        tracing::info!(status = ?end.status, messages = end.branch.new.len(), "end of run stored");
        Ok(finished)
    }

    async fn set_delivered(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        delivered: bool,
    ) -> Result<Option<i64>, StoreError> {
        self.inner.set_delivered(thread, run, delivered).await
    }

    async fn set_alias(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        alias: &RunId,
    ) -> Result<(), StoreError> {
        self.inner.set_alias(thread, run, alias).await
    }

    async fn thread(
        &self,
        key: &ThreadKey,
        include: ThreadParts,
    ) -> Result<Option<ThreadView>, StoreError> {
        self.inner.thread(key, include).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<Thread>, StoreError> {
        self.inner.threads(owner, page).await
    }

    async fn update(
        &self,
        expected: ThreadVersion,
        update: &ThreadUpdate<'_>,
    ) -> Result<bool, StoreError> {
        self.inner.update(expected, update).await
    }

    async fn messages(
        &self,
        thread: &Thread,
        query: &MessageQuery,
    ) -> Result<MessagePage, StoreError> {
        self.inner.messages(thread, query).await
    }

    async fn set_feedback(
        &self,
        thread: ThreadNumber,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> Result<bool, StoreError> {
        self.inner.set_feedback(thread, message, feedback).await
    }

    async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
        self.inner.content(key).await
    }

    async fn insert(&self, key: &ThreadKey, content: &ThreadContent) -> Result<bool, StoreError> {
        self.inner.insert(key, content).await
    }

    async fn run(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> Result<Option<RunRecord>, StoreError> {
        self.inner.run(owner, thread, id).await
    }

    async fn attempts(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.attempts(owner, thread, id).await
    }

    async fn end_state(
        &self,
        owner: &str,
        thread: ThreadNumber,
        by: EndedRun<'_>,
    ) -> Result<Option<EndState>, StoreError> {
        self.inner.end_state(owner, thread, by).await
    }

    async fn answered(
        &self,
        owner: &str,
        thread: ThreadNumber,
    ) -> Result<Vec<ResumeEntry>, StoreError> {
        self.inner.answered(owner, thread).await
    }

    async fn events(
        &self,
        owner: &str,
        run: RunNumber,
        after: u64,
        max_bytes: usize,
    ) -> Result<Option<EventPage>, StoreError> {
        self.inner.events(owner, run, after, max_bytes).await
    }

    async fn run_start(&self, owner: &str, run: RunNumber) -> Result<Option<RunStart>, StoreError> {
        self.inner.run_start(owner, run).await
    }

    async fn stored_bytes(&self, owner: Option<&str>) -> Result<u64, StoreError> {
        self.inner.stored_bytes(owner).await
    }

    async fn delete(&self, thread: ThreadNumber) -> Result<bool, StoreError> {
        let existed = self.inner.delete(thread).await?;
        tracing::info!(thread = thread.0, existed, "thread deleted");
        Ok(existed)
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        self.inner.sweep(retention, now).await
    }

    async fn lost_runs(
        &self,
        holder: &str,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<LostRun>, StoreError> {
        self.inner.lost_runs(holder, now, limit).await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        self.inner.take_over(lost, holder, now, until).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    // Without this, several servers on one database would not notice each other.
    fn shared(&self) -> Option<&dyn SharedStore> {
        self.inner.shared()
    }
}
