//! Copies a thread with its content, and creates threads with their content.

use super::tables::{RunEntry, Tables, ThreadEntry};
use crate::{
    CopiedRun, MessageNode, MessageNumber, MessageOrigin, RunNumber, RunRecord, Thread,
    ThreadContent, ThreadKey, files::named_files, thread_content::NumberedContent,
};

impl ThreadEntry {
    pub(super) fn content(&self) -> ThreadContent {
        let runs = self.runs.iter().filter(|run| run.record.ended_at.is_some()).map(|run| {
            let (interrupts, answered) = (run.interrupts.clone(), run.answered.clone());
            let record = run.record.clone();
            (
                CopiedRun { record, head: run.head, state: None, interrupts, answered },
                run.record.state,
            )
        });
        let content = NumberedContent {
            thread: self.thread.clone(),
            state: self.state,
            states: self.states.iter().map(|(number, state)| (*number, state.clone())).collect(),
            runs: runs.collect(),
            nodes: self.nodes.clone(),
        };
        content.with_positions()
    }
}

impl Tables {
    /// Creates a thread of version 0 with its content.
    pub(super) fn create(&mut self, key: &ThreadKey, content: &ThreadContent) -> &mut ThreadEntry {
        let number = self.next_number();
        let states: Vec<_> =
            content.states.iter().map(|state| (self.next_number(), state.clone())).collect();
        let state_at = |position: Option<usize>| {
            position.and_then(|at| states.get(at)).map(|(number, _)| *number)
        };
        let runs = content.runs.iter().map(|run| RunEntry {
            record: RunRecord {
                number: self.next_number(),
                thread: number,
                asked: None,
                detached: false,
                state: state_at(run.state),
                ..run.record.clone()
            },
            head: run.head,
            interrupts: run.interrupts.clone(),
            answered: run.answered.clone(),
            ..RunEntry::default()
        });
        let runs: Vec<_> = runs.collect();
        self.threads_of_runs.extend(runs.iter().map(|run| (run.record.number, number)));
        let origin = |run: Option<usize>| match run.and_then(|at| runs.get(at)) {
            Some(run) => {
                MessageOrigin::Run { run: run.record.number, delivered: run.record.delivered }
            }
            None => MessageOrigin::Client,
        };
        let nodes = content.messages.iter().zip(1..).map(|(copied, number)| MessageNode {
            number: MessageNumber(number),
            parent: copied.parent,
            origin: origin(copied.run),
            message: copied.message.clone(),
            feedback: copied.feedback.clone(),
        });
        let newest = runs.last().map(|run| &run.record);
        let run_id = newest.map_or_else(|| "".into(), |run| run.id.clone());
        let thread = Thread {
            agent: content.agent.clone(),
            title: content.title.clone(),
            archived: content.archived,
            metadata: content.metadata.clone(),
            head: content.head,
            interrupts: content.interrupts.clone(),
            messages: content.messages.len() as u64,
            bytes: content.bytes(),
            run: newest.map_or(RunNumber::default(), |run| run.number),
            created_at: content.created_at,
            updated_at: content.updated_at,
            ..Thread::new(number, key.clone(), run_id)
        };
        let (nodes, state) = (nodes.collect(), state_at(content.state));
        let states = states.into_iter().collect();
        self.numbers.insert(key.clone(), number);
        let files = named_files(content.messages.iter().map(|copied| &copied.message));
        let entry = ThreadEntry { thread, nodes, state, states, runs, lease: None, files };
        self.threads.entry(number).insert_entry(entry).into_mut()
    }
}
