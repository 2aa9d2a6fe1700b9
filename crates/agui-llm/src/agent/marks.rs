//! The marks of a run with a model, from which another server goes on.
//!
//! An answer is marked when it is complete, a call when it has its result. A call that must not run twice is marked before
//! it starts. Calls that are not safe wait until their answer and its marks are stored.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    approval::PriorApprovals,
    plan::{PendingCall, TurnPlan},
    review::NextStep,
    run_scope::RunScope,
};
use crate::history;
use agui_agent::RunContext;
use agui_protocol::{
    Event, Message, TokenUsage, ToolCall, ToolCallId,
    event::{RunFinished, RunOutcome},
};
use agui_tools::{Repeat, host::KeptValue};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TurnMark {
    /// An answer is complete, and its calls come next. The usage is that of the run so far.
    Answer {
        step: u32,
        usage: Vec<TokenUsage>,
        /// The MCP servers that carry the calls out.
        servers: HashMap<ToolCallId, String>,
    },
    /// The last answer is complete.
    LastAnswer {
        result: Option<Value>,
        usage: Vec<TokenUsage>,
    },
    Start(ToolCallId),
    /// A call has kept what it goes on with.
    Kept(KeptValue),
    /// A call has its result: only the place counts.
    Result,
}

/// What a run that goes on knows about its turns so far.
#[derive(Default)]
pub(super) struct EarlierTurns {
    pub(super) steps: u32,
    /// The calls that may have taken effect.
    pub(super) started: HashSet<ToolCallId>,
    /// The MCP servers that carry out the calls of the last answer.
    servers: HashMap<ToolCallId, String>,
    /// What calls without a result have kept.
    kept: HashMap<ToolCallId, Value>,
    /// The end of a run whose last answer is complete.
    pub(super) end: Option<Event>,
}

impl EarlierTurns {
    /// Reads the marks of a run that is continued, and counts the tokens that it has used.
    pub(super) fn of(cx: &RunContext) -> Self {
        let (mut turns, mut used) = (Self::default(), Vec::new());
        let marks =
            cx.continuation().map(|continuation| &continuation.marks[..]).unwrap_or_default();
        for mark in marks.iter().filter_map(|mark| TurnMark::deserialize(mark).ok()) {
            match mark {
                TurnMark::Answer { step, usage, servers } => {
                    (turns.steps, used, turns.servers) = (step, usage, servers);
                }
                TurnMark::LastAnswer { result, usage } => {
                    let outcome = RunOutcome::success();
                    let mut finished =
                        RunFinished::new(cx.thread_id().clone(), cx.run_id().clone(), outcome);
                    finished.result = result;
                    (turns.end, used) = (Some(finished.into()), usage);
                }
                TurnMark::Start(call) => drop(turns.started.insert(call)),
                TurnMark::Kept(KeptValue { call, value }) => {
                    // It does not run twice: it goes on.
                    turns.started.remove(&call);
                    turns.kept.insert(call, value);
                }
                TurnMark::Result => {}
            }
        }
        used.into_iter().for_each(|usage| cx.add_usage(usage));
        turns
    }

    /// Returns the plan for the first turn: the calls that people decided about, and what is open of the last answer.
    pub(super) async fn plan(
        &self,
        prior: PriorApprovals,
        messages: &[Message],
        run: &RunScope<'_>,
    ) -> TurnPlan {
        let mut plan = TurnPlan::of_decisions(prior.decided, run).await;
        plan.resume_tasks(prior.tasks, messages, run);
        if self.steps > 0 {
            plan.add_earlier_turn(&history::open_calls(messages), &self.servers, run).await;
        }
        plan.go_on(&self.kept);
        plan.stop_started(&self.started, run.settings.unknown_outcome);
        plan
    }
}

/// Returns the ids of calls that a new call cannot have: those of the conversation, and those that were taken back.
pub(super) fn used_ids(messages: &[Message], cx: &RunContext) -> HashSet<ToolCallId> {
    let taken_back =
        cx.continuation().into_iter().flat_map(|it| it.taken_back.iter().cloned().map(Into::into));
    // Subagents' calls included.
    messages
        .iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.id.clone())
        .chain(taken_back)
        .collect()
}

/// Marks a complete answer, the last of `messages`. One that has to be corrected, or that fails the run, is asked for again.
pub(super) fn answer(
    run: &RunScope<'_>,
    step: u32,
    next: &NextStep,
    has_calls: bool,
    messages: &[Message],
) {
    let RunScope { cx, catalog, .. } = run;
    if matches!(next, NextStep::AskForCorrection(_) | NextStep::AskAgain(_) | NextStep::Fail(_)) {
        return;
    }
    mark(cx, || match next {
        NextStep::Finish(result) if !has_calls => {
            TurnMark::LastAnswer { result: result.clone(), usage: cx.usage() }
        }
        _ => {
            let calls = history::open_calls(messages).into_iter().map(|(call, _)| call);
            let server = |call: &ToolCall| {
                Some((call.id.clone(), catalog.server(&call.function.name)?.to_owned()))
            };
            TurnMark::Answer {
                step,
                usage: cx.usage(),
                servers: calls.filter_map(server).collect(),
            }
        }
    });
}

pub(super) fn result(cx: &RunContext) {
    mark(cx, || TurnMark::Result);
}

/// Marks the calls that must not run twice. Calls that have an effect wait until they are stored, once for all calls of an
/// answer: if the answer were lost, it would be asked for again, and the same call would come with another id and key.
pub(super) async fn start(cx: &RunContext, calls: &[PendingCall]) {
    for call in calls.iter().filter(|call| call.repeat == Repeat::Never) {
        mark(cx, || TurnMark::Start(call.call.clone()));
    }
    if calls.iter().any(|call| call.repeat != Repeat::Safe) {
        cx.written().await;
    }
}

fn mark(cx: &RunContext, mark: impl FnOnce() -> TurnMark) {
    if cx.is_journaled() {
        // Marks always have a JSON form.
        cx.mark(serde_json::to_value(mark()).unwrap_or_default());
    }
}
