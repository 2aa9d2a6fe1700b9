//! Mends the events of other people's endpoints, between their reader and the run's guard, which stays strict.
//!
//! An id that the thread has already gets a new one. A message or a call goes on after its end, and may begin without its
//! start. A call that is announced again is the earlier one. No text is lost, and nothing is invented but starts.

mod calls;
mod ids;
mod items;
mod messages;
mod snapshot;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use self::{
    ids::{EndpointIds, ItemOwner, ReplacedIds, RunMessage},
    items::{
        AnnouncedCall, CallState, EarlyArguments, StreamedMessage, StreamedSpan, set_message_id,
    },
};
use agui_base::repairs::{Partner, Repair, repaired};
use agui_protocol::{
    Event, EventType, Message, MessageId, Messages, Role, RunAgentInput, SubagentRunId, ToolCallId,
    event::{
        EncryptedValueSubtype, ReasoningEncryptedValue, RunFinished, RunOutcome, StepFinished,
        StepStarted, SubagentStarted,
    },
};

/// Mends the events of one run.
pub(super) struct Mender {
    ids: EndpointIds,
    /// True if the run replies to an interrupt.
    is_reply: bool,
    /// True if the run goes on with the work of the one before: it brings a reply or the result of a call.
    continues: bool,
    /// The calls of the endpoint's own tools that the newest messages answer, such as an approval at Agno.
    decided: HashSet<ToolCallId>,
    texts: HashMap<MessageId, StreamedMessage>,
    reasoning: HashMap<MessageId, StreamedMessage>,
    spans: HashMap<MessageId, StreamedSpan>,
    calls: HashMap<ToolCallId, AnnouncedCall>,
    early: EarlyArguments,
    /// The calls of this run's snapshots, with the ids that clients get and the names of their tools.
    snapshot_calls: HashMap<ToolCallId, (ToolCallId, String)>,
    /// The ids of this run's tool messages.
    result_ids: HashMap<MessageId, MessageId>,
    /// The results of this run, each a call and a digest.
    results: HashSet<(ToolCallId, u64)>,
    /// The new ids of activities.
    activities: HashMap<MessageId, MessageId>,
    steps: HashSet<(ItemOwner, String)>,
    subagents: HashMap<SubagentRunId, SubagentPhase>,
    /// The item of the last chunk of each type and owner, the newest last.
    last_chunks: Vec<(EventType, ItemOwner, Arc<str>)>,
    /// The mark of messages that the endpoint withdraws from this conversation.
    conversation: Option<String>,
    noted: HashSet<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SubagentPhase {
    /// An event named it before its start.
    Named,
    Active,
    Ended,
}

/// Puts the endpoint's own ids into the messages that it gets.
pub(super) fn restore_ids(messages: &mut Messages) {
    let replaced = ReplacedIds::of(messages);
    if !replaced.is_empty() {
        replaced.restore_in(messages.to_mut());
    }
}

/// Returns the calls that the newest messages answer, except those of the page's tools. An endpoint may announce such a
/// call again and run it, while a page's call with an earlier id is a new one.
fn decided_calls(input: &RunAgentInput) -> HashSet<ToolCallId> {
    let answered: HashSet<&ToolCallId> = input
        .messages
        .iter()
        .rev()
        .map_while(|message| match message {
            Message::Tool(answer) => Some(&answer.tool_call_id),
            _ => None,
        })
        .collect();
    if answered.is_empty() {
        return HashSet::new();
    }
    let is_page_tool = |name: &str| input.tools.iter().any(|tool| tool.name == name);
    let calls = input.messages.iter().flat_map(Message::tool_calls);
    calls
        .filter(|call| answered.contains(&call.id) && !is_page_tool(&call.function.name))
        .map(|call| call.id.clone())
        .collect()
}

impl Mender {
    /// Creates the mender of a run with this input. The ids in `retracted` are not used again.
    pub(super) fn new(input: &RunAgentInput, retracted: HashSet<String>) -> Self {
        Self {
            ids: EndpointIds::new(input.messages.clone(), retracted),
            is_reply: !input.resume.is_empty(),
            continues: !input.resume.is_empty()
                || matches!(input.messages.last(), Some(Message::Tool(_))),
            decided: decided_calls(input),
            texts: HashMap::new(),
            reasoning: HashMap::new(),
            spans: HashMap::new(),
            calls: HashMap::new(),
            early: EarlyArguments::default(),
            snapshot_calls: HashMap::new(),
            result_ids: HashMap::new(),
            results: HashSet::new(),
            activities: HashMap::new(),
            steps: HashSet::new(),
            subagents: HashMap::new(),
            last_chunks: Vec::new(),
            conversation: None,
            noted: HashSet::new(),
        }
    }

    /// Sets the mark of messages that the endpoint withdraws.
    pub(super) fn set_conversation(&mut self, mark: String) {
        self.conversation = Some(mark);
    }

    /// Mends an event that is not of the run's lifecycle. Returns the events in its place, in order.
    pub(super) fn mend(&mut self, event: Event) -> Vec<Event> {
        let event = self.with_subagent(event);
        let mut out = Vec::with_capacity(1);
        match event {
            Event::TextMessageStart(ref start) => {
                let id = start.message_id.clone();
                self.message_start(event, &id, &mut out);
            }
            Event::ReasoningMessageStart(ref start) => {
                let id = start.message_id.clone();
                self.message_start(event, &id, &mut out);
            }
            Event::TextMessageContent(ref content) => {
                let id = content.message_id.clone();
                self.message_content(event, &id, &mut out);
            }
            Event::ReasoningMessageContent(ref content) => {
                let id = content.message_id.clone();
                self.message_content(event, &id, &mut out);
            }
            Event::TextMessageEnd(ref end) => {
                let id = end.message_id.clone();
                self.message_end(event, &id, &mut out);
            }
            Event::ReasoningMessageEnd(ref end) => {
                let id = end.message_id.clone();
                self.message_end(event, &id, &mut out);
            }
            Event::TextMessageChunk(_) | Event::ReasoningMessageChunk(_) => {
                self.message_chunk(event, &mut out);
            }
            Event::ReasoningStart(ref span) => {
                let id = span.message_id.clone();
                self.reasoning_span(event, &id, &mut out);
            }
            Event::ReasoningEnd(ref span) => {
                let id = span.message_id.clone();
                self.reasoning_span(event, &id, &mut out);
            }
            Event::ToolCallStart(start) => self.call_start(start, &mut out),
            Event::ToolCallArgs(args) => self.call_args(args, &mut out),
            Event::ToolCallEnd(end) => self.call_end(end, &mut out),
            Event::ToolCallChunk(chunk) => self.call_chunk(chunk, &mut out),
            Event::ToolCallResult(result) => self.call_result(result, &mut out),
            Event::ReasoningEncryptedValue(value) => out.push(self.encrypted_value(value).into()),
            Event::ActivitySnapshot(_) | Event::ActivityDelta(_) => out.push(self.activity(event)),
            Event::MessagesSnapshot(snapshot) => out.push(self.messages_snapshot(snapshot).into()),
            Event::StepStarted(step) => self.step_started(step, &mut out),
            Event::SubagentStarted(started) => out.extend(self.subagent_started(*started)),
            event => out.push(event),
        }
        out.iter().for_each(|event| self.passed(event));
        out
    }

    /// Maps the ids of calls in the end of the run.
    pub(super) fn finish(&mut self, finished: &mut RunFinished) {
        if !self.early.is_empty() {
            self.note(Repair::Order, "arguments of calls that never began were left out");
        }
        let Some(RunOutcome::Interrupt { interrupts }) = &mut finished.outcome else { return };
        for id in interrupts.iter_mut().filter_map(|asked| asked.subagent_run_id.as_mut()) {
            self.replace_subagent(id);
        }
        for call in interrupts.iter_mut().filter_map(|interrupt| interrupt.tool_call_id.as_mut()) {
            if let Some(id) = self.call_id(call) {
                *call = id;
            }
        }
    }

    /// Returns the id that clients have for a call.
    fn call_id(&self, theirs: &ToolCallId) -> Option<ToolCallId> {
        let of_run = self.calls.get(theirs).map(|call| &call.id);
        let of_snapshot = || self.snapshot_calls.get(theirs).map(|(id, _)| id);
        let earlier = || self.ids.earlier_call(theirs).map(|(id, _)| id);
        of_run.or_else(of_snapshot).or_else(earlier).cloned()
    }

    fn new_message_id(&mut self, theirs: &MessageId, message: RunMessage) -> MessageId {
        let id = self.ids.new_message(theirs, message);
        if id != *theirs {
            self.note(
                Repair::Id,
                "the id of another message was used again; the message has a new one",
            );
        }
        id
    }

    fn encrypted_value(&mut self, mut event: ReasoningEncryptedValue) -> ReasoningEncryptedValue {
        let theirs = event.entity_id.as_str();
        let id: Option<Arc<str>> = match event.subtype {
            EncryptedValueSubtype::ToolCall => {
                self.call_id(&theirs.into()).map(|id| id.shared().clone())
            }
            EncryptedValueSubtype::Message => {
                let streamed = self.reasoning.get(theirs).or_else(|| self.texts.get(theirs));
                let id = streamed.map(|known| &known.id).or_else(|| self.result_ids.get(theirs));
                let earlier = || self.ids.earlier_message(theirs).map(|message| message.id());
                id.or_else(earlier).map(|id| id.shared().clone())
            }
        };
        let owner = match event.subtype {
            EncryptedValueSubtype::ToolCall => self.calls.get(theirs).map(|call| &call.owner),
            EncryptedValueSubtype::Message => id.as_deref().and_then(|id| self.owner_of(id)),
        };
        if owner.is_none_or(|owner| *owner != event.subagent_run_id) {
            event.subagent_run_id = None;
        }
        if let Some(id) = id {
            event.entity_id = id.to_string();
        }
        event
    }

    /// Returns the owner of a message of this run.
    fn owner_of(&self, id: &str) -> Option<&ItemOwner> {
        self.ids.messages.get(id).map(|message| &message.owner)
    }

    /// Gives an activity a new id if another message has its id. An activity from before the run goes on.
    fn activity(&mut self, mut event: Event) -> Event {
        let (theirs, is_snapshot) = match &event {
            Event::ActivitySnapshot(event) => (event.message_id.clone(), true),
            Event::ActivityDelta(event) => (event.message_id.clone(), false),
            _ => return event,
        };
        let id = match self.activities.get(&theirs) {
            Some(id) => id.clone(),
            None => match self.ids.earlier_activity(&theirs) {
                Some(activity) => activity.id().clone(),
                None if !is_snapshot => return event,
                None => {
                    let owner = event.subagent_run_id().cloned();
                    let message = RunMessage { role: Role::Activity, owner, is_implicit: false };
                    let id = self.new_message_id(&theirs, message);
                    self.activities.insert(theirs, id.clone());
                    id
                }
            },
        };
        let replaces =
            matches!(&event, Event::ActivitySnapshot(event) if event.replace != Some(false));
        let owner = event.subagent_run_id().cloned();
        if replaces && let Some(message) = self.ids.messages.get_mut(&id) {
            message.owner.clone_from(&owner);
        }
        let is_its = replaces || self.owner_of(&id) == Some(&owner);
        set_message_id(&mut event, id);
        if is_its { event } else { event.attributed_to(None) }
    }

    /// Gives an event the ids that clients have for its subagents.
    fn with_subagent(&mut self, mut event: Event) -> Event {
        match &mut event {
            Event::SubagentStarted(started) => {
                self.replace_subagent(&mut started.subagent_run_id);
                if let Some(parent) = &mut started.parent_subagent_run_id {
                    self.replace_subagent(parent);
                }
            }
            Event::SubagentFinished(finished) => {
                self.replace_subagent(&mut finished.subagent_run_id);
            }
            Event::SubagentError(error) => self.replace_subagent(&mut error.subagent_run_id),
            _ => {
                if let Some(mut id) = event.subagent_run_id().cloned() {
                    self.replace_subagent(&mut id);
                    return event.attributed_to(Some(id));
                }
            }
        }
        event
    }

    fn replace_subagent(&mut self, id: &mut SubagentRunId) {
        let new = self.ids.subagent(id, self.continues);
        if new != *id {
            self.note(
                Repair::Id,
                "the id of an earlier subagent was used again; the subagent has a new one",
            );
            *id = new;
        }
    }

    fn step_started(&mut self, step: StepStarted, out: &mut Vec<Event>) {
        if self.steps.contains(&(step.subagent_run_id.clone(), step.step_name.clone())) {
            let owner = step.subagent_run_id.clone();
            out.push(Event::from(StepFinished::new(step.step_name.clone())).attributed_to(owner));
        }
        out.push(step.into());
    }

    fn subagent_started(&mut self, mut started: SubagentStarted) -> Option<Event> {
        if self.subagents.contains_key(&started.subagent_run_id) {
            self.note(Repair::Order, "the start of a subagent that is known was left out");
            return None;
        }
        let is_started = |id: &SubagentRunId| {
            self.subagents.get(id).is_some_and(|phase| *phase != SubagentPhase::Named)
        };
        started.parent_subagent_run_id = started.parent_subagent_run_id.filter(is_started);
        if let Some(call) = &started.parent_tool_call_id
            && let Some(id) = self.call_id(call)
        {
            started.parent_tool_call_id = Some(id);
        }
        if let Some(parent) = &mut started.parent_message_id
            && let Some(known) = self.texts.get(parent)
        {
            *parent = known.id.clone();
        }
        Some(started.into())
    }

    /// Keeps what an event that is passed on begins and ends.
    fn passed(&mut self, event: &Event) {
        if let Some(owner) = event.subagent_run_id()
            && !self.subagents.contains_key(owner)
        {
            self.subagents.insert(owner.clone(), SubagentPhase::Named);
        }
        match event {
            Event::StepStarted(step) => {
                self.steps.insert((step.subagent_run_id.clone(), step.step_name.clone()));
            }
            Event::StepFinished(step) => {
                self.steps.remove(&(step.subagent_run_id.clone(), step.step_name.clone()));
            }
            Event::SubagentStarted(started) => {
                self.subagents.insert(started.subagent_run_id.clone(), SubagentPhase::Active);
            }
            Event::SubagentFinished(finished) => self.end_subagent(&finished.subagent_run_id),
            Event::SubagentError(error) => self.end_subagent(&error.subagent_run_id),
            _ => {}
        }
    }

    /// Closes what the guard closes at the end of a subagent.
    fn end_subagent(&mut self, id: &SubagentRunId) {
        let Some(phase @ SubagentPhase::Active) = self.subagents.get_mut(id) else { return };
        *phase = SubagentPhase::Ended;
        let is_its = |owner: &ItemOwner| owner.as_ref() == Some(id);
        self.steps.retain(|(owner, _)| !is_its(owner));
        let spans = self.spans.values_mut().filter(|span| is_its(&span.owner));
        spans.for_each(|span| span.is_open = false);
        let messages = self.texts.values_mut().chain(self.reasoning.values_mut());
        messages
            .filter(|message| is_its(&message.owner))
            .for_each(|message| message.is_open = false);
        let calls = self.calls.values_mut().filter(|call| is_its(&call.owner));
        for call in calls.filter(|call| call.state == CallState::Open) {
            call.state = CallState::Closed;
        }
    }

    /// Returns the item of the last chunk of an owner. A chunk without an owner continues any.
    fn last_chunk(&self, kind: EventType, owner: &ItemOwner) -> Option<Arc<str>> {
        let mut of_kind = self.last_chunks.iter().rev().filter(|(other, ..)| *other == kind);
        let own = of_kind.clone().find(|(_, of, _)| of == owner);
        let last = own.or_else(|| of_kind.next().filter(|_| owner.is_none()));
        last.map(|(.., id)| id.clone())
    }

    fn set_last_chunk(&mut self, kind: EventType, owner: ItemOwner, id: Arc<str>) {
        self.last_chunks.retain(|(other, of, _)| (*other, of) != (kind, &owner));
        self.last_chunks.push((kind, owner, id));
    }

    fn note(&mut self, repair: Repair, problem: &'static str) {
        repaired(Partner::RemoteAgent, repair);
        if self.noted.insert(problem) {
            tracing::warn!("the remote agent's stream was mended: {problem}");
        }
    }
}

#[cfg(test)]
mod tests;
