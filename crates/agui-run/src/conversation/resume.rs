//! Checks the replies of a request (`resume`) to the open interrupts.
//!
//! The rules are those of the specification (`basic/patterns/interrupt-resume`): each open interrupt needs an entry, resolved
//! or cancelled; an entry for another interrupt is ignored with a warning; an expired interrupt can only be cancelled; a
//! payload must match the interrupt's schema. If an entry breaks a rule, all interrupts stay open and the agent does not
//! run.

use std::sync::Arc;

use jiff::{Timestamp, civil, tz::TimeZone};
use serde_json::Value;

use agui_base::{
    RunErrorCode,
    schema::compile_response_schema,
    text::{short_line, short_name},
};
use agui_protocol::{Interrupt, ResumeEntry, ResumeStatus};

/// The reason why the agent does not run. All interrupts stay open.
#[derive(Debug, PartialEq)]
pub(crate) enum ResumeRefusal {
    /// An open interrupt has no entry. The interrupts are reported again.
    StillOpen,
    /// An entry breaks a rule. The run fails with this code and message.
    Invalid(RunErrorCode, String),
}

/// Checks the entries of a request. Returns one reply for each open interrupt.
pub(crate) async fn check_resume(
    owner: &Arc<str>,
    open: &[Interrupt],
    entries: Vec<ResumeEntry>,
    now: Timestamp,
) -> Result<Vec<ResumeEntry>, ResumeRefusal> {
    let (entries, unknown): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|entry| open.iter().any(|interrupt| interrupt.id == entry.interrupt_id));
    if !unknown.is_empty() {
        let examples: Vec<_> =
            unknown.iter().take(3).map(|entry| short_name(&entry.interrupt_id)).collect();
        tracing::warn!(
            entries = unknown.len(),
            ?examples,
            "ignored resume entries for interrupts that are not open"
        );
    }
    let mut replies = Vec::with_capacity(open.len());
    for interrupt in open {
        let mut own = entries.iter().filter(|entry| entry.interrupt_id == interrupt.id);
        let entry = own.next().ok_or(ResumeRefusal::StillOpen)?;
        if own.any(|other| other != entry) {
            let message =
                format!("the interrupt {:?} has contradictory replies", short_name(&interrupt.id));
            return Err(ResumeRefusal::Invalid(RunErrorCode::ContradictoryResume, message));
        }
        let checked = check_entry(owner, interrupt, entry, now).await;
        replies.push(checked.map_err(|(code, message)| ResumeRefusal::Invalid(code, message))?);
    }
    Ok(replies)
}

/// Returns the entry. A payload that is an object written as a text, as `resolve(JSON.stringify(…))` sends it, becomes the object
/// if the schema does not accept the text.
async fn check_entry(
    owner: &Arc<str>,
    interrupt: &Interrupt,
    entry: &ResumeEntry,
    now: Timestamp,
) -> Result<ResumeEntry, (RunErrorCode, String)> {
    let mut checked = entry.clone();
    if entry.status == ResumeStatus::Cancelled {
        return Ok(checked);
    }
    let id = short_name(&interrupt.id);
    if let Some(expiry) = interrupt.expires_at.as_deref().filter(|expiry| has_passed(expiry, now)) {
        let message = format!("the interrupt {id:?} expired at {expiry} and can only be cancelled");
        return Err((RunErrorCode::InterruptExpired, message));
    }
    let Some(schema) = &interrupt.response_schema else { return Ok(checked) };
    let schema = compile_response_schema(schema).map_err(|error| {
        tracing::error!(
            interrupt = id,
            error,
            "an agent raised an interrupt with an invalid response schema"
        );
        (
            RunErrorCode::InvalidResponseSchema,
            format!("no reply to the interrupt {id:?} can be checked: its schema is invalid"),
        )
    })?;
    let payload = entry.payload.as_ref().unwrap_or(&Value::Null);
    let mut problems = schema.problems(owner, payload).await;
    if matches!(problems, Ok(Some(_)))
        && let Some(object) = written_object(payload)
    {
        problems = schema.problems(owner, &object).await;
        checked.payload = Some(object);
    }
    let problem = match problems {
        Ok(None) => return Ok(checked),
        Ok(Some((problems, _))) => {
            problems.into_iter().next().map_or_else(String::new, |problem| {
                let path = if problem.path.is_empty() {
                    "the payload".to_owned()
                } else {
                    format!("payload{}", problem.path)
                };
                format!("{path}: {}", problem.text)
            })
        }
        Err(reason) => reason,
    };
    let problem = short_line(&problem);
    Err((
        RunErrorCode::InvalidResumePayload,
        format!("the reply to the interrupt {id:?} does not match its schema: {problem}"),
    ))
}

fn written_object(payload: &Value) -> Option<Value> {
    serde_json::from_str(payload.as_str()?).ok().filter(Value::is_object)
}

/// Returns whether an interrupt has expired, so that it can only be cancelled.
pub fn has_expired(interrupt: &Interrupt) -> bool {
    interrupt.expires_at.as_deref().is_some_and(|expiry| has_passed(expiry, Timestamp::now()))
}

/// Returns whether a time has passed. The specification does not define the format of the text: as in the reference client,
/// a text that is not a time never passes, and a time without an offset is UTC.
fn has_passed(expiry: &str, now: Timestamp) -> bool {
    let utc =
        |time: civil::DateTime| time.to_zoned_datetime(TimeZone::UTC).map(|time| time.timestamp());
    let time = expiry.parse::<Timestamp>().or_else(|_| expiry.parse().and_then(utc));
    time.or_else(|_| expiry.parse::<civil::Date>().and_then(|date| utc(date.at(0, 0, 0, 0))))
        .is_ok_and(|time| time <= now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn interrupt(id: &str) -> Interrupt {
        Interrupt { id: id.into(), ..Interrupt::new("tool_call") }
    }

    fn entry(id: &str, status: ResumeStatus, payload: serde_json::Value) -> ResumeEntry {
        ResumeEntry { interrupt_id: id.into(), status, payload: Some(payload), metadata: None }
    }

    fn check_resume(
        open: &[Interrupt],
        entries: Vec<ResumeEntry>,
        now: Timestamp,
    ) -> Result<Vec<ResumeEntry>, ResumeRefusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(super::check_resume(&"key:ann".into(), open, entries, now))
    }

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn resolved(id: &str) -> ResumeEntry {
        entry(id, ResumeStatus::Resolved, json!({ "approved": true }))
    }

    #[test]
    fn entries_for_interrupts_that_are_not_open_are_ignored() {
        assert_eq!(check_resume(&[], vec![resolved("x")], now()), Ok(vec![]));
        let decision = check_resume(&[interrupt("a")], vec![resolved("x"), resolved("a")], now());
        assert_eq!(decision, Ok(vec![resolved("a")]));
    }

    #[test]
    fn every_open_interrupt_needs_an_entry() {
        let open = [interrupt("a"), interrupt("b")];
        assert_eq!(check_resume(&open, vec![], now()), Err(ResumeRefusal::StillOpen));
        assert_eq!(check_resume(&open, vec![resolved("a")], now()), Err(ResumeRefusal::StillOpen));
        let cancelled = entry("b", ResumeStatus::Cancelled, json!(null));
        let decision = check_resume(&open, vec![cancelled.clone(), resolved("a")], now());
        assert_eq!(decision, Ok(vec![resolved("a"), cancelled]));
    }

    #[test]
    fn equal_entries_count_once_and_contradictory_entries_are_refused() {
        let open = [interrupt("a")];
        assert_eq!(check_resume(&open, vec![resolved("a"); 2], now()), Ok(vec![resolved("a")]));
        let other = entry("a", ResumeStatus::Resolved, json!({ "approved": false }));
        let decision = check_resume(&open, vec![resolved("a"), other], now());
        assert!(
            matches!(decision, Err(ResumeRefusal::Invalid(RunErrorCode::ContradictoryResume, _))),
            "{decision:?}"
        );
    }

    #[test]
    fn an_expired_interrupt_can_only_be_cancelled() {
        for over in [
            "2026-11-21T12:00:00Z",
            "2026-11-21T13:00:00+02:00",
            "2026-11-21T11:00:00",
            "2026-11-21",
        ] {
            let open = [Interrupt { expires_at: Some(over.into()), ..interrupt("a") }];
            let decision = check_resume(&open, vec![resolved("a")], now());
            assert!(
                matches!(decision, Err(ResumeRefusal::Invalid(RunErrorCode::InterruptExpired, _))),
                "{over}: {decision:?}"
            );
            let cancelled = entry("a", ResumeStatus::Cancelled, json!(null));
            assert_eq!(
                check_resume(&open, vec![cancelled.clone()], now()),
                Ok(vec![cancelled]),
                "{over}"
            );
        }
        for fine in ["2026-11-21T12:00:01Z", "2026-11-22", "soon", ""] {
            let open = [Interrupt { expires_at: Some(fine.into()), ..interrupt("a") }];
            assert_eq!(
                check_resume(&open, vec![resolved("a")], now()),
                Ok(vec![resolved("a")]),
                "{fine}"
            );
        }
    }

    #[test]
    fn a_payload_must_match_the_schema() {
        let schema = json!({ "type": "object", "properties": { "approved": { "type": "boolean" } }, "required": ["approved"] });
        let open = [Interrupt { response_schema: schema.as_object().cloned(), ..interrupt("a") }];
        assert_eq!(check_resume(&open, vec![resolved("a")], now()), Ok(vec![resolved("a")]));
        let wrong_text = json!(r#"{"approved":"yes"}"#);
        for payload in [
            json!({}),
            json!({ "approved": "yes" }),
            wrong_text,
            json!("yes"),
            json!(true),
            json!(null),
        ] {
            let decision = check_resume(
                &open,
                vec![entry("a", ResumeStatus::Resolved, payload.clone())],
                now(),
            );
            assert!(
                matches!(
                    decision,
                    Err(ResumeRefusal::Invalid(RunErrorCode::InvalidResumePayload, _))
                ),
                "{payload}: {decision:?}"
            );
        }
        let text = entry("a", ResumeStatus::Resolved, json!(r#" {"approved": true} "#));
        assert_eq!(check_resume(&open, vec![text], now()), Ok(vec![resolved("a")]));
        let wants_text = json!({ "type": "string" });
        let wants_text =
            [Interrupt { response_schema: wants_text.as_object().cloned(), ..interrupt("a") }];
        for open in [&wants_text, &[interrupt("a")]] {
            let text = entry("a", ResumeStatus::Resolved, json!(r#"{"approved":true}"#));
            assert_eq!(check_resume(open, vec![text.clone()], now()), Ok(vec![text]));
        }
        // Pages read the interrupt and the field from the message.
        let decision = check_resume(
            &open,
            vec![entry("a", ResumeStatus::Resolved, json!({ "approved": "yes" }))],
            now(),
        );
        let Err(ResumeRefusal::Invalid(_, message)) = decision else { panic!("{decision:?}") };
        let begin =
            r#"the reply to the interrupt "a" does not match its schema: payload/approved: "#;
        assert!(message.starts_with(begin), "{message}");
        let cancelled = entry("a", ResumeStatus::Cancelled, json!({}));
        assert_eq!(check_resume(&open, vec![cancelled.clone()], now()), Ok(vec![cancelled]));
    }

    #[test]
    fn an_invalid_schema_refuses_every_payload() {
        let schema = json!({ "type": "no such type" });
        let open = [Interrupt { response_schema: schema.as_object().cloned(), ..interrupt("a") }];
        let decision = check_resume(&open, vec![resolved("a")], now());
        assert!(
            matches!(decision, Err(ResumeRefusal::Invalid(RunErrorCode::InvalidResponseSchema, _))),
            "{decision:?}"
        );
    }

    #[test]
    fn a_schema_that_multiplies_its_references_is_refused_at_once() {
        let mut definitions = serde_json::Map::new();
        for level in 0..36 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            definitions.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
        }
        definitions.insert("d36".to_owned(), json!({}));
        let schema = json!({ "$defs": definitions, "$ref": "#/$defs/d0" });
        let open = [Interrupt { response_schema: schema.as_object().cloned(), ..interrupt("a") }];
        let begin = std::time::Instant::now();
        let decision = check_resume(&open, vec![resolved("a")], now());
        assert!(
            matches!(decision, Err(ResumeRefusal::Invalid(RunErrorCode::InvalidResponseSchema, _))),
            "{decision:?}"
        );
        assert!(begin.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn patterns_that_need_backtracking_are_not_checked() {
        let schema = json!({ "type": "string", "pattern": "^(?!x).*$", "minLength": 2 });
        let open = [Interrupt { response_schema: schema.as_object().cloned(), ..interrupt("a") }];
        let reply = |text: &str| {
            check_resume(&open, vec![entry("a", ResumeStatus::Resolved, json!(text))], now())
        };
        assert!(reply("xyz").is_ok());
        assert!(matches!(
            reply("a"),
            Err(ResumeRefusal::Invalid(RunErrorCode::InvalidResumePayload, _))
        ));
    }
}
