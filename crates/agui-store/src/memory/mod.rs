//! The store in memory. Its content is lost with the process.

mod file_table;
mod queue;
mod sealed;
mod stored_files;
mod tables;
mod whole_thread;

use std::cmp::Reverse;

use async_trait::async_trait;
use parking_lot::Mutex;

use self::tables::{RunEntry, Tables, ThreadEntry, limit, new_bytes, oldest};
use super::{
    BeginOutcome, Begun, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, Lease,
    LostRun, MessageNumber, MessagePage, MessageQuery, Millis, NewRun, Retention, RunEnd,
    RunNumber, RunQueue, RunRecord, RunStart, Store, StoreError, StoreResult, SweepResult, Thread,
    ThreadContent, ThreadKey, ThreadNumber, ThreadPage, ThreadParts, ThreadUpdate, ThreadVersion,
    ThreadView, branch_of,
    files::{ALL_OWNERS, FileStore},
    sealed::SealedStore,
    search::terms,
    write::unanswered,
};
use agui_protocol::{MessageId, ResumeEntry, RunId};

/// Keeps everything in memory, without a limit. Only [`sweep`](Store::sweep) and
/// [`delete`](Store::delete) remove anything.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Tables>);

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn is_durable(&self) -> bool {
        false
    }

    async fn begin(&self, run: &NewRun<'_>) -> StoreResult<BeginOutcome> {
        let added = new_bytes(&run.branch, run.state);
        let tables = &mut *self.0.lock();
        if let Some(refusal) = tables.refusal(run, added) {
            return Ok(refusal);
        }
        if let Some(queued) = run.queued {
            tables.queued.remove(&queued);
        }
        let new_thread = ThreadContent { created_at: run.now, ..ThreadContent::default() };
        let number = tables.numbers.get(run.key).copied();
        let number = number.unwrap_or_else(|| tables.create(run.key, &new_thread).thread.number);
        let (run_number, state_number) = (tables.next_number(), tables.next_number());
        tables.threads_of_runs.insert(run_number, number);
        let Some(entry) = tables.threads.get_mut(&number) else { return Ok(BeginOutcome::Changed) };
        entry.state = run.state_number;
        entry.set_state(state_number, run.state);
        entry.write(&run.branch, added);
        let thread = &mut entry.thread;
        thread.interrupts = run.interrupts.to_vec();
        (thread.run_id, thread.run, thread.is_running) = (run.run_id.clone(), run_number, true);
        (thread.agent, thread.updated_at) = (run.agent.to_owned(), run.now);
        thread.title = thread.title.take().or_else(|| run.title.map(str::to_owned));
        let lease = Lease { thread: number, run: run_number, holder: run.holder.clone() };
        entry.lease = Some(lease.clone());
        let (head, attempt) = (thread.head, entry.next_attempt(run.run_id));
        let mut begun = RunEntry::new(number, run_number, run, head, entry.state);
        begun.record.attempt = attempt;
        entry.runs.push(begun);
        Ok(BeginOutcome::Begun(Begun {
            lease,
            version: entry.thread.version,
            last_message: MessageNumber::ROOT.plus(entry.nodes.len()),
            state_number: entry.state,
        }))
    }

    async fn promote(
        &self,
        lease: &Lease,
        request: Option<&str>,
        first: &EventBatch,
    ) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        if tables.leased(lease).is_none() {
            return Ok(false);
        }
        Ok(tables.run_mut(lease.run).map(|run| run.promote(request, first)).is_some())
    }

    async fn append(&self, batches: &[EventBatch]) -> StoreResult<Vec<bool>> {
        let mut tables = self.0.lock();
        let mut append = |batch: &EventBatch| {
            tables.leased(&batch.lease)?;
            tables.run_mut(batch.lease.run).map(|run| run.append(batch))
        };
        Ok(batches.iter().map(|batch| append(batch).is_some()).collect())
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> StoreResult<Option<FinishedRun>> {
        let added = new_bytes(&end.branch, end.state);
        let mut tables = self.0.lock();
        let state_number = tables.next_number();
        let Some(entry) = tables.leased(lease) else {
            let same = (lease.thread, end.status, Some(end.ended_at));
            let run = tables.run_mut(lease.run).map(|run| &run.record);
            let is_repeated = run.is_some_and(|run| (run.thread, run.status, run.ended_at) == same);
            return if is_repeated { Ok(None) } else { Err(StoreError::LeaseLost) };
        };
        entry.lease = None;
        entry.set_state(state_number, end.state);
        entry.write(&end.branch, added);
        entry.thread.interrupts = end.interrupts.to_vec();
        (entry.thread.is_running, entry.thread.updated_at) = (false, end.ended_at);
        let ThreadEntry { state, thread: Thread { version, bytes, head, .. }, .. } = *entry;
        let finished = FinishedRun {
            version,
            last_message: MessageNumber::ROOT.plus(entry.nodes.len()),
            state_number: state,
            bytes,
        };
        if let Some(run) = tables.run_mut(lease.run) {
            end.last_events.into_iter().for_each(|batch| run.append(batch));
            (run.head, run.interrupts) = (head, end.interrupts.to_vec());
            run.record = RunRecord {
                status: end.status,
                delivered: end.delivered,
                ended_at: Some(end.ended_at),
                events: end.events,
                usage: end.usage.to_vec(),
                failure: end.failure.cloned(),
                end_reason: end.reason,
                has_unsafe_calls: end.has_unsafe_calls,
                state,
                ..run.record.clone()
            };
        }
        Ok(Some(finished))
    }

    async fn set_delivered(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        delivered: bool,
    ) -> StoreResult<Option<i64>> {
        let mut tables = self.0.lock();
        if let Some(run) = tables.run_mut(run) {
            run.record.delivered = delivered;
        }
        let Some(entry) = tables.threads.get_mut(&thread) else { return Ok(None) };
        entry.thread.version += 1;
        Ok(Some(entry.thread.version))
    }

    async fn set_alias(
        &self,
        _thread: ThreadNumber,
        run: RunNumber,
        alias: &RunId,
    ) -> StoreResult<()> {
        if let Some(run) = self.0.lock().run_mut(run) {
            run.alias = Some(alias.clone());
        }
        Ok(())
    }

    async fn thread(
        &self,
        key: &ThreadKey,
        include: ThreadParts,
    ) -> StoreResult<Option<ThreadView>> {
        Ok(self.0.lock().thread(key).map(|entry| entry.view(include)))
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> StoreResult<Vec<Thread>> {
        let tables = self.0.lock();
        let after = page.after.unwrap_or(RunNumber(i64::MAX));
        let is_listed = |thread: &Thread| {
            &*thread.key.owner == owner
                && thread.run < after
                && page.archived.is_none_or(|archived| thread.archived == archived)
                && page.agent.as_ref().is_none_or(|agent| thread.agent == *agent)
        };
        let terms = page.query.as_deref().map(terms);
        let is_found =
            |entry: &ThreadEntry| terms.as_ref().is_none_or(|terms| entry.has_all(terms));
        let owned =
            tables.threads.values().filter(|entry| is_listed(&entry.thread) && is_found(entry));
        let mut owned: Vec<_> = owned.collect();
        owned.sort_by_key(|entry| Reverse(entry.thread.run));
        Ok(owned.into_iter().take(page.limit).map(|entry| entry.thread.clone()).collect())
    }

    async fn update(
        &self,
        expected: ThreadVersion,
        update: &ThreadUpdate<'_>,
    ) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        let found = tables
            .threads
            .get_mut(&expected.number)
            .filter(|entry| entry.thread.version == expected.version);
        let Some(entry) = found.filter(|entry| update.head.is_none() || entry.lease.is_none())
        else {
            return Ok(false);
        };
        entry.thread.version += 1;
        if let Some(title) = update.title {
            entry.thread.title = title.map(str::to_owned);
        }
        if let Some(archived) = update.archived {
            entry.thread.archived = archived;
        }
        if let Some(metadata) = update.metadata {
            entry.thread.metadata = metadata.clone();
        }
        if let Some(head) = update.head {
            (entry.thread.head, entry.state) = (head.head, head.state_number);
            entry.thread.interrupts = head.interrupts.to_vec();
        }
        Ok(true)
    }

    async fn messages(&self, thread: &Thread, query: &MessageQuery) -> StoreResult<MessagePage> {
        let tables = self.0.lock();
        Ok(tables.threads.get(&thread.number).map(|entry| entry.page(*query)).unwrap_or_default())
    }

    async fn set_feedback(
        &self,
        thread: ThreadNumber,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        let Some(entry) = tables.threads.get_mut(&thread) else { return Ok(false) };
        let Some(node) = entry.nodes.iter_mut().rev().find(|node| node.message.id() == message)
        else {
            return Ok(false);
        };
        node.feedback = feedback.cloned();
        Ok(true)
    }

    async fn content(&self, key: &ThreadKey) -> StoreResult<Option<ThreadContent>> {
        Ok(self.0.lock().thread(key).map(ThreadEntry::content))
    }

    async fn insert(&self, key: &ThreadKey, content: &ThreadContent) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        let is_new = !tables.numbers.contains_key(key);
        if is_new {
            tables.create(key, content).thread.version = 1;
        }
        Ok(is_new)
    }

    async fn run(
        &self,
        _owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Option<RunRecord>> {
        let tables = self.0.lock();
        let Some(entry) = tables.threads.get(&thread) else { return Ok(None) };
        Ok(entry.newest_attempt(id).or_else(|| entry.aliased(id)).cloned())
    }

    async fn attempts(
        &self,
        _owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Vec<RunRecord>> {
        let tables = self.0.lock();
        let runs = tables.threads.get(&thread).into_iter().flat_map(|entry| &entry.runs);
        let attempts = runs.map(|run| &run.record).filter(|run| run.id == *id);
        Ok(attempts.cloned().collect())
    }

    async fn end_state(
        &self,
        _owner: &str,
        thread: ThreadNumber,
        by: EndedRun<'_>,
    ) -> StoreResult<Option<EndState>> {
        let tables = self.0.lock();
        let Some(entry) = tables.threads.get(&thread) else { return Ok(None) };
        let mut ended = entry.runs.iter().filter(|run| run.record.ended_at.is_some());
        let run = match by {
            EndedRun::Id(id) => ended.rfind(|run| run.record.id == *id),
            EndedRun::Branch(message) => {
                let mut branch: Vec<_> =
                    branch_of(&entry.nodes, message).iter().map(|node| node.number).collect();
                if message == MessageNumber::ROOT || !branch.is_empty() {
                    branch.insert(0, MessageNumber::ROOT);
                }
                let ended = ended.filter(|run| branch.binary_search(&run.head).is_ok());
                ended.max_by_key(|run| (run.head, run.record.number))
            }
        };
        let answered = || entry.runs.iter().flat_map(|run| &run.answered);
        let is_newest = |run: &RunEntry| {
            let is_later = |other: &RunEntry| other.record.number > run.record.number;
            !entry.runs.iter().any(|other| other.first_run == run.first_run && is_later(other))
        };
        Ok(run.map(|run| EndState {
            run_id: run.record.id.clone(),
            head: run.head,
            first_run: run.first_run.filter(|_| is_newest(run)),
            state: entry.stored_state(run.record.state),
            interrupts: unanswered(run.interrupts.clone(), answered()),
        }))
    }

    async fn answered(&self, _owner: &str, thread: ThreadNumber) -> StoreResult<Vec<ResumeEntry>> {
        let tables = self.0.lock();
        let runs = tables.threads.get(&thread).into_iter().flat_map(|entry| &entry.runs);
        Ok(runs.flat_map(|run| run.answered.iter().cloned()).collect())
    }

    async fn events(
        &self,
        _owner: &str,
        run: RunNumber,
        after: u64,
        max_bytes: usize,
    ) -> StoreResult<Option<EventPage>> {
        let mut tables = self.0.lock();
        let Some(run) = tables.run_mut(run) else { return Ok(None) };
        let mut bytes = 0;
        let page = run.log.iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).take_while(
            |(_, event)| {
                let is_first = bytes == 0;
                bytes += event.len();
                is_first || bytes <= max_bytes
            },
        );
        let (times, events) = page.cloned().unzip();
        let RunRecord { status, events: count, .. } = run.record;
        Ok(Some(EventPage { events, times, ..EventPage::new(after, status, count) }))
    }

    async fn stored_bytes(&self, owner: Option<&str>) -> StoreResult<u64> {
        let tables = self.0.lock();
        let of_owner = |thread: &&Thread| owner.is_none_or(|owner| *thread.key.owner == *owner);
        let threads = tables.threads.values().map(|entry| &entry.thread).filter(of_owner);
        let queued = tables.queued.values();
        let queued = queued.filter(|(run, _)| owner.is_none_or(|owner| *run.key.owner == *owner));
        Ok(threads.map(|thread| thread.bytes).sum::<u64>()
            + queued.map(|(_, request)| request.len() as u64).sum::<u64>()
            + tables.files.sums(owner.unwrap_or(ALL_OWNERS)).cost())
    }

    async fn run_start(&self, _owner: &str, run: RunNumber) -> StoreResult<Option<RunStart>> {
        let tables = self.0.lock();
        let entry = tables.threads_of_runs.get(&run).and_then(|thread| tables.threads.get(thread));
        let is_run = |entry: &&RunEntry| entry.record.number == run;
        let run = entry.and_then(|entry| entry.runs.iter().find(is_run));
        Ok(entry.zip(run.and_then(|run| run.start.as_ref())).map(|(entry, start)| RunStart {
            head: start.head,
            state: entry.stored_state(start.state).map(|(_, state)| state),
            request: start.request.clone(),
        }))
    }

    async fn delete(&self, thread: ThreadNumber) -> StoreResult<bool> {
        Ok(self.0.lock().remove(thread))
    }

    async fn delete_all(&self, owner: &str) -> StoreResult<u64> {
        let tables = &mut *self.0.lock();
        let owned = tables.threads.values().filter(|entry| *entry.thread.key.owner == *owner);
        let owned: Vec<_> = owned.map(|entry| entry.thread.number).collect();
        for thread in &owned {
            tables.remove(*thread);
        }
        tables.files.retain(|entry| *entry.file.owner != *owner);
        Ok(owned.len() as u64)
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> StoreResult<SweepResult> {
        let mut tables = self.0.lock();
        for values in tables.sealed.values_mut() {
            values.retain(|value| value.until.is_none_or(|until| until >= now));
        }
        let surplus = tables.surplus_threads(retention, now);
        for thread in &surplus {
            tables.remove(*thread);
        }
        let runs = tables.threads.values_mut().flat_map(|entry| &mut entry.runs);
        let logs = runs.filter(|run| !run.log.is_empty() || run.start.is_some());
        let mut ended: Vec<_> = logs.filter_map(|run| Some((run.record.ended_at?, run))).collect();
        ended.sort_by_key(|(at, _)| Reverse(*at));
        let oldest = oldest(retention.log_age, now);
        let kept =
            ended.iter().take(limit(retention.logs)).take_while(|(at, _)| *at >= oldest).count();
        let logs = ended.split_off(kept);
        let swept = SweepResult { threads: surplus.len() as u64, logs: logs.len() as u64 };
        logs.into_iter().for_each(|(_, run)| (run.log, run.start) = (Vec::new(), None));
        Ok(swept)
    }

    fn files(&self) -> Option<&dyn FileStore> {
        Some(self)
    }

    fn queue(&self) -> Option<&dyn RunQueue> {
        Some(self)
    }

    fn sealed_values(&self) -> Option<&dyn SealedStore> {
        Some(self)
    }

    async fn lost_runs(
        &self,
        holder: &str,
        _now: Millis,
        limit: usize,
    ) -> StoreResult<Vec<LostRun>> {
        let tables = self.0.lock();
        let lost = tables.threads.values().filter_map(|entry| {
            let lease = entry.lease.clone().filter(|lease| *lease.holder != *holder)?;
            Some(LostRun {
                key: entry.thread.key.clone(),
                run_id: entry.thread.run_id.clone(),
                lease,
            })
        });
        let mut lost: Vec<_> = lost.collect();
        lost.sort_by_key(|lost| lost.lease.run);
        lost.truncate(limit);
        Ok(lost)
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        _now: Millis,
        _until: Millis,
    ) -> StoreResult<Option<Lease>> {
        let mut tables = self.0.lock();
        let Some(entry) = tables.leased(lost).filter(|_| *lost.holder != *holder) else {
            return Ok(None);
        };
        let lease = Lease { holder: holder.into(), ..lost.clone() };
        entry.lease = Some(lease.clone());
        if let Some(run) = tables.run_mut(lease.run) {
            run.record.takeovers += 1;
        }
        Ok(Some(lease))
    }
}
