//! Restores a lost run: applies its log to the conversation that the run began with.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::mark::LogMark;
use crate::{
    drive::{guard::Guard, transcript::Transcript},
    measured_store::MeasuredStore,
};
use agui_agent::Continuation;
use agui_protocol::{Event, Messages, RunAgentInput};
use agui_store::{RunRecord, StoreError, ThreadKey};

const PAGE_BYTES: usize = 1024 * 1024;

/// A run's log, applied to the conversation that the run began with.
pub struct RestoredRun {
    pub guard: Guard,
    /// The conversation after all events, as clients have it.
    pub seen: Transcript,
    /// The conversation at the last mark.
    pub kept: Transcript,
    /// The events since the last mark.
    unmarked: Vec<Event>,
    pub marks: Vec<Value>,
    /// The number of marks of earlier attempts.
    pub(crate) earlier_marks: usize,
    /// The ids of all messages and calls.
    ids: HashSet<String>,
    pub lines: u64,
    pub bytes: u64,
    pub(crate) has_started: bool,
    pub(crate) is_handed_over: bool,
    /// True if a call has started that must not be repeated.
    pub(crate) has_unsafe_calls: bool,
    /// True if the rest of the log cannot be read.
    pub(crate) is_damaged: bool,
    /// The number of times that the run was continued.
    pub attempt: u32,
    /// The number of times that its server was lost.
    pub lost: u32,
}

impl RestoredRun {
    /// Reads the log of a run that began with these messages. A run that is not detached has an empty one.
    pub async fn read(
        store: &MeasuredStore,
        key: &ThreadKey,
        run: &RunRecord,
        messages: Messages,
        state: Option<Value>,
    ) -> Result<Self, StoreError> {
        let seen = Transcript::new(messages.clone(), state.unwrap_or_else(|| json!({})));
        let mut restored = Self {
            guard: Guard::new(&RunAgentInput::new(key.id.clone(), run.id.clone(), messages)),
            kept: seen.clone(),
            unmarked: Vec::new(),
            seen,
            marks: Vec::new(),
            earlier_marks: 0,
            ids: HashSet::new(),
            lines: 0,
            bytes: 0,
            has_started: false,
            is_handed_over: false,
            has_unsafe_calls: false,
            is_damaged: false,
            attempt: 0,
            lost: 0,
        };
        if !run.detached {
            return Ok(restored);
        }
        loop {
            let after = restored.lines;
            let page = store.events(&key.owner, run.number, after, PAGE_BYTES).await;
            if let Err(StoreError::Failed(error)) = &page {
                tracing::error!(thread = key.id.as_str(), run = run.id.as_str(), after, %error, "the log of a lost run cannot be read from here");
                restored.is_damaged = true;
                return Ok(restored);
            }
            let Some(page) = page?.filter(|page| !page.events.is_empty()) else {
                return Ok(restored);
            };
            page.events.iter().for_each(|line| restored.apply_line(line));
        }
    }

    fn apply_line(&mut self, line: &str) {
        self.lines += 1;
        self.bytes += line.len() as u64;
        self.is_handed_over = false;
        match LogMark::from_line(line) {
            Some(LogMark::HandedOver) => self.is_handed_over = true,
            Some(LogMark::UnsafeCall) => self.has_unsafe_calls = true,
            Some(LogMark::Agent(mark)) => {
                self.marks.push(mark);
                self.keep();
            }
            Some(LogMark::Continued { attempt, lost }) => {
                (self.attempt, self.lost) = (attempt, lost);
                self.keep();
            }
            Some(LogMark::Earlier { attempt, lost, marks }) => {
                (self.attempt, self.lost) = (attempt, lost);
                (self.earlier_marks, self.marks) = (marks.len(), marks);
                self.has_unsafe_calls = true;
            }
            None => match serde_json::from_str(line) {
                Ok(Event::RunStarted(_)) => self.has_started = true,
                Ok(event) => self.apply(event),
                Err(error) => tracing::warn!(%error, "left out a line of a log that is no event"),
            },
        }
    }

    /// Applies an event that has passed a guard before.
    fn apply(&mut self, event: Event) {
        self.ids.extend(match &event {
            Event::ToolCallStart(start) => Some(start.tool_call_id.to_string()),
            Event::TextMessageStart(start) => Some(start.message_id.to_string()),
            Event::ReasoningMessageStart(start) => Some(start.message_id.to_string()),
            Event::ToolCallResult(result) => Some(result.message_id.to_string()),
            _ => None,
        });
        self.seen.apply(&event);
        self.unmarked.push(event.clone());
        if let Err(violation) = self.guard.admit(event, &mut Vec::new()) {
            tracing::warn!(%violation, "an event of a log is not legal");
        }
    }

    /// Returns what its agent gets, to continue from the last mark.
    pub(crate) fn continuation(&mut self) -> Continuation {
        Continuation {
            attempt: self.attempt,
            retracted: self.retracted_ids(),
            marks: std::mem::take(&mut self.marks),
            earlier_marks: self.earlier_marks,
        }
    }

    /// Returns the ids of the retracted messages and calls.
    fn retracted_ids(&mut self) -> HashSet<String> {
        for message in self.kept.messages().iter() {
            self.ids.remove(message.id().as_str());
            for call in message.tool_calls() {
                self.ids.remove(call.id.as_str());
            }
        }
        std::mem::take(&mut self.ids)
    }

    fn keep(&mut self) {
        self.unmarked.drain(..).for_each(|event| self.kept.apply(&event));
    }
}
