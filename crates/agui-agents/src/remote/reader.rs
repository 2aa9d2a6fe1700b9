//! Decodes the events of the endpoint. `run::guard` checks their order, as for all agents.
//!
//! A field that AG-UI describes must have a valid value; a wrong one ends the run. Unknown event types, members, message
//! roles, content parts, patch operations and outcomes are left out with a warning, because later versions of the protocol add
//! them. Events of versions before 1.0 are converted to those that replaced them.

use std::collections::HashSet;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::split_texts::SplitTexts;
use agui_base::{
    lenient_json,
    lenient_json::Piece,
    repairs::{Partner, Repair, repaired},
    text::short_line,
};
use agui_protocol::{
    Event, EventType, JsonObject, Message, MessageId, PatchKind,
    decode::{DecodeError, decode},
    event::{MessagesSnapshot, ToolCallResult},
};

#[derive(Default)]
pub(super) struct Reader {
    number: u64,
    /// The ids given to the open `THINKING_START` and `THINKING_TEXT_MESSAGE_START`, which have no
    /// ids.
    reasoning_id: Option<MessageId>,
    reasoning_message_id: Option<MessageId>,
    /// True if the current run's `RUN_STARTED` declares version 1.0 or newer.
    declares_version_1: bool,
    /// The types whose first event was checked by [`check_members`](Self::check_members).
    checked: HashSet<EventType>,
    split_texts: SplitTexts,
    /// The last pieces of texts that end before the event that was read last.
    rests: Vec<Event>,
    /// The warnings that were logged; each is logged once for a stream.
    warned: HashSet<String>,
}

impl Reader {
    /// Returns the number of the next event, counted from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// Returns the event; `None` if it is unknown or has no content.
    ///
    /// # Errors
    /// The problem of the event, in words for the client.
    pub(super) fn read(&mut self, data: &str) -> Result<Option<Event>, String> {
        self.number += 1;
        let (mut object, has_halves) =
            match lenient_json::parse_piece(data, "delta", Partner::RemoteAgent) {
                Ok(Piece { value: Value::Object(object), has_halves }) => (object, has_halves),
                Ok(_) => return Err(self.malformed("", "not an object")),
                Err(error) => return Err(self.malformed("", format!("not JSON: {error}"))),
            };
        let name = match object.get("type") {
            Some(Value::String(name)) => name.clone(),
            Some(_) => return Err(self.malformed("", "type: expected a string")),
            None => return Err(self.malformed("", "type: missing")),
        };
        let kind = if let Some(kind) = self.convert_thinking(&name, &mut object) {
            kind
        } else if let Some(kind) = EventType::ALL.iter().copied().find(|kind| kind.as_str() == name)
        {
            kind
        } else {
            self.warn("an event of a type that AG-UI does not know was left out", &name);
            return Ok(None);
        };
        let read = self.decode_event(kind, object, has_halves);
        read.map_err(|problem| self.malformed(&format!(" ({})", kind.as_str()), problem))
    }

    /// Returns the last pieces of texts. They belong before the event that was read last.
    pub(super) fn take_rests(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.rests)
    }

    fn decode_event(
        &mut self,
        kind: EventType,
        mut object: JsonObject,
        has_halves: bool,
    ) -> Result<Option<Event>, String> {
        whole_timestamp(&mut object);
        if self.fill_null(kind, &mut object) {
            return Ok(None);
        }
        let rests = self.split_texts.ended_by(kind, &object).into_iter();
        self.rests.extend(rests.filter_map(|rest| Event::deserialize(Value::Object(rest)).ok()));
        if !self.split_texts.join(kind, &mut object, has_halves) {
            return Ok(None);
        }
        match kind {
            // `input` repeats this server's own request.
            EventType::RunStarted => drop(object.remove("input")),
            EventType::RunFinished | EventType::RunError | EventType::SubagentFinished => {
                self.fix_outcome(&mut object);
            }
            // Before 1.0, SDKs had this role here.
            EventType::ReasoningMessageStart
                if !self.declares_version_1 && object.get("role") == Some(&json!("assistant")) =>
            {
                object.insert("role".to_owned(), json!("reasoning"));
            }
            EventType::ReasoningEncryptedValue
                if let Some(subtype) = object.get("subtype").and_then(Value::as_str)
                    && !["tool-call", "message"].contains(&subtype) =>
            {
                self.warn(
                    "an encrypted value of something that AG-UI does not know was left out",
                    subtype,
                );
                return Ok(None);
            }
            EventType::StateDelta => self.drop_unknown_operations(object.get_mut("delta")),
            EventType::ActivityDelta => self.drop_unknown_operations(object.get_mut("patch")),
            EventType::MessagesSnapshot => return self.messages_snapshot(object).map(Some),
            EventType::ToolCallResult if object.get("content").is_some_and(Value::is_array) => {
                return self.result_of_parts(object).map(Some);
            }
            _ => {}
        }
        let mut members = Vec::new();
        if self.checked.insert(kind) {
            members.extend(
                object.iter().filter(|(_, value)| !is_empty(value)).map(|(name, _)| name.clone()),
            );
        }
        let event = Event::deserialize(Value::Object(object)).map_err(|error| error.to_string())?;
        if !members.is_empty() {
            self.check_members(&event, members);
        }
        if let Event::RunStarted(started) = &event {
            let version = started.protocol_version.as_deref();
            let major = version.and_then(|version| version.split('.').next()?.parse().ok());
            self.declares_version_1 = major.is_some_and(|major: u32| major >= 1);
        }
        Ok(Some(event))
    }

    /// Replaces `null` by an empty text where a list or text is required: Go and Python write empty
    /// ones so. Returns true if the event has no content then.
    fn fill_null(&mut self, kind: EventType, object: &mut JsonObject) -> bool {
        let member = match kind {
            EventType::MessagesSnapshot => "messages",
            EventType::ActivityDelta => "patch",
            EventType::ToolCallResult => "content",
            EventType::StateDelta
            | EventType::TextMessageContent
            | EventType::ToolCallArgs
            | EventType::ReasoningMessageContent => "delta",
            _ => return false,
        };
        let Some(value @ Value::Null) = object.get_mut(member) else { return false };
        *value = json!("");
        repaired(Partner::RemoteAgent, Repair::Null);
        self.warn("null in place of a list or a text was read as an empty one", kind.as_str());
        kind != EventType::ToolCallResult
    }

    /// Warns about members that are not in the decoded event, because AG-UI does not describe them.
    /// Only the first event of a type is checked: writing an event costs as much as reading it.
    fn check_members(&mut self, event: &Event, members: Vec<String>) {
        let Ok(described) = serde_json::to_value(event) else { return };
        let kind = event.event_type().as_str();
        for name in members.iter().filter(|name| described.get(name).is_none()) {
            self.warn(
                "a member that AG-UI does not describe was left out",
                &format!("{kind}.{name}"),
            );
        }
    }

    /// Removes an unknown outcome, and nulls in place of optional lists.
    fn fix_outcome(&mut self, object: &mut JsonObject) {
        object.retain(|name, value| name != "usage" || !value.is_null());
        let Some(Value::Object(outcome)) = object.get_mut("outcome") else { return };
        outcome.retain(|_, value| !value.is_null());
        let Some(Value::String(name)) = outcome.get("type") else { return };
        if !["success", "interrupt", "cancelled", "suspended"].contains(&name.as_str()) {
            let name = name.clone();
            self.warn("an outcome that AG-UI does not know was read as success", &name);
            object.remove("outcome");
        }
    }

    /// Removes the operations that RFC 6902 does not define. The others stay, with members that it does not define.
    fn drop_unknown_operations(&mut self, patch: Option<&mut Value>) {
        let Some(Value::Array(operations)) = patch else { return };
        operations.retain(|operation| match operation.get("op").and_then(Value::as_str) {
            Some(op) if PatchKind::members(op).is_none() => {
                self.warn("a patch operation that AG-UI does not know was left out", op);
                false
            }
            _ => true,
        });
    }

    /// Decodes messages like those of a request, for errors with a path and warnings about unknown members.
    fn messages_snapshot(&mut self, mut object: JsonObject) -> Result<Event, String> {
        let messages = object.insert("messages".to_owned(), json!([])).unwrap_or_default();
        let messages = self.messages(messages).map_err(|error| error.to_string())?;
        let snapshot = MessagesSnapshot::deserialize(Value::Object(object))
            .map_err(|error| error.to_string())?;
        Ok(MessagesSnapshot { messages: messages.into(), ..snapshot }.into())
    }

    fn result_of_parts(&mut self, mut object: JsonObject) -> Result<Event, String> {
        let content = object.insert("content".to_owned(), json!("")).unwrap_or_default();
        let message = json!([{ "id": "m", "role": "tool", "toolCallId": "c", "content": content }]);
        let mut messages = self
            .messages(message)
            .map_err(|error| error.to_string().trim_start_matches("messages[0].").to_owned())?;
        let Some(Message::Tool(message)) = messages.pop() else {
            return Err("content: unreadable".to_owned());
        };
        let result = ToolCallResult::deserialize(Value::Object(object))
            .map_err(|error| error.to_string())?;
        Ok(ToolCallResult { content: message.content, ..result }.into())
    }

    fn messages(&mut self, messages: Value) -> Result<Vec<Message>, DecodeError> {
        let input = json!({ "threadId": "t", "runId": "r", "messages": messages });
        let decoded = decode(input.to_string().as_bytes())?;
        if !decoded.ignored.is_empty() {
            self.warn("what AG-UI does not describe was left out", &decoded.ignored.to_string());
        }
        Ok(decoded.input.messages.into_vec())
    }

    /// Converts an event of a version before 1.0 to the one that replaced it. Returns the new type;
    /// `None` for all other events. An end gets the id of its start.
    fn convert_thinking(&mut self, name: &str, object: &mut JsonObject) -> Option<EventType> {
        let (kind, id) = match name {
            "THINKING_START" => {
                if let Some(Value::String(title)) = object.remove("title") {
                    self.warn("the title of THINKING_START was left out", &title);
                }
                (EventType::ReasoningStart, self.reasoning_id.insert(MessageId::random()).clone())
            }
            "THINKING_END" => (
                EventType::ReasoningEnd,
                self.reasoning_id.take().unwrap_or_else(MessageId::random),
            ),
            "THINKING_TEXT_MESSAGE_START" => {
                object.insert("role".to_owned(), json!("reasoning"));
                (
                    EventType::ReasoningMessageStart,
                    self.reasoning_message_id.insert(MessageId::random()).clone(),
                )
            }
            "THINKING_TEXT_MESSAGE_CONTENT" => {
                let id = self.reasoning_message_id.get_or_insert_with(MessageId::random).clone();
                (EventType::ReasoningMessageContent, id)
            }
            "THINKING_TEXT_MESSAGE_END" => (
                EventType::ReasoningMessageEnd,
                self.reasoning_message_id.take().unwrap_or_else(MessageId::random),
            ),
            _ => return None,
        };
        object.insert("type".to_owned(), kind.as_str().into());
        object.insert("messageId".to_owned(), id.as_str().into());
        Some(kind)
    }

    fn malformed(&self, kind: &str, problem: impl AsRef<str>) -> String {
        format!("event {}{kind}: {}", self.number, short_line(problem.as_ref()))
    }

    fn warn(&mut self, problem: &'static str, which: &str) {
        let which = short_line(which);
        if self.warned.len() < 100 && self.warned.insert(format!("{problem}{which}")) {
            tracing::warn!(event = self.number, ?which, "the remote agent's stream: {problem}");
        }
    }
}

/// Returns whether a value can mean an absent member.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// Converts a timestamp such as `1.0` to an integer. Some languages write all numbers as floats.
fn whole_timestamp(object: &mut JsonObject) {
    if let Some(timestamp) = object.get_mut("timestamp")
        && let Some(number) =
            timestamp.as_f64().filter(|number| timestamp.is_f64() && number.fract() == 0.0)
        && number.abs() < 9e15
    {
        *timestamp = json!(number as i64);
    }
}

#[cfg(test)]
mod tests;
