//! Checks that the events of a run are a legal AG-UI stream, by the rules of the specification's event pages.
//!
//! Every event of an agent passes through the [`Guard`] before it is sent or stored. Legal events
//! pass, and what can be repaired without guessing is repaired: chunk events become start, content
//! and end events, ends of items that are not open, empty deltas without metadata and deltas of
//! unknown activities are skipped, and items are closed before the result of their call, the end of
//! their subagent or the end of the run. Every other event is a [`Violation`], which fails the run.

mod calls;
mod chunks;
mod closing;
mod entries;
mod history;
mod items;
mod known;
mod open;
mod reasoning;
mod state;
mod subagents;
mod texts;
mod violation;

use std::collections::{HashMap, HashSet};

use indexmap::{IndexMap, IndexSet};

use self::{
    entries::{CallDetails, ChunkedItem, ImplicitMessage, StartedSubagent, TextDetails},
    history::History,
    items::{ItemTable, MAX_OPEN_ITEMS},
    violation::{Owner, check_patch},
};
use super::progress::EventSink;
use agui_protocol::{
    Event, EventType, MessageId, RunAgentInput, SubagentRunId, ToolCallId, event::StepFinished,
};

pub(crate) use closing::RunClosing;
pub(crate) use violation::Violation;

/// Checks the events of a run, and repairs or rejects illegal ones.
#[derive(Default)]
pub struct Guard {
    open_chunks: Vec<ChunkedItem>,
    texts: ItemTable<MessageId, TextDetails>,
    calls: ItemTable<ToolCallId, CallDetails>,
    /// A span and a message may share an id. They then have the same owner.
    reasoning_spans: ItemTable<MessageId, ()>,
    reasoning_messages: ItemTable<MessageId, ()>,
    steps: IndexSet<(Owner, String)>,
    /// The subagents that were started.
    subagents: IndexMap<SubagentRunId, StartedSubagent>,
    /// Subagents that events named before a start event. A start event must not follow.
    unannounced: IndexSet<SubagentRunId>,
    activities: HashMap<MessageId, Owner>,
    /// Messages that no start event opened: tool results, messages that hold tool calls, messages of snapshots.
    implicit_messages: HashMap<MessageId, ImplicitMessage>,
    /// Calls whose result came before their start event.
    with_result: HashSet<ToolCallId>,
    /// The number of events that were left out.
    pub(super) repairs: u64,
    history: History,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("steps", &self.steps)
            .field("subagents", &self.subagents)
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// Creates the guard of a run that starts from an input.
    pub fn new(input: &RunAgentInput) -> Self {
        Self { history: History::of(&input.messages), ..Self::default() }
    }

    /// Checks the agent's next event and emits the events to send. Lifecycle events are rejected: the driver sends them.
    ///
    /// # Errors
    /// A [`Violation`] if the event is illegal and cannot be repaired.
    pub fn admit(&mut self, event: Event, out: &mut impl EventSink) -> Result<(), Violation> {
        if let Some(owner) = event.subagent_run_id()
            && !self.subagents.contains_key(owner)
        {
            self.unannounced.insert(owner.clone());
        }
        if !self.open_chunks.is_empty() {
            self.close_chunks_before(&event, out)?;
        }
        self.pass(event, out)
    }

    /// Checks and emits an event of the agent or of an expanded chunk.
    fn pass(&mut self, event: Event, out: &mut impl EventSink) -> Result<(), Violation> {
        let is_sent_unchanged = match &event {
            Event::TextMessageContent(e) => self.text_content(e)?,
            Event::ToolCallArgs(e) => self.call_args(e)?,
            Event::ReasoningMessageContent(e) => self.reasoning_message_content(e)?,
            Event::TextMessageStart(e) => self.text_start(e)?,
            Event::TextMessageEnd(e) => self.text_end(e)?,
            Event::ToolCallStart(e) => return self.call_start(e, out),
            Event::ToolCallEnd(e) => self.call_end(e)?,
            Event::ToolCallResult(e) => self.call_result(e, out)?,
            Event::ReasoningStart(e) => return self.reasoning_start(e, out),
            Event::ReasoningEnd(e) => self.reasoning_end(e)?,
            Event::ReasoningMessageStart(e) => return self.reasoning_message_start(e, out),
            Event::ReasoningMessageEnd(e) => self.reasoning_message_end(e)?,
            Event::ReasoningEncryptedValue(e) => self.encrypted_value(e)?,
            Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => {
                return self.chunk(&event, out);
            }
            Event::StepStarted(e) => {
                if self.steps.len() >= MAX_OPEN_ITEMS {
                    let problem = format!("{MAX_OPEN_ITEMS} steps are already open");
                    return Err(Violation::new(EventType::StepStarted, problem));
                }
                if !self.steps.insert((e.subagent_run_id.clone(), e.step_name.clone())) {
                    return Err(Violation::new(
                        EventType::StepStarted,
                        format!("step {:?} is already open", e.step_name),
                    ));
                }
                true
            }
            Event::StepFinished(e) => self.step_finished(e),
            Event::SubagentStarted(e) => self.subagent_started(e)?,
            Event::SubagentFinished(e) => self.end_subagent(&e.subagent_run_id, out),
            Event::SubagentError(e) => self.end_subagent(&e.subagent_run_id, out),
            Event::ActivitySnapshot(e) => self.activity_snapshot(e)?,
            Event::ActivityDelta(e) => self.activity_delta(e)?,
            Event::MessagesSnapshot(e) => self.messages_snapshot(e)?,
            Event::StateDelta(e) => check_patch(EventType::StateDelta, &e.delta)?,
            Event::StateSnapshot(_) | Event::Raw(_) | Event::Custom(_) => true,
            Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) => {
                return Err(Violation::new(event.event_type(), "only the server sends it"));
            }
        };
        if is_sent_unchanged {
            out.emit(&event);
        } else {
            self.repairs += 1;
        }
        Ok(())
    }

    fn step_finished(&mut self, event: &StepFinished) -> bool {
        self.steps.shift_remove(&(event.subagent_run_id.clone(), event.step_name.clone()))
    }
}

#[cfg(test)]
mod tests;
