//! A thread after a reload, run by run: pages show each message with the state of its run.
//!
//! A page notes for each run its last state, and for each message the run that completed it, or else the first one whose snapshot had
//! it. So the first run brings a snapshot of all messages, and each later one completes its own again: an empty chunk changes
//! nothing of a message. A snapshot for each run would cost the square of the number of messages. An activity is complete only when
//! it is created, so the snapshot has an empty message in its place.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::http::connect::RestatedThread;
use agui_protocol::{
    ActivityMessage, AssistantMessage, Event, Message, Messages, RunId,
    event::{
        ActivitySnapshot, MessagesSnapshot, RunFinished, RunOutcome, RunStarted, StateSnapshot,
        TextMessageChunk,
    },
};
use agui_store::{
    StateNumber, ThreadView,
    host::{branch_of, json_len},
};

/// The size of the states that are sent beside the current one, in bytes. The runs before are restated as one.
const MAX_STATE_BYTES: u64 = 256 * 1024;

/// A run of the current branch, or several as the last of them.
struct RestatedRun<'v> {
    id: &'v RunId,
    /// The number of its state.
    state: Option<StateNumber>,
    messages: Vec<&'v Message>,
}

/// Restates a thread. Runs before the view are restated with its oldest one. `followed` is the
/// running run.
pub(super) fn restate(view: &ThreadView, followed: Option<&RunId>) -> RestatedThread {
    let mut runs = runs(view, followed);
    let current = view.thread.state.as_ref().map(|(number, state)| (*number, state));
    if let Some(last) = runs.last_mut() {
        last.state = current.map(|(number, _)| number);
    }
    let states: HashMap<StateNumber, &Value> =
        view.run_states.iter().map(|(number, state)| (*number, state)).chain(current).collect();
    let runs = &runs[first_with_state(&runs, &states)..];
    let (thread_id, mut events) = (&view.thread.key.id, Vec::new());
    let mut before: Option<&RestatedRun<'_>> = None;
    for run in runs {
        match before {
            None => {
                events.push(RunStarted::new(thread_id.clone(), run.id.clone()).into());
                events.push(MessagesSnapshot::new(messages(view, runs)).into());
            }
            Some(before) => {
                events.push(
                    RunFinished::new(thread_id.clone(), before.id.clone(), RunOutcome::success())
                        .into(),
                );
                events.push(RunStarted::new(thread_id.clone(), run.id.clone()).into());
                events.extend(run.messages.iter().map(|message| completion(message)));
            }
        }
        if before.is_none_or(|before| before.state != run.state) {
            let state = run.state.and_then(|number| states.get(&number).copied());
            events.push(StateSnapshot::new(state.cloned().unwrap_or_else(|| json!({}))).into());
        }
        before = Some(run);
    }
    let run_id = before.map_or(&view.thread.run_id, |last| last.id).clone();
    RestatedThread { thread_id: thread_id.clone(), run_id, events }
}

/// Returns the runs of the current branch, at least one. A client's message belongs to the run that
/// answered it.
fn runs<'v>(view: &'v ThreadView, followed: Option<&'v RunId>) -> Vec<RestatedRun<'v>> {
    let records: HashMap<_, _> = view.runs.iter().map(|run| (run.number, run)).collect();
    let (mut runs, mut messages) = (Vec::new(), Vec::new());
    let mut current = None;
    for node in branch_of(&view.nodes, view.thread.head) {
        let run = node.origin.run().and_then(|number| records.get(&number).copied());
        if let Some(ended) = current.filter(|_| current != run) {
            runs.push(RestatedRun {
                id: &ended.id,
                state: ended.state,
                messages: std::mem::take(&mut messages),
            });
        }
        current = run;
        messages.push(&node.message);
    }
    if let Some(ended) = current {
        runs.push(RestatedRun {
            id: &ended.id,
            state: ended.state,
            messages: std::mem::take(&mut messages),
        });
    }
    if followed.is_some() || !messages.is_empty() || runs.is_empty() {
        runs.push(RestatedRun {
            id: followed.unwrap_or(&view.thread.run_id),
            state: None,
            messages,
        });
    }
    runs
}

/// Returns the position of the first run whose state is sent.
fn first_with_state(runs: &[RestatedRun<'_>], states: &HashMap<StateNumber, &Value>) -> usize {
    let Some((last, earlier)) = runs.split_last() else { return 0 };
    // The current state is sent in any case.
    let (mut bytes, mut counted) = (0, HashSet::from([last.state]));
    let exceeds = |run: &RestatedRun<'_>| {
        let new = run.state.filter(|number| counted.insert(Some(*number)));
        bytes += new.and_then(|number| states.get(&number)).map_or(0, |state| json_len(*state));
        bytes > MAX_STATE_BYTES
    };
    earlier.iter().rposition(exceeds).map_or(0, |position| position + 1)
}

/// Returns all messages, with an empty one for each activity of a later run.
fn messages(view: &ThreadView, runs: &[RestatedRun<'_>]) -> Messages {
    let later = runs.iter().skip(1).map(|run| run.messages.len()).sum::<usize>();
    let branch = view.current_branch();
    let first = branch.len() - later;
    let restated = branch.into_iter().enumerate().map(|(position, message)| match message {
        Message::Activity(activity) if position >= first => {
            Message::Assistant(AssistantMessage::new(activity.id.clone()))
        }
        message => message.clone(),
    });
    restated.collect()
}

/// Returns the event that completes a message which the page has.
fn completion(message: &Message) -> Event {
    match message {
        Message::Activity(ActivityMessage {
            id,
            activity_type,
            content,
            metadata,
            subagent_run_id,
            ..
        }) => {
            let mut snapshot =
                ActivitySnapshot::new(id.clone(), activity_type.clone(), content.clone());
            snapshot.subagent_run_id = subagent_run_id.clone();
            snapshot.base.set_metadata(metadata.clone());
            snapshot.into()
        }
        message => TextMessageChunk {
            message_id: Some(message.id().clone()),
            ..TextMessageChunk::default()
        }
        .into(),
    }
}

#[cfg(test)]
mod tests;
