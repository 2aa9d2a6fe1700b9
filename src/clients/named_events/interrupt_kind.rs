//! The kind of question that an interrupt is. It decides how the question is shown and how its reply is read.

use serde_json::Value;

use super::{
    decision::{HitlDecisionType, REVIEW_DECISIONS},
    interrupt::PlanStep,
};
use agui_protocol::{
    Interrupt, JsonObject,
    approval::{allows_edits, asks_for_approval},
    own_names::STEPS,
};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum InterruptKind {
    /// Approval of a tool call: the interrupt names one, and has no schema or one with a member `approved`.
    Action,
    /// Approval of a plan: the interrupt's metadata has its steps. If it names a tool call, its schema has them, too.
    Plan(Vec<PlanStep>),
    /// Any other approval: the interrupt's schema has a member `approved`.
    Review,
    /// A text: the interrupt has no schema, or its schema is a string or an object of this one string.
    Feedback(Option<String>),
    /// JSON of any other schema.
    Form,
}

impl InterruptKind {
    pub(super) fn from_interrupt(interrupt: &Interrupt) -> Self {
        let is_about_call = interrupt.tool_call_id.is_some();
        if let Some(steps) =
            interrupt.metadata.as_ref().and_then(|metadata| plan_steps(metadata.get(STEPS)?))
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
        let is_string =
            |schema_type: Option<&Value>| schema_type.is_some_and(|name| name == "string");
        if is_string(schema.get("type")) {
            return Self::Feedback(None);
        }
        let mut properties =
            schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        match (properties.next(), properties.next()) {
            (Some((name, schema)), None) if is_string(schema.get("type")) => {
                Self::Feedback(Some(name.clone()))
            }
            _ => Self::Form,
        }
    }
}

pub(super) fn allowed_decisions(interrupt: &Interrupt) -> Vec<HitlDecisionType> {
    let is_editable = match (InterruptKind::from_interrupt(interrupt), &interrupt.response_schema) {
        (InterruptKind::Action, Some(schema)) => allows_edits(schema),
        (InterruptKind::Review, _) => false,
        _ => true,
    };
    REVIEW_DECISIONS
        .into_iter()
        .filter(|decision| is_editable || *decision != HitlDecisionType::Edit)
        .collect()
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
