//! The state of a run after the events so far: its messages, tool calls, reasoning spans, steps and subagents, their
//! owners, and which of them are open.

mod calls;
mod messages;

use std::collections::{HashMap, HashSet};

use agui_server::protocol::{
    Event, JsonObject, Message, MessageId, Role, RunAgentInput, SubagentRunId, ToolCallId,
    event::{EncryptedValueSubtype, MessagesSnapshot, ReasoningEncryptedValue, SubagentStarted},
};

use self::{calls::Calls, messages::Messages};
use super::{Verdict, check_owner, demand};

/// The owner of an item: a subagent's invocation; `None` is the parent agent.
type Owner = Option<SubagentRunId>;

pub(super) struct Ledger {
    messages: Messages,
    calls: Calls,
    /// Owner of each reasoning span, and whether it is open. Span ids and message ids are separate namespaces. A closed
    /// span keeps its owner.
    spans: HashMap<MessageId, (Owner, bool)>,
    /// The open steps. Two owners may have steps of the same name.
    steps: HashSet<(Owner, String)>,
    /// The announced invocations, and whether they are active.
    subagents: HashMap<SubagentRunId, bool>,
    /// The invocations that events were attributed to, announced or not.
    attributed: HashSet<SubagentRunId>,
}

impl Ledger {
    pub(super) fn new(input: &RunAgentInput) -> Self {
        let mut ledger = Self {
            messages: Messages::default(),
            calls: Calls::default(),
            spans: HashMap::new(),
            steps: HashSet::new(),
            subagents: HashMap::new(),
            attributed: HashSet::new(),
        };
        for message in &input.messages {
            ledger.messages.restate(message);
            ledger.calls.restate(message, true);
        }
        ledger
    }

    /// Checks and applies an event between the first and the last of the run.
    pub(super) fn admit(&mut self, event: &Event) -> Verdict {
        let tag = event.subagent_run_id();
        self.attributed.extend(tag.cloned());
        match event {
            Event::TextMessageStart(e) => self.messages.open(
                &e.message_id,
                e.role.unwrap_or_default().into(),
                e.name.as_ref(),
                tag,
            ),
            Event::TextMessageContent(e) => self.messages.text(&e.message_id)?.proceed(tag),
            Event::TextMessageEnd(e) => self.messages.text(&e.message_id)?.close(tag),
            Event::ReasoningMessageStart(e) => {
                self.messages.open(&e.message_id, Role::Reasoning, None, tag)
            }
            Event::ReasoningMessageContent(e) => {
                self.messages.reasoning(&e.message_id)?.proceed(tag)
            }
            Event::ReasoningMessageEnd(e) => self.messages.reasoning(&e.message_id)?.close(tag),
            Event::ReasoningStart(e) => self.open_span(&e.message_id, tag),
            Event::ReasoningEnd(e) => self.close_span(&e.message_id, tag),
            Event::ReasoningEncryptedValue(e) => self.attach(e),
            Event::ToolCallStart(e) => {
                // A call with an unknown parent message creates that message.
                let parent = e
                    .parent_message_id
                    .as_ref()
                    .map(|id| self.messages.hold_call(id, tag))
                    .transpose()?;
                self.calls.open(e, parent.unwrap_or_else(|| tag.cloned()))
            }
            Event::ToolCallArgs(e) => self.calls.open_call(&e.tool_call_id)?.proceed(tag),
            Event::ToolCallEnd(e) => self.calls.open_call(&e.tool_call_id)?.close(tag),
            Event::ToolCallResult(e) => {
                self.messages.result(&e.message_id, tag)?;
                self.calls.answer(&e.tool_call_id);
                Ok(())
            }
            Event::StepStarted(e) => {
                let is_new = self.steps.insert((tag.cloned(), e.step_name.clone()));
                demand(is_new, || format!("the step {:?} of {tag:?} is open already", e.step_name))
            }
            Event::StepFinished(e) => {
                let was_open = self.steps.remove(&(tag.cloned(), e.step_name.clone()));
                demand(was_open, || format!("no step {:?} of {tag:?} is open", e.step_name))
            }
            Event::SubagentStarted(e) => self.announce(e),
            Event::SubagentFinished(e) => self.retire(&e.subagent_run_id),
            Event::SubagentError(e) => self.retire(&e.subagent_run_id),
            Event::ActivitySnapshot(e) => self.messages.set_activity(e),
            Event::ActivityDelta(e) => self.messages.amend_activity(e),
            Event::MessagesSnapshot(e) => self.reconcile(e),
            // These neither open nor close an item.
            Event::StateSnapshot(_) | Event::StateDelta(_) | Event::Raw(_) | Event::Custom(_) => {
                Ok(())
            }
            Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => Err("this server expands chunks".into()),
            Event::RunStarted(_) => Err("the run has started already".into()),
            Event::RunFinished(_) | Event::RunError(_) => {
                Err("events follow the terminal one".into())
            }
        }
    }

    /// The open items, which have to be closed before RUN_FINISHED.
    pub(super) fn open(&self) -> Vec<String> {
        let spans =
            self.spans.iter().filter(|(_, (_, open))| *open).map(|(id, _)| format!("span {id:?}"));
        let steps = self.steps.iter().map(|(owner, name)| format!("step {name:?} of {owner:?}"));
        let subagents = self
            .subagents
            .iter()
            .filter(|(_, active)| **active)
            .map(|(id, _)| format!("subagent {id:?}"));
        self.messages
            .open_ones()
            .chain(self.calls.open_calls())
            .chain(spans)
            .chain(steps)
            .chain(subagents)
            .collect()
    }

    /// The calls that this run has started and not answered, in the order of their starts.
    pub(super) fn unanswered_calls(&self) -> Vec<ToolCallId> {
        self.calls.unanswered()
    }

    fn open_span(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Verdict {
        let (owner, open) = self.spans.entry(id.clone()).or_insert_with(|| (tag.cloned(), false));
        demand(!std::mem::replace(open, true), || format!("the span {id:?} is open already"))?;
        check_owner(tag, owner.as_ref())
    }

    fn close_span(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Verdict {
        let Some((owner, open @ true)) = self.spans.get_mut(id) else {
            return Err(format!("no span {id:?} is open"));
        };
        *open = false;
        check_owner(tag, owner.as_ref())
    }

    /// An encrypted value of an unknown entity is legal: clients ignore it. Otherwise it has the owner of its entity.
    fn attach(&self, event: &ReasoningEncryptedValue) -> Verdict {
        let id = event.entity_id.as_str();
        let owner = match event.subtype {
            EncryptedValueSubtype::Message => self.messages.owner(&id.into()),
            EncryptedValueSubtype::ToolCall => self.calls.owner(&id.into()),
        };
        owner.map_or(Ok(()), |owner| check_owner(event.subagent_run_id.as_ref(), owner.as_ref()))
    }

    fn announce(&mut self, event: &SubagentStarted) -> Verdict {
        let id = &event.subagent_run_id;
        demand(!self.attributed.contains(id), || {
            format!("{id:?} is announced after an event was attributed to it")
        })?;
        if let Some(parent) = &event.parent_subagent_run_id {
            demand(self.subagents.contains_key(parent), || {
                format!("the parent {parent:?} was never announced")
            })?;
        }
        demand(self.subagents.insert(id.clone(), true).is_none(), || {
            format!("{id:?} is announced again")
        })
    }

    fn retire(&mut self, id: &SubagentRunId) -> Verdict {
        let was_active = self.subagents.get_mut(id).is_some_and(std::mem::take);
        demand(was_active, || format!("{id:?} is not active"))
    }

    /// A snapshot of the conversation sets role, name and owner of each message. Open items stay open.
    fn reconcile(&mut self, event: &MessagesSnapshot) -> Verdict {
        let (mut ids, mut call_ids) = (HashSet::new(), HashSet::new());
        for message in &event.messages {
            let id = message.id();
            demand(ids.insert(id), || format!("the message {id:?} is there twice"))?;
            self.messages.demand_role_if_open(id, message.role())?;
            for call in calls_of(message) {
                demand(call_ids.insert(&call.id), || {
                    format!("the call {:?} is there twice", call.id)
                })?;
            }
        }
        for message in &event.messages {
            // The official client keeps one owner for a span and a reasoning message of the same id.
            if let (Role::Reasoning, Some((owner, _))) =
                (message.role(), self.spans.get_mut(message.id()))
            {
                *owner = message.subagent_run_id().cloned();
            }
            self.messages.restate(message);
            self.calls.restate(message, false);
        }
        Ok(())
    }
}

fn calls_of(message: &Message) -> &[agui_server::protocol::ToolCall] {
    match message {
        Message::Assistant(assistant) => assistant.tool_calls(),
        _ => &[],
    }
}

fn object(content: &JsonObject) -> serde_json::Value {
    serde_json::Value::Object(content.clone())
}
