//! The plan for a step: which calls run now, which wait for an approval, which are the application's.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{
    approval::{self, CallDecision},
    catalog::{ToolCatalog, ToolOwner},
    run_scope::RunScope,
    subagent::SubagentTask,
    suspended::SuspendedTask,
    unknown_outcome::{self, UnknownOutcome},
    unverified_messages::made_by_runs,
};
use crate::{call_content::bounded, history};
use agui_base::{
    repairs::{Partner, Repair, repaired},
    text::short_name,
};
use agui_protocol::{Interrupt, JsonObject, Message, MessageId, ToolCall, ToolCallId};
use agui_tools::{
    Approval, OfferedTool, Repeat,
    host::{CallReplies, bound_call},
};

#[derive(Default)]
pub(super) struct StepPlan {
    pub(super) calls: Vec<PendingCall>,
    /// The questions for people: approvals, and those of tools.
    pub(super) interrupts: Vec<Interrupt>,
    pub(super) awaits_application: bool,
}

pub(super) struct PendingCall {
    pub(super) call: ToolCallId,
    /// The name that the model called.
    pub(super) name: String,
    /// The tool's name in metrics.
    pub(super) tool: String,
    /// The arguments with which a person replaced the model's.
    pub(super) edited: Option<JsonObject>,
    pub(super) action: CallAction,
    /// The rule for running the call again on another server, if this one is lost.
    pub(super) repeat: Repeat,
}

pub(super) enum CallAction {
    /// The call does not run: a person has told its result, or it fails with this text.
    Done(Result<String, String>),
    Tool(Box<ToolAction>),
    State(String),
    Task(SubagentTask),
}

impl CallAction {
    fn failed(text: String) -> Self {
        Self::Done(Err(text))
    }

    fn repeat(&self) -> Repeat {
        match self {
            Self::Done(_) | Self::State(_) => Repeat::Safe,
            Self::Tool(action) => action.tool.tool.repeat(&action.arguments),
            Self::Task(task) if task.is_repeatable() => Repeat::Safe,
            Self::Task(_) => Repeat::Never,
        }
    }

    /// The arguments as an attribute of a span; `None` for calls that are not run.
    pub(super) fn arguments(&self) -> Option<String> {
        let arguments = match self {
            Self::Done(_) => return None,
            Self::Tool(action) => serde_json::to_string(&action.arguments).unwrap_or_default(),
            Self::State(arguments) => arguments.clone(),
            Self::Task(task) => json!({ "task": task.text }).to_string(),
        };
        Some(bounded(&arguments))
    }
}

/// A call of a tool, with arguments that fit the tool's schema.
pub(super) struct ToolAction {
    pub(super) tool: OfferedTool,
    pub(super) arguments: JsonObject,
    pub(super) replies: CallReplies,
}

impl StepPlan {
    /// Calls after the first `max_calls_per_step` fail.
    pub(super) async fn from_calls(calls: &[(&ToolCall, &MessageId)], run: &RunScope<'_>) -> Self {
        let mut plan = Self::default();
        plan.add_step(calls, run).await;
        plan
    }

    /// Calls after the first `max_calls_per_step` fail, and calls that the plan has already are left out.
    async fn add_step(&mut self, calls: &[(&ToolCall, &MessageId)], run: &RunScope<'_>) {
        let max_calls = run.settings.options.max_calls_per_step.get();
        for (at, (call, parent)) in calls.iter().enumerate() {
            if self.calls.iter().any(|planned| planned.call == call.id) {
                continue;
            }
            if at < max_calls {
                self.add(call, parent, run).await;
            } else {
                let result =
                    format!("Error: the call was not run: an answer has at most {max_calls} calls");
                self.push(call, run.catalog, CallAction::failed(result));
            }
        }
        if let Some(excess) = calls.len().checked_sub(max_calls).filter(|excess| *excess > 0) {
            tracing::warn!(
                excess,
                max_calls,
                "an answer has too many calls; the last ones are not run"
            );
        }
    }

    /// Gives the calls the values that they have kept.
    pub(super) fn restore_kept(&mut self, kept: &HashMap<ToolCallId, Value>) {
        for call in &mut self.calls {
            if let (CallAction::Tool(action), Some(kept)) = (&mut call.action, kept.get(&call.call))
            {
                action.replies = action.replies.keeping(kept.clone());
            }
        }
    }

    /// Adds the calls of an answer that a lost server received. A call does not run if its tool is
    /// now one of another MCP server.
    pub(super) async fn add_earlier_step(
        &mut self,
        calls: &[(&ToolCall, &MessageId)],
        servers: &HashMap<ToolCallId, String>,
        run: &RunScope<'_>,
    ) {
        let is_same = |(call, _): &(&ToolCall, &MessageId)| {
            servers.get(&call.id).map(String::as_str) == run.catalog.server(&call.function.name)
        };
        let (same, others): (Vec<_>, Vec<_>) = calls.iter().copied().partition(is_same);
        self.add_step(&same, run).await;
        for (call, _) in others {
            if !self.calls.iter().any(|planned| planned.call == call.id) {
                self.push(call, run.catalog, gone(call));
            }
        }
    }

    /// Stops the calls that a lost server has started. Only calls that must not run twice are
    /// marked as started.
    pub(super) fn stop_started(&mut self, started: &HashSet<ToolCallId>, policy: UnknownOutcome) {
        for mut call in
            self.calls.extract_if(.., |call| started.contains(&call.call)).collect::<Vec<_>>()
        {
            let question = match &call.action {
                CallAction::Tool(action) if policy == UnknownOutcome::Ask => {
                    unknown_outcome::question(
                        &call.call,
                        &call.name,
                        &action.arguments,
                        &action.replies,
                    )
                }
                _ => None,
            };
            if let Some(question) = question {
                self.interrupts.push(question);
                continue;
            }
            call.action = CallAction::failed(unknown_outcome::UNKNOWN.to_owned());
            call.repeat = Repeat::Safe;
            self.calls.push(call);
        }
    }

    /// A plan in which every call fails with this text.
    pub(super) fn without_calls(
        calls: &[(&ToolCall, &MessageId)],
        catalog: &ToolCatalog,
        result: &str,
    ) -> Self {
        let mut plan = Self::default();
        for (call, _) in calls {
            plan.push(call, catalog, CallAction::failed(result.to_owned()));
        }
        plan
    }

    pub(super) async fn from_decisions(
        decided: Vec<(ToolCall, CallDecision)>,
        run: &RunScope<'_>,
    ) -> Self {
        let mut plan = Self::default();
        for (call, decision) in decided {
            let edited = decision.as_ref().ok().and_then(|replies| replies.edited.clone());
            let action = match decision {
                Err(why) => CallAction::failed(why),
                Ok(mut replies) => match unknown_outcome::take_reply(&mut replies) {
                    Some(result) => CallAction::Done(result),
                    None => approved_action(&call, replies, run).await,
                },
            };
            let pending = plan.push(&call, run.catalog, action);
            pending.edited = edited;
            // A person has agreed to one call, not to two.
            if !matches!(pending.action, CallAction::Done(_)) {
                pending.repeat = Repeat::Never;
            }
        }
        plan
    }

    /// Adds the tasks of subagents that continue.
    pub(super) fn resume_tasks(
        &mut self,
        tasks: Vec<(ToolCall, SuspendedTask)>,
        messages: &[Message],
        RunScope { catalog, cx, .. }: &RunScope<'_>,
    ) {
        for (call, task) in tasks {
            let parent = history::calls_of(messages)
                .find(|(other, _)| other.id == call.id)
                .map(|(_, parent)| parent);
            let action = match (catalog.owner(&call.function.name), parent) {
                (Some(ToolOwner::Subagent(subagent)), Some(parent)) => {
                    let earlier = task.messages(made_by_runs(messages, cx));
                    let resumed =
                        SubagentTask::from_call(subagent, &call, parent, Some((task, earlier)));
                    resumed.map_or_else(CallAction::failed, CallAction::Task)
                }
                _ => gone(&call),
            };
            // A person has agreed to one call in the task, not to two.
            self.push(&call, catalog, action).repeat = Repeat::Never;
        }
    }

    fn push(
        &mut self,
        call: &ToolCall,
        catalog: &ToolCatalog,
        action: CallAction,
    ) -> &mut PendingCall {
        let tool = catalog.metric_name(&call.function.name);
        let (call, name) = (call.id.clone(), call.function.name.clone());
        let repeat = action.repeat();
        self.calls.push_mut(PendingCall { call, name, tool, edited: None, action, repeat })
    }

    async fn add(&mut self, call: &ToolCall, parent: &MessageId, run: &RunScope<'_>) {
        let arguments = &call.function.arguments;
        let action = match run.catalog.owner(&call.function.name) {
            Some(ToolOwner::Application) => {
                self.awaits_application = true;
                return;
            }
            Some(ToolOwner::State) => CallAction::State(arguments.clone()),
            Some(ToolOwner::Subagent(subagent)) => {
                SubagentTask::from_call(subagent, call, parent, None)
                    .map_or_else(CallAction::failed, CallAction::Task)
            }
            Some(ToolOwner::Server(tool)) => {
                let replies = CallReplies::none(bound_call(call, tool.tool.server()), None);
                match tool_action(tool, call, replies, run).await {
                    Ok(action) if tool.tool.approval(&action.arguments) == Approval::Needed => {
                        let interrupt =
                            approval::approval_interrupt(call, &action.arguments, &*tool.tool);
                        return self.interrupts.push(interrupt);
                    }
                    action => action.map_or_else(CallAction::failed, CallAction::Tool),
                }
            }
            None => CallAction::failed(format!(
                "Error: there is no tool {:?}",
                short_name(&call.function.name)
            )),
        };
        self.push(call, run.catalog, action);
    }
}

async fn approved_action(call: &ToolCall, replies: CallReplies, run: &RunScope<'_>) -> CallAction {
    match run.catalog.owner(&call.function.name) {
        Some(ToolOwner::Server(tool)) if replies.are_of(call, tool.tool.server()) => {
            tool_action(tool, call, replies, run)
                .await
                .map_or_else(CallAction::failed, CallAction::Tool)
        }
        _ => gone(call),
    }
}

fn gone(call: &ToolCall) -> CallAction {
    CallAction::failed(format!(
        "Error: there is no tool {:?} any more",
        short_name(&call.function.name)
    ))
}

/// Repairs the model's arguments, but not those that a person edited.
async fn tool_action(
    tool: &OfferedTool,
    call: &ToolCall,
    replies: CallReplies,
    run: &RunScope<'_>,
) -> Result<Box<ToolAction>, String> {
    let owner = run.cx.owner();
    let arguments = if let Some(edited) = replies.edited.clone() {
        let problem =
            |problems| format!("Error: The arguments do not fit the tool's schema:{problems}");
        tool.validator
            .check_value(&owner, &Value::Object(edited.clone()))
            .await
            .map_err(problem)?;
        edited
    } else {
        let read = tool.validator.read(&owner, &call.function.arguments).await;
        let read = read.map_err(|problem| format!("Error: {problem}"))?;
        if !read.repairs.is_empty() {
            tracing::warn!(tool = tool.tool.metric_name(), repairs = ?read.repairs, "repaired the arguments of a call");
            repaired(Partner::Model, Repair::Arguments);
        }
        read.object
    };
    Ok(Box::new(ToolAction { tool: tool.clone(), arguments, replies }))
}
