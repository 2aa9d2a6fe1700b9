//! The store in memory. Its content is lost with the process.

use std::{
    cmp::Reverse,
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde_json::Value;

use super::{
    BeginOutcome, BranchWrite, EndState, EndedRun, EventBatch, EventPage, FinishedRun, Lease, LostRun, MessageNode,
    MessageOrigin, Millis, NewRun, Retention, RunEnd, RunRecord, RunStatus, Store, StoreError, SweepResult, Thread,
    ThreadKey, ThreadPage, ThreadParts, ThreadSize, ThreadSummary, ThreadView, retention::surplus, write::unanswered,
};
use crate::protocol::{Interrupt, InterruptId, RunId};

/// Keeps everything in memory, without a limit: only [`sweep`](Store::sweep) and [`delete`](Store::delete) remove anything.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    threads: HashMap<i64, ThreadEntry>,
    numbers: HashMap<ThreadKey, i64>,
    /// The thread of each run, both by number.
    threads_of_runs: HashMap<i64, i64>,
    /// The last number of a thread, a run or a state.
    last_number: i64,
}

#[derive(Debug)]
struct ThreadEntry {
    thread: Thread,
    nodes: Vec<MessageNode>,
    states: HashMap<i64, Value>,
    runs: Vec<RunEntry>,
    state: Option<i64>,
    lease: Option<Lease>,
}

#[derive(Debug)]
struct RunEntry {
    record: RunRecord,
    head: i64,
    state: Option<i64>,
    interrupts: Vec<Interrupt>,
    answered: Vec<InterruptId>,
    log: Vec<String>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn next_number(&mut self) -> i64 {
        self.last_number += 1;
        self.last_number
    }

    fn remove(&mut self, thread: i64) -> bool {
        let Some(entry) = self.threads.remove(&thread) else { return false };
        self.numbers.remove(&entry.thread.key);
        for run in &entry.runs {
            self.threads_of_runs.remove(&run.record.number);
        }
        true
    }

    fn run_mut(&mut self, run: i64) -> Option<&mut RunEntry> {
        let entry = self.threads.get_mut(self.threads_of_runs.get(&run)?)?;
        entry.runs.iter_mut().find(|entry| entry.record.number == run)
    }

    fn leased(&mut self, lease: &Lease) -> Option<&mut ThreadEntry> {
        self.threads.get_mut(&lease.thread).filter(|entry| entry.lease.as_ref() == Some(lease))
    }
}

impl ThreadEntry {
    fn write(&mut self, branch: &BranchWrite<'_>) {
        for (number, message) in &branch.updated {
            if let Some(node) = self.nodes.iter_mut().find(|node| node.number == *number) {
                self.thread.bytes = (self.thread.bytes + json_len(message)).saturating_sub(json_len(&node.message));
                node.message = (*message).clone();
            }
        }
        let mut parent = branch.base;
        for (message, run) in &branch.new {
            let origin = run.map_or(MessageOrigin::Client, |run| MessageOrigin::Run { run, delivered: true });
            let number = self.nodes.len() as i64 + 1;
            self.thread.bytes += json_len(message);
            self.nodes.push(MessageNode { number, parent, origin, message: (*message).clone() });
            parent = number;
        }
        self.thread.head = parent;
        self.thread.messages = self.nodes.len() as u64;
        self.thread.version += 1;
    }

    fn set_state(&mut self, number: i64, state: Option<&Value>) {
        if let Some(state) = state {
            self.thread.bytes += json_len(state);
            self.states.insert(number, state.clone());
            self.state = Some(number);
        }
    }

    fn stored_state(&self, number: Option<i64>) -> Option<(i64, Value)> {
        let number = number?;
        Some((number, self.states.get(&number)?.clone()))
    }

    fn run(&self, id: &RunId) -> Option<&RunEntry> {
        self.runs.iter().find(|run| run.record.id == *id)
    }

    fn view(&self, include: ThreadParts) -> ThreadView {
        // Runs are in the order of their numbers.
        let position = |run: i64| self.runs.binary_search_by_key(&run, |it| it.record.number);
        let delivered = |run: i64| position(run).map_or(true, |at| self.runs[at].record.delivered);
        let mut nodes = if include.messages { self.nodes.clone() } else { Vec::new() };
        for node in &mut nodes {
            if let MessageOrigin::Run { run, delivered: known } = &mut node.origin {
                *known = delivered(*run);
            }
        }
        let runs = self.runs.iter().rev().take(include.runs).map(|run| run.record.clone()).collect();
        ThreadView { thread: Thread { state: self.stored_state(self.state), ..self.thread.clone() }, nodes, runs }
    }

    fn summary(&self) -> ThreadSummary {
        let thread = &self.thread;
        ThreadSummary {
            id: thread.key.id.clone(),
            agent: thread.agent.clone(),
            run: thread.run,
            active_run: thread.is_running.then(|| thread.run_id.clone()),
            open_interrupts: thread.interrupts.len() as u64,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
        }
    }
}

impl RunEntry {
    fn append(&mut self, batch: &EventBatch) {
        let next = self.log.len() as u64 + 1;
        let known = usize::try_from(next.saturating_sub(batch.first)).unwrap_or(usize::MAX);
        self.log.extend(batch.events.iter().skip(known).cloned());
        self.record.events = self.log.len() as u64;
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        let mut tables = self.lock();
        let number = tables.numbers.get(run.key).copied();
        if let Some(entry) = number.and_then(|number| tables.threads.get(&number)) {
            if let Some(lease) = &entry.lease
                && let Some(busy) = entry.runs.iter().find(|it| it.record.number == lease.run)
            {
                let lost = (lease.holder != *run.holder).then(|| lease.clone());
                return Ok(BeginOutcome::Busy { run: busy.record.clone(), lost });
            }
            let version = run.expected.filter(|known| known.number == entry.thread.number).map(|known| known.version);
            if version != Some(entry.thread.version) {
                return Ok(BeginOutcome::Changed);
            }
        } else if run.expected.is_some() {
            return Ok(BeginOutcome::Changed);
        }
        let before = number.and_then(|number| tables.threads.get(&number)).map(|entry| &entry.thread);
        let new = run.branch.new.iter().map(|(message, _)| json_len(message)).chain(run.state.map(json_len));
        let updated = run.branch.updated.iter().map(|(_, message)| json_len(message));
        let size = ThreadSize {
            messages: before.map_or(0, |thread| thread.messages) + run.branch.new.len() as u64,
            bytes: before.map_or(0, |thread| thread.bytes) + new.chain(updated).sum::<u64>(),
        };
        if size.exceeds(run.max_size) {
            return Ok(BeginOutcome::TooLarge(size));
        }
        let (run_number, state_number) = (tables.next_number(), tables.next_number());
        let number = number.unwrap_or_else(|| tables.next_number());
        tables.numbers.insert(run.key.clone(), number);
        tables.threads_of_runs.insert(run_number, number);
        let tables = &mut *tables;
        let entry = tables.threads.entry(number).or_insert_with(|| ThreadEntry::new(number, run));
        let replaced = entry.runs.iter().position(|it| it.record.id == *run.run_id).map(|at| entry.runs.remove(at));
        if let Some(replaced) = &replaced {
            tables.threads_of_runs.remove(&replaced.record.number);
        }
        entry.state = run.state_number;
        entry.set_state(state_number, run.state);
        entry.write(&run.branch);
        let thread = &mut entry.thread;
        thread.interrupts = run.interrupts.to_vec();
        (thread.run_id, thread.run, thread.is_running) = (run.run_id.clone(), run_number, true);
        (thread.agent, thread.updated_at) = (run.agent.to_owned(), run.now);
        let lease = Lease { thread: number, run: run_number, holder: run.holder.clone() };
        entry.lease = Some(lease.clone());
        entry.runs.push(RunEntry::new(number, run_number, run, thread.head, entry.state));
        Ok(BeginOutcome::Begun {
            lease,
            version: entry.thread.version,
            last_message: entry.nodes.len() as i64,
            state_number: entry.state,
            replaced: replaced.is_some(),
        })
    }

    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let mut tables = self.lock();
        let mut append = |batch: &EventBatch| {
            tables.leased(&batch.lease)?;
            tables.run_mut(batch.lease.run).map(|run| run.append(batch))
        };
        Ok(batches.iter().map(|batch| append(batch).is_some()).collect())
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let mut tables = self.lock();
        let state_number = tables.next_number();
        let Some(entry) = tables.leased(lease) else {
            let entry = tables.threads.get(&lease.thread).ok_or(StoreError::LeaseLost)?;
            let run = entry.runs.iter().find(|run| run.record.number == lease.run).ok_or(StoreError::LeaseLost)?;
            let is_repeated = (run.record.status, run.record.ended_at) == (end.status, Some(end.ended_at));
            return if is_repeated { Ok(None) } else { Err(StoreError::LeaseLost) };
        };
        entry.lease = None;
        entry.set_state(state_number, end.state);
        entry.write(&end.branch);
        entry.thread.interrupts = end.interrupts.to_vec();
        (entry.thread.is_running, entry.thread.updated_at) = (false, end.ended_at);
        let (head, state, finished) = (entry.thread.head, entry.state, entry.finished());
        if let Some(run) = tables.run_mut(lease.run) {
            end.last_events.into_iter().for_each(|batch| run.append(batch));
            (run.head, run.state, run.interrupts) = (head, state, end.interrupts.to_vec());
            run.record = RunRecord {
                status: end.status,
                delivered: end.delivered,
                ended_at: Some(end.ended_at),
                events: end.events,
                usage: end.usage.to_vec(),
                failure: end.failure.cloned(),
                ..run.record.clone()
            };
        }
        Ok(Some(finished))
    }

    async fn set_delivered(&self, thread: i64, run: i64, delivered: bool) -> Result<(), StoreError> {
        let mut tables = self.lock();
        if let Some(run) = tables.run_mut(run) {
            run.record.delivered = delivered;
        }
        if let Some(entry) = tables.threads.get_mut(&thread) {
            entry.thread.version += 1;
        }
        Ok(())
    }

    async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError> {
        let tables = self.lock();
        let entry = tables.numbers.get(key).and_then(|number| tables.threads.get(number));
        Ok(entry.map(|entry| entry.view(include)))
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        let tables = self.lock();
        let after = page.after.unwrap_or(i64::MAX);
        let owned = tables.threads.values().filter(|it| &*it.thread.key.owner == owner && it.thread.run < after);
        let mut owned: Vec<_> = owned.collect();
        owned.sort_by_key(|entry| Reverse(entry.thread.run));
        Ok(owned.into_iter().take(page.limit).map(ThreadEntry::summary).collect())
    }

    async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let tables = self.lock();
        Ok(tables.threads.get(&thread).and_then(|entry| entry.run(id)).map(|run| run.record.clone()))
    }

    async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        let tables = self.lock();
        let Some(entry) = tables.threads.get(&thread) else { return Ok(None) };
        let run = match by {
            EndedRun::Id(id) => entry.run(id),
            EndedRun::Head(head) => {
                entry.runs.iter().rev().find(|run| run.head == head && run.record.ended_at.is_some())
            }
        };
        let answered = || entry.runs.iter().flat_map(|run| &run.answered);
        Ok(run.filter(|run| run.record.ended_at.is_some()).map(|run| EndState {
            head: run.head,
            state: entry.stored_state(run.state),
            interrupts: unanswered(run.interrupts.clone(), answered()),
        }))
    }

    async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError> {
        let mut tables = self.lock();
        let Some(run) = tables.run_mut(run) else { return Ok(None) };
        let mut bytes = 0;
        let events = run.log.iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).take_while(|event| {
            let is_first = bytes == 0;
            bytes += event.len();
            is_first || bytes <= max_bytes
        });
        let (first, events) = (after.saturating_add(1), events.cloned().collect());
        Ok(Some(EventPage { first, events, status: run.record.status, count: run.record.events }))
    }

    async fn delete(&self, thread: i64) -> Result<bool, StoreError> {
        Ok(self.lock().remove(thread))
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        let mut tables = self.lock();
        let surplus = tables.surplus_threads(retention, now);
        for thread in &surplus {
            tables.remove(*thread);
        }
        let logs = tables.threads.values_mut().flat_map(|entry| &mut entry.runs).filter(|run| !run.log.is_empty());
        let mut ended: Vec<_> = logs.filter_map(|run| Some((run.record.ended_at?, &mut run.log))).collect();
        ended.sort_by_key(|(at, _)| Reverse(*at));
        let oldest = oldest(retention.log_age, now);
        let kept = ended.iter().take(limit(retention.logs)).take_while(|(at, _)| *at >= oldest).count();
        let logs = ended.split_off(kept);
        let swept = SweepResult { threads: surplus.len() as u64, logs: logs.len() as u64 };
        logs.into_iter().for_each(|(_, log)| *log = Vec::new());
        Ok(swept)
    }

    async fn lost_runs(&self, holder: &str, _now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError> {
        let tables = self.lock();
        let lost = tables.threads.values().filter_map(|entry| {
            let lease = entry.lease.clone().filter(|lease| *lease.holder != *holder)?;
            Some(LostRun { key: entry.thread.key.clone(), run_id: entry.thread.run_id.clone(), lease })
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
    ) -> Result<Option<Lease>, StoreError> {
        let mut tables = self.lock();
        let Some(entry) = tables.leased(lost).filter(|_| *lost.holder != *holder) else { return Ok(None) };
        let lease = Lease { holder: holder.into(), ..lost.clone() };
        entry.lease = Some(lease.clone());
        Ok(Some(lease))
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl ThreadEntry {
    fn new(number: i64, run: &NewRun<'_>) -> Self {
        let thread = Thread {
            number,
            key: run.key.clone(),
            agent: String::new(),
            head: 0,
            state: None,
            interrupts: Vec::new(),
            messages: 0,
            bytes: 0,
            version: 0,
            run_id: run.run_id.clone(),
            run: 0,
            is_running: false,
            created_at: run.now,
            updated_at: run.now,
        };
        Self { thread, nodes: Vec::new(), states: HashMap::new(), runs: Vec::new(), state: None, lease: None }
    }

    fn finished(&self) -> FinishedRun {
        let Thread { version, bytes, .. } = self.thread;
        FinishedRun { version, last_message: self.nodes.len() as i64, state_number: self.state, bytes }
    }
}

impl RunEntry {
    fn new(thread: i64, number: i64, run: &NewRun<'_>, head: i64, state: Option<i64>) -> Self {
        let record = RunRecord {
            number,
            thread,
            id: run.run_id.clone(),
            agent: run.agent.to_owned(),
            detached: run.detached,
            status: RunStatus::Running,
            delivered: false,
            started_at: run.now,
            ended_at: None,
            events: 0,
            usage: Vec::new(),
            failure: None,
        };
        let answered = run.answered.iter().map(|id| (*id).clone()).collect();
        Self { record, head, state, interrupts: Vec::new(), answered, log: Vec::new() }
    }
}

impl Tables {
    fn surplus_threads(&self, retention: &Retention, now: Millis) -> Vec<i64> {
        let oldest = oldest(retention.thread_age, now);
        let (outdated, kept): (Vec<_>, Vec<_>) = self
            .threads
            .values()
            .map(|entry| &entry.thread)
            .partition(|thread| !thread.is_running && thread.updated_at < oldest);
        let mut by_owner: HashMap<&str, Vec<&Thread>> = HashMap::new();
        kept.into_iter().for_each(|thread| by_owner.entry(&thread.key.owner).or_default().push(thread));
        let counts = by_owner.iter().map(|(owner, threads)| ((*owner).to_owned(), threads.len() as u64)).collect();
        let mut numbers: Vec<_> = outdated.iter().map(|thread| thread.number).collect();
        for (owner, count) in surplus(counts, retention.owner_threads, retention.threads) {
            let mut idle = by_owner.remove(&*owner).unwrap_or_default();
            idle.retain(|thread| !thread.is_running);
            idle.sort_by_key(|thread| thread.run);
            numbers.extend(idle.iter().take(limit(Some(count))).map(|thread| thread.number));
        }
        numbers
    }
}

fn oldest(age: Option<u64>, now: Millis) -> Millis {
    age.and_then(|age| now.checked_sub_unsigned(age)).unwrap_or(Millis::MIN)
}

fn limit(count: Option<u64>) -> usize {
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
}

fn json_len(value: &impl serde::Serialize) -> u64 {
    struct Counter(u64);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Writing to a counter cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_len_is_the_length_of_the_json() {
        let value = serde_json::json!({ "a": ["é", 1.5, null, "\n"] });
        assert_eq!(json_len(&value), value.to_string().len() as u64);
    }
}
