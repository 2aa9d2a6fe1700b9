//! Reads the events of another server: strict in what AG-UI describes, at ease with what it does not.
//!
//! A described field with a wrong value ends the run, for whoever repaired it would hide a defect. An event type,
//! message role, content part or outcome that is not known is left out with a warning: that is how the protocol grows.
//! Shapes that older SDKs sent and AG-UI 1.0 has retired are read as what replaced them. The order of events is not
//! judged here; the run's guard does that for all agents.

use std::collections::HashSet;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::protocol::{
    Event, EventType, JsonObject, Message, MessageId,
    decode::{DecodeError, decode},
    event::{MessagesSnapshot, RunError, RunFinished, RunStarted, ToolCallResult},
};

/// How much of another server's text is repeated in an error or a log line.
const QUOTED_CHARS: usize = 200;

/// What an event of the stream means.
#[derive(Debug, PartialEq)]
pub(super) enum Read {
    /// Nothing for the client.
    Nothing,
    /// The remote run began.
    Started(RunStarted),
    /// An event to pass on.
    Event(Event),
    /// The remote run ended.
    Finished(Box<RunFinished>),
    /// The remote run failed.
    Failed(RunError),
}

/// An event that is not what AG-UI describes.
#[derive(Debug, thiserror::Error)]
#[error("event {number}{}: {problem}", .kind.map(|kind| format!(" ({kind})")).unwrap_or_default())]
pub(super) struct Malformed {
    number: u64,
    kind: Option<&'static str>,
    problem: String,
}

/// Reads the events of one stream, one after the other.
#[derive(Default)]
pub(super) struct Reader {
    /// How many events there were.
    number: u64,
    /// The open span and message of the retired `THINKING_*` events, which had no ids.
    span: Option<MessageId>,
    thought: Option<MessageId>,
    /// What was warned of: a stream may do the same thing thousands of times.
    warned: HashSet<String>,
}

/// The retired events.
#[derive(Clone, Copy)]
enum Thinking {
    Start,
    End,
    MessageStart,
    MessageContent,
    MessageEnd,
}

impl Thinking {
    fn from_wire(name: &str) -> Option<Self> {
        Some(match name {
            "THINKING_START" => Self::Start,
            "THINKING_END" => Self::End,
            "THINKING_TEXT_MESSAGE_START" => Self::MessageStart,
            "THINKING_TEXT_MESSAGE_CONTENT" => Self::MessageContent,
            "THINKING_TEXT_MESSAGE_END" => Self::MessageEnd,
            _ => return None,
        })
    }
}

impl Reader {
    /// Which event comes next, counted from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// Reads the next event.
    pub(super) fn read(&mut self, data: &str) -> Result<Read, Malformed> {
        self.number += 1;
        let mut object = match serde_json::from_str(data) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(self.malformed(None, "not an object")),
            Err(error) => return Err(self.malformed(None, format!("not JSON: {error}"))),
        };
        let name = match object.get("type") {
            Some(Value::String(name)) => name.clone(),
            Some(_) => return Err(self.malformed(None, "type: expected a string")),
            None => return Err(self.malformed(None, "type: missing")),
        };
        let kind = if let Some(thinking) = Thinking::from_wire(&name) {
            self.modernise(thinking, &mut object)
        } else if let Some(kind) = EventType::ALL.iter().copied().find(|kind| kind.as_str() == name) {
            kind
        } else {
            self.warn("an event of a type that AG-UI 1.0 does not know was left out", &name);
            return Ok(Read::Nothing);
        };
        self.event(kind, object).map_err(|problem| self.malformed(Some(kind.as_str()), problem))
    }

    /// The event, or what is wrong with it.
    fn event(&mut self, kind: EventType, mut object: JsonObject) -> Result<Read, String> {
        whole_timestamp(&mut object);
        match kind {
            // The request that it may repeat is our own.
            EventType::RunStarted => drop(object.remove("input")),
            EventType::RunFinished | EventType::RunError | EventType::SubagentFinished => {
                self.settle_ending(&mut object);
            }
            EventType::ReasoningMessageStart if object.get("role") == Some(&json!("assistant")) => {
                object.insert("role".to_owned(), json!("reasoning"));
            }
            EventType::MessagesSnapshot => return self.messages_snapshot(object),
            EventType::ToolCallResult if object.get("content").is_some_and(Value::is_array) => {
                return self.result_of_parts(object);
            }
            _ => {}
        }
        let event = Event::deserialize(Value::Object(object)).map_err(|error| error.to_string())?;
        Ok(match event {
            Event::RunStarted(started) => Read::Started(started),
            Event::RunFinished(finished) => Read::Finished(finished),
            Event::RunError(error) => Read::Failed(error),
            event => Read::Event(event),
        })
    }

    /// Nulls in optional places that are lists, and outcomes that nobody knows, read as absent.
    fn settle_ending(&mut self, object: &mut JsonObject) {
        object.retain(|name, value| name != "usage" || !value.is_null());
        let Some(Value::Object(outcome)) = object.get_mut("outcome") else { return };
        outcome.retain(|_, value| !value.is_null());
        let Some(Value::String(name)) = outcome.get("type") else { return };
        if !["success", "interrupt", "cancelled", "suspended"].contains(&name.as_str()) {
            let name = name.clone();
            self.warn("an outcome that AG-UI 1.0 does not know was read as success", &name);
            object.remove("outcome");
        }
    }

    /// Messages are read as those of a request are: with paths, and with an eye for what is not known.
    fn messages_snapshot(&mut self, mut object: JsonObject) -> Result<Read, String> {
        let messages = object.insert("messages".to_owned(), json!([])).unwrap_or_default();
        let messages = self.messages(messages).map_err(|error| error.to_string())?;
        let snapshot = MessagesSnapshot::deserialize(Value::Object(object)).map_err(|error| error.to_string())?;
        Ok(Read::Event(MessagesSnapshot { messages: messages.into(), ..snapshot }.into()))
    }

    /// And so are the parts of a result, which are those of a tool's message.
    fn result_of_parts(&mut self, mut object: JsonObject) -> Result<Read, String> {
        let content = object.insert("content".to_owned(), json!("")).unwrap_or_default();
        let message = json!([{ "id": "m", "role": "tool", "toolCallId": "c", "content": content }]);
        let mut messages =
            self.messages(message).map_err(|error| error.to_string().trim_start_matches("messages[0].").to_owned())?;
        let Some(Message::Tool(message)) = messages.pop() else { return Err("content: unreadable".to_owned()) };
        let result = ToolCallResult::deserialize(Value::Object(object)).map_err(|error| error.to_string())?;
        Ok(Read::Event(ToolCallResult { content: message.content, ..result }.into()))
    }

    fn messages(&mut self, messages: Value) -> Result<Vec<Message>, DecodeError> {
        let input = json!({ "threadId": "t", "runId": "r", "messages": messages });
        let decoded = decode(input.to_string().as_bytes())?;
        if !decoded.dropped.is_empty() {
            self.warn("what AG-UI 1.0 does not describe was left out", &decoded.dropped.to_string());
        }
        Ok(decoded.input.messages.into_vec())
    }

    /// Turns a retired event into the one that replaced it. They had no ids: the ones of a start are its end's, too.
    fn modernise(&mut self, event: Thinking, object: &mut Map<String, Value>) -> EventType {
        let (kind, id) = match event {
            Thinking::Start => {
                if let Some(Value::String(title)) = object.remove("title") {
                    self.warn("THINKING_START has a title, which its replacement has not", &title);
                }
                (EventType::ReasoningStart, self.span.insert(MessageId::random()).clone())
            }
            Thinking::End => (EventType::ReasoningEnd, self.span.take().unwrap_or_else(MessageId::random)),
            Thinking::MessageStart => {
                object.insert("role".to_owned(), json!("reasoning"));
                (EventType::ReasoningMessageStart, self.thought.insert(MessageId::random()).clone())
            }
            Thinking::MessageContent => {
                let id = self.thought.get_or_insert_with(MessageId::random).clone();
                (EventType::ReasoningMessageContent, id)
            }
            Thinking::MessageEnd => {
                (EventType::ReasoningMessageEnd, self.thought.take().unwrap_or_else(MessageId::random))
            }
        };
        object.insert("type".to_owned(), kind.as_str().into());
        object.insert("messageId".to_owned(), id.as_str().into());
        kind
    }

    fn malformed(&self, kind: Option<&'static str>, problem: impl AsRef<str>) -> Malformed {
        Malformed { number: self.number, kind, problem: shortened(problem.as_ref()) }
    }

    fn warn(&mut self, what: &'static str, which: &str) {
        let which = shortened(which);
        if self.warned.len() < 100 && self.warned.insert(format!("{what}{which}")) {
            tracing::warn!(event = self.number, ?which, "the remote agent's stream: {what}");
        }
    }
}

/// Some languages write whole numbers with a point.
fn whole_timestamp(object: &mut JsonObject) {
    if let Some(timestamp) = object.get_mut("timestamp")
        && let Some(number) = timestamp.as_f64().filter(|number| timestamp.is_f64() && number.fract() == 0.0)
        && number.abs() < 9e15
    {
        *timestamp = json!(number as i64);
    }
}

fn shortened(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(QUOTED_CHARS).collect();
    if chars.next().is_some() { head + "…" } else { head }
}

#[cfg(test)]
mod tests;
