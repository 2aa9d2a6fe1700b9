//! How a run's end is told to clients from before AG-UI 1.0.
//!
//! Those refuse an outcome that they do not know, or one with members they do not know, and with it the end of the
//! run. To them a run that was stopped has simply ended, which is what other servers have always told them, and the
//! calls that wait for the application are those that have no result.

use std::borrow::Cow;

use crate::protocol::{
    Event,
    event::{RunFinished, RunOutcome},
};

/// How each line that this is about begins: the type is an event's first member.
const RUN_FINISHED: &str = "{\"type\":\"RUN_FINISHED\"";

/// The event as such a client can read it.
pub(super) fn event(event: &Event) -> Cow<'_, Event> {
    let Event::RunFinished(finished) = event else { return Cow::Borrowed(event) };
    let outcome = match &finished.outcome {
        Some(RunOutcome::Success { .. }) => Some(RunOutcome::success()),
        Some(RunOutcome::Cancelled) => None,
        Some(RunOutcome::Interrupt { .. }) | None => return Cow::Borrowed(event),
    };
    Cow::Owned(RunFinished { outcome, ..(**finished).clone() }.into())
}

/// The event of a log's line, if such a client has to be told it in another way.
pub(super) fn line(json: &str) -> Option<Event> {
    if !json.starts_with(RUN_FINISHED) {
        return None;
    }
    let read = serde_json::from_str(json).inspect_err(|error| tracing::error!(%error, "an event cannot be read"));
    Some(event(&read.ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use crate::{encode::Encoder, protocol::Event};

    fn told(json: &str) -> [String; 2] {
        let whole: Event = serde_json::from_str(json).unwrap();
        let mut encoder = Encoder::negotiate(["text/event-stream"]).for_legacy_client();
        let [mut by_event, mut by_line] = [Vec::new(), Vec::new()];
        encoder.event(&whole, &mut by_event);
        encoder.line(&serde_json::to_string(&whole).unwrap(), None, &mut by_line);
        [by_event, by_line].map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn an_outcome_that_older_clients_cannot_read_is_left_out() {
        let finished =
            |outcome: &str| format!("{{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"{outcome}}}");
        let success = r#","outcome":{"type":"success"}"#;
        let interrupt = r#","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}"#;
        for (outcome, as_told) in [
            (r#","outcome":{"type":"cancelled"}"#, ""),
            (r#","outcome":{"type":"success","pendingToolCallIds":["c"]}"#, success),
            (success, success),
            (interrupt, interrupt),
            ("", ""),
        ] {
            let expected = format!("data: {}\n\n", finished(as_told));
            assert_eq!(told(&finished(outcome)), [expected.clone(), expected]);
        }
        let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
        assert_eq!(told(error), [0, 1].map(|_| format!("data: {error}\n\n")));
    }
}
