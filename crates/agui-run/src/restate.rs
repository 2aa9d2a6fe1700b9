//! Restates an ended run: a client that asks again for it gets what the store has, and nothing runs.

use std::{borrow::Cow, collections::HashSet};

use serde_json::json;

use super::{
    drive::{guard::Guard, recap::recap, transcript::Transcript},
    limits::run_permit::RunPermit,
};
use agui_base::RunErrorCode;
use agui_protocol::{
    Event, Interrupt, Message, MessageId, Messages, RunId, ThreadId, ToolCallId,
    event::{
        Custom, MessagesSnapshot, RunError, RunFinished, RunOutcome, RunStarted, StateSnapshot,
    },
    own_names::RESTATED,
};
use agui_store::{MessageNode, MessageNumber, RunRecord, RunStatus, ThreadView, host::branch_of};

/// The end of a run, as events for a client that asks for it again.
pub struct RestatedRun {
    /// From `RUN_STARTED` to the terminal event.
    pub events: Vec<Event>,
    /// The memory of the events.
    pub permit: RunPermit,
}

/// The stored end of a run.
pub(crate) struct StoredEnd<'a> {
    /// The thread with all its messages.
    pub(crate) view: &'a ThreadView,
    pub(crate) run: &'a RunRecord,
    /// The last message of the run's branch.
    pub(crate) head: MessageNumber,
    pub(crate) state: Option<serde_json::Value>,
    /// The run's questions that are still open.
    pub(crate) open: Vec<Interrupt>,
}

impl StoredEnd<'_> {
    /// Returns the events for a client that calls the run so, and shows these messages: the run's own ones, each whole, for a client that shows none of
    /// them, or else a snapshot of the branch.
    pub(crate) fn events(&self, id: &RunId, shown: &HashSet<&MessageId>) -> Vec<Event> {
        let Self { view, run, .. } = self;
        let thread = &view.thread.key.id;
        let value = json!({ "runId": id, "attempt": run.attempt, "status": run.status, "reason": run.end_reason });
        let mut events: Vec<Event> = vec![
            RunStarted::new(thread.clone(), id.clone()).into(),
            Custom::new(RESTATED, value).into(),
        ];
        let own = view.nodes.iter().filter(|node| node.origin.run() == Some(run.number));
        let own: Vec<_> = own.map(|node| &node.message).collect();
        let state = self.state.clone().unwrap_or_else(|| json!({}));
        if own.iter().any(|message| shown.contains(message.id())) {
            events.push(StateSnapshot::new(state).into());
            events.push(MessagesSnapshot::new(self.branch()).into());
        } else {
            let mut transcript = Transcript::new(Messages::default(), state);
            own.into_iter().for_each(|message| transcript.push(message.clone()));
            events.extend(recap(&transcript, &Guard::default(), 0).into_iter().flatten());
        }
        events.push(self.terminal(thread, id));
        events
    }

    /// Returns the current branch if it contains the run's end, else the run's own branch.
    fn branch(&self) -> Messages {
        let current = branch_of(&self.view.nodes, self.view.thread.head);
        let has_end = self.head == MessageNumber::default()
            || current.iter().any(|node| node.number == self.head);
        let branch = if has_end { current } else { branch_of(&self.view.nodes, self.head) };
        branch
            .into_iter()
            .map(|node: &MessageNode| node.message.clone())
            .collect::<Vec<Message>>()
            .into()
    }

    /// Returns the calls of the run that have no result: they are for the page.
    fn pending_calls(&self) -> Vec<ToolCallId> {
        let results = self.view.nodes.iter().filter_map(|node| match &node.message {
            Message::Tool(result) => Some(&result.tool_call_id),
            _ => None,
        });
        let results: HashSet<_> = results.collect();
        let own = self.view.nodes.iter().filter(|node| node.origin.run() == Some(self.run.number));
        let calls = own.flat_map(|node| node.message.tool_calls()).map(|call| &call.id);
        calls.filter(|call| !results.contains(call)).cloned().collect()
    }

    fn terminal(&self, thread: &ThreadId, id: &RunId) -> Event {
        let outcome = match self.run.status {
            RunStatus::Failed => {
                let failure = self.run.failure.clone();
                let (code, message) =
                    failure.map(|failure| (failure.code, failure.message)).unwrap_or_default();
                let code = code.map_or(RunErrorCode::AgentError.as_str().into(), Cow::Owned);
                return RunError::new(code, message).into();
            }
            RunStatus::Cancelled => RunOutcome::Cancelled,
            _ if self.open.is_empty() => {
                RunOutcome::Success { pending_tool_call_ids: self.pending_calls() }
            }
            _ => RunOutcome::Interrupt { interrupts: self.open.clone() },
        };
        RunFinished::new(thread.clone(), id.clone(), outcome).into()
    }
}
