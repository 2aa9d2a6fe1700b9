//! Calls that a person has to agree to: how they are asked for, and what the answers mean.
//!
//! A call that needs an approval ends the run with an interrupt that names it. The next run carries the answer in
//! `resume`, and the call itself is in the conversation. Only a clear yes is one: `approved` is `true`, and
//! edited arguments, if there are any, are an object. Whatever else comes is a no.

use serde_json::{Value, json};

use super::catalog::{ToolCatalog, ToolOwner};
use crate::{
    llm::history,
    protocol::{
        Interrupt, InterruptId, JsonObject, Message, MessageContent, Metadata, ResumeEntry, ResumeStatus, ToolCall,
        ToolMessage,
    },
    tools::{Approval, CallAnswers, OfferedTool, ToolSpec},
};

/// The ids of interrupts are this and the call's id.
const PREFIX: &str = "approval-";

/// What was decided about a call.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// It is carried out, perhaps with other arguments.
    Approved { edited: Option<JsonObject> },
    /// It is not, and this is what the model is told.
    Declined(String),
    /// It is carried out again: a person answered its tool's questions.
    Answered(CallAnswers),
}

/// What earlier runs of the conversation asked for.
#[derive(Debug, Default)]
pub(super) struct PriorApprovals {
    /// Calls that were decided about.
    pub(super) decided: Vec<(ToolCall, Decision)>,
    /// Calls that were not.
    pub(super) open: Vec<Interrupt>,
}

/// Reads the answers. A call that needs an approval and has no answer is asked for again.
pub(super) fn earlier(messages: &[Message], entries: &[ResumeEntry], catalog: &ToolCatalog) -> PriorApprovals {
    let mut earlier = PriorApprovals::default();
    let mut used = 0;
    for (call, told) in history::calls(messages) {
        // The questions of a call come after its approval.
        let questions: Vec<_> = CallAnswers::entries(&call.id, entries).collect();
        if told.is_none_or(|told| questions.iter().any(|entry| repeats(told, entry)))
            && let Some(answers) = CallAnswers::read(&call.id, entries)
        {
            used += questions.len();
            earlier.decided.push((call.clone(), Decision::Answered(answers)));
            continue;
        }
        let id = interrupt_id(call);
        let entry = entries.iter().find(|entry| entry.interrupt_id == id);
        match (entry, told) {
            (Some(entry), told) if told.is_none_or(|told| repeats(told, entry)) => {
                used += 1;
                earlier.decided.push((call.clone(), decide(entry)));
            }
            (None, None) => {
                if let Some(ToolOwner::Server(tool)) = catalog.owner(&call.function.name)
                    && let Ok(arguments) = tool.validator.check(&call.function.arguments)
                    && let Some(interrupt) = needed(tool, call, &arguments)
                {
                    earlier.open.push(interrupt);
                }
            }
            _ => {}
        }
    }
    if used < entries.len() {
        tracing::warn!(answers = entries.len() - used, "left out answers to what no call of this conversation asked");
    }
    earlier
}

/// Whether a tool message is nothing but the person's answer. CopilotKit puts one into the conversation beside the
/// `resume` entry that says the same; it is no result, and must not be taken for one.
fn repeats(told: &ToolMessage, entry: &ResumeEntry) -> bool {
    let MessageContent::Text(text) = &told.content else { return false };
    let said = match (entry.status, &entry.payload) {
        (ResumeStatus::Cancelled, _) => json!({ "status": "cancelled" }),
        (ResumeStatus::Resolved, Some(payload)) => payload.clone(),
        (ResumeStatus::Resolved, None) => json!({ "status": "resolved" }),
    };
    serde_json::from_str::<Value>(text).is_ok_and(|told| told == said)
}

/// The interrupt that asks for a call, if it needs an approval.
fn needed(tool: &OfferedTool, call: &ToolCall, arguments: &JsonObject) -> Option<Interrupt> {
    (tool.tool.approval(arguments) == Approval::Needed).then(|| ask(call, tool.tool.spec()))
}

fn interrupt_id(call: &ToolCall) -> InterruptId {
    format!("{PREFIX}{}", call.id).into()
}

/// The interrupt that asks for a call.
pub(super) fn ask(call: &ToolCall, spec: &ToolSpec) -> Interrupt {
    let mut interrupt = Interrupt::new("tool_call");
    interrupt.id = interrupt_id(call);
    interrupt.message = Some(format!("The agent wants to call {}. Is that all right?", spec.name));
    interrupt.tool_call_id = Some(call.id.clone());
    interrupt.response_schema = Some(answer_schema(&spec.parameters));
    let about = [("toolName".to_owned(), Value::from(spec.name.as_str()))];
    interrupt.metadata = Some(about.into_iter().collect::<Metadata>());
    interrupt
}

/// The schema of an answer: a yes or no, other arguments, a reason.
fn answer_schema(parameters: &Value) -> JsonObject {
    // References in a schema are from its root, which is another one here. The arguments are checked before the
    // call in any case.
    let arguments = if refers(parameters) { json!({ "type": "object" }) } else { parameters.clone() };
    let properties = json!({
        "approved": { "type": "boolean" },
        "editedArgs": arguments,
        "reason": { "type": "string" },
    });
    JsonObject::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties),
        ("required".to_owned(), json!(["approved"])),
    ])
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| name == "$ref" || name == "$dynamicRef" || refers(value))
        }
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

fn decide(entry: &ResumeEntry) -> Decision {
    let payload = entry.payload.as_ref().unwrap_or(&Value::Null);
    if entry.status == ResumeStatus::Cancelled {
        return Decision::Declined("The call was not carried out: nobody agreed to it.".to_owned());
    }
    let reason = payload.get("reason").and_then(Value::as_str).filter(|reason| !reason.trim().is_empty());
    if payload.get("approved") != Some(&Value::Bool(true)) {
        return Decision::Declined(match reason {
            Some(reason) => format!("The user declined this call: {reason}"),
            None => "The user declined this call.".to_owned(),
        });
    }
    match payload.get("editedArgs") {
        None | Some(Value::Null) => Decision::Approved { edited: None },
        Some(Value::Object(arguments)) => Decision::Approved { edited: Some(arguments.clone()) },
        Some(_) => Decision::Declined("The call was not carried out: the answer to it was unclear.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(payload: Value) -> ResumeEntry {
        ResumeEntry {
            interrupt_id: "approval-c".into(),
            status: ResumeStatus::Resolved,
            payload: Some(payload),
            metadata: None,
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let approved = |edited: Option<Value>| Decision::Approved {
            edited: edited.map(|edited| edited.as_object().unwrap().clone()),
        };
        assert_eq!(decide(&entry(json!({ "approved": true }))), approved(None));
        assert_eq!(decide(&entry(json!({ "approved": true, "editedArgs": null }))), approved(None));
        let edited = json!({ "approved": true, "editedArgs": { "n": 1 } });
        assert_eq!(decide(&entry(edited)), approved(Some(json!({ "n": 1 }))));
        for unclear in [
            json!(null),
            json!(true),
            json!("yes"),
            json!({}),
            json!({ "approved": "true" }),
            json!({ "approved": 1 }),
            json!({ "approved": false }),
            json!({ "approved": false, "editedArgs": {} }),
            json!([{ "approved": true }]),
            json!({ "approved": true, "editedArgs": "rm -rf /" }),
            json!({ "approved": true, "editedArgs": [] }),
        ] {
            assert!(matches!(decide(&entry(unclear.clone())), Decision::Declined(_)), "{unclear}");
        }
        let mut cancelled = entry(json!({ "approved": true }));
        cancelled.status = ResumeStatus::Cancelled;
        assert!(matches!(decide(&cancelled), Decision::Declined(_)));
    }

    #[test]
    fn a_reason_reaches_the_model() {
        let declined = decide(&entry(json!({ "approved": false, "reason": "too dear" })));
        assert_eq!(declined, Decision::Declined("The user declined this call: too dear".to_owned()));
    }

    #[test]
    fn an_answer_may_bring_arguments_that_fit_the_tool() {
        let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let schema = Value::Object(answer_schema(&parameters));
        let fits = |answer: Value| jsonschema::is_valid(&schema, &answer);
        assert!(fits(json!({ "approved": true, "editedArgs": { "n": 1 } })));
        assert!(!fits(json!({ "approved": true, "editedArgs": { "n": "1" } })));
        assert!(!fits(json!({ "editedArgs": { "n": 1 } })));
        let refers = json!({ "$defs": { "x": {} }, "properties": { "a": { "$ref": "#/$defs/x" } } });
        assert_eq!(answer_schema(&refers)["properties"]["editedArgs"], json!({ "type": "object" }));
    }
}
