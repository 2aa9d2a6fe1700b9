//! Builds the content of a thread from its rows.

use std::collections::HashMap;

use super::{
    CopiedMessage, CopiedRun, StoreError, ThreadContent,
    rows::{self, DbRow, json, list, name, number, optional_name, text},
    text::from_json,
};

/// Builds a [`ThreadContent`] from its rows: first the thread, then its states, its ended runs, and its messages, each in the
/// order of their numbers.
pub(super) struct ContentRows {
    content: ThreadContent,
    current_state: Option<i64>,
    states: HashMap<i64, usize>,
    runs: HashMap<i64, usize>,
}

impl ContentRows {
    /// Begins with the row of the thread. Returns the number of the thread as well.
    pub(super) fn new(row: &impl DbRow) -> Result<(Self, i64), StoreError> {
        let content = ThreadContent {
            agent: name(row, "agent")?,
            title: optional_name(row, "title")?,
            archived: row.flag("archived")?,
            metadata: json(row, "metadata")?.unwrap_or_default(),
            head: number(row, "head")?,
            state: None,
            interrupts: list(row, "interrupts")?,
            messages: Vec::new(),
            states: Vec::new(),
            runs: Vec::new(),
            created_at: number(row, "created_at")?,
            updated_at: number(row, "updated_at")?,
        };
        let current_state = row.number("state")?;
        let rows = Self { content, current_state, states: HashMap::new(), runs: HashMap::new() };
        Ok((rows, number(row, "number")?))
    }

    pub(super) fn state(&mut self, row: &impl DbRow) -> Result<(), StoreError> {
        let states = &mut self.content.states;
        let position = states.len();
        states.push(from_json(text(row, "body")?)?);
        self.states.insert(number(row, "number")?, position);
        Ok(())
    }

    pub(super) fn run(&mut self, row: &impl DbRow) -> Result<(), StoreError> {
        let state = row.number("state")?.and_then(|state| self.states.get(&state).copied());
        let (record, head) = (rows::run(row)?, number(row, "head")?);
        let (interrupts, answered) = (list(row, "interrupts")?, list(row, "answered")?);
        let run_number = record.number;
        let runs = &mut self.content.runs;
        let position = runs.len();
        runs.push(CopiedRun { record, head, state, interrupts, answered });
        self.runs.insert(run_number, position);
        Ok(())
    }

    pub(super) fn message(&mut self, row: &impl DbRow) -> Result<(), StoreError> {
        // A run of which there is no row any more was replaced by one with the same id.
        let run = row.number("run")?.map(|run| self.runs.get(&run).copied());
        let copied = CopiedMessage {
            parent: number(row, "parent")?,
            run: run.flatten(),
            message: from_json(text(row, "body")?)?,
            feedback: json(row, "feedback")?,
        };
        self.content.messages.push(copied);
        Ok(())
    }

    pub(super) fn finish(self) -> ThreadContent {
        let state = self.current_state.and_then(|state| self.states.get(&state).copied());
        ThreadContent { state, ..self.content }
    }
}
