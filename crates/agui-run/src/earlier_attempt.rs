//! The attempt of a request that a new one continues: it had started a call, and broke off.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    conversation::{
        branch::LoadedThread,
        match_branch::{AppendedMessage, BranchCase, BranchMatch},
        plan::Plan,
    },
    drive::transcript::replaced_messages,
    log::{mark::LogMark, restored_run::RestoredRun},
    persist::stored_request::StoredRequest,
    turn::thread_core::ThreadCore,
};
use agui_agent::Continuation;
use agui_protocol::{
    Event, Message, ResumeEntry, RunAgentInput,
    event::{Custom, StateSnapshot},
    own_names::RUN_CONTINUED,
};
use agui_store::{
    EndReason, RunNumber, RunRecord, StateNumber, StoreError, ThreadKey, ThreadParts,
    ThreadVersion, host::branch_of,
};

/// The attempt that a new one continues, up to its last mark.
pub(crate) struct EarlierAttempt {
    /// The version of the thread whose newest run it is.
    pub(crate) version: ThreadVersion,
    run: RunNumber,
    first_run: Option<RunNumber>,
    /// The replies that its agent got.
    resume: Vec<ResumeEntry>,
    /// The number of messages that it began with.
    began_with: usize,
    /// The messages that it added, and the state.
    added: Vec<Message>,
    state: Value,
    lost: u32,
    pub(crate) continuation: Continuation,
}

impl EarlierAttempt {
    /// Reads an ended attempt. Returns `None` if it cannot be continued.
    pub(crate) async fn read(
        threads: &ThreadCore,
        key: &ThreadKey,
        attempt: &RunRecord,
        first_run: Option<RunNumber>,
    ) -> Result<Option<Self>, StoreError> {
        let store = &threads.store;
        if !attempt.detached || !store.store.is_durable() {
            return Ok(None);
        }
        let Some(start) = store.run_start(&key.owner, attempt.number).await? else {
            return Ok(None);
        };
        let Ok(request) = StoredRequest::from_json(&start.request) else { return Ok(None) };
        let all = ThreadParts { messages: true, ..ThreadParts::default() };
        let Some(view) = store.thread(key, all).await? else { return Ok(None) };
        let version = ThreadVersion { number: attempt.thread, version: view.thread.version };
        let branch = branch_of(&view.nodes, start.head);
        let numbers: HashSet<_> = branch.iter().map(|node| node.number).collect();
        let began_with = view.nodes.into_iter().filter(|node| numbers.contains(&node.number));
        let began_with: Vec<_> = began_with.map(|node| node.message).collect();
        let count = began_with.len();
        let mut restored =
            RestoredRun::read(store, key, attempt, began_with.into(), start.state).await?;
        let is_lost = attempt.end_reason == Some(EndReason::Lost);
        if restored.is_damaged
            || !restored.has_unsafe_calls
            || restored.kept.has_changed_base()
            || (is_lost && restored.lost >= threads.options.runs.max_continuations)
        {
            return Ok(None);
        }
        restored.attempt += 1;
        restored.earlier_marks = restored.marks.len();
        Ok(Some(Self {
            version,
            run: attempt.number,
            first_run,
            resume: request.into_resume(),
            lost: restored.lost + u32::from(is_lost),
            continuation: restored.continuation(),
            began_with: count,
            added: restored.kept.new_messages().cloned().collect(),
            state: restored.kept.state().clone(),
        }))
    }

    /// Returns the plan of the attempt that continues this one. What the client shows does not count.
    pub(crate) fn plan(&self, loaded: &LoadedThread) -> Plan {
        let stored = loaded.branch.messages().iter().skip(self.began_with);
        // The store has files in place of data, which only whole messages have.
        let is_stored = |(stored, kept): &(&Message, &Message)| {
            stored.id() == kept.id()
                && (stored == kept
                    || !matches!(kept, Message::Assistant(_) | Message::Reasoning(_)))
        };
        let kept = stored.zip(&self.added).take_while(is_stored).count();
        let others = self.added[kept..].iter().cloned();
        let appended = others.map(|message| AppendedMessage::Known(Box::new(message), self.run));
        let has_state = |(_, stored): &&(StateNumber, Value)| *stored == self.state;
        let known_state = loaded.state.as_ref().filter(has_state);
        Plan::continuing(
            BranchMatch {
                case: BranchCase::Unseen,
                kept: self.began_with + kept,
                updated: Vec::new(),
                appended: appended.collect(),
                client_differs: false,
            },
            (known_state.map(|(number, _)| *number), self.state.clone()),
            self.first_run,
            self.resume.clone(),
        )
    }

    /// Returns the first line of the new attempt's log.
    pub(crate) fn first_line(&self) -> String {
        let Continuation { attempt, marks, .. } = &self.continuation;
        LogMark::Earlier { attempt: *attempt, lost: self.lost, marks: marks.clone() }.to_line()
    }

    /// Returns the events after `RUN_STARTED`, for clients that show more or less than these messages.
    pub(crate) fn snapshots(&self, input: &RunAgentInput) -> Vec<Event> {
        vec![
            run_continued(self.continuation.attempt, "repeated"),
            StateSnapshot::new(input.state_or_empty()).into(),
            replaced_messages(input.messages.clone()),
        ]
    }
}

pub(crate) fn run_continued(attempt: u32, cause: &str) -> Event {
    Custom::new(RUN_CONTINUED, json!({ "attempt": attempt, "cause": cause })).into()
}
