//! AG-UI interrupts as questions, the payloads of `interrupt` events.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    decision::{HitlDecisionType, REVIEW_DECISIONS},
    interrupt::{ActionRequest, HitlOption, HitlRequest, PlanStep, ReviewConfig},
};
use crate::protocol::{
    FunctionCall, Interrupt, JsonObject, ToolCallId,
    approval::{allows_edits, asks_for_approval},
};

/// Returns one question for all actions together, and one for each other interrupt.
pub(super) fn questions(interrupts: &[Interrupt], calls: &HashMap<ToolCallId, FunctionCall>) -> Vec<HitlRequest> {
    let (actions, others): (Vec<_>, Vec<_>) =
        interrupts.iter().partition(|interrupt| InterruptKind::of(interrupt) == InterruptKind::Action);
    let actions = (!actions.is_empty()).then(|| action_question(&actions, calls));
    actions.into_iter().chain(others.into_iter().map(question)).collect()
}

fn action_question(interrupts: &[&Interrupt], calls: &HashMap<ToolCallId, FunctionCall>) -> HitlRequest {
    let (mut actions, mut configs) = (Vec::new(), Vec::<ReviewConfig>::new());
    for interrupt in interrupts {
        let call = interrupt.tool_call_id.as_ref().and_then(|id| calls.get(id));
        let tool_name = || interrupt.metadata.as_ref()?.get("toolName")?.as_str();
        let name = call.map(|call| call.name.as_str()).or_else(tool_name).unwrap_or(&interrupt.reason).to_owned();
        let allowed = allowed_decisions(interrupt);
        match configs.iter_mut().find(|config| config.action_name == name) {
            // A config is about all actions of its name, so it has the decisions that each of them allows.
            Some(config) => config.allowed_decisions.retain(|decision| allowed.contains(decision)),
            None => configs.push(ReviewConfig { action_name: name.clone(), allowed_decisions: allowed }),
        }
        let arguments = call.and_then(|call| serde_json::from_str(&call.arguments).ok()).unwrap_or_default();
        let (action_id, description) = (interrupt.id.as_str().to_owned(), interrupt.message.clone());
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
    let kind = InterruptKind::of(interrupt);
    let content = interrupt.message.as_deref().unwrap_or(match kind {
        InterruptKind::Plan(_) => "Review and modify the planned steps.",
        InterruptKind::Feedback(_) => "Review the agent's response. Type feedback or 'ACCEPTED' to finish.",
        _ => interrupt.reason.as_str(),
    });
    let mut request = HitlRequest::new(interrupt.id.as_str(), content);
    match kind {
        InterruptKind::Plan(steps) => request = request.for_plan(steps),
        InterruptKind::Action | InterruptKind::Review => {
            request.options = HitlOption::review(&[HitlDecisionType::Approve, HitlDecisionType::Reject]);
        }
        InterruptKind::Form => {
            // Without the form's members there is nothing to accept.
            request.options = HitlOption::review(&[HitlDecisionType::Edit, HitlDecisionType::Reject]);
            request.context.get_or_insert_default().schema = interrupt.response_schema.clone();
        }
        InterruptKind::Feedback(_) => {}
    }
    request
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum InterruptKind {
    /// Approval of a tool call: the interrupt names one, and has no schema or one with a member `approved`.
    Action,
    /// Approval of a plan: the interrupt's metadata has `steps`. If it names a tool call, its schema has them, too.
    Plan(Vec<PlanStep>),
    /// Any other approval: the interrupt's schema has a member `approved`.
    Review,
    /// A text: the interrupt has no schema, or its schema is a string or an object of this one string.
    Feedback(Option<String>),
    /// JSON of any other schema.
    Form,
}

impl InterruptKind {
    pub(super) fn of(interrupt: &Interrupt) -> Self {
        let is_about_call = interrupt.tool_call_id.is_some();
        if let Some(steps) = interrupt.metadata.as_ref().and_then(|metadata| plan_steps(metadata.get("steps")?))
            && (!is_about_call || has_steps(interrupt.response_schema.as_ref()))
        {
            return Self::Plan(steps);
        }
        let Some(schema) = &interrupt.response_schema else {
            return if is_about_call { Self::Action } else { Self::Feedback(None) };
        };
        if asks_for_approval(schema) {
            return if is_about_call { Self::Action } else { Self::Review };
        }
        let is_string = |schema_type: Option<&Value>| schema_type.is_some_and(|name| name == "string");
        if is_string(schema.get("type")) {
            return Self::Feedback(None);
        }
        let mut properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        match (properties.next(), properties.next()) {
            (Some((name, schema)), None) if is_string(schema.get("type")) => Self::Feedback(Some(name.clone())),
            _ => Self::Form,
        }
    }
}

pub(super) fn allowed_decisions(interrupt: &Interrupt) -> Vec<HitlDecisionType> {
    let is_editable = match (InterruptKind::of(interrupt), &interrupt.response_schema) {
        (InterruptKind::Action, Some(schema)) => allows_edits(schema),
        (InterruptKind::Review, _) => false,
        _ => true,
    };
    REVIEW_DECISIONS.into_iter().filter(|decision| is_editable || *decision != HitlDecisionType::Edit).collect()
}

fn has_steps(schema: Option<&JsonObject>) -> bool {
    schema.and_then(|schema| schema.get("properties")?.get("steps")).is_some()
}

/// Each step is a text, or an object with a `description` and an optional `status`.
fn plan_steps(steps: &Value) -> Option<Vec<PlanStep>> {
    let step = |step: &Value| {
        let description = step.as_str().or_else(|| step.get("description")?.as_str())?.to_owned();
        let status = step.get("status").and_then(Value::as_str).unwrap_or("enabled").to_owned();
        Some(PlanStep { description, status })
    };
    steps.as_array()?.iter().map(step).collect::<Option<Vec<_>>>().filter(|steps| !steps.is_empty())
}
