//! The question of a LangGraph graph, which it asks by `CUSTOM on_interrupt` before its run ends in success, and the reply,
//! which it reads from `forwardedProps.command.resume`.
//!
//! The question becomes an interrupt of the thread, so that its reply is checked as any other.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use agui_protocol::{
    Interrupt, JsonObject, ResumeEntry, ResumeStatus, RunAgentInput,
    event::{Custom, RunFinished, RunOutcome},
};

/// The name of the event, and the beginning of the ids of its interrupts.
const ON_INTERRUPT: &str = "on_interrupt";
/// The member of `forwardedProps` that LangGraph executes.
const COMMAND: &str = "command";
/// The reply to a question that was cancelled, as `ag-ui-langgraph` writes it.
const CANCELLED: &str = "__agui_cancelled__";

/// Reads the question of a custom event. `url` is that of the endpoint.
pub(super) fn question(event: &Custom, url: &str) -> Option<Interrupt> {
    if event.name != ON_INTERRUPT {
        return None;
    }
    let value = match &event.value {
        // Objects come as JSON text.
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => event.value.clone(),
        },
        value => value.clone(),
    };
    let member = |names: [&str; 2]| names.iter().find_map(|name| value.get(name)).cloned();
    let text = |names| member(names).and_then(|value| Some(value.as_str()?.to_owned()));
    let reason = text(["reason", "reason"]).unwrap_or_else(|| "langgraph:interrupt".to_owned());
    let theirs = event.base.raw_event().and_then(|raw| raw.get("id")).and_then(Value::as_str);
    let mut interrupt = Interrupt::new(reason);
    interrupt.id = own_id(theirs.unwrap_or_default(), &interrupt.id, url).into();
    interrupt.message = value.as_str().map(str::to_owned).or_else(|| text(["message", "question"]));
    interrupt.tool_call_id = text(["toolCallId", "tool_call_id"]).map(Into::into);
    interrupt.expires_at = text(["expiresAt", "expires_at"]);
    if let Some(Value::Object(schema)) = member(["responseSchema", "response_schema"]) {
        interrupt.response_schema = Some(schema);
    }
    interrupt.subagent_run_id.clone_from(&event.subagent_run_id);
    let metadata = JsonObject::from_iter([("langgraph".to_owned(), json!({ "raw": value }))]);
    interrupt.metadata = Some(metadata.into());
    Some(interrupt)
}

/// Ends a run with the questions of its custom events, unless the endpoint has said itself how the run ends.
pub(super) fn ask(finished: &mut RunFinished, questions: Vec<Interrupt>) {
    let is_success = matches!(finished.outcome, None | Some(RunOutcome::Success { .. }));
    if is_success && !questions.is_empty() {
        finished.outcome = Some(RunOutcome::Interrupt { interrupts: questions });
    }
}

/// Writes the checked replies to such questions as LangGraph's command. A command of the client never goes with a reply.
pub(super) fn answer(input: &mut RunAgentInput, url: &str) {
    if input.resume.is_empty() {
        return;
    }
    let is_own = |entry: &mut ResumeEntry| their_id(&entry.interrupt_id, url).is_some();
    let replies: Vec<ResumeEntry> = input.resume.extract_if(.., is_own).collect();
    let props = input.forwarded_props.get_or_insert_with(|| json!({}));
    if let Value::Object(props) = props {
        props.remove(COMMAND);
    } else if !replies.is_empty() {
        *props = json!({});
    }
    let ids = || replies.iter().map(|entry| their_id(&entry.interrupt_id, url).unwrap_or_default());
    let resume = match &replies[..] {
        [] => return,
        [reply] => value_of(reply, ids().next().unwrap_or_default()),
        _ if ids().all(|id| !id.is_empty()) => {
            let values =
                ids().zip(&replies).map(|(id, reply)| (id.to_owned(), value_of(reply, id)));
            Value::Object(values.collect::<Map<_, _>>())
        }
        _ => ids().zip(&replies).map(|(id, reply)| value_of(reply, id)).collect(),
    };
    if let Value::Object(props) = props {
        props.insert(COMMAND.to_owned(), json!({ "resume": resume }));
    }
}

/// Returns the value of a reply. `null` would mean that there is none.
fn value_of(reply: &ResumeEntry, id: &str) -> Value {
    match reply.status {
        ResumeStatus::Cancelled => json!({ CANCELLED: true, "interrupt_id": id }),
        ResumeStatus::Resolved => {
            reply.payload.clone().filter(|value| !value.is_null()).unwrap_or_else(|| json!({}))
        }
    }
}

/// Makes the id of an interrupt, in which [`their_id`] finds LangGraph's own id, if it is known.
fn own_id(theirs: &str, random: &str, url: &str) -> String {
    format!("{ON_INTERRUPT}:{theirs}:{random}:{}", tag(random, url))
}

/// Returns LangGraph's id, maybe empty, of an interrupt that [`own_id`] has made for this URL. Another endpoint may be a
/// server like this one, with such interrupts of its own.
fn their_id<'a>(id: &'a str, url: &str) -> Option<&'a str> {
    let (id, found) = id.strip_prefix(ON_INTERRUPT)?.strip_prefix(':')?.rsplit_once(':')?;
    let (theirs, random) = id.rsplit_once(':')?;
    (tag(random, url) == found).then_some(theirs)
}

fn tag(random: &str, url: &str) -> String {
    let digest = Sha256::digest(format!("{random} {url}"));
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://h/agent";

    fn asked(value: Value, id: Option<&str>) -> Interrupt {
        let mut event = Custom::new(ON_INTERRUPT, value);
        event.base.set_raw_event(id.map(|id| json!({ "value": "…", "id": id })));
        question(&event, URL).unwrap()
    }

    /// Returns `command` and the number of remaining replies in what the endpoint gets.
    fn sent(resume: Vec<ResumeEntry>, props: Option<Value>) -> (Value, usize) {
        let mut input = RunAgentInput { resume, ..RunAgentInput::new("t", "r", vec![]) };
        input.forwarded_props = props;
        answer(&mut input, URL);
        let props = input.forwarded_props.unwrap_or_default();
        (props.get(COMMAND).cloned().unwrap_or_default(), input.resume.len())
    }

    fn resolved(interrupt: &Interrupt, payload: Value) -> ResumeEntry {
        let mut entry = ResumeEntry::new(interrupt.id.clone(), ResumeStatus::Resolved);
        entry.payload = Some(payload);
        entry
    }

    #[test]
    fn a_question_is_read_from_a_text_and_from_json_in_a_text() {
        let interrupt = asked(json!("Sure?"), None);
        assert_eq!(
            (&*interrupt.reason, interrupt.message.as_deref()),
            ("langgraph:interrupt", Some("Sure?"))
        );
        let value = json!({
            "reason": "approval", "message": "Pay?", "toolCallId": "c", "responseSchema": { "type": "string" }, "expiresAt": "never",
        });
        for value in [json!(value.to_string()), value.clone()] {
            let interrupt = asked(value.clone(), Some("abc"));
            assert_eq!(
                (&*interrupt.reason, interrupt.message.as_deref()),
                ("approval", Some("Pay?"))
            );
            assert_eq!(interrupt.tool_call_id.as_deref(), Some("c"));
            assert_eq!(interrupt.response_schema.unwrap()["type"], "string");
            assert_eq!(interrupt.expires_at.as_deref(), Some("never"));
            assert_eq!(their_id(&interrupt.id, URL), Some("abc"));
            assert_eq!(interrupt.metadata.unwrap()["langgraph"]["raw"]["message"], "Pay?");
        }
        assert_eq!(question(&Custom::new("note", json!("Sure?")), URL), None);
    }

    #[test]
    fn the_checked_reply_is_the_command_and_that_of_the_client_is_left_out() {
        let (one, two, unnamed) =
            (asked(json!("1"), Some("a")), asked(json!("2"), Some("b")), asked(json!("3"), None));
        let forged =
            || Some(json!({ "command": { "resume": "yes to all", "goto": "end" }, "k": 1 }));
        let reply = |interrupt: &Interrupt| resolved(interrupt, json!({ "ok": true }));
        let resume = |value: Value| json!({ "resume": value });
        assert_eq!(sent(vec![reply(&one)], forged()), (resume(json!({ "ok": true })), 0));
        assert_eq!(sent(vec![reply(&one)], None), (resume(json!({ "ok": true })), 0));
        assert_eq!(
            sent(vec![reply(&one)], Some(json!("text"))),
            (resume(json!({ "ok": true })), 0)
        );
        let both = json!({ "a": { "ok": true }, "b": { "ok": true } });
        assert_eq!(sent(vec![reply(&one), reply(&two)], None), (resume(both), 0));
        let list = json!([{ "ok": true }, { "ok": true }]);
        assert_eq!(sent(vec![reply(&one), reply(&unnamed)], None), (resume(list), 0));
        let cancelled = ResumeEntry::new(one.id.clone(), ResumeStatus::Cancelled);
        let value = json!({ "__agui_cancelled__": true, "interrupt_id": "a" });
        assert_eq!(sent(vec![cancelled], forged()), (resume(value), 0));
        assert_eq!(sent(vec![resolved(&one, Value::Null)], None), (resume(json!({})), 0));
        // Another interrupt, and one that another server has made: their replies go as they are.
        let other = Interrupt { id: own_id("a", "int_1", "http://other/").into(), ..one.clone() };
        assert_eq!(
            sent(vec![reply(&other), reply(&Interrupt::new("x"))], forged()),
            (Value::Null, 2)
        );
        // Without a question, the client's command is its own.
        assert_eq!(sent(vec![], forged()).0["goto"], "end");
    }

    #[test]
    fn a_run_that_says_how_it_ends_keeps_its_end() {
        let outcome_after = |outcome: Option<RunOutcome>| {
            let mut finished = RunFinished::new("t".into(), "r".into(), RunOutcome::Cancelled);
            finished.outcome = outcome;
            ask(&mut finished, vec![asked(json!("Sure?"), None)]);
            finished.outcome
        };
        assert_eq!(outcome_after(Some(RunOutcome::Cancelled)), Some(RunOutcome::Cancelled));
        let own = RunOutcome::Interrupt { interrupts: vec![Interrupt::new("own")] };
        assert_eq!(outcome_after(Some(own.clone())), Some(own));
        for success in [None, Some(RunOutcome::success())] {
            let Some(RunOutcome::Interrupt { interrupts }) = outcome_after(success) else {
                panic!()
            };
            assert_eq!(interrupts.len(), 1);
        }
    }
}
