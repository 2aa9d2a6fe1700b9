//! A store in this process: fast, and gone with it.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use async_trait::async_trait;

use super::{
    Append, Begin, CancelRequest, Events, Held, Lease, Millis, NewRun, Pruned, Retention, RunEnd, RunRecord, RunStatus,
    Store, StoreError, Thread, ThreadContent, ThreadPage, ThreadSummary,
};
use crate::protocol::{RunId, ThreadId};

/// Keeps everything in memory. Nothing is removed but by [`prune`](Store::prune) and
/// [`delete`](Store::delete).
#[derive(Debug, Default)]
pub struct Memory {
    threads: Mutex<HashMap<ThreadId, Box<Entry>>>,
    /// Of all threads and leases there ever were: a thread that is deleted and begun anew knows no old one.
    last_number: AtomicI64,
}

#[derive(Debug)]
struct Entry {
    number: i64,
    thread: Thread,
    /// The lease of the active run.
    active: Option<Active>,
    runs: HashMap<RunId, Box<Run>>,
}

#[derive(Debug)]
struct Active {
    lease: Lease,
    holder: String,
    until: Millis,
    cancel: bool,
}

#[derive(Debug)]
struct Run {
    record: RunRecord,
    /// The lease that finished it.
    finished_by: Option<i64>,
    log: Vec<String>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn next(&self) -> i64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Box<Entry>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(run: &NewRun, number: i64) -> Self {
        Self {
            number,
            thread: Thread {
                id: run.thread_id.clone(),
                owner: run.owner.clone(),
                agent: run.agent.clone(),
                content: ThreadContent::default(),
                active_run: None,
                version: 0,
                created_at: run.now,
                updated_at: run.now,
            },
            active: None,
            runs: HashMap::new(),
        }
    }

    /// The run that a lease is for, if the lease still holds.
    fn leased(&mut self, lease: &Lease) -> Option<&mut Run> {
        self.active.as_ref().filter(|active| active.lease.token == lease.token)?;
        self.runs.get_mut(&lease.run_id).map(|run| &mut **run)
    }

    fn replace(&mut self, content: &ThreadContent) {
        self.thread.content = content.clone();
        self.thread.version += 1;
    }
}

impl Run {
    /// Adds the events that are not there yet. A retried batch is one that is there.
    fn append(&mut self, batch: &Append) {
        let next = self.log.len() as u64 + 1;
        let known = usize::try_from(next.saturating_sub(batch.first)).unwrap_or(usize::MAX);
        self.log.extend(batch.events.iter().skip(known).cloned());
        self.record.events = self.log.len() as u64;
    }
}

#[async_trait]
impl Store for Memory {
    fn is_shared(&self) -> bool {
        false
    }

    async fn begin(&self, run: &NewRun) -> Result<Begin, StoreError> {
        let mut threads = self.lock();
        let entry = threads.entry(run.thread_id.clone()).or_insert_with(|| Box::new(Entry::new(run, self.next())));
        if entry.thread.owner != run.owner {
            return Ok(Begin::NotYours);
        }
        if let Some(active) = &entry.active
            && let Some(busy) = entry.runs.get(&active.lease.run_id)
        {
            let lost = (active.holder != run.holder).then(|| active.lease.clone());
            return Ok(Begin::Busy { run: busy.record.clone(), lost });
        }
        let token = self.next();
        let lease = Lease {
            thread_id: run.thread_id.clone(),
            thread_number: entry.number,
            run_id: run.run_id.clone(),
            run_number: token,
            token,
        };
        let active = Active { lease: lease.clone(), holder: run.holder.clone(), until: run.until, cancel: false };
        entry.active = Some(active);
        entry.thread.active_run = Some(run.run_id.clone());
        entry.thread.agent.clone_from(&run.agent);
        entry.thread.updated_at = run.now;
        let record = RunRecord {
            thread_id: run.thread_id.clone(),
            run_id: run.run_id.clone(),
            number: lease.run_number,
            agent: run.agent.clone(),
            detached: run.detached,
            status: RunStatus::Running,
            started_at: run.now,
            ended_at: None,
            events: 0,
            usage: Vec::new(),
            failure: None,
        };
        let replaced =
            entry.runs.insert(run.run_id.clone(), Box::new(Run { record, finished_by: None, log: Vec::new() }));
        Ok(Begin::Begun { lease, thread: entry.thread.clone(), replaced: replaced.is_some() })
    }

    async fn save(&self, lease: &Lease, content: &ThreadContent) -> Result<(), StoreError> {
        let mut threads = self.lock();
        let entry = threads.get_mut(&lease.thread_id).ok_or(StoreError::LeaseLost)?;
        entry.leased(lease).ok_or(StoreError::LeaseLost)?;
        entry.replace(content);
        Ok(())
    }

    async fn append(&self, batches: &[Append]) -> Result<Vec<bool>, StoreError> {
        let mut threads = self.lock();
        let mut append = |batch: &Append| {
            let run = threads.get_mut(&batch.lease.thread_id).and_then(|entry| entry.leased(&batch.lease));
            run.map(|run| run.append(batch)).is_some()
        };
        Ok(batches.iter().map(&mut append).collect())
    }

    async fn finish(
        &self,
        lease: &Lease,
        content: Option<&ThreadContent>,
        last: Option<&Append>,
        end: &RunEnd,
    ) -> Result<(), StoreError> {
        let mut threads = self.lock();
        let entry = threads.get_mut(&lease.thread_id).ok_or(StoreError::LeaseLost)?;
        let Some(run) = entry.leased(lease) else {
            let again = entry.runs.get(&lease.run_id).is_some_and(|run| run.finished_by == Some(lease.token));
            return if again { Ok(()) } else { Err(StoreError::LeaseLost) };
        };
        if let Some(batch) = last {
            run.append(batch);
        }
        run.finished_by = Some(lease.token);
        run.record = RunRecord {
            status: end.status,
            ended_at: Some(end.at),
            events: end.events,
            usage: end.usage.clone(),
            failure: end.failure.clone(),
            ..run.record.clone()
        };
        if let Some(content) = content {
            entry.replace(content);
        }
        entry.active = None;
        entry.thread.active_run = None;
        entry.thread.updated_at = end.at;
        Ok(())
    }

    async fn renew(&self, holder: &str, until: Millis) -> Result<Vec<Held>, StoreError> {
        let mut threads = self.lock();
        let held = threads.values_mut().filter_map(|entry| entry.active.as_mut()).filter(|a| a.holder == holder);
        Ok(held
            .map(|active| {
                active.until = until;
                active.held()
            })
            .collect())
    }

    async fn cancel_requests(&self, holder: &str) -> Result<Vec<Held>, StoreError> {
        let threads = self.lock();
        let active = threads.values().filter_map(|entry| entry.active.as_ref());
        Ok(active.filter(|active| active.cancel && active.holder == holder).map(Active::held).collect())
    }

    async fn request_cancel(&self, thread: &ThreadId, run: &RunId) -> Result<CancelRequest, StoreError> {
        let mut threads = self.lock();
        let Some(entry) = threads.get_mut(thread) else { return Ok(CancelRequest::Unknown) };
        if let Some(active) = entry.active.as_mut().filter(|active| active.lease.run_id == *run) {
            active.cancel = true;
            return Ok(CancelRequest::Requested);
        }
        let ended = entry.runs.get(run).map(|run| CancelRequest::Ended(run.record.clone()));
        Ok(ended.unwrap_or(CancelRequest::Unknown))
    }

    async fn lost(&self, holder: &str, _now: Millis, limit: usize) -> Result<Vec<Lease>, StoreError> {
        let threads = self.lock();
        let mut lost: Vec<_> =
            threads.values().filter_map(|entry| entry.active.as_ref()).filter(|a| a.holder != holder).collect();
        lost.sort_by_key(|active| active.until);
        Ok(lost.into_iter().take(limit).map(|active| active.lease.clone()).collect())
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        _now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        let mut threads = self.lock();
        let Some(entry) = threads.get_mut(&lost.thread_id) else { return Ok(None) };
        let Some(active) = entry.active.as_mut() else { return Ok(None) };
        if active.lease.token != lost.token || active.holder == holder {
            return Ok(None);
        }
        active.lease.token = self.next();
        holder.clone_into(&mut active.holder);
        active.until = until;
        Ok(Some(active.lease.clone()))
    }

    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        Ok(self.lock().get(id).map(|entry| entry.thread.clone()))
    }

    async fn threads(&self, owner: Option<&str>, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        let threads = self.lock();
        let mut owned: Vec<_> =
            threads.values().map(|entry| &entry.thread).filter(|t| t.owner.as_deref() == owner).collect();
        let place = |thread: &Thread| (Reverse(thread.updated_at), thread.id.clone());
        owned.sort_by_cached_key(|thread| place(thread));
        let after = page.after.clone().map(|(time, id)| (Reverse(time), id));
        let rest = owned.into_iter().filter(|thread| after.as_ref().is_none_or(|after| place(thread) > *after));
        Ok(rest.take(page.limit).map(summary).collect())
    }

    async fn run(&self, thread: &ThreadId, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.lock().get(thread).and_then(|entry| entry.runs.get(run)).map(|run| run.record.clone()))
    }

    async fn runs(&self, thread: &ThreadId, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        let threads = self.lock();
        let runs = threads.get(thread).into_iter().flat_map(|entry| entry.runs.values());
        let mut records: Vec<_> = runs.map(|run| &run.record).collect();
        records.sort_by_key(|record| Reverse(record.number));
        Ok(records.into_iter().take(limit).cloned().collect())
    }

    async fn events(
        &self,
        thread: &ThreadId,
        run: &RunId,
        after: u64,
        max_bytes: usize,
    ) -> Result<Option<Events>, StoreError> {
        let threads = self.lock();
        let Some(run) = threads.get(thread).and_then(|entry| entry.runs.get(run)) else { return Ok(None) };
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let events = run.log.iter().skip(skipped).take_while(|event| {
            let is_first = bytes == 0;
            bytes += event.len();
            is_first || bytes <= max_bytes
        });
        Ok(Some(Events { first: after.saturating_add(1), events: events.cloned().collect(), run: run.record.clone() }))
    }

    async fn delete(&self, thread: &ThreadId) -> Result<bool, StoreError> {
        Ok(self.lock().remove(thread).is_some())
    }

    async fn prune(&self, retention: &Retention, now: Millis) -> Result<Pruned, StoreError> {
        let mut threads = self.lock();
        let mut pruned = Pruned::default();
        let idle = threads.values().filter(|entry| entry.active.is_none());
        let idle: Vec<_> = idle.map(|entry| (entry.thread.updated_at, entry.thread.id.clone())).collect();
        for (_, id) in outdated(idle, retention.thread_age, retention.threads, now) {
            threads.remove(&id);
            pruned.threads += 1;
        }
        let runs = threads.values().flat_map(|entry| entry.runs.values()).filter(|run| !run.log.is_empty());
        let ended = runs.filter_map(|run| Some((run.record.ended_at?, &run.record)));
        let ended: Vec<_> = ended.map(|(at, run)| (at, (run.thread_id.clone(), run.run_id.clone()))).collect();
        for (_, (thread, run)) in outdated(ended, retention.log_age, retention.logs, now) {
            if let Some(run) = threads.get_mut(&thread).and_then(|entry| entry.runs.get_mut(&run)) {
                run.log = Vec::new();
                pruned.logs += 1;
            }
        }
        Ok(pruned)
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Active {
    fn held(&self) -> Held {
        let Lease { thread_id, thread_number, token, .. } = &self.lease;
        Held { thread_id: thread_id.clone(), thread_number: *thread_number, token: *token, cancel: self.cancel }
    }
}

fn summary(thread: &Thread) -> ThreadSummary {
    ThreadSummary {
        id: thread.id.clone(),
        agent: thread.agent.clone(),
        active_run: thread.active_run.clone(),
        open_interrupts: thread.content.interrupts.len() as u64,
        created_at: thread.created_at,
        updated_at: thread.updated_at,
    }
}

/// Those that are too old, and the oldest of those that are too many.
fn outdated<T>(mut items: Vec<(Millis, T)>, age: Option<u64>, count: Option<u64>, now: Millis) -> Vec<(Millis, T)> {
    let oldest = age.and_then(|age| now.checked_sub_unsigned(age)).unwrap_or(Millis::MIN);
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    items.sort_by_key(|(time, _)| Reverse(*time));
    let first = items.iter().take(count).take_while(|(time, _)| *time >= oldest).count();
    items.split_off(first)
}
