//! `predict_state`: an argument of a call becomes a member of the state while the model still writes it.
//!
//! JSON Patch cannot append to a text, so each change has the whole value so far. Changes come when the value has grown by an
//! eighth, so all of them together have at most nine times the bytes of the argument.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::partial_json;
use agui_agent::surfaces::arguments::{ArgumentPart, ArgumentsReader};
use agui_protocol::{
    Event, Message, PatchOperation, ToolCallId,
    event::{Custom, StateDelta, StateSnapshot},
    own_names::FAILED,
};
use agui_tools::{ToolError, host::ToolSession};

/// Tells pages what a call will change. Pages define the name.
const PREDICT_STATE: &str = "PredictState";
/// The smallest growth that becomes a change, in bytes.
const MIN_GROWTH: usize = 16;

/// A member of the state that an argument of a tool becomes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StatePrediction {
    /// The member of the state.
    #[serde(rename(serialize = "state_key"))]
    pub key: String,
    /// The tool, of the server or of the page.
    pub tool: String,
    /// The argument of the tool.
    #[serde(rename(serialize = "tool_argument"))]
    pub argument: String,
}

impl StatePrediction {
    /// Returns whether a member is empty, which makes the prediction invalid.
    pub(super) fn is_incomplete(&self) -> bool {
        [&self.key, &self.tool, &self.argument].iter().any(|name| name.is_empty())
    }
}

/// Follows the calls of a run.
pub(super) struct StatePredictor<'r> {
    predictions: &'r [StatePrediction],
    session: &'r ToolSession,
    calls: HashMap<ToolCallId, PredictedCall>,
}

struct PredictedCall {
    reader: ArgumentsReader,
    values: Vec<PredictedValue>,
}

#[derive(Default)]
struct PredictedValue {
    key: String,
    argument: String,
    /// The written part of the argument: the text of a string, or JSON.
    written: String,
    is_text: bool,
    /// The complete value, until it is in the state.
    closed: Option<Value>,
    /// The length of `written` at the last change.
    told: usize,
    /// The member's value before the first change.
    former: Option<Option<Value>>,
}

impl<'r> StatePredictor<'r> {
    pub(super) fn new(predictions: &'r [StatePrediction], session: &'r ToolSession) -> Self {
        Self { predictions, session, calls: HashMap::new() }
    }

    /// Adds the changes that follow from events of a model's answer.
    pub(super) fn follow(&mut self, events: &mut Vec<Event>) {
        if self.predictions.is_empty() {
            return;
        }
        for event in std::mem::take(events) {
            let (before, after) = match &event {
                Event::ToolCallStart(start) => {
                    (self.start(&start.tool_call_id, &start.tool_call_name), Vec::new())
                }
                Event::ToolCallArgs(args) => (None, self.read(&args.tool_call_id, &args.delta)),
                _ => (None, Vec::new()),
            };
            events.extend(before.into_iter().chain([event]).chain(after));
        }
    }

    fn start(&mut self, call: &ToolCallId, tool: &str) -> Option<Event> {
        let of_tool: Vec<_> =
            self.predictions.iter().filter(|prediction| prediction.tool == tool).collect();
        if of_tool.is_empty() {
            return None;
        }
        let values = of_tool.iter().map(|prediction| PredictedValue {
            key: prediction.key.clone(),
            argument: prediction.argument.clone(),
            ..PredictedValue::default()
        });
        self.calls.insert(
            call.clone(),
            PredictedCall { reader: ArgumentsReader::default(), values: values.collect() },
        );
        Some(Custom::new(PREDICT_STATE, json!(of_tool)).into())
    }

    fn read(&mut self, call: &ToolCallId, delta: &str) -> Vec<Event> {
        let Some(PredictedCall { reader, values }) = self.calls.get_mut(call) else {
            return Vec::new();
        };
        reader.push(delta, &mut |name, part| {
            let of_argument = values.iter_mut().filter(|value| value.argument == name);
            of_argument.for_each(|value| value.read(&part));
        });
        let changes = values.iter_mut().filter_map(|value| {
            let new = value.next()?;
            // Dropped before the change, which would copy a shared state.
            let state = self.session.state();
            value.former.get_or_insert_with(|| state.get(&value.key).cloned());
            change(&state, &value.key, Some(new))
        });
        changes.filter_map(|event| self.session.apply(event).inspect_err(refused).ok()).collect()
    }

    /// Reverts the changes of a call that failed or was declined. The events come with those of the
    /// tools.
    pub(super) fn settle(&mut self, result: &Message) {
        let Message::Tool(result) = result else { return };
        let Some(call) = self.calls.remove(&result.tool_call_id) else { return };
        if result.metadata.as_ref().is_none_or(|metadata| !metadata.contains_key(FAILED)) {
            return;
        }
        for PredictedValue { key, former, .. } in call.values {
            let undo = former.and_then(|former| change(&self.session.state(), &key, former));
            if let Some(event) = undo {
                _ = self.session.emit(event).inspect_err(refused);
            }
        }
    }
}

fn refused(error: &ToolError) {
    tracing::warn!(?error, "left out a predicted change of the state");
}

/// Returns the event that sets or removes a member of the state.
fn change(state: &Value, key: &str, value: Option<Value>) -> Option<Event> {
    let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    let operation = match value {
        Some(value) if state.get(key) == Some(&value) => return None,
        Some(value) if !state.is_object() => {
            return Some(StateSnapshot::new(json!({ key: value })).into());
        }
        Some(value) => PatchOperation::add(path, value),
        None => state.get(key).map(|_| PatchOperation::remove(path))?,
    };
    Some(StateDelta::new(vec![operation]).into())
}

impl PredictedValue {
    fn read(&mut self, part: &ArgumentPart<'_>) {
        match part {
            ArgumentPart::Text(text) => {
                self.is_text = true;
                self.written.push_str(text);
            }
            ArgumentPart::Json(json) => self.written.push_str(json),
            ArgumentPart::Item(_) => {}
            ArgumentPart::Closed(json) => self.closed = serde_json::from_str(json).ok(),
        }
    }

    /// Returns the value if it is closed, or has grown.
    fn next(&mut self) -> Option<Value> {
        if let Some(closed) = self.closed.take() {
            return Some(closed);
        }
        if self.written.len() < self.told + (self.told / 8).max(MIN_GROWTH) {
            return None;
        }
        // Set even without a value, so that the text is not read again with each piece.
        self.told = self.written.len();
        if self.is_text {
            Some(self.written.as_str().into())
        } else {
            partial_json::completed(&self.written)
        }
    }
}

#[cfg(test)]
mod tests;
