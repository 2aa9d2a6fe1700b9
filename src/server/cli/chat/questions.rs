//! Asks for the replies to interrupts: approvals, and forms for other schemas.

use std::io;

use serde_json::{Value, json};

use super::{
    console::{Console, Style},
    form::{self, fields, read_yes_or_no},
    view::{call_text, find_call},
};
use crate::server::cli::printable::{excerpt, printable_line};
use agui_base::{permits::ANONYMOUS, schema::compile_response_schema};
use agui_protocol::{
    Interrupt, JsonObject, Messages, ResumeEntry, ResumeStatus,
    approval::{ApprovalDecision, allows_edits, allows_reason, asks_for_approval},
    own_names::VISIT_URL,
};
use agui_run::host::has_expired;

/// The reply that abandons an interrupt.
const CANCEL: &str = "/cancel";
/// The reply that ends the chat.
const QUIT: &str = "/quit";
const MAX_QUESTION_CHARS: usize = 4000;
/// The members of an approval's reply, which have questions of their own.
const APPROVAL_MEMBERS: [&str; 3] = ["approved", "editedArgs", "reason"];

/// The reason why a question has no reply.
enum NoReply {
    Cancelled,
    InputEnded,
    Failed(io::Error),
}

impl From<io::Error> for NoReply {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Asks for the replies to all interrupts. Returns `None` if the input ends before.
pub(super) async fn ask_all(
    interrupts: &[Interrupt],
    messages: &Messages,
    console: &mut Console,
) -> io::Result<Option<Vec<ResumeEntry>>> {
    let mut entries = Vec::new();
    for interrupt in interrupts {
        show(interrupt, messages, console);
        let (status, payload) = if has_expired(interrupt) {
            console
                .note(Style::Plain, "The time for an answer is over; the question is cancelled.");
            (ResumeStatus::Cancelled, None)
        } else {
            match ask(interrupt, messages, console).await {
                Ok(payload) => (ResumeStatus::Resolved, Some(payload)),
                Err(NoReply::Cancelled) => (ResumeStatus::Cancelled, None),
                Err(NoReply::InputEnded) => return Ok(None),
                Err(NoReply::Failed(error)) => return Err(error),
            }
        };
        entries.push(ResumeEntry {
            interrupt_id: interrupt.id.clone(),
            status,
            payload,
            metadata: None,
        });
    }
    Ok(Some(entries))
}

/// Shows the question of an interrupt. The arguments of a call are shown whole: they are what the
/// person approves.
pub(super) fn show(interrupt: &Interrupt, messages: &Messages, console: &mut Console) {
    let question = interrupt.message.as_deref().unwrap_or(&interrupt.reason);
    console
        .note(Style::Bold, &format!("The agent asks: {}", excerpt(question, MAX_QUESTION_CHARS)));
    if let Some(url) = visit_url(interrupt) {
        console.note(Style::Bold, &format!("  {}", printable_line(url)));
    } else if let Some(id) = &interrupt.tool_call_id {
        match find_call(messages, id) {
            _ if let Some(arguments) = interrupt.arguments() => {
                let arguments = serde_json::to_string(arguments).unwrap_or_default();
                console.note(Style::Bold, &format!("  {}", printable_line(&arguments)));
            }
            Some(call) => console.note(Style::Bold, &format!("  {}", call_text(call))),
            None => console.note(Style::Failure, "  The call is unknown to this chat."),
        }
    }
}

/// Returns the page that the person has to open first.
fn visit_url(interrupt: &Interrupt) -> Option<&str> {
    interrupt.metadata.as_ref()?.get(VISIT_URL)?.as_str()
}

async fn ask(
    interrupt: &Interrupt,
    messages: &Messages,
    console: &mut Console,
) -> Result<Value, NoReply> {
    console.drop_typed_lines()?;
    console.note(
        Style::Dim,
        &format!("{CANCEL} leaves the question without an answer, {QUIT} ends the chat"),
    );
    let call = interrupt.tool_call_id.as_ref().and_then(|id| find_call(messages, id));
    let written = || -> Option<JsonObject> { serde_json::from_str(&call?.function.arguments).ok() };
    let arguments = interrupt.arguments().cloned().or_else(written);
    let arguments = arguments.as_ref().and_then(editable_arguments).unwrap_or_default();
    loop {
        let payload = match &interrupt.response_schema {
            None if visit_url(interrupt).is_some() => {
                ask_line("Press Enter when you are done there: ", console).await?;
                json!({ "done": true })
            }
            Some(schema) if asks_for_approval(schema) => {
                ask_approval(schema, &arguments, console).await?
            }
            Some(schema) => ask_form(&Value::Object(schema.clone()), &[], console).await?,
            None if interrupt.tool_call_id.is_some() => {
                ask_approval(&JsonObject::new(), "", console).await?
            }
            None => {
                let line = ask_line("Answer (JSON, or text): ", console).await?;
                serde_json::from_str(&line).unwrap_or_else(|_| line.into())
            }
        };
        match problem(interrupt, &payload).await {
            None => return Ok(payload),
            Some(problem) => console.note(Style::Failure, &problem),
        }
    }
}

async fn ask_line(prompt: &str, console: &mut Console) -> Result<String, NoReply> {
    ask_to_edit(prompt, "", console).await
}

/// Asks for a line that begins as `text`.
async fn ask_to_edit(prompt: &str, text: &str, console: &mut Console) -> Result<String, NoReply> {
    match console.ask_to_edit(prompt, text).await? {
        None => Err(NoReply::InputEnded),
        Some(line) if line.trim() == CANCEL => Err(NoReply::Cancelled),
        Some(line) if line.trim() == QUIT => Err(NoReply::InputEnded),
        Some(line) => Ok(line),
    }
}

/// Returns the arguments of a call as one line to edit; `None` if a terminal would execute or hide
/// a part of them.
fn editable_arguments(arguments: &JsonObject) -> Option<String> {
    serde_json::to_string(arguments).ok().filter(|line| printable_line(line) == *line)
}

async fn ask_approval(
    schema: &JsonObject,
    arguments: &str,
    console: &mut Console,
) -> Result<Value, NoReply> {
    let can_edit = allows_edits(schema);
    let prompt = if can_edit { "Approve? (yes, no or edit): " } else { "Approve? (yes or no): " };
    let decision = loop {
        let line = ask_line(prompt, console).await?;
        match (read_yes_or_no(line.trim()), line.trim()) {
            (Some(true), _) => break ApprovalDecision::Approved { edited_args: None },
            (Some(false), _) => {
                let reason = if allows_reason(schema) {
                    ask_line("Reason (Enter for none): ", console).await?
                } else {
                    String::new()
                };
                break ApprovalDecision::Declined {
                    reason: Some(reason).filter(|reason| !reason.trim().is_empty()),
                };
            }
            (None, "edit" | "e") if can_edit => {
                let line =
                    ask_to_edit("Arguments (a JSON object on one line): ", arguments, console)
                        .await?;
                match serde_json::from_str(&line) {
                    Ok(args) => break ApprovalDecision::Approved { edited_args: Some(args) },
                    Err(error) => {
                        console.note(Style::Failure, &format!("not a JSON object: {error}"))
                    }
                }
            }
            (None, _) => {}
        }
    };
    let mut payload = Value::Object(decision.to_payload());
    let others = ask_form(&Value::Object(schema.clone()), &APPROVAL_MEMBERS, console).await?;
    if let (Value::Object(payload), Value::Object(others)) = (&mut payload, others) {
        payload.extend(others);
    }
    Ok(payload)
}

/// Asks for a value of a schema, without members of these names.
async fn ask_form(
    schema: &Value,
    without: &[&str],
    console: &mut Console,
) -> Result<Value, NoReply> {
    let mut reply = Value::Object(JsonObject::new());
    for field in fields(schema) {
        let is_left_out =
            field.path.first().map_or(!without.is_empty(), |name| without.contains(&name.as_str()));
        if is_left_out {
            continue;
        }
        field.explanation().iter().for_each(|line| console.note(Style::Plain, line));
        let value = loop {
            match field.read(&ask_line(&field.prompt(), console).await?) {
                Ok(value) => break value,
                Err(problem) => console.note(Style::Failure, &problem),
            }
        };
        if let Some(value) = value {
            form::insert(&mut reply, &field.path, value);
        }
    }
    Ok(reply)
}

/// Returns the fault of a reply. The agent checks replies whose schema cannot be used here.
async fn problem(interrupt: &Interrupt, payload: &Value) -> Option<String> {
    let schema = compile_response_schema(interrupt.response_schema.as_ref()?).ok()?;
    let (problems, _) = schema.problems(&ANONYMOUS.into(), payload).await.ok()??;
    let lines = problems
        .iter()
        .map(|problem| format!("{} {}", printable_line(&problem.path), problem.text));
    Some(lines.collect::<Vec<_>>().join("\n").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::approval::approval_schema;

    #[tokio::test]
    async fn lines_that_were_typed_before_a_question_do_not_answer_it() {
        let mut interrupt = Interrupt::new("tool_call");
        interrupt.response_schema = Some(approval_schema(None));
        let mut console = Console::with_typed_lines(&["yes", "yes"]);
        let entries = ask_all(&[interrupt], &Messages::default(), &mut console).await.unwrap();
        assert_eq!(entries, None);
    }

    #[test]
    fn arguments_that_a_terminal_would_hide_are_not_put_on_the_line() {
        let editable =
            |arguments: &str| editable_arguments(&serde_json::from_str(arguments).unwrap());
        assert_eq!(editable("{\n  \"to\": \"Ann\"\n}").as_deref(), Some("{\"to\":\"Ann\"}"));
        for arguments in ["{\"to\":\"\u{9b}2J\"}", "{\"to\":\"\u{202e}nnA\"}"] {
            assert_eq!(editable(arguments), None, "{arguments:?}");
        }
    }

    #[tokio::test]
    async fn an_interrupt_that_has_expired_is_cancelled() {
        let mut interrupt = Interrupt::new("tool_call");
        interrupt.expires_at = Some("2020-01-01T00:00:00Z".to_owned());
        let mut console = Console::with_typed_lines(&[]);
        let entries =
            ask_all(&[interrupt], &Messages::default(), &mut console).await.unwrap().unwrap();
        assert_eq!((entries.len(), entries[0].status), (1, ResumeStatus::Cancelled));
    }
}
