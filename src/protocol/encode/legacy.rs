//! `RUN_FINISHED` for clients older than AG-UI 1.0. Such clients reject an outcome that they do not know, or that has
//! members that they do not know, and then miss the end of the run. They get a cancelled run, and one that left calls of the
//! page's tools, without an outcome. assistant-ui runs such calls, but does not continue after a success.

use std::borrow::Cow;

use crate::protocol::{
    Event,
    event::{RunFinished, RunOutcome},
};

/// The beginning of the event's JSON: the type is its first member.
const RUN_FINISHED_PREFIX: &str = "{\"type\":\"RUN_FINISHED\"";

pub(super) fn event_for_legacy(event: &Event) -> Cow<'_, Event> {
    let Event::RunFinished(finished) = event else { return Cow::Borrowed(event) };
    let is_known = match &finished.outcome {
        Some(RunOutcome::Success { pending_tool_call_ids }) => pending_tool_call_ids.is_empty(),
        Some(RunOutcome::Cancelled) => false,
        Some(RunOutcome::Interrupt { .. }) | None => true,
    };
    match is_known {
        true => Cow::Borrowed(event),
        false => Cow::Owned(RunFinished { outcome: None, ..(**finished).clone() }.into()),
    }
}

/// `None` if the line can be sent unchanged.
pub(super) fn line_for_legacy(json: &str) -> Option<Event> {
    if !json.starts_with(RUN_FINISHED_PREFIX) {
        return None;
    }
    let event = serde_json::from_str(json)
        .inspect_err(|error| tracing::error!(%error, "cannot read RUN_FINISHED of a run's log; it is sent unchanged"));
    Some(event_for_legacy(&event.ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Event, encode::Encoder};

    fn encoded(json: &str) -> [String; 2] {
        let event: Event = serde_json::from_str(json).unwrap();
        let mut encoder = Encoder::negotiate(["text/event-stream"]).for_legacy_client();
        let [mut by_event, mut by_line] = [Vec::new(), Vec::new()];
        encoder.event(&event, &mut by_event);
        encoder.line(&serde_json::to_string(&event).unwrap(), &mut by_line);
        [by_event, by_line].map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn outcomes_that_older_clients_cannot_read_are_left_out() {
        let finished =
            |outcome: &str| format!("{{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"{outcome}}}");
        let success = r#","outcome":{"type":"success"}"#;
        let interrupt = r#","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}"#;
        for (outcome, sent) in [
            (r#","outcome":{"type":"cancelled"}"#, ""),
            (r#","outcome":{"type":"success","pendingToolCallIds":["c"]}"#, ""),
            (success, success),
            (interrupt, interrupt),
            ("", ""),
        ] {
            let expected = format!("data: {}\n\n", finished(sent));
            assert_eq!(encoded(&finished(outcome)), [expected.clone(), expected]);
        }
        let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
        assert_eq!(encoded(error), [0, 1].map(|_| format!("data: {error}\n\n")));
    }
}
