//! A task of a subagent that waits for a person: its questions end the run, and the next run
//! continues the task.
//!
//! The id of such an interrupt is `task:INVOCATION:CALL:ID`: the invocation, the call of the task,
//! and the id that the subagent gave it. Clients return the id, so any server can continue the
//! task.

use std::collections::HashMap;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::task_ids::TaskIds;
use agui_protocol::{Interrupt, InterruptId, Message, ResumeEntry, SubagentRunId, ToolCallId};

const ID_PREFIX: &str = "task:";

/// A task with the replies to its questions.
#[derive(Debug)]
pub(super) struct SuspendedTask {
    pub(super) id: SubagentRunId,
    /// The replies, with the ids that the subagent gave its questions.
    pub(super) replies: Vec<ResumeEntry>,
    /// The ids of the entries, as they came.
    pub(super) entries: Vec<InterruptId>,
}

impl SuspendedTask {
    /// Finds the tasks that entries reply to, by their calls.
    pub(super) fn from_entries(entries: &[ResumeEntry]) -> HashMap<ToolCallId, Self> {
        let mut tasks: HashMap<ToolCallId, Self> = HashMap::new();
        for entry in entries {
            let Some((id, call, interrupt_id)) = parse(&entry.interrupt_id) else { continue };
            let new = || Self { id: id.clone(), replies: Vec::new(), entries: Vec::new() };
            let task = tasks.entry(call).or_insert_with(new);
            // A call has one invocation.
            if task.id == id {
                task.replies.push(ResumeEntry { interrupt_id, ..entry.clone() });
                task.entries.push(entry.interrupt_id.clone());
            }
        }
        tasks
    }

    /// Returns the conversation of the task so far, without the task itself. Messages of its own subagents keep their owners.
    pub(super) fn messages<'m>(&self, of_runs: impl Iterator<Item = &'m Message>) -> Vec<Message> {
        let of_subagents = of_runs.filter(|message| message.subagent_run_id().is_some());
        let own = of_subagents.map(|message| match message.subagent_run_id() {
            Some(owner) if *owner == self.id => message.clone().without_subagent(),
            _ => message.clone(),
        });
        own.collect()
    }
}

/// Returns the question of a task's subagent as one of the run.
pub(super) fn raised(
    mut interrupt: Interrupt,
    task: &SubagentRunId,
    call: &ToolCallId,
    ids: &TaskIds,
) -> Interrupt {
    let is_own = interrupt.subagent_run_id.is_none();
    let mut id = match parse(&interrupt.id) {
        Some((inner, of_call, id)) => written(&inner, ids.known(&of_call).unwrap_or(&of_call), &id),
        None => interrupt.id.to_string(),
    };
    // An id of this server ends with its call's id, which may have been replaced in this run.
    if is_own
        && let Some(call) = &mut interrupt.tool_call_id
        && let Some(new) = ids.known(call)
    {
        if let Some(rest) = id.strip_suffix(&**call) {
            id = format!("{rest}{new}");
        }
        *call = new.into();
    }
    interrupt.id = written(task, call, &id).into();
    interrupt.subagent_run_id.get_or_insert_with(|| task.clone());
    interrupt
}

fn written(task: &str, call: &str, id: &str) -> String {
    let escaped = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!("{ID_PREFIX}{}:{}:{id}", escaped(task), escaped(call))
}

fn parse(id: &InterruptId) -> Option<(SubagentRunId, ToolCallId, InterruptId)> {
    let (task, rest) = id.strip_prefix(ID_PREFIX)?.split_once(':')?;
    let (call, id) = rest.split_once(':')?;
    let read = |text| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    Some((read(task)?.into(), read(call)?.into(), id.into()))
}

#[cfg(test)]
mod tests;
