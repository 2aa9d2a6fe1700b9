//! The steps of a run: its events without what may differ between two equal runs.

use std::collections::HashMap;

use serde_json::{Value, json};

use agui_observe::recording::RecordedEvent;
use agui_protocol::{Event, RunAgentInput};
use agui_run::Transcript;

/// Members that differ between equal runs.
const VARYING: &[&str] = &["timestamp", "rawEvent", "usage"];

/// Returns what a run did, in order: an object for each message, call, and other event. The pieces of a message or a call are
/// one step, at the place of its start.
pub(super) fn steps(events: &[RecordedEvent], request: &RunAgentInput) -> Vec<Value> {
    let mut steps = StepBuilder::default();
    without_needless_snapshots(events, request)
        .iter()
        .for_each(|recorded| steps.add(&recorded.event));
    steps.finish()
}

/// Leaves out the snapshots that change nothing: servers add them for their clients.
pub(super) fn without_needless_snapshots(
    events: &[RecordedEvent],
    request: &RunAgentInput,
) -> Vec<RecordedEvent> {
    let mut transcript = Transcript::from_input(request);
    let has_effect = |recorded: &&RecordedEvent| {
        let has_effect = match &recorded.event {
            Event::StateSnapshot(snapshot) => snapshot.snapshot != *transcript.state(),
            Event::MessagesSnapshot(snapshot) => *snapshot.messages != *transcript.messages(),
            _ => true,
        };
        transcript.apply(&recorded.event);
        has_effect
    };
    events.iter().filter(has_effect).cloned().collect()
}

#[derive(Default)]
struct StepBuilder {
    values: Vec<Value>,
    /// The place of each open message and call.
    places: HashMap<String, usize>,
}

impl StepBuilder {
    fn add(&mut self, event: &Event) {
        match event {
            Event::TextMessageStart(start) => {
                self.open(&start.message_id, event, "TEXT_MESSAGE", "text")
            }
            Event::TextMessageContent(content) => {
                self.extend(&content.message_id, "text", &content.delta)
            }
            Event::ReasoningMessageStart(start) => {
                self.open(&start.message_id, event, "REASONING", "text")
            }
            Event::ReasoningMessageContent(content) => {
                self.extend(&content.message_id, "text", &content.delta)
            }
            Event::ToolCallStart(start) => {
                self.open(&start.tool_call_id, event, "TOOL_CALL", "arguments")
            }
            Event::ToolCallArgs(args) => self.extend(&args.tool_call_id, "arguments", &args.delta),
            // Ends, the frame, and values that only the provider can read.
            Event::TextMessageEnd(_)
            | Event::ReasoningMessageEnd(_)
            | Event::ReasoningEnd(_)
            | Event::ReasoningEncryptedValue(_)
            | Event::ToolCallEnd(_)
            | Event::RunStarted(_) => {}
            Event::Raw(_) => self.values.push(json!({ "type": "RAW" })),
            Event::RunFinished(_) => {
                let mut value = plain(event);
                value.retain(|name, _| name != "threadId" && name != "runId");
                self.values.push(value.into());
            }
            _ => self.values.push(plain(event).into()),
        }
    }

    fn open(&mut self, id: &str, event: &Event, kind: &str, content: &str) {
        let mut value = plain(event);
        value.insert("type".to_owned(), kind.into());
        value.insert(content.to_owned(), "".into());
        self.places.insert(id.to_owned(), self.values.len());
        self.values.push(value.into());
    }

    fn extend(&mut self, id: &str, member: &str, delta: &str) {
        let step = self.places.get(id).and_then(|place| self.values.get_mut(*place));
        if let Some(Value::String(text)) = step.and_then(|step| step.get_mut(member)) {
            text.push_str(delta);
        }
    }

    /// Arguments are compared as JSON, in which the order of members does not count.
    fn finish(mut self) -> Vec<Value> {
        for step in &mut self.values {
            let Some(arguments) = step.get_mut("arguments") else { continue };
            if let Some(parsed) =
                arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
            {
                *arguments = parsed;
            }
        }
        self.values
    }
}

fn plain(event: &Event) -> serde_json::Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(mut object)) => {
            object.retain(|name, _| !VARYING.contains(&name.as_str()));
            object
        }
        _ => serde_json::Map::new(),
    }
}
