//! Copies a thread with its content, and creates threads with their content.

use super::tables::{RunEntry, Tables, ThreadEntry};
use crate::store::{
    CopiedMessage, CopiedRun, MessageNode, MessageOrigin, NewThread, RunRecord, Thread, ThreadContent, json_len,
};

impl ThreadEntry {
    pub(super) fn content(&self) -> ThreadContent {
        let mut numbers: Vec<_> = self.states.keys().copied().collect();
        numbers.sort_unstable();
        let position = |state: Option<i64>| state.and_then(|number| numbers.binary_search(&number).ok());
        let ended: Vec<_> = self.runs.iter().filter(|run| run.record.ended_at.is_some()).collect();
        let run_at = |number: i64| ended.iter().position(|run| run.record.number == number);
        let messages = self.nodes.iter().map(|node| CopiedMessage {
            parent: node.parent,
            run: node.origin.run().and_then(run_at),
            message: node.message.clone(),
            feedback: self.feedback.get(&node.number).cloned(),
        });
        let runs = ended.iter().map(|run| CopiedRun {
            record: run.record.clone(),
            head: run.head,
            state: position(run.state),
            interrupts: run.interrupts.clone(),
            answered: run.answered.clone(),
        });
        let thread = &self.thread;
        ThreadContent {
            agent: thread.agent.clone(),
            title: thread.title.clone(),
            archived: thread.archived,
            metadata: thread.metadata.clone(),
            head: thread.head,
            state: position(self.state),
            interrupts: thread.interrupts.clone(),
            messages: messages.collect(),
            states: numbers.iter().map(|number| self.states[number].clone()).collect(),
            runs: runs.collect(),
            created_at: thread.created_at,
            updated_at: thread.updated_at,
        }
    }
}

impl Tables {
    /// Returns whether the thread is new.
    pub(super) fn insert(&mut self, new: NewThread<'_>) -> bool {
        let NewThread { key, content } = new;
        if self.numbers.contains_key(key) {
            return false;
        }
        let number = self.next_number();
        let states: Vec<_> = content.states.iter().map(|state| (self.next_number(), state.clone())).collect();
        let state_at = |position: Option<usize>| position.and_then(|at| states.get(at)).map(|(number, _)| *number);
        let runs = content.runs.iter().map(|run| RunEntry {
            record: RunRecord { number: self.next_number(), thread: number, detached: false, ..run.record.clone() },
            head: run.head,
            state: state_at(run.state),
            interrupts: run.interrupts.clone(),
            answered: run.answered.clone(),
            log: Vec::new(),
            times: Vec::new(),
            start: None,
        });
        let runs: Vec<_> = runs.collect();
        self.threads_of_runs.extend(runs.iter().map(|run| (run.record.number, number)));
        let origin = |run: Option<usize>| match run.and_then(|at| runs.get(at)) {
            Some(run) => MessageOrigin::Run { run: run.record.number, delivered: run.record.delivered },
            None => MessageOrigin::Client,
        };
        let nodes = content.messages.iter().zip(1..).map(|(copied, number)| MessageNode {
            number,
            parent: copied.parent,
            origin: origin(copied.run),
            message: copied.message.clone(),
        });
        let feedback = content.messages.iter().zip(1..).filter_map(|(it, number)| Some((number, it.feedback.clone()?)));
        let bytes = content.messages.iter().map(|it| json_len(&it.message)).chain(content.states.iter().map(json_len));
        let thread = Thread {
            number,
            key: key.clone(),
            agent: content.agent.clone(),
            title: content.title.clone(),
            archived: content.archived,
            metadata: content.metadata.clone(),
            head: content.head,
            state: None,
            interrupts: content.interrupts.clone(),
            messages: content.messages.len() as u64,
            bytes: bytes.sum(),
            version: 1,
            run_id: runs.last().map_or_else(|| "".into(), |run| run.record.id.clone()),
            run: runs.last().map_or(0, |run| run.record.number),
            is_running: false,
            created_at: content.created_at,
            updated_at: content.updated_at,
        };
        let (nodes, feedback, state) = (nodes.collect(), feedback.collect(), state_at(content.state));
        let states = states.into_iter().collect();
        let entry = ThreadEntry { thread, nodes, feedback, state, states, runs, lease: None };
        self.threads.insert(number, entry);
        self.numbers.insert(key.clone(), number);
        true
    }
}
