//! Identifiers of recorded and live runs: which of them mean the same thing.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use agui_protocol::{RunAgentInput, RunId};

/// The members that have identifiers.
const ID_MEMBERS: &[&str] = &[
    "id",
    "messageId",
    "toolCallId",
    "parentMessageId",
    "parentToolCallId",
    "subagentRunId",
    "parentSubagentRunId",
    "interruptId",
    "runId",
    "parentRunId",
    "threadId",
    "entityId",
];

/// The identifiers of a recorded thread, in pairs with those of the thread in which it is played.
#[derive(Debug)]
pub(super) struct IdPairs {
    to_live: HashMap<String, String>,
    to_recorded: HashMap<String, String>,
}

impl IdPairs {
    /// Begins with a new thread.
    pub(super) fn for_thread(recorded: &str) -> Self {
        let mut pairs = Self { to_live: HashMap::new(), to_recorded: HashMap::new() };
        pairs.add(recorded, &format!("test_{}", RunId::random()));
        pairs
    }

    pub(super) fn add(&mut self, recorded: &str, live: &str) {
        self.to_live.insert(recorded.to_owned(), live.to_owned());
        self.to_recorded.insert(live.to_owned(), recorded.to_owned());
    }

    /// Returns a recorded request with the identifiers of the live thread.
    pub(super) fn live_request(
        &self,
        request: &RunAgentInput,
    ) -> serde_json::Result<RunAgentInput> {
        let mut value = serde_json::to_value(request)?;
        replace(&mut value, &self.to_live);
        serde_json::from_value(value)
    }

    /// Returns a live value with the identifiers of the recorded thread, as far as they are known.
    pub(super) fn to_recorded(&self, mut value: Value) -> Value {
        replace(&mut value, &self.to_recorded);
        value
    }

    /// Learns the new identifiers of a run: the first new one of both runs means the same thing, and so on.
    pub(super) fn pair(&mut self, known: &BTreeSet<String>, recorded: &[Value], live: &[Value]) {
        let pairs = new_ids(recorded, known).into_iter().zip(new_ids(live, known));
        pairs.for_each(|(recorded, live)| self.add(&recorded, &live));
    }
}

/// Returns the identifiers of a request.
pub(super) fn known_in(request: &RunAgentInput) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut value = serde_json::to_value(request).unwrap_or_default();
    visit(&mut value, &mut |id| known.extend([id.clone()]));
    known
}

/// Returns steps in which new identifiers are numbers.
pub(super) fn numbered(mut steps: Vec<Value>, known: &BTreeSet<String>) -> Vec<Value> {
    let ids = (1..).zip(new_ids(&steps, known));
    let numbers = ids.map(|(number, id): (usize, String)| (id, format!("#{number}"))).collect();
    steps.iter_mut().for_each(|step| replace(step, &numbers));
    steps
}

/// Returns the new identifiers in the order in which they first occur.
fn new_ids(steps: &[Value], known: &BTreeSet<String>) -> Vec<String> {
    let (mut new, mut seen) = (Vec::new(), known.clone());
    for value in steps {
        visit(&mut value.clone(), &mut |id| {
            if seen.insert(id.clone()) {
                new.push(id.clone());
            }
        });
    }
    new
}

fn replace(value: &mut Value, new: &HashMap<String, String>) {
    visit(value, &mut |id| {
        if let Some(new) = new.get(id) {
            id.clone_from(new);
        }
    });
}

/// Calls a function with each identifier of a value. What users, agents and tools wrote is left alone.
fn visit(value: &mut Value, with: &mut impl FnMut(&mut String)) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| visit(item, with)),
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                match value {
                    Value::String(id) if ID_MEMBERS.contains(&name.as_str()) => with(id),
                    _ if [
                        "state",
                        "snapshot",
                        "payload",
                        "arguments",
                        "forwardedProps",
                        "value",
                    ]
                    .contains(&name.as_str()) => {}
                    value => visit(value, with),
                }
            }
        }
        _ => {}
    }
}
