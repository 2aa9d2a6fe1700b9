//! The marks from which another server continues a run with a model.
//!
//! An answer is marked when it is complete, a call when it has its result. A call that must not run twice is marked before
//! it starts. Calls that are not safe wait until their answer and its marks are stored.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    approval::PriorApprovals,
    plan::{PendingCall, StepPlan},
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
enum StepMark {
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
    /// A call has kept the value with which it continues.
    Kept(KeptValue),
    /// A call has its result. Only the position of the mark counts.
    Result,
}

/// The earlier steps of a run that is continued.
#[derive(Default)]
pub(super) struct EarlierSteps {
    pub(super) count: u32,
    /// The calls that may have taken effect.
    pub(super) started: HashSet<ToolCallId>,
    /// The MCP servers that carry out the calls of the last answer.
    servers: HashMap<ToolCallId, String>,
    /// The values that calls without a result have kept.
    kept: HashMap<ToolCallId, Value>,
    /// The end of a run whose last answer is complete.
    pub(super) end: Option<Event>,
}

impl EarlierSteps {
    /// Reads the marks of a run that is continued, and counts the tokens that it has used.
    pub(super) fn from_marks(cx: &RunContext) -> Self {
        let (mut steps, mut used) = (Self::default(), Vec::new());
        let marks = cx.continuation().into_iter().flat_map(|run| {
            let is_of_run = |at: usize| at >= run.earlier_marks;
            run.marks.iter().enumerate().map(move |(at, mark)| (is_of_run(at), mark))
        });
        let marks = marks
            .filter_map(|(is_of_run, mark)| Some((is_of_run, StepMark::deserialize(mark).ok()?)));
        for (is_of_run, mark) in marks {
            match mark {
                StepMark::Answer { step, usage, servers } => {
                    (steps.count, steps.servers) = (step, servers);
                    used = if is_of_run { usage } else { Vec::new() };
                }
                StepMark::LastAnswer { result, usage } => {
                    let outcome = RunOutcome::success();
                    let mut finished =
                        RunFinished::new(cx.thread_id().clone(), cx.run_id().clone(), outcome);
                    finished.result = result;
                    steps.end = Some(finished.into());
                    used = if is_of_run { usage } else { Vec::new() };
                }
                StepMark::Start(call) => drop(steps.started.insert(call)),
                StepMark::Kept(KeptValue { call, value }) => {
                    // The call continues from its value, and does not run twice.
                    steps.started.remove(&call);
                    steps.kept.insert(call, value);
                }
                StepMark::Result => {}
            }
        }
        used.into_iter().for_each(|usage| cx.add_usage(usage));
        steps
    }

    /// Returns the plan for the first step: the calls that people decided, and the open calls of
    /// the last answer.
    pub(super) async fn plan(
        &self,
        prior: PriorApprovals,
        messages: &[Message],
        run: &RunScope<'_>,
    ) -> StepPlan {
        let mut plan = StepPlan::from_decisions(prior.decided, run).await;
        plan.resume_tasks(prior.tasks, messages, run);
        if self.count > 0 {
            plan.add_earlier_step(&history::open_calls(messages), &self.servers, run).await;
        }
        plan.restore_kept(&self.kept);
        plan.stop_started(&self.started, run.settings.options.unknown_outcome);
        plan
    }
}

/// Returns the call ids in use: those of the conversation, and retracted ones.
pub(super) fn used_ids(messages: &[Message], cx: &RunContext) -> HashSet<ToolCallId> {
    let retracted = cx.continuation().into_iter().flat_map(|earlier| &earlier.retracted);
    // Includes the calls of subagents.
    messages
        .iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.id.clone())
        .chain(retracted.cloned().map(Into::into))
        .collect()
}

/// Marks a complete answer, the last of `messages`. An answer that has to be corrected, or that
/// fails the run, is not marked: the model is asked again.
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
            StepMark::LastAnswer { result: result.clone(), usage: cx.usage() }
        }
        _ => {
            let calls = history::open_calls(messages).into_iter().map(|(call, _)| call);
            let server = |call: &ToolCall| {
                Some((call.id.clone(), catalog.server(&call.function.name)?.to_owned()))
            };
            StepMark::Answer {
                step,
                usage: cx.usage(),
                servers: calls.filter_map(server).collect(),
            }
        }
    });
}

pub(super) fn result(cx: &RunContext) {
    mark(cx, || StepMark::Result);
}

/// Marks the calls that must not run twice. Calls that have an effect wait until they are stored, once for all calls of an
/// answer: if the answer were lost, it would be asked for again, and the same call would come with another id and key.
pub(super) async fn start(cx: &RunContext, calls: &[PendingCall]) {
    for call in calls.iter().filter(|call| call.repeat == Repeat::Never) {
        mark(cx, || StepMark::Start(call.call.clone()));
    }
    if calls.iter().any(|call| call.repeat != Repeat::Safe) {
        cx.written().await;
    }
}

fn mark(cx: &RunContext, mark: impl FnOnce() -> StepMark) {
    if cx.is_journaled() {
        // Marks always have a JSON form.
        cx.mark(serde_json::to_value(mark()).unwrap_or_default());
    }
}
