//! Tool calls: what was called, whose the calls are, and which of them have their answer.

use std::collections::{HashMap, HashSet};

use agui_server::protocol::{
    Message, MessageId, Role, RunAgentInput, SubagentRunId, ToolCallId, ToolMessage, event::ToolCallStart,
};

use super::{Owner, calls_of};
use crate::support::checker::{Verdict, agrees, demand};

pub(super) struct Calls {
    /// The tools that are the application's own.
    frontend: HashSet<String>,
    known: HashMap<ToolCallId, Known>,
    /// The calls this run has started, in order.
    started: Vec<ToolCallId>,
    answered: HashSet<ToolCallId>,
    /// The tool messages that came with the input.
    answers_given: HashSet<MessageId>,
}

pub(super) struct Known {
    name: String,
    parent: Parent,
    owner: Owner,
    open: bool,
}

/// The message that holds a call: as its start named it, or as a list of messages shows it. In the latter
/// case, nobody can tell whether the start had named it.
enum Parent {
    Named(Option<MessageId>),
    Shown(MessageId),
}

impl Parent {
    fn is(&self, named: Option<&MessageId>) -> bool {
        match self {
            Self::Named(parent) => parent.as_ref() == named,
            Self::Shown(parent) => named.is_none_or(|named| named == parent),
        }
    }
}

impl Known {
    pub(super) fn proceed(&self, tag: Option<&SubagentRunId>) -> Verdict {
        agrees(tag, self.owner.as_ref())
    }

    pub(super) fn close(&mut self, tag: Option<&SubagentRunId>) -> Verdict {
        self.open = false;
        self.proceed(tag)
    }
}

impl Calls {
    pub(super) fn new(input: &RunAgentInput) -> Self {
        let answers = input.messages.iter().filter(|message| message.role() == Role::Tool);
        Self {
            frontend: input.tools.iter().map(|tool| tool.name.clone()).collect(),
            known: HashMap::new(),
            started: Vec::new(),
            answered: HashSet::new(),
            answers_given: answers.map(|message| message.id().clone()).collect(),
        }
    }

    /// Opens a call, or a closed one again, which then has to be the same call.
    pub(super) fn open(&mut self, event: &ToolCallStart, owner: Owner) -> Verdict {
        let id = &event.tool_call_id;
        let mut parent = Parent::Named(event.parent_message_id.clone());
        if let Some(known) = self.known.remove(id) {
            demand(!known.open, || format!("the call {id:?} is open already"))?;
            let same = known.name == event.tool_call_name && known.parent.is(event.parent_message_id.as_ref());
            demand(same, || format!("the call {id:?} is reopened as another one"))?;
            demand(known.owner == owner, || format!("the call {id:?} of {:?} is reopened by {owner:?}", known.owner))?;
            parent = known.parent;
        }
        self.known.insert(id.clone(), Known { name: event.tool_call_name.clone(), parent, owner, open: true });
        if !self.started.contains(id) {
            self.started.push(id.clone());
        }
        Ok(())
    }

    pub(super) fn open_call(&mut self, id: &ToolCallId) -> Result<&mut Known, String> {
        self.known.get_mut(id).filter(|known| known.open).ok_or_else(|| format!("no call {id:?} is open"))
    }

    pub(super) fn answer(&mut self, id: &ToolCallId) -> Verdict {
        demand(!self.is_the_applications(id), || format!("the call {id:?} is the application's to answer"))?;
        self.answered.insert(id.clone());
        Ok(())
    }

    /// The application's calls must not be answered by way of a snapshot, either.
    pub(super) fn demand_no_made_up_answer(&self, answer: &ToolMessage) -> Verdict {
        let made_up = self.is_the_applications(&answer.tool_call_id) && !self.answers_given.contains(&answer.id);
        demand(!made_up, || format!("{:?} makes up an answer of the application", answer.id))
    }

    /// Takes the calls of a message as history or a snapshot states them.
    pub(super) fn restate(&mut self, message: &Message) {
        for call in calls_of(message) {
            let shown = || Parent::Shown(message.id().clone());
            let known = self.known.entry(call.id.clone()).or_insert_with(|| Known {
                name: String::new(),
                parent: shown(),
                owner: None,
                open: false,
            });
            known.name.clone_from(&call.function.name);
            known.owner = message.subagent_run_id().cloned();
        }
    }

    pub(super) fn unanswered(&self) -> Vec<ToolCallId> {
        self.started.iter().filter(|id| !self.answered.contains(*id)).cloned().collect()
    }

    pub(super) fn owner(&self, id: &ToolCallId) -> Option<&Owner> {
        self.known.get(id).map(|known| &known.owner)
    }

    pub(super) fn open_calls(&self) -> impl Iterator<Item = String> {
        self.known.iter().filter(|(_, known)| known.open).map(|(id, _)| format!("call {id:?}"))
    }

    fn is_the_applications(&self, id: &ToolCallId) -> bool {
        self.started.contains(id) && self.known.get(id).is_some_and(|call| self.frontend.contains(&call.name))
    }
}
