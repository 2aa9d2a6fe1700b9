//! AG-UI interrupts as the guide's questions, and the guide's answers as AG-UI resume entries.
//!
//! What is asked follows from the interrupt: one about a tool call is an action, one whose metadata has `steps` is a
//! plan, one that asks for `approved` is a review, one without a schema is a question for feedback. Anything else is a
//! form, whose schema the client is told.
//!
//! Only a clear yes approves an action: a decision, or one of the words that the options name. Whatever else somebody
//! writes is a no, and the reason for it.

use serde_json::{Value, json};

use super::{
    hitl::{ActionRequest, HitlDecision, HitlDecisionType, HitlOption, HitlRequest, PlanStep, REVIEW, ReviewConfig},
    request::{Fault, MessageBody},
    tool_call::ToolCallState,
};
use crate::protocol::{Interrupt, InterruptId, JsonObject, ResumeEntry, ResumeStatus};

/// What an agent gets for an answer that accepts its work.
pub const ACCEPTED: &str = "ACCEPTED";

/// What kind of answer an interrupt asks for.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Whether a tool may be called.
    Action,
    /// Whether a plan is good.
    Plan(Vec<PlanStep>),
    /// A yes or a no.
    Review,
    /// A text; as this member of an object, if the schema has it so.
    Feedback(Option<String>),
    /// JSON of a schema.
    Form,
}

/// What somebody answered.
enum Said {
    Approve,
    Edit(JsonObject),
    Reject(Option<String>),
    Text(String),
}

/// The questions that the interrupts of a run are: all actions together, each other interrupt for itself.
pub fn questions(interrupts: &[Interrupt], calls: &ToolCallState) -> Vec<HitlRequest> {
    let (actions, others): (Vec<_>, Vec<_>) =
        interrupts.iter().partition(|interrupt| shape(interrupt) == Shape::Action);
    let actions = (!actions.is_empty()).then(|| about_actions(&actions, calls));
    actions.into_iter().chain(others.into_iter().map(about)).collect()
}

fn about_actions(interrupts: &[&Interrupt], calls: &ToolCallState) -> HitlRequest {
    let (mut actions, mut configs) = (Vec::new(), Vec::<ReviewConfig>::new());
    for interrupt in interrupts {
        let call = interrupt.tool_call_id.as_deref().and_then(|id| calls.get(id));
        let told = || interrupt.metadata.as_ref()?.get("toolName")?.as_str();
        let name = call.map(|call| call.name.as_str()).or_else(told).unwrap_or(&interrupt.reason).to_owned();
        let allowed_decisions = allowed(interrupt);
        match configs.iter_mut().find(|config| config.action_name == name) {
            // What holds for a name holds for all of its actions.
            Some(config) => config.allowed_decisions.retain(|decision| allowed_decisions.contains(decision)),
            None => configs.push(ReviewConfig { action_name: name.clone(), allowed_decisions }),
        }
        actions.push(ActionRequest {
            action_id: interrupt.id.as_str().to_owned(),
            name,
            arguments: call.map(|call| call.arguments()).unwrap_or_default(),
            description: interrupt.message.clone(),
        });
    }
    let content = match interrupts {
        [Interrupt { message: Some(message), .. }] => message.as_str(),
        _ => "Review and approve these actions before execution.",
    };
    let id = interrupts.first().map_or("", |interrupt| interrupt.id.as_str());
    HitlRequest::new(id, content).for_actions(actions, configs)
}

fn about(interrupt: &Interrupt) -> HitlRequest {
    let shape = shape(interrupt);
    let content = interrupt.message.as_deref().unwrap_or(match shape {
        Shape::Plan(_) => "Review and modify the planned steps.",
        Shape::Feedback(_) => "Review the agent's response. Type feedback or 'ACCEPTED' to finish.",
        _ => interrupt.reason.as_str(),
    });
    let mut request = HitlRequest::new(interrupt.id.as_str(), content);
    match shape {
        Shape::Plan(steps) => request = request.for_plan(steps),
        Shape::Action | Shape::Review => {
            request.options = HitlOption::review(&[HitlDecisionType::Approve, HitlDecisionType::Reject]);
        }
        Shape::Form => request.context.get_or_insert_default().schema = interrupt.response_schema.clone(),
        Shape::Feedback(_) => {}
    }
    request
}

/// The resume entries that an answer comes to, given the open interrupts. A text answers all of them, a decision the
/// one that it names: by its own id, or by the id of the tool call that it is about.
///
/// # Errors
/// A [`Fault`] below `path`, when an answer is none or not allowed.
pub fn answers(open: &[Interrupt], said: &MessageBody, path: &str) -> Result<Vec<ResumeEntry>, Fault> {
    if let MessageBody::Decisions(decisions) = said {
        let entry = |(at, decision): (usize, &HitlDecision)| {
            let named = |interrupt: &&Interrupt| {
                let call = interrupt.tool_call_id.as_ref();
                interrupt.id == *decision.action_id || call.is_some_and(|call| *call == *decision.action_id)
            };
            let said = Said::of(decision);
            let Some(interrupt) = open.iter().find(named) else {
                // Perhaps answered before, by a request whose response was lost.
                return Ok(entry(InterruptId::from(decision.action_id.as_str()), Some(approval(&said, None, true))));
            };
            if !allowed(interrupt).contains(&decision.kind) && decision.kind == HitlDecisionType::Edit {
                return Err(Fault::new(format!("{path}.decisions[{at}].type"), "a decision that this action allows"));
            }
            Ok(answer(interrupt, &said))
        };
        return decisions.iter().enumerate().map(entry).collect();
    }
    let text = said.as_text().ok_or_else(|| Fault::new(path, "a text or decisions, to answer what the agent asked"))?;
    Ok(open.iter().map(|interrupt| answer(interrupt, &Said::read(&text, &shape(interrupt)))).collect())
}

impl Said {
    fn of(decision: &HitlDecision) -> Self {
        match decision.kind {
            HitlDecisionType::Approve | HitlDecisionType::Accepted => Self::Approve,
            HitlDecisionType::Edit => Self::Edit(decision.args.clone().unwrap_or_default()),
            HitlDecisionType::Reject => Self::Reject(decision.reason.clone()),
            HitlDecisionType::Feedback => Self::Text(decision.reason.clone().unwrap_or_default()),
        }
    }

    fn read(text: &str, shape: &Shape) -> Self {
        let word = text.trim();
        let is = |words: &[&str]| words.iter().any(|own| word.eq_ignore_ascii_case(own));
        match shape {
            Shape::Feedback(_) if is(&[ACCEPTED]) => Self::Approve,
            Shape::Feedback(_) => Self::Text(text.to_owned()),
            Shape::Form => match serde_json::from_str(word) {
                Ok(Value::Object(answer)) => Self::Edit(answer),
                _ => Self::Text(text.to_owned()),
            },
            _ if is(&[ACCEPTED, "approve", "approved"]) => Self::Approve,
            _ if is(&["reject", "rejected"]) => Self::Reject(None),
            _ => Self::Text(text.to_owned()),
        }
    }
}

fn entry(interrupt_id: InterruptId, payload: Option<Value>) -> ResumeEntry {
    let status = if payload.is_some() { ResumeStatus::Resolved } else { ResumeStatus::Cancelled };
    ResumeEntry { interrupt_id, status, payload, metadata: None }
}

fn answer(interrupt: &Interrupt, said: &Said) -> ResumeEntry {
    let schema = interrupt.response_schema.as_ref();
    let payload = match (shape(interrupt), said) {
        (Shape::Feedback(_) | Shape::Form, Said::Reject(_)) => None,
        (Shape::Feedback(_) | Shape::Form, Said::Edit(answer)) => Some(Value::Object(answer.clone())),
        (Shape::Feedback(Some(member)), Said::Approve) => Some(json!({ member: ACCEPTED })),
        (Shape::Feedback(Some(member)), Said::Text(text)) => Some(json!({ member: text })),
        (Shape::Feedback(None) | Shape::Form, Said::Approve) => Some(json!(ACCEPTED)),
        (Shape::Feedback(None) | Shape::Form, Said::Text(text)) => Some(json!(text)),
        (Shape::Action, said) => Some(approval(said, schema, true)),
        (Shape::Plan(_) | Shape::Review, said) => Some(approval(said, schema, false)),
    };
    entry(interrupt.id.clone(), payload)
}

/// A yes or a no, as agents read it.
fn approval(said: &Said, schema: Option<&JsonObject>, action: bool) -> Value {
    let mut payload = JsonObject::new();
    payload.insert("approved".to_owned(), matches!(said, Said::Approve | Said::Edit(_)).into());
    let reason = match said {
        Said::Edit(args) if action => {
            payload.insert("editedArgs".to_owned(), Value::Object(args.clone()));
            None
        }
        Said::Edit(more) => {
            more.iter().filter(|(name, _)| *name != "approved").for_each(|(name, value)| {
                payload.insert(name.clone(), value.clone());
            });
            None
        }
        Said::Reject(reason) => reason.clone(),
        Said::Text(text) => Some(text.clone()),
        Said::Approve => None,
    };
    if let Some(reason) = reason.filter(|_| schema.is_none_or(|schema| takes(schema, "reason"))) {
        payload.insert("reason".to_owned(), reason.into());
    }
    Value::Object(payload)
}

fn shape(interrupt: &Interrupt) -> Shape {
    if interrupt.tool_call_id.is_some() {
        return Shape::Action;
    }
    if let Some(steps) = interrupt.metadata.as_ref().and_then(|metadata| steps(metadata.get("steps")?)) {
        return Shape::Plan(steps);
    }
    let Some(schema) = &interrupt.response_schema else { return Shape::Feedback(None) };
    if schema.get("type").is_some_and(|kind| kind == "string") {
        return Shape::Feedback(None);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    match properties {
        Some(properties) if properties.contains_key("approved") => Shape::Review,
        Some(properties) if properties.len() == 1 => match properties.iter().next() {
            Some((name, schema)) if schema.get("type").is_some_and(|kind| kind == "string") => {
                Shape::Feedback(Some(name.clone()))
            }
            _ => Shape::Form,
        },
        _ => Shape::Form,
    }
}

/// Steps: texts, or objects with a `description` and perhaps a `status`.
fn steps(steps: &Value) -> Option<Vec<PlanStep>> {
    let step = |step: &Value| {
        let description = step.as_str().or_else(|| step.get("description")?.as_str())?.to_owned();
        let status = step.get("status").and_then(Value::as_str).unwrap_or("enabled").to_owned();
        Some(PlanStep { description, status })
    };
    steps.as_array()?.iter().map(step).collect::<Option<Vec<_>>>().filter(|steps| !steps.is_empty())
}

/// What can be decided about an interrupt.
fn allowed(interrupt: &Interrupt) -> Vec<HitlDecisionType> {
    let editable = match (shape(interrupt), &interrupt.response_schema) {
        (Shape::Action, Some(schema)) => names(schema, "editedArgs"),
        (Shape::Review, _) => false,
        _ => true,
    };
    REVIEW.into_iter().filter(|decision| editable || *decision != HitlDecisionType::Edit).collect()
}

/// Whether a schema describes a member.
fn names(schema: &JsonObject, member: &str) -> bool {
    schema.get("properties").and_then(|properties| properties.get(member)).is_some()
}

/// Whether an answer may have a member.
fn takes(schema: &JsonObject, member: &str) -> bool {
    names(schema, member) || schema.get("additionalProperties") != Some(&Value::Bool(false))
}
