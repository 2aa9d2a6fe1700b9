//! Tool calls that wait for a person: their interrupts, and the replies in the next run's `resume`.
//!
//! A call that needs approval ends the run with an interrupt. The interrupt's id holds the call's
//! id, its MCP server if it has one, and a digest of its tool and arguments; the next run finds the
//! call in the conversation by both. **One reply decides one call, the one that was shown**: a call
//! with the same id and another digest, which only a client can add, is never decided, and of
//! several equal calls one is. If several calls have one id, the first decided one counts, or else
//! the first.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    catalog::{ToolCatalog, ToolOwner},
    suspended::SuspendedTask,
    unverified_messages::made_by_runs,
};
use crate::history;
use agui_agent::RunContext;
use agui_protocol::{
    Interrupt, JsonObject, Message, MessageContent, ResumeEntry, ResumeStatus, ToolCall,
    ToolMessage,
    approval::{ApprovalDecision, approval_schema, shown_arguments, visible},
};
use agui_tools::{
    Approval, OfferedTool, Tool,
    host::{CallReplies, bound_call, is_bound_to},
};

const ID_PREFIX: &str = "approval:";
const NO_CONSENT: &str =
    "The call was not run: the user declined to log in or to open a page for it.";

/// The arguments and replies of a call that runs, or the result of one that does not, for the
/// model.
pub(super) type CallDecision = Result<CallReplies, String>;

#[derive(Debug, Default)]
pub(super) struct PriorApprovals {
    pub(super) decided: Vec<(ToolCall, CallDecision)>,
    /// Tasks of subagents that continue.
    pub(super) tasks: Vec<(ToolCall, SuspendedTask)>,
    /// Calls that need approval and have no reply.
    pub(super) open: Vec<Interrupt>,
}

/// Matches the entries with the calls. A call without a reply gets its interrupt again. Calls that
/// a client wrote are left out.
pub(super) async fn prior_approvals(
    messages: &[Message],
    entries: &[ResumeEntry],
    catalog: &ToolCatalog,
    cx: &RunContext,
) -> PriorApprovals {
    let mut prior = PriorApprovals::default();
    let (mut decided_ids, mut undecided) = (HashSet::new(), Vec::new());
    let mut used = HashSet::new();
    let mut tasks = SuspendedTask::from_entries(entries);
    for (call, result) in history::calls(made_by_runs(messages, cx)) {
        if result.is_none()
            && let Some(task) = tasks.remove(&call.id)
        {
            used.extend(task.entries.clone());
            decided_ids.insert(&call.id);
            prior.tasks.push((call.clone(), task));
            continue;
        }
        let Some((decision, its_entries)) = decision_on(call, result, entries) else {
            undecided.push((call, result));
            continue;
        };
        used.extend(its_entries.into_iter().map(|entry| entry.interrupt_id.clone()));
        if decided_ids.insert(&call.id) {
            prior.decided.push((call.clone(), decision));
        } else {
            tracing::warn!(
                call = call.id.as_str(),
                "ignored a second call with the id of a call that was decided on"
            );
        }
    }
    let mut ids = decided_ids;
    for (call, result) in undecided {
        if !ids.insert(&call.id) {
            tracing::warn!(
                call = call.id.as_str(),
                "ignored a tool call whose id is already used in the conversation"
            );
        } else if result.is_none() {
            prior.open.extend(interrupt_if_needed(call, catalog).await);
        }
    }
    let unused = entries.iter().filter(|entry| !used.contains(&entry.interrupt_id)).count();
    if unused > 0 {
        tracing::warn!(
            entries = unused,
            "ignored resume entries that answer no call of this conversation"
        );
    }
    prior
}

/// Returns the decision on a call and the entries that it comes from; `None` if the entries do not reply to it, or
/// if it has a result.
fn decision_on<'e>(
    call: &ToolCall,
    result: Option<&ToolMessage>,
    entries: &'e [ResumeEntry],
) -> Option<(CallDecision, Vec<&'e ResumeEntry>)> {
    let is_open = |entries: &[&ResumeEntry]| {
        result.is_none_or(|result| entries.iter().any(|entry| is_copy_of_reply(result, entry)))
    };
    // The questions of a call come after its approval.
    let questions = CallReplies::entries(call, entries);
    if is_open(&questions)
        && let Some(replies) = CallReplies::read(call, entries)
    {
        let is_declined = replies.lack_consent();
        return Some((
            if is_declined { Err(NO_CONSENT.to_owned()) } else { Ok(replies) },
            questions,
        ));
    }
    let bound = |entry: &'e ResumeEntry| {
        entry.interrupt_id.strip_prefix(ID_PREFIX).filter(|bound| is_bound_to(call, bound))
    };
    let approvals: Vec<_> = entries.iter().filter(|entry| bound(entry).is_some()).collect();
    let first = *approvals.first()?;
    let is_clear = approvals.iter().all(|entry| *entry == first);
    let decision = if is_clear {
        ApprovalDecision::from_entry(first, true)
    } else {
        ApprovalDecision::Unclear
    };
    let bound = bound(first).unwrap_or_default().to_owned();
    is_open(&[first])
        .then(|| (decide(decision).map(|edited| CallReplies::none(bound, edited)), approvals))
}

/// True for the copy of a reply that a page adds to the conversation beside the `resume` entry.
fn is_copy_of_reply(message: &ToolMessage, entry: &ResumeEntry) -> bool {
    let MessageContent::Text(text) = &message.content else { return false };
    let reply = match (entry.status, &entry.payload) {
        (ResumeStatus::Cancelled, _) => json!({ "status": "cancelled" }),
        (ResumeStatus::Resolved, Some(payload)) => payload.clone(),
        (ResumeStatus::Resolved, None) => json!({ "status": "resolved" }),
    };
    serde_json::from_str::<Value>(text).is_ok_and(|value| value == reply)
}

async fn interrupt_if_needed(call: &ToolCall, catalog: &ToolCatalog) -> Option<Interrupt> {
    let Some(ToolOwner::Server(OfferedTool { tool, validator })) =
        catalog.owner(&call.function.name)
    else {
        return None;
    };
    let arguments = validator.check(&call.function.arguments).await.ok()?;
    (tool.approval(&arguments) == Approval::Needed)
        .then(|| approval_interrupt(call, &arguments, &**tool))
}

/// `arguments` are the ones that run. The question shows them, and not the model's text.
pub(super) fn approval_interrupt(
    call: &ToolCall,
    arguments: &JsonObject,
    tool: &dyn Tool,
) -> Interrupt {
    let (spec, mut interrupt) = (tool.spec(), Interrupt::new("tool_call"));
    interrupt.id = format!("{ID_PREFIX}{}", bound_call(call, tool.server())).into();
    interrupt.message = Some(question(&spec.name, arguments));
    interrupt.tool_call_id = Some(call.id.clone());
    interrupt.response_schema = Some(reply_schema(&spec.parameters));
    interrupt.set_call(&spec.name, arguments.clone());
    interrupt
}

/// A page may show nothing but this text, so it has the arguments.
fn question(tool: &str, arguments: &JsonObject) -> String {
    let with_arguments = match arguments.is_empty() {
        true => String::new(),
        false => format!(" with {}", shown_arguments(arguments)),
    };
    format!("The agent wants to call {}{with_arguments}. Do you approve?", visible(tool))
}

fn reply_schema(parameters: &Value) -> JsonObject {
    // A `$ref` points from the root of the tool's schema, so it would not resolve here. Edited arguments are checked
    // against the tool's schema before the call in any case.
    let arguments =
        if has_reference(parameters) { json!({ "type": "object" }) } else { parameters.clone() };
    approval_schema(Some(arguments))
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name == "$ref" || name == "$dynamicRef" || has_reference(value)),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

/// Returns the edited arguments of an approved call, or the result of one that does not run.
fn decide(decision: ApprovalDecision) -> Result<Option<JsonObject>, String> {
    Err(match decision {
        ApprovalDecision::Approved { edited_args } => return Ok(edited_args),
        ApprovalDecision::Declined { reason: Some(reason) } => {
            format!("The user declined this call: {reason}")
        }
        ApprovalDecision::Declined { reason: None } => "The user declined this call.".to_owned(),
        ApprovalDecision::Cancelled => {
            "The call was not run: the user did not approve it.".to_owned()
        }
        ApprovalDecision::Unclear => {
            "The call was not run: the user's answer was unclear.".to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{Scripted, ask, call, done, increment, play},
        *,
    };
    use crate::LlmAgent;

    #[test]
    fn the_model_gets_the_reason_of_a_refusal() {
        let declined = decide(ApprovalDecision::Declined { reason: Some("too dear".to_owned()) });
        assert_eq!(declined, Err("The user declined this call: too dear".to_owned()));
        assert!(
            decide(ApprovalDecision::Unclear).is_err()
                && decide(ApprovalDecision::Cancelled).is_err()
        );
    }

    #[test]
    fn the_question_has_the_arguments_of_the_call() {
        let asks =
            "The agent wants to call get_weather with {\"city\":\"Beijing\"}. Do you approve?";
        let question =
            |tool: &str, arguments: Value| question(tool, arguments.as_object().unwrap());
        assert_eq!(question("get_weather", json!({ "city": "Beijing" })), asks);
        assert_eq!(question("ping", json!({})), "The agent wants to call ping. Do you approve?");
        let long = question("write", json!({ "text": "x".repeat(1000), "to": "eve" }));
        assert!(
            long.len() < 620
                && long.contains("x\"… (1000 characters),\"to\":\"eve\"}. Do you approve?"),
            "{long}"
        );
    }

    #[test]
    fn the_question_is_made_of_the_object_that_runs() {
        let (blanks, long) = (" ".repeat(600), "x".repeat(600));
        let written = format!(
            r#"{{"n":1,{blanks}"note":"{long}","n":2,"more":{{"text":"{long}","last":3}}}}"#
        );
        let model = Scripted::new([done([call(0, "c", "increment", &written)])]);
        let played = play(LlmAgent::new(model).tools(increment(Approval::Needed)), ask("?"));
        let asked = &played.end["outcome"]["interrupts"][0];
        let message = asked["message"].as_str().unwrap();
        let cut = format!("\"{}\"… (600 characters)", &long[..500]);
        for shown in [
            "\"n\":2",
            &format!("\"note\":{cut}"),
            &format!("\"more\":{{\"text\":{cut},\"last\":3}}"),
        ] {
            assert!(message.contains(shown), "{shown}: {message}");
        }
        assert!(!message.contains("\"n\":1"), "{message}");
        let runs = json!({ "n": 2, "note": long, "more": { "text": long, "last": 3 } });
        assert_eq!(asked["metadata"], json!({ "toolName": "increment", "arguments": runs }));
    }

    #[test]
    fn edited_arguments_must_fit_the_tool() {
        let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let schema = Value::Object(reply_schema(&parameters));
        let fits = |reply: Value| jsonschema::is_valid(&schema, &reply);
        assert!(fits(json!({ "approved": true, "editedArgs": { "n": 1 } })));
        assert!(!fits(json!({ "approved": true, "editedArgs": { "n": "1" } })));
        assert!(!fits(json!({ "editedArgs": { "n": 1 } })));
        let refers =
            json!({ "$defs": { "x": {} }, "properties": { "a": { "$ref": "#/$defs/x" } } });
        assert_eq!(reply_schema(&refers)["properties"]["editedArgs"], json!({ "type": "object" }));
    }
}
