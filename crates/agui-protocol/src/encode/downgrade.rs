//! Events for clients of older versions of AG-UI. A stream declares the version that it is written in.
//!
//! - 1.0: 1.1 adds `encryptedValueType`, which such clients remove with a warning for each. They get none.
//! - Before 1.0: such clients reject an outcome that is unknown to them or has unknown members, and
//!   then miss the end of the run. So a cancelled run, and a run that ends with calls of the page's
//!   tools, has no outcome. Some pages run such calls, but do not continue after a success. A
//!   tool's result must be a text: an array ends the run, and a thread with an array does not open.
//!   They get the texts of its parts, and a description of each other part.

use std::borrow::Cow;

use super::client_traits::{ClientTraits, ReasoningEvents, StreamVersion};
use crate::{
    ContentPart, Event, MediaPart, Message, MessageContent, Messages, PartSource, ToolMessage,
    UserMessage,
    event::{
        MessagesSnapshot, ReasoningEncryptedValue, RunFinished, RunOutcome, RunStarted,
        ToolCallResult,
    },
};

/// What becomes of an event for a client.
pub(super) enum Downgraded {
    Unchanged,
    Changed(Event),
    LeftOut,
}

impl ClientTraits {
    pub(super) fn downgrade(&self, event: &Event) -> Downgraded {
        match event {
            Event::SubagentStarted(_) | Event::SubagentFinished(_) | Event::SubagentError(_)
                if self.lacks_subagents =>
            {
                Downgraded::LeftOut
            }
            Event::ActivitySnapshot(_) | Event::ActivityDelta(_) if self.lacks_activities => {
                Downgraded::LeftOut
            }
            event if self.lacks_subagents && event.subagent_run_id().is_some() => {
                let event = event.clone().attributed_to(None);
                match self.downgrade(&event) {
                    Downgraded::Unchanged => Downgraded::Changed(event),
                    downgraded => downgraded,
                }
            }
            Event::MessagesSnapshot(snapshot) => self.snapshot(snapshot),
            event => {
                let changed = match self.version {
                    StreamVersion::Legacy => legacy_event(event),
                    StreamVersion::V1_0 => event_of_1_0(event),
                    StreamVersion::Current => None,
                };
                changed.map_or(Downgraded::Unchanged, Downgraded::Changed)
            }
        }
    }

    /// Returns false for most lines that are sent as they are.
    pub(super) fn may_change_line(&self, json: &str) -> bool {
        // The type is the first member of an event's JSON.
        let event_type = json.strip_prefix("{\"type\":\"").and_then(|rest| rest.split('"').next());
        let may_change = match event_type.unwrap_or_default() {
            "MESSAGES_SNAPSHOT" => *self != Self::default(),
            "RUN_FINISHED" => self.version == StreamVersion::Legacy,
            "TOOL_CALL_RESULT" => {
                self.version == StreamVersion::Legacy && json.contains("\"content\":[")
            }
            "RUN_STARTED" | "REASONING_ENCRYPTED_VALUE" if self.version == StreamVersion::V1_0 => {
                true
            }
            event_type if event_type.starts_with("REASONING") => {
                self.reasoning != ReasoningEvents::Messages
            }
            event_type if event_type.starts_with("ACTIVITY") => self.lacks_activities,
            _ => false,
        };
        may_change || self.lacks_subagents && json.contains("\"subagentRunId\":")
    }

    fn snapshot(&self, snapshot: &MessagesSnapshot) -> Downgraded {
        let is_unchanged = |message| matches!(self.message(message), Some(Cow::Borrowed(_)));
        if snapshot.messages.iter().all(is_unchanged) {
            return Downgraded::Unchanged;
        }
        let messages = snapshot.messages.iter().filter_map(|message| self.message(message));
        let messages: Messages = messages.map(Cow::into_owned).collect();
        Downgraded::Changed(MessagesSnapshot { messages, ..snapshot.clone() }.into())
    }

    /// Returns `None` for a message that is left out.
    fn message<'a>(&self, message: &'a Message) -> Option<Cow<'a, Message>> {
        let is_legacy = self.version == StreamVersion::Legacy;
        let text = match message {
            Message::Reasoning(_) if self.reasoning != ReasoningEvents::Messages => return None,
            Message::Activity(_) if self.lacks_activities => return None,
            Message::User(user) if self.lacks_media => content_in_words(&user.content),
            Message::Tool(result) if is_legacy => text_of(&result.content),
            _ => None,
        };
        let mut message = Cow::Borrowed(message);
        if let Some(text) = text
            && let Message::User(UserMessage { content, .. })
            | Message::Tool(ToolMessage { content, .. }) = message.to_mut()
        {
            *content = MessageContent::Text(text);
        }
        if self.version == StreamVersion::V1_0 && has_type(&message) {
            remove_types(message.to_mut());
        }
        Some(message)
    }
}

fn legacy_event(event: &Event) -> Option<Event> {
    match event {
        Event::RunFinished(finished) => legacy_end(finished),
        Event::ToolCallResult(result) => {
            let content = MessageContent::Text(text_of(&result.content)?);
            Some(ToolCallResult { content, ..result.clone() }.into())
        }
        _ => None,
    }
}

/// Returns the content as one text with words such as `[image]`, which does not change with the URLs
/// of files. `None` for a text.
pub fn content_in_words(content: &MessageContent) -> Option<String> {
    joined(content, |kind, _| format!("[{kind}]"))
}

/// Returns the parts as a text, or `None` if the content is a text already. An image at a URL is
/// written in Markdown.
fn text_of(content: &MessageContent) -> Option<String> {
    joined(content, |kind, media| match &media.source {
        PartSource::Url { value, .. } if kind == "image" => format!("![{kind}]({value})"),
        PartSource::Url { value, .. } => format!("[{kind}]({value})"),
        PartSource::Data { mime_type, .. } => format!("[{kind}: {mime_type}]"),
        PartSource::File { .. } => format!("[{kind}]"),
    })
}

fn joined(
    content: &MessageContent,
    in_words: impl Fn(&str, &MediaPart) -> String,
) -> Option<String> {
    let MessageContent::Parts(parts) = content else { return None };
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
    use super::{ClientTraits, ReasoningEvents, StreamVersion};
    use crate::{Event, encode::Encoder};

    fn legacy() -> ClientTraits {
        ClientTraits { version: StreamVersion::Legacy, ..ClientTraits::default() }
    }

    fn encoded(traits: ClientTraits, json: &str) -> [String; 2] {
        let event: Event = serde_json::from_str(json).unwrap();
        let mut encoder = Encoder::negotiate(["text/event-stream"]).for_client(traits);
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
            assert_eq!(encoded(legacy(), &finished(outcome)), [expected.clone(), expected]);
        }
        let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
        assert_eq!(encoded(legacy(), error), [0, 1].map(|_| format!("data: {error}\n\n")));
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
            assert_eq!(encoded(legacy(), &with(parts)), sent(text));
            assert_eq!(encoded(legacy(), &with("\"one text\"")), sent("\"one text\""));
            assert_eq!(encoded(ClientTraits::for_declared(Some("1.0")), &with(parts)), sent(parts));
        }
    }

    #[test]
    fn what_a_client_cannot_read_is_left_out_or_written_in_its_form() {
        let lacking = ClientTraits {
            version: StreamVersion::Legacy,
            lacks_subagents: true,
            reasoning: ReasoningEvents::Thinking,
            lacks_activities: true,
            lacks_media: true,
        };
        let image = r#"{"type":"image","source":{"type":"url","value":"https://a.test/b.png"}}"#;
        let user = |content: &str| {
            format!(
                r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{{"role":"user","id":"u","content":{content}}}REST]}}"#
            )
        };
        let rest = concat!(
            r#",{"role":"reasoning","id":"r","content":"Hm"},"#,
            r#"{"role":"activity","id":"x","activityType":"PLAN","content":{}}"#
        );
        let snapshot = user(&format!(r#"[{{"type":"text","text":"Look:"}},{image}]"#));
        let shown = user(r#""Look:\n\n[image]""#);
        let (delta, plain) = (
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi","subagentRunId":"s"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}"#,
        );
        for (event, sent) in [
            (snapshot.replace("REST", rest), Some(shown.replace("REST", ""))),
            (delta.to_owned(), Some(plain.to_owned())),
            (plain.to_owned(), Some(plain.to_owned())),
            (r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}"#.to_owned(), None),
            (
                r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"x","activityType":"PLAN","content":{}}"#
                    .to_owned(),
                None,
            ),
            (r#"{"type":"REASONING_START","messageId":"r"}"#.to_owned(), None),
            (
                r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"r","encryptedValue":"x"}"#
                    .to_owned(),
                None,
            ),
        ] {
            let sent = sent.map_or_else(String::new, |json| format!("data: {json}\n\n"));
            assert_eq!(encoded(lacking, &event), [sent.clone(), sent]);
            let whole = format!("data: {event}\n\n");
            assert_eq!(encoded(legacy(), &event), [whole.clone(), whole]);
        }
    }

    #[test]
    fn one_reasoning_message_at_a_time_is_written_as_thinking() {
        let traits = ClientTraits { reasoning: ReasoningEvents::Thinking, ..legacy() };
        let (mut encoder, mut out) = (Encoder::negotiate([]).for_client(traits), Vec::new());
        for json in [
            r#"{"type":"REASONING_START","messageId":"r"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"a","role":"reasoning"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"b","role":"reasoning"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"b","delta":"other"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"\"Hm\""}"#,
            r#"{"type":"REASONING_MESSAGE_END","messageId":"b"}"#,
            r#"{"type":"REASONING_MESSAGE_END","messageId":"a"}"#,
            r#"{"type":"REASONING_END","messageId":"r"}"#,
        ] {
            encoder.line(json, &mut out);
        }
        let expected = [
            r#"{"type":"THINKING_START"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#,
            r#"{"delta":"\"Hm\"","type":"THINKING_TEXT_MESSAGE_CONTENT"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_END"}"#,
            r#"{"type":"THINKING_END"}"#,
        ];
        let expected: String = expected.iter().map(|json| format!("data: {json}\n\n")).collect();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
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
                assert_eq!(
                    encoded(ClientTraits::for_declared(declared), &current),
                    [expected.clone(), expected],
                    "{declared:?}"
                );
            }
        }
    }
}
