//! The plan for a turn: which calls run now, which wait for an approval, which are the application's.

use super::{
    answer::CallOfTurn,
    approval::{self, CallDecision},
    catalog::{ToolCatalog, ToolOwner},
    subagent::SubagentTask,
};
use crate::{
    protocol::{Interrupt, JsonObject, MessageId, ToolCall, ToolCallId},
    tools::{Approval, CallAnswers, OfferedTool},
};

/// The longest part of an unknown tool's name that the model is told, in characters.
const MAX_NAME_CHARS: usize = 80;

#[derive(Default)]
pub(super) struct TurnPlan {
    pub(super) calls: Vec<PendingCall>,
    pub(super) approvals: Vec<Interrupt>,
    pub(super) awaits_application: bool,
}

pub(super) struct PendingCall {
    pub(super) call: ToolCallId,
    /// The arguments that a person put in the place of the model's.
    pub(super) edited: Option<JsonObject>,
    pub(super) action: CallAction,
}

pub(super) enum CallAction {
    /// The call fails with this text.
    Immediate(String),
    Tool(ToolAction),
    State(String),
    Task(SubagentTask),
}

/// The arguments fit the tool's schema.
pub(super) struct ToolAction {
    pub(super) tool: OfferedTool,
    pub(super) name: String,
    pub(super) arguments: JsonObject,
    pub(super) answers: CallAnswers,
}

impl TurnPlan {
    pub(super) fn of_turn(calls: &[CallOfTurn], catalog: &ToolCatalog) -> Self {
        let mut plan = Self::default();
        for CallOfTurn { call, parent } in calls {
            plan.add(call, parent, catalog);
        }
        plan
    }

    pub(super) fn of_decisions(decided: Vec<(ToolCall, CallDecision)>, catalog: &ToolCatalog) -> Self {
        let calls = decided.into_iter().map(|(call, decision)| {
            let (answers, edited) = match decision {
                CallDecision::Declined(why) => {
                    return PendingCall { call: call.id, edited: None, action: CallAction::Immediate(why) };
                }
                CallDecision::Approved { edited } => (CallAnswers::none(edited.clone()), edited),
                CallDecision::Answered(answers) => (answers.clone(), answers.edited),
            };
            let action = approved_action(&call, answers, catalog);
            PendingCall { call: call.id, edited, action }
        });
        Self { calls: calls.collect(), ..Self::default() }
    }

    fn add(&mut self, call: &ToolCall, parent: &MessageId, catalog: &ToolCatalog) {
        let arguments = &call.function.arguments;
        let action = match catalog.owner(&call.function.name) {
            Some(ToolOwner::Application) => {
                self.awaits_application = true;
                return;
            }
            Some(ToolOwner::State) => CallAction::State(arguments.clone()),
            Some(ToolOwner::Subagent(subagent)) => SubagentTask::parse(subagent, arguments, &call.id, Some(parent))
                .map_or_else(CallAction::Immediate, CallAction::Task),
            Some(ToolOwner::Server(tool)) => match tool_action(tool, call, arguments, CallAnswers::default()) {
                Err(problem) => CallAction::Immediate(problem),
                Ok(action) if tool.tool.approval(&action.arguments) == Approval::NotNeeded => CallAction::Tool(action),
                Ok(_) => {
                    self.approvals.push(approval::approval_interrupt(call, tool.tool.spec()));
                    return;
                }
            },
            None => CallAction::Immediate(format!("Error: there is no tool {:?}", short(&call.function.name))),
        };
        self.calls.push(PendingCall { call: call.id.clone(), edited: None, action });
    }
}

fn approved_action(call: &ToolCall, answers: CallAnswers, catalog: &ToolCatalog) -> CallAction {
    let Some(ToolOwner::Server(tool)) = catalog.owner(&call.function.name) else {
        return CallAction::Immediate(format!("Error: there is no tool {:?} any more", short(&call.function.name)));
    };
    let arguments = match &answers.edited {
        Some(edited) => serde_json::to_string(edited).unwrap_or_default(),
        None => call.function.arguments.clone(),
    };
    tool_action(tool, call, &arguments, answers).map_or_else(CallAction::Immediate, CallAction::Tool)
}

fn tool_action(
    tool: &OfferedTool,
    call: &ToolCall,
    arguments: &str,
    answers: CallAnswers,
) -> Result<ToolAction, String> {
    let arguments = tool.validator.check(arguments).map_err(|problem| format!("Error: {problem}"))?;
    Ok(ToolAction { tool: tool.clone(), name: call.function.name.clone(), arguments, answers })
}

fn short(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}
