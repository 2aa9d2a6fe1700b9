//! Calls and their results. A call that the endpoint announces again after a reply is the earlier one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{
    Mender,
    ids::{ItemOwner, RunMessage},
    items::{AnnouncedCall, CallState},
};
use agui_base::repairs::Repair;
use agui_protocol::{
    Event, EventType, Message, MessageContent, MessageId, Role, ToolCallId,
    event::{
        TextMessageRole, ToolCallArgs, ToolCallChunk, ToolCallEnd, ToolCallResult, ToolCallStart,
    },
};

impl Mender {
    pub(super) fn call_start(&mut self, mut event: ToolCallStart, out: &mut Vec<Event>) {
        let theirs = event.tool_call_id.clone();
        let name = event.tool_call_name.as_str();
        if let Some(known) =
            self.calls.get_mut(&theirs).filter(|known| known.name == name && !known.has_result)
        {
            match known.state {
                CallState::Open | CallState::Known => {
                    return self
                        .note(Repair::Order, "the start of a call that has begun was left out");
                }
                CallState::Closed => {
                    known.state = CallState::Open;
                    event.tool_call_id = known.id.clone();
                    event.parent_message_id = None;
                    let owner = known.owner.clone();
                    return out.push(Event::from(event).attributed_to(owner));
                }
            }
        }
        if let Some(id) = self.known_call(&theirs, name) {
            return self.set_known_call(theirs, id, event.tool_call_name, event.subagent_run_id);
        }
        self.new_call(&mut event);
        out.push(event.into());
        for piece in self.early.take(&theirs) {
            self.call_args(piece, out);
        }
    }

    /// Returns the id of the call that an endpoint announces again: one of a snapshot of this run, one that the newest
    /// messages decide, or after a reply, one of the thread that has no result.
    fn known_call(&self, theirs: &ToolCallId, name: &str) -> Option<ToolCallId> {
        if self.calls.contains_key(theirs) {
            return None;
        }
        if let Some((id, _)) = self.snapshot_calls.get(theirs).filter(|(_, known)| known == name) {
            return Some(id.clone());
        }
        let (id, known) = self.ids.earlier_call(theirs)?;
        let has_result = self.ids.history.iter().any(|message| is_result_of(message, id));
        let is_again = self.decided.contains(id) || (self.is_reply && !has_result);
        (known == name && is_again).then(|| id.clone())
    }

    /// Gives a new call its id, its parent and its owner.
    fn new_call(&mut self, event: &mut ToolCallStart) {
        let theirs = event.tool_call_id.clone();
        let id = self.ids.new_call(&theirs);
        if id != theirs {
            self.note(
                Repair::Id,
                "the id of an earlier call was used again; the call has a new one",
            );
        }
        event.parent_message_id = self.parent(event);
        // A call belongs to the owner of its message.
        let parent = event.parent_message_id.as_ref().and_then(|id| self.ids.messages.get(id));
        let owner =
            event.subagent_run_id.clone().or_else(|| parent.and_then(|known| known.owner.clone()));
        event.subagent_run_id.clone_from(&owner);
        let message = event.parent_message_id.clone().unwrap_or_else(|| id.as_str().into());
        if !self.ids.messages.contains_key(&message)
            && self.ids.history.position(&message).is_none()
        {
            let message_of_call =
                RunMessage { role: Role::Assistant, owner: owner.clone(), is_implicit: true };
            self.ids.messages.insert(message, message_of_call);
        }
        event.tool_call_id = id.clone();
        let (name, state) = (event.tool_call_name.clone(), CallState::Open);
        self.calls.insert(theirs, AnnouncedCall { id, name, owner, state, has_result: false });
    }

    /// Returns the parent message of a new call, as clients have it. A message from before the run gets no new calls.
    fn parent(&mut self, event: &ToolCallStart) -> Option<MessageId> {
        let theirs = event.parent_message_id.clone().filter(|id| !id.is_empty())?;
        let owner = event.subagent_run_id.clone();
        let id = match self.texts.get(&theirs) {
            Some(known) => known.id.clone(),
            None if self.ids.is_earlier(&theirs) => {
                let role = Some(TextMessageRole::Assistant);
                self.new_message(&theirs, role, None, owner.clone()).id.clone()
            }
            None => theirs,
        };
        let known = self.ids.messages.get(&id);
        // Clients ignore a parent of another role.
        let is_of_another = known.is_some_and(|known| {
            known.role != Role::Assistant || (owner.is_some() && known.owner != owner)
        });
        (!is_of_another).then_some(id)
    }

    pub(super) fn call_args(&mut self, mut event: ToolCallArgs, out: &mut Vec<Event>) {
        let theirs = event.tool_call_id.clone();
        let Some(call) = self.calls.get_mut(&theirs) else {
            if !self.early.add(theirs, event) {
                self.note(
                    Repair::Order,
                    "arguments of too many calls came before their starts, and were left out",
                );
            }
            return;
        };
        if call.state == CallState::Known {
            return;
        }
        if std::mem::replace(&mut call.state, CallState::Open) == CallState::Closed {
            let start = ToolCallStart::new(call.id.clone(), call.name.clone());
            out.push(Event::from(start).attributed_to(call.owner.clone()));
        }
        event.tool_call_id = call.id.clone();
        let owner = call.owner.clone();
        out.push(self.within(event.into(), &owner));
    }

    pub(super) fn call_end(&mut self, mut event: ToolCallEnd, out: &mut Vec<Event>) {
        if let Some(call) = self.calls.get_mut(&event.tool_call_id) {
            if call.state == CallState::Known {
                return;
            }
            let is_open = std::mem::replace(&mut call.state, CallState::Closed) == CallState::Open;
            event.tool_call_id = call.id.clone();
            let (event, owner) = (Event::from(event), call.owner.clone());
            // Chunks may have opened it. They are closed by an event of their owner.
            return out.push(if is_open {
                self.within(event, &owner)
            } else {
                event.attributed_to(owner)
            });
        }
        out.push(event.into());
    }

    pub(super) fn call_chunk(&mut self, mut event: ToolCallChunk, out: &mut Vec<Event>) {
        let (kind, owner) = (EventType::ToolCallChunk, event.subagent_run_id.clone());
        let theirs: ToolCallId = match event.tool_call_id.take() {
            Some(id) => id,
            None => match self.last_chunk(kind, &owner) {
                Some(id) => id.into(),
                None => {
                    return self
                        .note(Repair::Order, "arguments of a call without an id were left out");
                }
            },
        };
        self.set_last_chunk(kind, owner, theirs.shared().clone());
        let args = ToolCallArgs {
            base: event.base.clone(),
            subagent_run_id: event.subagent_run_id.clone(),
            ..ToolCallArgs::new(theirs.clone(), event.delta.clone().unwrap_or_default())
        };
        let is_named = event.tool_call_name.is_some();
        let name = match (event.tool_call_name.take(), self.calls.get(&theirs)) {
            (None, Some(call)) => call.name.clone(),
            (Some(name), _) => name,
            (None, None) => return self.call_args(args, out),
        };
        let is_new = self
            .calls
            .get(&theirs)
            .is_none_or(|call| call.name != name || (call.has_result && is_named));
        if is_new {
            return self.first_chunk(event, theirs, name, out);
        }
        let Some(call) = self.calls.get(&theirs) else { return };
        match call.state {
            CallState::Known => {}
            CallState::Open => self.call_args(args, out),
            CallState::Closed => {
                event.tool_call_id = Some(call.id.clone());
                event.tool_call_name = Some(name);
                event.parent_message_id = None;
                event.subagent_run_id.clone_from(&call.owner);
                out.push(event.into());
            }
        }
    }

    fn first_chunk(
        &mut self,
        mut event: ToolCallChunk,
        theirs: ToolCallId,
        name: String,
        out: &mut Vec<Event>,
    ) {
        if let Some(id) = self.known_call(&theirs, &name) {
            return self.set_known_call(theirs, id, name, event.subagent_run_id);
        }
        let mut start = ToolCallStart::new(theirs.clone(), name);
        start.parent_message_id = event.parent_message_id.take();
        start.subagent_run_id.clone_from(&event.subagent_run_id);
        self.new_call(&mut start);
        if let Some(call) = self.calls.get_mut(&theirs) {
            // Chunks do not open a call here: the guard closes it.
            call.state = CallState::Closed;
        }
        event.subagent_run_id = start.subagent_run_id;
        event.tool_call_id = Some(start.tool_call_id);
        event.tool_call_name = Some(start.tool_call_name);
        event.parent_message_id = start.parent_message_id;
        out.push(event.into());
        for piece in self.early.take(&theirs) {
            self.call_args(piece, out);
        }
    }

    fn set_known_call(
        &mut self,
        theirs: ToolCallId,
        id: ToolCallId,
        name: String,
        owner: ItemOwner,
    ) {
        tracing::debug!(call = id.as_str(), "the remote agent announced a known call again");
        let call = AnnouncedCall { id, name, owner, state: CallState::Known, has_result: false };
        self.calls.insert(theirs, call);
    }

    pub(super) fn call_result(&mut self, mut event: ToolCallResult, out: &mut Vec<Event>) {
        let called = event.tool_call_id.clone();
        event.tool_call_id = self.call_id(&called).unwrap_or_else(|| called.clone());
        let is_in_history = |message: &Message| {
            matches!(message, Message::Tool(result)
                if result.tool_call_id == event.tool_call_id && result.content == event.content)
        };
        let is_new = self.results.insert((event.tool_call_id.clone(), digest(&event.content)));
        if !is_new || self.ids.history.iter().any(is_in_history) {
            return self.note(Repair::Order, "a result that the thread has was left out");
        }
        if let Some(call) = self.calls.get_mut(&called) {
            call.has_result = true;
            if call.state == CallState::Open {
                call.state = CallState::Closed;
            }
            if call.owner != event.subagent_run_id && call.state != CallState::Known {
                // Chunks may have opened it. They are closed by an event of their owner.
                let end = Event::from(ToolCallEnd::new(call.id.clone()));
                out.push(end.attributed_to(call.owner.clone()));
            }
        }
        let message = RunMessage {
            role: Role::Tool,
            owner: event.subagent_run_id.clone(),
            is_implicit: false,
        };
        let theirs = event.message_id.clone();
        event.message_id = self.new_message_id(&theirs, message);
        self.result_ids.insert(theirs, event.message_id.clone());
        out.push(event.into());
    }
}

/// Returns a short digest, by which a repeated result is recognized.
pub(super) fn digest(content: &MessageContent) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{content:?}").hash(&mut hasher);
    hasher.finish()
}

fn is_result_of(message: &Message, call: &ToolCallId) -> bool {
    matches!(message, Message::Tool(result) if result.tool_call_id == *call)
}
