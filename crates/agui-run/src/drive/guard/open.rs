//! What is open: for a client that reads a run from its middle on.

use super::{Guard, violation::Owner};
use agui_protocol::{
    Event, MessageId, ToolCallId,
    event::{ReasoningStart, StepStarted, SubagentFinished},
};

impl Guard {
    pub(crate) fn has_open_message(&self, id: &MessageId) -> bool {
        self.texts.is_open(id) || self.reasoning_messages.is_open(id)
    }

    pub(crate) fn has_open_call(&self, id: &ToolCallId) -> bool {
        self.calls.is_open(id)
    }

    /// Returns the owner of a call of this run.
    pub(crate) fn owner_of_call(&self, id: &ToolCallId) -> Owner {
        self.calls.get(id).and_then(|call| call.owner.clone())
    }

    /// Returns the events that open what has no message: subagents, steps and spans of reasoning.
    pub(crate) fn open_scopes(&self) -> Vec<Event> {
        let started = self.subagents.values().map(|subagent| subagent.started.clone().into());
        let mut events: Vec<Event> = started.collect();
        for (owner, name) in &self.steps {
            events.push(Event::from(StepStarted::new(name.clone())).attributed_to(owner.clone()));
        }
        for (id, owner) in self.reasoning_spans.open_items() {
            events.push(Event::from(ReasoningStart::new(id.clone())).attributed_to(owner.clone()));
        }
        events
    }

    /// Returns the ends of the subagents that have ended.
    pub(crate) fn ended_subagents(&self) -> impl Iterator<Item = Event> {
        let ended = self.subagents.iter().filter(|(_, subagent)| !subagent.is_active);
        ended.map(|(id, _)| SubagentFinished::new(id.clone()).into())
    }
}
