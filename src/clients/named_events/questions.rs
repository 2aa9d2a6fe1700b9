//! AG-UI interrupts as questions, the payloads of `interrupt` events.

use std::collections::HashMap;

use super::{
    decision::HitlDecisionType,
    interrupt::{ActionRequest, HitlOption, HitlRequest, ReviewConfig},
    interrupt_kind::{InterruptKind, allowed_decisions},
};
use agui_protocol::{FunctionCall, Interrupt, ToolCallId};

/// Returns one question for all actions together, and one for each other interrupt.
pub(super) fn questions(
    interrupts: &[Interrupt],
    calls: &HashMap<ToolCallId, FunctionCall>,
) -> Vec<HitlRequest> {
    let (actions, others): (Vec<_>, Vec<_>) = interrupts
        .iter()
        .partition(|interrupt| InterruptKind::from_interrupt(interrupt) == InterruptKind::Action);
    let actions = (!actions.is_empty()).then(|| action_question(&actions, calls));
    actions.into_iter().chain(others.into_iter().map(question)).collect()
}

fn action_question(
    interrupts: &[&Interrupt],
    calls: &HashMap<ToolCallId, FunctionCall>,
) -> HitlRequest {
    let (mut actions, mut configs) = (Vec::new(), Vec::<ReviewConfig>::new());
    for interrupt in interrupts {
        let call = interrupt.tool_call_id.as_ref().and_then(|id| calls.get(id));
        let tool_name = || interrupt.metadata.as_ref()?.get("toolName")?.as_str();
        let name = call
            .map(|call| call.name.as_str())
            .or_else(tool_name)
            .unwrap_or(&interrupt.reason)
            .to_owned();
        let allowed = allowed_decisions(interrupt);
        match configs.iter_mut().find(|config| config.action_name == name) {
            // A config is about all actions of its name, so it has the decisions that each of them allows.
            Some(config) => config.allowed_decisions.retain(|decision| allowed.contains(decision)),
            None => {
                configs.push(ReviewConfig { action_name: name.clone(), allowed_decisions: allowed })
            }
        }
        let of_call = || call.and_then(|call| serde_json::from_str(&call.arguments).ok());
        let arguments = interrupt.arguments().cloned().or_else(of_call).unwrap_or_default();
        let (action_id, description) =
            (interrupt.id.as_str().to_owned(), interrupt.message.clone());
        actions.push(ActionRequest { action_id, name, arguments, description });
    }
    let content = match interrupts {
        [Interrupt { message: Some(message), .. }] => message.as_str(),
        _ => "Review and approve these actions before execution.",
    };
    let id = interrupts.first().map_or("", |interrupt| interrupt.id.as_str());
    HitlRequest::new(id, content).for_actions(actions, configs)
}

fn question(interrupt: &Interrupt) -> HitlRequest {
    let kind = InterruptKind::from_interrupt(interrupt);
    let content = interrupt.message.as_deref().unwrap_or(match kind {
        InterruptKind::Plan(_) => "Review and modify the planned steps.",
        InterruptKind::Feedback(_) => {
            "Review the agent's response. Type feedback or 'ACCEPTED' to finish."
        }
        _ => interrupt.reason.as_str(),
    });
    let mut request = HitlRequest::new(interrupt.id.as_str(), content);
    match kind {
        InterruptKind::Plan(steps) => request = request.for_plan(steps),
        InterruptKind::Action | InterruptKind::Review => {
            request.options =
                HitlOption::review(&[HitlDecisionType::Approve, HitlDecisionType::Reject]);
        }
        InterruptKind::Form => {
            // Without the form's members there is nothing to accept.
            request.options =
                HitlOption::review(&[HitlDecisionType::Edit, HitlDecisionType::Reject]);
            request.context.get_or_insert_default().schema = interrupt.response_schema.clone();
        }
        InterruptKind::Feedback(_) => {}
    }
    request
}
