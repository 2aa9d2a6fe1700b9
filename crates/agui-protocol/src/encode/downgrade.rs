//! Events for clients of older versions of AG-UI. A stream declares the version that it is written in.
//!
//! - 1.0: 1.1 adds `encryptedValueType`, which such clients remove with a warning for each. They get none.
//! - Before 1.0: such clients reject an outcome that is unknown to them or has unknown members, and
//!   then miss the end of the run. So a cancelled run, and a run that ends with calls of the page's
//!   tools, has no outcome. assistant-ui runs such calls, but does not continue after a success. A
//!   tool's result must be a text: an array ends the run, and a thread with an array does not open.
//!   They get the texts of its parts, and a description of each other part.

use std::borrow::Cow;

use crate::{
    ContentPart, Event, MediaPart, Message, MessageContent, PartSource,
    event::{ReasoningEncryptedValue, RunFinished, RunOutcome, RunStarted, ToolCallResult},
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
    /// Returns the version for a client that declares `declared`. Without a declaration: the
    /// current version. Callers that know a client to be older take [`Self::Legacy`].
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
            Self::Legacy => {
                let has_parts = || json.contains("\"content\":[");
                is_of("RUN_FINISHED")
                    || (is_of("TOOL_CALL_RESULT") || is_of("MESSAGES_SNAPSHOT")) && has_parts()
            }
            Self::V1_0 => ["RUN_STARTED", "REASONING_ENCRYPTED_VALUE", "MESSAGES_SNAPSHOT"]
                .into_iter()
                .any(is_of),
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
    match event {
        Event::RunFinished(finished) => legacy_end(finished),
        Event::ToolCallResult(result) => {
            let content = MessageContent::Text(text_of(&result.content)?);
            Some(ToolCallResult { content, ..result.clone() }.into())
        }
        Event::MessagesSnapshot(snapshot) if snapshot.messages.iter().any(is_result_of_parts) => {
            let mut snapshot = snapshot.clone();
            for message in snapshot.messages.to_mut() {
                if let Message::Tool(result) = message
                    && let Some(text) = text_of(&result.content)
                {
                    result.content = MessageContent::Text(text);
                }
            }
            Some(Event::MessagesSnapshot(snapshot))
        }
        _ => None,
    }
}

fn is_result_of_parts(message: &Message) -> bool {
    matches!(message, Message::Tool(result) if matches!(result.content, MessageContent::Parts(_)))
}

/// Returns the parts as a text, or `None` if the content is a text already. An image at a URL is
/// written in Markdown.
fn text_of(content: &MessageContent) -> Option<String> {
    let MessageContent::Parts(parts) = content else { return None };
    let in_words = |kind: &str, media: &MediaPart| match &media.source {
        PartSource::Url { value, .. } if kind == "image" => format!("![{kind}]({value})"),
        PartSource::Url { value, .. } => format!("[{kind}]({value})"),
        PartSource::Data { mime_type, .. } => format!("[{kind}: {mime_type}]"),
        PartSource::File { .. } => format!("[{kind}]"),
    };
    let texts = parts.iter().map(|part| match part {
        ContentPart::Text(text) => text.text.clone(),
        ContentPart::Image(media) => in_words("image", media),
        ContentPart::Audio(media) => in_words("audio", media),
        ContentPart::Video(media) => in_words("video", media),
        ContentPart::Document(media) => in_words("document", media),
    });
    Some(texts.collect::<Vec<_>>().join("\n\n"))
}

fn legacy_end(finished: &RunFinished) -> Option<Event> {
    let is_known = match &finished.outcome {
        Some(RunOutcome::Success { pending_tool_call_ids }) => pending_tool_call_ids.is_empty(),
        Some(RunOutcome::Cancelled) => false,
        Some(RunOutcome::Interrupt { .. }) | None => true,
    };
    (!is_known).then(|| RunFinished { outcome: None, ..finished.clone() }.into())
}

fn event_of_1_0(event: &Event) -> Option<Event> {
    match event {
        // The server writes this event without the run's input.
        Event::RunStarted(started) => {
            Some(RunStarted { protocol_version: Some("1.0".into()), ..started.clone() }.into())
        }
        Event::ReasoningEncryptedValue(value) if value.encrypted_value_type.is_some() => {
            Some(ReasoningEncryptedValue { encrypted_value_type: None, ..value.clone() }.into())
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
    message.encrypted_value().1.is_some()
        || message.tool_calls().iter().any(|call| call.encrypted_value_type.is_some())
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
    use crate::{Event, encode::Encoder};

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
        let finished = |outcome: &str| {
            format!("{{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"{outcome}}}")
        };
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
            assert_eq!(
                encoded(StreamVersion::Legacy, &finished(outcome)),
                [expected.clone(), expected]
            );
        }
        let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
        assert_eq!(
            encoded(StreamVersion::Legacy, error),
            [0, 1].map(|_| format!("data: {error}\n\n"))
        );
    }

    #[test]
    fn of_a_tools_result_with_parts_older_clients_get_a_text() {
        let parts = concat!(
            r#"[{"type":"text","text":"A chart:"},{"type":"image","source":{"type":"data","value":"AAAA","mimeType":"image/png"}},"#,
            r#"{"type":"image","source":{"type":"url","value":"https://a.test/b.png"}}]"#
        );
        let text = r#""A chart:\n\n[image: image/png]\n\n![image](https://a.test/b.png)""#;
        for event in [
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":CONTENT}"#,
            concat!(
                r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"user","id":"u","content":[{"type":"text","text":"hi"}]},"#,
                r#"{"role":"tool","id":"m","toolCallId":"c","content":CONTENT}]}"#
            ),
        ] {
            let with = |content: &str| event.replace("CONTENT", content);
            let sent = |content: &str| [0, 1].map(|_| format!("data: {}\n\n", with(content)));
            assert_eq!(encoded(StreamVersion::Legacy, &with(parts)), sent(text));
            assert_eq!(encoded(StreamVersion::Legacy, &with("\"one text\"")), sent("\"one text\""));
            assert_eq!(encoded(StreamVersion::V1_0, &with(parts)), sent(parts));
        }
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
            let filled =
                |version: &str, kind: &str| event.replace("VERSION", version).replace("TYPE", kind);
            let (current, older) =
                (filled("1.1", r#","encryptedValueType":"a.b""#), filled("1.0", ""));
            for (declared, expected) in
                [(Some("1.0"), &older), (Some("1.1"), &current), (None, &current)]
            {
                let expected = format!("data: {expected}\n\n");
                let version = StreamVersion::for_declared(declared);
                assert_eq!(
                    encoded(version, &current),
                    [expected.clone(), expected],
                    "{declared:?}"
                );
            }
        }
    }
}
