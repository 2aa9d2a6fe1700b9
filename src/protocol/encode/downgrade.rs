//! Events for clients of older versions of AG-UI. A stream declares the version that it is written in.
//!
//! - 1.0: 1.1 adds `encryptedValueType`, which such clients remove with a warning for each. They get none.
//! - Before 1.0: such clients reject an outcome that they do not know, or that has members that they do not know, and then
//!   miss the end of the run. They get a cancelled run, and one that left calls of the page's tools, without an outcome.
//!   assistant-ui runs such calls, but does not continue after a success.

use std::borrow::Cow;

use crate::protocol::{
    Event, Message,
    event::{RunFinished, RunOutcome, RunStarted},
};

/// The version of AG-UI in which events are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamVersion {
    /// Before 1.0.
    Legacy,
    /// 1.0.
    V1_0,
    /// 1.1.
    #[default]
    Current,
}

impl StreamVersion {
    /// Returns the version for a client that declares this one. A client that declares none gets the current version:
    /// the specification forbids to guess.
    pub fn for_declared(declared: Option<&str>) -> Self {
        match declared {
            Some("1.0") => Self::V1_0,
            _ => Self::Current,
        }
    }

    pub(super) fn event(self, event: &Event) -> Cow<'_, Event> {
        self.changed(event).map_or(Cow::Borrowed(event), Cow::Owned)
    }

    /// Returns the event of a line that cannot be sent unchanged.
    pub(super) fn event_of_line(self, json: &str) -> Option<Event> {
        // The type is the first member of an event's JSON.
        let is_of = |event_type: &str| {
            json.strip_prefix("{\"type\":\"")
                .and_then(|rest| rest.strip_prefix(event_type))
                .is_some_and(|rest| rest.starts_with('"'))
        };
        let may_change = match self {
            Self::Legacy => is_of("RUN_FINISHED"),
            Self::V1_0 => ["RUN_STARTED", "REASONING_ENCRYPTED_VALUE", "MESSAGES_SNAPSHOT"].into_iter().any(is_of),
            Self::Current => false,
        };
        if !may_change {
            return None;
        }
        let event = serde_json::from_str(json)
            .inspect_err(|error| tracing::error!(%error, "cannot read an event of a run's log; it is sent unchanged"));
        self.changed(&event.ok()?)
    }

    /// Returns `None` for an event that is sent unchanged.
    fn changed(self, event: &Event) -> Option<Event> {
        match self {
            Self::Legacy => legacy_event(event),
            Self::V1_0 => event_of_1_0(event),
            Self::Current => None,
        }
    }
}

fn legacy_event(event: &Event) -> Option<Event> {
    let Event::RunFinished(finished) = event else { return None };
    let is_known = match &finished.outcome {
        Some(RunOutcome::Success { pending_tool_call_ids }) => pending_tool_call_ids.is_empty(),
        Some(RunOutcome::Cancelled) => false,
        Some(RunOutcome::Interrupt { .. }) | None => true,
    };
    (!is_known).then(|| RunFinished { outcome: None, ..(**finished).clone() }.into())
}

fn event_of_1_0(event: &Event) -> Option<Event> {
    match event {
        // The server writes this event without the run's input.
        Event::RunStarted(started) => {
            Some(RunStarted { protocol_version: Some("1.0".into()), ..started.clone() }.into())
        }
        Event::ReasoningEncryptedValue(value) if value.encrypted_value_type.is_some() => {
            let mut value = value.clone();
            value.encrypted_value_type = None;
            Some(Event::ReasoningEncryptedValue(value))
        }
        Event::MessagesSnapshot(snapshot) if snapshot.messages.iter().any(has_type) => {
            let mut snapshot = snapshot.clone();
            snapshot.messages.to_mut().iter_mut().for_each(remove_types);
            Some(Event::MessagesSnapshot(snapshot))
        }
        _ => None,
    }
}

fn has_type(message: &Message) -> bool {
    message.encrypted_value().1.is_some() || message.tool_calls().iter().any(|call| call.encrypted_value_type.is_some())
}

fn remove_types(message: &mut Message) {
    if let Some((_, value_type)) = message.encrypted_value_mut() {
        *value_type = None;
    }
    if let Message::Assistant(message) = message {
        message.tool_calls.iter_mut().flatten().for_each(|call| call.encrypted_value_type = None);
    }
}

#[cfg(test)]
mod tests {
    use super::StreamVersion;
    use crate::protocol::{Event, encode::Encoder};

    fn encoded(version: StreamVersion, json: &str) -> [String; 2] {
        let event: Event = serde_json::from_str(json).unwrap();
        let mut encoder = Encoder::negotiate(["text/event-stream"]).for_version(version);
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
            assert_eq!(encoded(StreamVersion::Legacy, &finished(outcome)), [expected.clone(), expected]);
        }
        let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
        assert_eq!(encoded(StreamVersion::Legacy, error), [0, 1].map(|_| format!("data: {error}\n\n")));
    }

    #[test]
    fn a_client_of_1_0_gets_a_stream_that_says_1_0_and_has_nothing_of_1_1() {
        for event in [
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"VERSION"}"#,
            r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"x"TYPE}"#,
            concat!(
                r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"assistant","id":"m","toolCalls":[{"id":"c","#,
                r#""type":"function","function":{"name":"f","arguments":"{}"},"encryptedValue":"y"TYPE}],"#,
                r#""encryptedValue":"x"TYPE}]}"#
            ),
        ] {
            let filled = |version: &str, kind: &str| event.replace("VERSION", version).replace("TYPE", kind);
            let (current, older) = (filled("1.1", r#","encryptedValueType":"a.b""#), filled("1.0", ""));
            for (declared, expected) in [(Some("1.0"), &older), (Some("1.1"), &current), (None, &current)] {
                let expected = format!("data: {expected}\n\n");
                let version = StreamVersion::for_declared(declared);
                assert_eq!(encoded(version, &current), [expected.clone(), expected], "{declared:?}");
            }
        }
    }
}
