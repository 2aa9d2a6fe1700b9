//! Makes an illegal stream impossible to send.
//!
//! Every event of an agent passes here before it is sent or stored. The guard knows what is open and
//! whose it is; it lets legal events through, mends what can be mended without guessing, and answers
//! everything else with a [`Violation`], with which the driver ends the run.
//!
//! What it mends:
//! - the `*_CHUNK` shorthands become the start, content and end events they stand for (`chunks`);
//! - an end of something that is not open is left out, as is an empty delta that carries nothing else;
//! - a tool call that is answered while its arguments are still open is closed first;
//! - a subagent's items are closed before the subagent is;
//! - whatever is open when the run ends is closed (`closing`).
//!
//! The rules are those of the AG-UI 1.0 specification's event pages. Each family of events has its
//! rules in a file of its own.

mod calls;
mod chunks;
mod closing;
mod entries;
mod history;
mod items;
mod known;
mod patch;
mod reasoning;
mod state;
mod subagents;
mod texts;
mod violation;

use std::collections::{HashMap, HashSet};

use indexmap::{IndexMap, IndexSet};

use self::{
    entries::{Call, Implicit, Lane, Text},
    history::History,
    items::Items,
    patch::check_patch,
    violation::Owner,
};
use super::drive::EventSink;
use crate::protocol::{Event, EventType, MessageId, RunAgentInput, SubagentRunId, ToolCallId, event::StepFinished};

pub(super) use closing::Closing;
pub use violation::Violation;

/// Lets only legal streams through. See the [module](self).
#[derive(Default)]
pub struct Guard {
    lanes: Vec<Lane>,
    texts: Items<MessageId, Text>,
    calls: Items<ToolCallId, Call>,
    /// Reasoning spans and reasoning messages are two namespaces, but an id that names both has one owner.
    spans: Items<MessageId, ()>,
    reasoning_messages: Items<MessageId, ()>,
    steps: IndexSet<(Owner, String)>,
    /// The invocations that were announced, and whether each is active.
    subagents: IndexMap<SubagentRunId, bool>,
    /// Invocations that events were attributed to unannounced; an announcement must not follow.
    unannounced: IndexSet<SubagentRunId>,
    activities: HashMap<MessageId, Owner>,
    /// Messages that exist without having been streamed: tool results, the messages that hold tool calls,
    /// and what a snapshot brought.
    implicit: HashMap<MessageId, Implicit>,
    /// Calls that were answered before they were made in this run.
    answered: HashSet<ToolCallId>,
    history: History,
}

impl Guard {
    /// A guard for a run that starts from an input.
    pub fn new(input: &RunAgentInput) -> Self {
        Self { history: History::of(&input.messages), ..Self::default() }
    }

    /// Takes the agent's next event, and passes on what is to be sent.
    ///
    /// Lifecycle events are the driver's and are not taken here.
    ///
    /// # Errors
    /// A [`Violation`] when the event cannot be sent, nor anything in its stead.
    pub fn admit(&mut self, event: Event, out: &mut impl EventSink) -> Result<(), Violation> {
        if let Some(owner) = event.subagent_run_id()
            && !self.subagents.contains_key(owner)
        {
            self.unannounced.insert(owner.clone());
        }
        if !self.lanes.is_empty() {
            self.close_chunks_before(&event, out)?;
        }
        // Whether the event, checked and noted, is to be sent as it is.
        let send = match &event {
            Event::TextMessageContent(e) => self.text_content(e)?,
            Event::ToolCallArgs(e) => self.call_args(e)?,
            Event::ReasoningMessageContent(e) => self.thought_content(e)?,
            Event::TextMessageStart(e) => self.text_start(e)?,
            Event::TextMessageEnd(e) => self.text_end(e)?,
            Event::ToolCallStart(e) => return self.call_start(e, out),
            Event::ToolCallEnd(e) => self.call_end(e)?,
            Event::ToolCallResult(e) => self.call_result(e, out)?,
            Event::ReasoningStart(e) => return self.span_start(e, out),
            Event::ReasoningEnd(e) => self.span_end(e)?,
            Event::ReasoningMessageStart(e) => return self.thought_start(e, out),
            Event::ReasoningMessageEnd(e) => self.thought_end(e)?,
            Event::ReasoningEncryptedValue(e) => self.encrypted_value(e)?,
            Event::TextMessageChunk(e) => return self.text_chunk(e, out),
            Event::ToolCallChunk(e) => return self.call_chunk(e, out),
            Event::ReasoningMessageChunk(e) => return self.thought_chunk(e, out),
            Event::StepStarted(e) => {
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
            Event::SubagentFinished(e) => self.subagent_ended(&e.subagent_run_id, out),
            Event::SubagentError(e) => self.subagent_ended(&e.subagent_run_id, out),
            Event::ActivitySnapshot(e) => self.activity_snapshot(e)?,
            Event::ActivityDelta(e) => self.activity_delta(e)?,
            Event::MessagesSnapshot(e) => self.messages_snapshot(e)?,
            Event::StateDelta(e) => check_patch(EventType::StateDelta, &e.delta)?,
            Event::StateSnapshot(_) | Event::Raw(_) | Event::Custom(_) => true,
            Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) => {
                return Err(Violation::new(event.event_type(), "only the server sends it"));
            }
        };
        if send {
            out.emit(&event);
        }
        Ok(())
    }

    /// A step that is not open, or not open for this owner, has nothing to finish.
    fn step_finished(&mut self, event: &StepFinished) -> bool {
        self.steps.shift_remove(&(event.subagent_run_id.clone(), event.step_name.clone()))
    }
}

#[cfg(test)]
mod tests;
