//! The tables of the store in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::file_table::FileTable;
use crate::{
    BeginOutcome, BranchWrite, EventBatch, Lease, MessageNode, MessageNumber, MessageOrigin,
    MessagePage, MessageQuery, Millis, NewRun, QueueNumber, QueuedRun, Retention, RunNumber,
    RunRecord, StateNumber, Thread, ThreadKey, ThreadNumber, ThreadParts, ThreadSize,
    ThreadVersion, ThreadView, files::named_files, json_len, now, retention::surplus,
    sealed::SealedValue, search, search::searched_text,
};
use agui_protocol::{Interrupt, ResumeEntry, RunId};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) threads: HashMap<ThreadNumber, ThreadEntry>,
    pub(super) numbers: HashMap<ThreadKey, ThreadNumber>,
    /// The thread of each run, both by number.
    pub(super) threads_of_runs: HashMap<RunNumber, ThreadNumber>,
    /// The last number of a thread, a run or a state.
    pub(super) last_number: i64,
    pub(super) files: FileTable,
    /// The queued runs with their requests.
    pub(super) queued: BTreeMap<QueueNumber, (QueuedRun, String)>,
    /// The sealed values of each owner.
    pub(super) sealed: HashMap<String, Vec<SealedValue>>,
}

/// Returns the bytes of new messages and of a new state. Computed before the tables are locked, because it reads all of them.
pub(super) fn new_bytes(branch: &BranchWrite<'_>, state: Option<&Value>) -> u64 {
    let messages: u64 = branch.new.iter().map(|(message, _)| json_len(message)).sum();
    messages + state.map_or(0, json_len)
}

#[derive(Debug)]
pub(super) struct ThreadEntry {
    pub(super) thread: Thread,
    pub(super) nodes: Vec<MessageNode>,
    pub(super) states: BTreeMap<StateNumber, Value>,
    pub(super) runs: Vec<RunEntry>,
    pub(super) state: Option<StateNumber>,
    pub(super) lease: Option<Lease>,
    /// The ids of the files that its messages name.
    pub(super) files: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(super) struct RunEntry {
    pub(super) record: RunRecord,
    pub(super) alias: Option<RunId>,
    pub(super) head: MessageNumber,
    pub(super) first_run: Option<RunNumber>,
    pub(super) interrupts: Vec<Interrupt>,
    pub(super) answered: Vec<ResumeEntry>,
    /// The time and the JSON of each event.
    pub(super) log: Vec<(u64, String)>,
    pub(super) start: Option<StartEntry>,
}

/// The input of a detached run: the last message, the number of the state, the rest as JSON.
#[derive(Debug)]
pub(super) struct StartEntry {
    pub(super) head: MessageNumber,
    pub(super) state: Option<StateNumber>,
    pub(super) request: String,
}

impl Tables {
    pub(super) fn next_number<N: From<i64>>(&mut self) -> N {
        self.last_number += 1;
        self.last_number.into()
    }

    pub(super) fn thread(&self, key: &ThreadKey) -> Option<&ThreadEntry> {
        self.threads.get(self.numbers.get(key)?)
    }

    /// Returns the reason why the run does not begin, or `None` if it may begin.
    /// `added` are the bytes of its new messages and its state.
    pub(super) fn refusal(&self, run: &NewRun<'_>, added: u64) -> Option<BeginOutcome> {
        let queued = run.queued.map(|number| self.queued.get(&number).map(|(queued, _)| queued));
        if queued == Some(None) {
            return Some(BeginOutcome::Dequeued);
        }
        let entry = self.thread(run.key);
        if let Some(entry) = entry
            && let Some(lease) = &entry.lease
            && let Some(busy) = entry.runs.iter().find(|run| run.record.number == lease.run)
        {
            let lost = (lease.holder != *run.holder).then(|| lease.clone());
            return Some(BeginOutcome::Busy { run: busy.record.clone(), lost });
        }
        if let Some(queued) = queued.flatten()
            && self.is_behind(queued, run.holder)
        {
            return Some(BeginOutcome::Behind);
        }
        let thread = entry.map(|entry| &entry.thread);
        let version = thread.map(ThreadVersion::of);
        if version != run.expected {
            return Some(BeginOutcome::Changed);
        }
        if let Some(known) = entry.and_then(|entry| entry.known_run(run)) {
            return Some(BeginOutcome::Known(Box::new(known.clone())));
        }
        let updated: u64 = run.branch.updated.iter().map(|(_, message)| json_len(message)).sum();
        let size = ThreadSize {
            messages: thread.map_or(0, |thread| thread.messages) + run.branch.new.len() as u64,
            bytes: thread.map_or(0, |thread| thread.bytes) + added + updated,
        };
        size.exceeds(run.max_size).then_some(BeginOutcome::TooLarge(size))
    }

    /// Returns whether another process holds a queued run before the first of this process.
    fn is_behind(&self, queued: &QueuedRun, holder: &str) -> bool {
        let of_thread = self.queued.values().map(|(run, _)| run);
        let first = of_thread
            .filter(|run| run.thread == queued.thread)
            .find(|run| run.holder == holder || run.number == queued.number);
        let end = first.map_or(queued.number, |first| first.number);
        self.queued.range(..end).any(|(_, (run, _))| run.thread == queued.thread)
    }

    pub(super) fn remove(&mut self, thread: ThreadNumber) -> bool {
        let Some(entry) = self.threads.remove(&thread) else { return false };
        self.numbers.remove(&entry.thread.key);
        self.queued.retain(|_, (run, _)| run.thread != thread);
        for run in &entry.runs {
            self.threads_of_runs.remove(&run.record.number);
        }
        for id in &entry.files {
            if let Some(file) = self.files.find(Some(&entry.thread.key.owner), id) {
                file.unused_since = now();
            }
        }
        true
    }

    /// Returns how many threads use a file.
    pub(super) fn uses(&self, owner: &str, id: &str) -> u64 {
        let uses = self
            .threads
            .values()
            .filter(|entry| *entry.thread.key.owner == *owner && entry.files.contains(id));
        uses.count() as u64
    }

    pub(super) fn run_mut(&mut self, run: RunNumber) -> Option<&mut RunEntry> {
        let entry = self.threads.get_mut(self.threads_of_runs.get(&run)?)?;
        entry.runs.iter_mut().find(|entry| entry.record.number == run)
    }

    pub(super) fn leased(&mut self, lease: &Lease) -> Option<&mut ThreadEntry> {
        self.threads.get_mut(&lease.thread).filter(|entry| entry.lease.as_ref() == Some(lease))
    }

    pub(super) fn surplus_threads(&self, retention: &Retention, now: Millis) -> Vec<ThreadNumber> {
        let oldest = oldest(retention.thread_age, now);
        let (outdated, kept): (Vec<_>, Vec<_>) = self
            .threads
            .values()
            .map(|entry| &entry.thread)
            .partition(|thread| !thread.is_running && thread.updated_at < oldest);
        let mut by_owner: HashMap<&str, Vec<&Thread>> = HashMap::new();
        kept.into_iter()
            .for_each(|thread| by_owner.entry(&thread.key.owner).or_default().push(thread));
        let counts = by_owner
            .iter()
            .map(|(owner, threads)| ((*owner).to_owned(), threads.len() as u64))
            .collect();
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

impl ThreadEntry {
    pub(super) fn newest_attempt(&self, id: &RunId) -> Option<&RunRecord> {
        self.runs.iter().rev().map(|run| &run.record).find(|run| run.id == *id)
    }

    /// Returns the newest run that has a second id.
    pub(super) fn aliased(&self, alias: &RunId) -> Option<&RunRecord> {
        let run = self.runs.iter().rev().find(|run| run.alias.as_ref() == Some(alias));
        run.map(|run| &run.record)
    }

    pub(super) fn next_attempt(&self, id: &RunId) -> u32 {
        self.newest_attempt(id).map_or(1, |newest| newest.attempt.saturating_add(1))
    }

    /// Returns the newest run that answers the request of a new run, and that its caller does not know.
    fn known_run(&self, new: &NewRun<'_>) -> Option<&RunRecord> {
        let asked = new.asked?;
        let mut unseen = self.runs.iter().rev().take_while(|run| run.record.number > new.known);
        let is_called =
            |run: &RunEntry| run.record.id == *new.run_id || run.alias.as_ref() == Some(new.run_id);
        let known = unseen.find(|run| is_called(run) && run.record.asked.as_deref() == Some(asked));
        known.map(|run| &run.record)
    }

    /// Writes messages. `added` are the bytes of the new ones and of a new state.
    pub(super) fn write(&mut self, branch: &BranchWrite<'_>, added: u64) {
        self.thread.bytes += added;
        for (number, message) in &branch.updated {
            if let Some(node) = self.nodes.iter_mut().find(|node| node.number == *number) {
                self.thread.bytes =
                    (self.thread.bytes + json_len(message)).saturating_sub(json_len(&node.message));
                node.message = (*message).clone();
            }
        }
        let messages = branch
            .new
            .iter()
            .map(|(message, _)| *message)
            .chain(branch.updated.iter().map(|(_, message)| *message));
        self.files.extend(named_files(messages));
        let mut parent = branch.base;
        for (message, run) in &branch.new {
            let origin = run
                .map_or(MessageOrigin::Client, |run| MessageOrigin::Run { run, delivered: true });
            let number = MessageNumber::ROOT.plus(self.nodes.len() + 1);
            self.nodes.push(MessageNode {
                number,
                parent,
                origin,
                message: (*message).clone(),
                feedback: None,
            });
            parent = number;
        }
        self.thread.head = parent;
        self.thread.messages = self.nodes.len() as u64;
        self.thread.version += 1;
    }

    pub(super) fn set_state(&mut self, number: StateNumber, state: Option<&Value>) {
        if let Some(state) = state {
            self.states.insert(number, state.clone());
            self.state = Some(number);
        }
    }

    pub(super) fn stored_state(&self, number: Option<StateNumber>) -> Option<(StateNumber, Value)> {
        let number = number?;
        Some((number, self.states.get(&number)?.clone()))
    }

    pub(super) fn view(&self, include: ThreadParts) -> ThreadView {
        let mut nodes = if include.messages { self.nodes.clone() } else { Vec::new() };
        self.set_delivered(&mut nodes);
        let newest = self.runs.iter().rev().take(include.runs);
        let runs = newest.clone().map(|run| run.record.clone()).collect();
        let numbers: BTreeSet<_> =
            newest.filter(|_| include.run_states).filter_map(|run| run.record.state).collect();
        let run_states =
            numbers.into_iter().filter_map(|number| self.stored_state(Some(number))).collect();
        let state = self.stored_state(self.state.filter(|_| include.state));
        let first_run = self
            .runs
            .last()
            .filter(|run| run.head == self.thread.head)
            .and_then(|run| run.first_run);
        let thread = Thread { state, first_run, ..self.thread.clone() };
        ThreadView { thread, nodes, runs, run_states }
    }

    fn set_delivered(&self, nodes: &mut [MessageNode]) {
        // Runs are in the order of their numbers.
        let position =
            |run: RunNumber| self.runs.binary_search_by_key(&run, |entry| entry.record.number);
        for node in nodes {
            if let MessageOrigin::Run { run, delivered } = &mut node.origin {
                *delivered = position(*run).map_or(true, |at| self.runs[at].record.delivered);
            }
        }
    }

    pub(super) fn page(&self, query: MessageQuery) -> MessagePage {
        let mut page = MessagePage::select(&self.nodes, query);
        self.set_delivered(&mut page.nodes);
        page
    }

    pub(super) fn has_all(&self, terms: &[String]) -> bool {
        let has_all = |text: &str| search::has_all(text, terms);
        let in_title =
            || self.thread.title.as_ref().is_some_and(|title| has_all(&search::folded(title)));
        let in_message =
            |node: &MessageNode| searched_text(&node.message).is_some_and(|text| has_all(&text));
        !terms.is_empty() && (in_title() || self.nodes.iter().any(in_message))
    }
}

impl RunEntry {
    pub(super) fn new(
        thread: ThreadNumber,
        number: RunNumber,
        run: &NewRun<'_>,
        head: MessageNumber,
        state: Option<StateNumber>,
    ) -> Self {
        let record = RunRecord::new(number, thread, run.run_id.clone(), run.agent.to_owned());
        let events = run.started.iter().len() as u64;
        let record = RunRecord {
            asked: run.asked.map(str::to_owned),
            continues: run.continues,
            detached: run.detached,
            started_at: run.now,
            events,
            state,
            ..record
        };
        let answered = run.answered.clone();
        let start =
            run.request.map(|request| StartEntry { head, state, request: request.to_owned() });
        let log = run.started.iter().map(|line| (0, (*line).to_owned())).collect();
        let first_run = run.first_run.or(Some(number));
        Self { record, head, first_run, answered, start, log, ..Self::default() }
    }

    /// Makes the running run a detached one.
    pub(super) fn promote(&mut self, request: Option<&str>, first: &EventBatch) {
        self.record.detached = true;
        if let Some(request) = request.filter(|_| self.start.is_none()) {
            let (head, state) = (self.head, self.record.state);
            self.start = Some(StartEntry { head, state, request: request.to_owned() });
        }
        self.append(first);
    }

    pub(super) fn append(&mut self, batch: &EventBatch) {
        let next = self.log.len() as u64 + 1;
        let known = usize::try_from(next.saturating_sub(batch.first)).unwrap_or(usize::MAX);
        self.log.extend(batch.times.iter().copied().zip(batch.events.iter().cloned()).skip(known));
        self.record.events = self.log.len() as u64;
    }
}

pub(super) fn oldest(age: Option<u64>, now: Millis) -> Millis {
    age.and_then(|age| now.checked_sub_unsigned(age)).unwrap_or(Millis::MIN)
}

pub(super) fn limit(count: Option<u64>) -> usize {
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
}
