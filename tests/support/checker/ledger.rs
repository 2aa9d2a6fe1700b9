//! What a run has said so far: which messages, calls, spans, steps and subagents there are, whose they are,
//! and which of them are open.

mod calls;
mod messages;

use std::collections::{HashMap, HashSet};

use agui_server::protocol::{
    Event, JsonObject, Message, MessageId, Role, RunAgentInput, SubagentRunId, ToolCallId,
    event::{EncryptedValueSubtype, MessagesSnapshot, ReasoningEncryptedValue, SubagentStarted},
};

use self::{calls::Calls, messages::Messages};
use super::{Verdict, agrees, demand};

/// Who an item belongs to; `None` is the parent agent.
type Owner = Option<SubagentRunId>;

pub(super) struct Ledger {
    messages: Messages,
    calls: Calls,
    /// Spans are a namespace apart from the messages in them. A closed one keeps its owner.
    spans: HashMap<MessageId, (Owner, bool)>,
    /// Steps are per owner.
    steps: HashSet<(Owner, String)>,
    /// The announced invocations, and whether they are active.
    subagents: HashMap<SubagentRunId, bool>,
    /// Every invocation that an event was attributed to.
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

    /// Takes an event from within the run.
    pub(super) fn admit(&mut self, event: &Event) -> Verdict {
        let tag = event.subagent_run_id();
        self.attributed.extend(tag.cloned());
        match event {
            Event::TextMessageStart(e) => {
                self.messages.open(&e.message_id, e.role.unwrap_or_default().into(), e.name.as_ref(), tag)
            }
            Event::TextMessageContent(e) => self.messages.text(&e.message_id)?.proceed(tag),
            Event::TextMessageEnd(e) => self.messages.text(&e.message_id)?.close(tag),
            Event::ReasoningMessageStart(e) => self.messages.open(&e.message_id, Role::Reasoning, None, tag),
            Event::ReasoningMessageContent(e) => self.messages.reasoning(&e.message_id)?.proceed(tag),
            Event::ReasoningMessageEnd(e) => self.messages.reasoning(&e.message_id)?.close(tag),
            Event::ReasoningStart(e) => self.open_span(&e.message_id, tag),
            Event::ReasoningEnd(e) => self.close_span(&e.message_id, tag),
            Event::ReasoningEncryptedValue(e) => self.attach(e),
            Event::ToolCallStart(e) => {
                // The call of a message nobody has seen brings that message along.
                let parent = e.parent_message_id.as_ref().map(|id| self.messages.hold_call(id, tag)).transpose()?;
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
            // These open, close and own nothing.
            Event::StateSnapshot(_) | Event::StateDelta(_) | Event::Raw(_) | Event::Custom(_) => Ok(()),
            Event::TextMessageChunk(_) | Event::ToolCallChunk(_) | Event::ReasoningMessageChunk(_) => {
                Err("this server expands chunks".into())
            }
            Event::RunStarted(_) => Err("the run has started already".into()),
            Event::RunFinished(_) | Event::RunError(_) => Err("events follow the terminal one".into()),
            _ => Err("an event this checker does not know".into()),
        }
    }

    /// Everything that has to be closed before the run may finish.
    pub(super) fn open(&self) -> Vec<String> {
        let spans = self.spans.iter().filter(|(_, (_, open))| *open).map(|(id, _)| format!("span {id:?}"));
        let steps = self.steps.iter().map(|(owner, name)| format!("step {name:?} of {owner:?}"));
        let subagents = self.subagents.iter().filter(|(_, active)| **active).map(|(id, _)| format!("subagent {id:?}"));
        self.messages.open_ones().chain(self.calls.open_calls()).chain(spans).chain(steps).chain(subagents).collect()
    }

    /// The calls this run has made and not answered, in the order they were made.
    pub(super) fn unanswered_calls(&self) -> Vec<ToolCallId> {
        self.calls.unanswered()
    }

    fn open_span(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Verdict {
        let (owner, open) = self.spans.entry(id.clone()).or_insert_with(|| (tag.cloned(), false));
        demand(!std::mem::replace(open, true), || format!("the span {id:?} is open already"))?;
        agrees(tag, owner.as_ref())
    }

    fn close_span(&mut self, id: &MessageId, tag: Option<&SubagentRunId>) -> Verdict {
        let Some((owner, open @ true)) = self.spans.get_mut(id) else {
            return Err(format!("no span {id:?} is open"));
        };
        *open = false;
        agrees(tag, owner.as_ref())
    }

    /// An artefact of something unknown is lost, not wrong; that of something known has its owner.
    fn attach(&self, event: &ReasoningEncryptedValue) -> Verdict {
        let id = event.entity_id.as_str();
        let owner = match event.subtype {
            EncryptedValueSubtype::Message => self.messages.owner(&id.into()),
            EncryptedValueSubtype::ToolCall => self.calls.owner(&id.into()),
        };
        owner.map_or(Ok(()), |owner| agrees(event.subagent_run_id.as_ref(), owner.as_ref()))
    }

    fn announce(&mut self, event: &SubagentStarted) -> Verdict {
        let id = &event.subagent_run_id;
        demand(!self.attributed.contains(id), || format!("{id:?} is announced after it was heard of"))?;
        if let Some(parent) = &event.parent_subagent_run_id {
            demand(self.subagents.contains_key(parent), || format!("the parent {parent:?} was never announced"))?;
        }
        demand(self.subagents.insert(id.clone(), true).is_none(), || format!("{id:?} is announced again"))
    }

    fn retire(&mut self, id: &SubagentRunId) -> Verdict {
        let was_active = self.subagents.get_mut(id).is_some_and(std::mem::take);
        demand(was_active, || format!("{id:?} is not active"))
    }

    /// A snapshot of the conversation says anew what each message is and whose, and what is open stays open.
    fn reconcile(&mut self, event: &MessagesSnapshot) -> Verdict {
        let (mut ids, mut call_ids) = (HashSet::new(), HashSet::new());
        for message in &event.messages {
            let id = message.id();
            demand(ids.insert(id), || format!("the message {id:?} is there twice"))?;
            self.messages.demand_role_if_open(id, message.role())?;
            for call in calls_of(message) {
                demand(call_ids.insert(&call.id), || format!("the call {:?} is there twice", call.id))?;
            }
        }
        for message in &event.messages {
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
