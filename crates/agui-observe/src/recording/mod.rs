//! Recordings of runs: one file of JSON Lines for each run, with the agent's input, its events with their times, and the
//! exchanges with model providers. `docs/recordings.md` describes the format.

mod read;

pub use read::{RecordingError, read_folder};

use std::{collections::BTreeMap, io::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use agui_protocol::{Event, RunAgentInput, TokenUsage};

/// The version of the format.
pub const VERSION: u32 = 1;

/// The first line: the input of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingHead {
    /// The version of the format.
    pub recording: u32,
    /// The name of the agent.
    pub agent: String,
    /// The time of the run's start, in milliseconds since 1970.
    pub started_at: i64,
    /// The recorded request headers, by lower-case name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// The agent's input: the client's request, with the messages and the state of its thread.
    pub request: RunAgentInput,
}

impl RecordingHead {
    /// Creates the head of a recording without headers.
    pub fn new(agent: String, started_at: i64, request: RunAgentInput) -> Self {
        Self { recording: VERSION, agent, started_at, headers: BTreeMap::new(), request }
    }

    /// Returns the first line.
    pub fn to_line(&self) -> Vec<u8> {
        // Heads always have a JSON form.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// The time since the run's start, in milliseconds.
    pub ms: u64,
    /// The event.
    pub event: Event,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingEnd {
    /// `finished` if the run has its terminal event, `abandoned` if its client left before.
    pub outcome: String,
    /// True if events or exchanges are missing, because of a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The tokens of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<TokenUsage>,
}

/// Returns a line with the time and one member.
pub fn line(ms: u64, member: &str, value: &impl Serialize) -> Vec<u8> {
    let mut line = format!("{{\"ms\":{ms},\"{member}\":").into_bytes();
    // Writing to memory cannot fail, and all keys of these values are texts.
    let _ = serde_json::to_writer(&mut line, value);
    line.extend_from_slice(b"}\n");
    line
}

/// Appends the line of an event, which is JSON.
pub fn push_event_line(lines: &mut Vec<u8>, ms: u64, event: &str) {
    // Writing to memory cannot fail.
    let _ = writeln!(lines, "{{\"ms\":{ms},\"event\":{event}}}");
}

/// One request to a model provider, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderExchange {
    /// Host and path.
    pub url: String,
    /// The body, which is JSON; `None` if it was too large to be recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The events of the answer.
    #[serde(default)]
    pub events: Vec<ProviderReply>,
    /// True if events are missing, because the answer was too large to be recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExchangeError>,
}

impl ProviderExchange {
    /// Returns whether the exchange has a request and all of a successful answer.
    pub fn is_whole(&self) -> bool {
        self.request.is_some() && !self.cut && self.error.is_none() && !self.events.is_empty()
    }
}

/// The failure of a request to a model provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeError {
    /// The code, such as `model_unavailable`.
    pub code: String,
    /// The message for the client.
    pub message: String,
}

/// An event of a provider's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderReply {
    /// The time since the request, in milliseconds.
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub data: String,
}

/// Any line but the first one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Line {
    Event(RecordedEvent),
    Exchange { exchange: ProviderExchange },
    End { end: RecordingEnd },
}

/// A recording that was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recording {
    /// The name of the file without its ending.
    pub name: String,
    /// The input of the run.
    pub head: RecordingHead,
    /// The events of the run, in order.
    pub events: Vec<RecordedEvent>,
    pub exchanges: Vec<ProviderExchange>,
    /// The end; `None` if the server ended during the run.
    pub end: Option<RecordingEnd>,
}

impl Recording {
    /// Returns whether the recording has all events of a run that ended by itself.
    pub fn is_whole(&self) -> bool {
        let is_terminal = |event: &RecordedEvent| {
            matches!(event.event, Event::RunFinished(_) | Event::RunError(_))
        };
        self.events.last().is_some_and(is_terminal) && !self.end.as_ref().is_some_and(|end| end.cut)
    }
}
