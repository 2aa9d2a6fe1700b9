//! Queued runs in memory.

use async_trait::async_trait;

use super::MemoryStore;
use crate::{
    Enqueued, Millis, NewQueuedRun, QueueNumber, QueuedRun, RunQueue, StoreResult, ThreadNumber,
};
use agui_protocol::RunId;

#[async_trait]
impl RunQueue for MemoryStore {
    async fn enqueue(&self, run: &NewQueuedRun<'_>) -> StoreResult<Enqueued> {
        let tables = &mut *self.0.lock();
        let Some(&thread) = tables.numbers.get(run.key) else { return Ok(Enqueued::NoThread) };
        let of_thread = || tables.queued.values().map(|(run, _)| run);
        let mut of_thread = of_thread().filter(|run| run.thread == thread);
        if let Some(same) = of_thread.clone().find(|queued| queued.run_id == *run.run_id) {
            return Ok(Enqueued::Exists(same.clone()));
        }
        if of_thread.by_ref().count() >= run.max_queued {
            return Ok(Enqueued::Full);
        }
        let number = tables.next_number();
        let queued = QueuedRun {
            number,
            key: run.key.clone(),
            thread,
            run_id: run.run_id.clone(),
            agent: run.agent.to_owned(),
            asked: run.asked.map(str::to_owned),
            holder: run.holder.to_owned(),
            takeovers: 0,
            queued_at: run.now,
        };
        tables.queued.insert(number, (queued.clone(), run.request.to_owned()));
        Ok(Enqueued::Stored(queued))
    }

    async fn queued_runs(&self, _owner: &str, thread: ThreadNumber) -> StoreResult<Vec<QueuedRun>> {
        let tables = self.0.lock();
        let queued = tables.queued.values().map(|(run, _)| run);
        Ok(queued.filter(|run| run.thread == thread).cloned().collect())
    }

    async fn queued_request(&self, run: QueueNumber) -> StoreResult<Option<String>> {
        Ok(self.0.lock().queued.get(&run).map(|(_, request)| request.clone()))
    }

    async fn lost_queued_runs(&self, _before: Millis, limit: usize) -> StoreResult<Vec<QueuedRun>> {
        let tables = self.0.lock();
        Ok(tables.queued.values().take(limit).map(|(run, _)| run.clone()).collect())
    }

    async fn take_queued_run(
        &self,
        run: &QueuedRun,
        holder: &str,
        _now: Millis,
    ) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        let stored = tables.queued.get_mut(&run.number).map(|(stored, _)| stored);
        let Some(stored) = stored.filter(|stored| *stored == run) else { return Ok(false) };
        stored.takeovers += u64::from(!stored.holder.is_empty() && stored.holder != holder);
        stored.holder = holder.to_owned();
        Ok(true)
    }

    async fn remove_queued_run(&self, thread: ThreadNumber, id: &RunId) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        let before = tables.queued.len();
        tables.queued.retain(|_, (run, _)| run.thread != thread || run.run_id != *id);
        let is_removed = tables.queued.len() < before;
        if is_removed && let Some(entry) = tables.threads.get_mut(&thread) {
            entry.thread.version += 1;
        }
        Ok(is_removed)
    }

    async fn release_queued_runs(&self, holder: &str) -> StoreResult<()> {
        let mut tables = self.0.lock();
        let held = tables.queued.values_mut().map(|(run, _)| run);
        held.filter(|run| run.holder == holder).for_each(|run| run.holder.clear());
        Ok(())
    }
}
