//! What the answers to a thread's open interrupts allow.
//!
//! The rules are the specification's (basic/patterns/interrupt-resume): every open interrupt needs an
//! entry, answered or abandoned; an entry for anything else is left out with a warning; an expired
//! interrupt can only be abandoned; an answer has the shape that was asked for. Where an answer is no good,
//! nothing was decided: the interrupts stay open, and the agent is not called.

use jiff::{Timestamp, civil, tz::TimeZone};

use crate::protocol::{Interrupt, ResumeEntry, ResumeStatus};

/// What to do with a run, given the thread's open interrupts.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Nothing is open any more; these are the answers that the agent gets.
    Proceed(Vec<ResumeEntry>),
    /// Interrupts are open that nobody answered. They are reported again.
    StillOpen,
    /// An answer is no good: the code and message of the error.
    Refused(&'static str, String),
}

pub(super) fn judge(open: &[Interrupt], entries: Vec<ResumeEntry>, now: Timestamp) -> Verdict {
    let (entries, unknown): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| open.iter().any(|interrupt| interrupt.id == entry.interrupt_id));
    if !unknown.is_empty() {
        let examples: Vec<_> = unknown.iter().take(3).map(|entry| short(&entry.interrupt_id)).collect();
        tracing::warn!(entries = unknown.len(), ?examples, "left out answers to interrupts that are not open");
    }
    let mut answers = Vec::with_capacity(open.len());
    for interrupt in open {
        let mut own = entries.iter().filter(|entry| entry.interrupt_id == interrupt.id);
        let Some(entry) = own.next() else { return Verdict::StillOpen };
        if own.any(|other| other != entry) {
            let message = format!("the interrupt {:?} has several different answers", short(&interrupt.id));
            return Verdict::Refused("contradictory_resume", message);
        }
        if let Err((code, message)) = check(interrupt, entry, now) {
            return Verdict::Refused(code, message);
        }
        answers.push(entry.clone());
    }
    Verdict::Proceed(answers)
}

fn check(interrupt: &Interrupt, entry: &ResumeEntry, now: Timestamp) -> Result<(), (&'static str, String)> {
    if entry.status == ResumeStatus::Cancelled {
        return Ok(());
    }
    let id = short(&interrupt.id);
    if let Some(expiry) = interrupt.expires_at.as_deref().filter(|expiry| is_over(expiry, now)) {
        let message = format!("the interrupt {id:?} expired at {expiry} and can only be cancelled");
        return Err(("interrupt_expired", message));
    }
    let Some(schema) = &interrupt.response_schema else { return Ok(()) };
    let schema = serde_json::Value::Object(schema.clone());
    let validator = jsonschema::validator_for(&schema).map_err(|error| {
        tracing::error!(%error, "an agent asked for an answer by a schema that is none");
        ("invalid_response_schema", format!("no answer to the interrupt {id:?} can be checked: its schema is invalid"))
    })?;
    let payload = entry.payload.as_ref().unwrap_or(&serde_json::Value::Null);
    validator.validate(payload).map_err(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the payload".to_owned() } else { format!("payload{place}") };
        let problem: String = error.to_string().chars().take(200).collect();
        ("invalid_resume_payload", format!("the answer to the interrupt {id:?} does not fit: {place}: {problem}"))
    })
}

/// Whether an interrupt can no longer be answered, but only be cancelled.
pub fn has_expired(interrupt: &Interrupt) -> bool {
    interrupt.expires_at.as_deref().is_some_and(|expiry| is_over(expiry, Timestamp::now()))
}

/// Whether a time has come. It is text that the specification does not constrain; what cannot be read as a time
/// never comes, as for the reference client. Without an offset it is UTC.
fn is_over(expiry: &str, now: Timestamp) -> bool {
    let utc = |time: civil::DateTime| time.to_zoned(TimeZone::UTC).map(|time| time.timestamp());
    let time = expiry.parse::<Timestamp>().or_else(|_| expiry.parse().and_then(utc));
    time.or_else(|_| expiry.parse::<civil::Date>().and_then(|date| utc(date.at(0, 0, 0, 0))))
        .is_ok_and(|time| time <= now)
}

fn short(id: &str) -> String {
    id.chars().take(80).collect()
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

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn resolved(id: &str) -> ResumeEntry {
        entry(id, ResumeStatus::Resolved, json!({ "approved": true }))
    }

    #[test]
    fn answers_to_what_is_not_open_are_left_out() {
        assert_eq!(judge(&[], vec![resolved("x")], now()), Verdict::Proceed(vec![]));
        let verdict = judge(&[interrupt("a")], vec![resolved("x"), resolved("a")], now());
        assert_eq!(verdict, Verdict::Proceed(vec![resolved("a")]));
    }

    #[test]
    fn every_open_interrupt_needs_an_answer() {
        let open = [interrupt("a"), interrupt("b")];
        assert_eq!(judge(&open, vec![], now()), Verdict::StillOpen);
        assert_eq!(judge(&open, vec![resolved("a")], now()), Verdict::StillOpen);
        let cancelled = entry("b", ResumeStatus::Cancelled, json!(null));
        let verdict = judge(&open, vec![cancelled.clone(), resolved("a")], now());
        assert_eq!(verdict, Verdict::Proceed(vec![resolved("a"), cancelled]));
    }

    #[test]
    fn the_same_answer_twice_is_one_and_different_ones_are_none() {
        let open = [interrupt("a")];
        assert_eq!(judge(&open, vec![resolved("a"); 2], now()), Verdict::Proceed(vec![resolved("a")]));
        let other = entry("a", ResumeStatus::Resolved, json!({ "approved": false }));
        let verdict = judge(&open, vec![resolved("a"), other], now());
        assert!(matches!(verdict, Verdict::Refused("contradictory_resume", _)), "{verdict:?}");
    }

    #[test]
    fn what_expired_can_only_be_cancelled() {
        for over in ["2026-11-21T12:00:00Z", "2026-11-21T13:00:00+02:00", "2026-11-21T11:00:00", "2026-11-21"] {
            let open = [Interrupt { expires_at: Some(over.into()), ..interrupt("a") }];
            let verdict = judge(&open, vec![resolved("a")], now());
            assert!(matches!(verdict, Verdict::Refused("interrupt_expired", _)), "{over}: {verdict:?}");
            let cancelled = entry("a", ResumeStatus::Cancelled, json!(null));
            assert_eq!(judge(&open, vec![cancelled.clone()], now()), Verdict::Proceed(vec![cancelled]), "{over}");
        }
        for fine in ["2026-11-21T12:00:01Z", "2026-11-22", "soon", ""] {
            let open = [Interrupt { expires_at: Some(fine.into()), ..interrupt("a") }];
            assert_eq!(judge(&open, vec![resolved("a")], now()), Verdict::Proceed(vec![resolved("a")]), "{fine}");
        }
    }

    #[test]
    fn an_answer_has_the_shape_that_was_asked_for() {
        let schema =
            json!({ "type": "object", "properties": { "approved": { "type": "boolean" } }, "required": ["approved"] });
        let open = [Interrupt { response_schema: schema.as_object().cloned(), ..interrupt("a") }];
        assert_eq!(judge(&open, vec![resolved("a")], now()), Verdict::Proceed(vec![resolved("a")]));
        for payload in [json!({}), json!({ "approved": "yes" }), json!(true), json!(null)] {
            let verdict = judge(&open, vec![entry("a", ResumeStatus::Resolved, payload.clone())], now());
            assert!(matches!(verdict, Verdict::Refused("invalid_resume_payload", _)), "{payload}: {verdict:?}");
        }
        let cancelled = entry("a", ResumeStatus::Cancelled, json!({}));
        assert_eq!(judge(&open, vec![cancelled.clone()], now()), Verdict::Proceed(vec![cancelled]));
    }

    #[test]
    fn a_schema_that_is_none_lets_nothing_pass() {
        let schema = json!({ "type": "no such type" });
        let open = [Interrupt { response_schema: schema.as_object().cloned(), ..interrupt("a") }];
        let verdict = judge(&open, vec![resolved("a")], now());
        assert!(matches!(verdict, Verdict::Refused("invalid_response_schema", _)), "{verdict:?}");
    }
}
