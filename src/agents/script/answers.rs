//! What people answered: the `resume` entries of a run, matched with what the script asked.
//!
//! A server that stores threads hands over only entries that fit. Without one anything can come, so an entry
//! for what was not asked is left aside, and an answer that is not clearly a yes is a no.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    questions::{Kind, Questions, Subject, subject},
    template::{Values, add_members, plain},
};
use crate::protocol::{FunctionCall, JsonObject, Message, ResumeEntry, ResumeStatus, RunAgentInput, ToolCallId};

/// The answer to one question.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The tool of the call that was asked about, or the question's own name.
    pub(super) name: String,
    pub(super) approved: bool,
    pub(super) call: Option<AnsweredCall>,
    /// The answer's own placeholders.
    pub(super) values: Values,
}

/// The call that was asked about.
#[derive(Debug, Clone)]
pub(super) struct AnsweredCall {
    pub(super) id: ToolCallId,
    /// It has a result already: the same answer was sent twice.
    pub(super) has_result: bool,
}

/// A call as the conversation has it.
struct Call<'a> {
    id: &'a ToolCallId,
    function: &'a FunctionCall,
    position: usize,
}

/// The answers in the order of the calls they are about, and the others behind them.
pub(super) fn answers(input: &RunAgentInput, questions: &Questions) -> Vec<Answer> {
    if input.resume.is_empty() {
        return Vec::new();
    }
    let mut calls = HashMap::new();
    let mut results = HashSet::new();
    for message in &input.messages {
        match message {
            Message::Assistant(assistant) => {
                for call in assistant.tool_calls() {
                    let position = calls.len();
                    calls.insert(&*call.id, Call { id: &call.id, function: &call.function, position });
                }
            }
            Message::Tool(result) => drop(results.insert(&result.tool_call_id)),
            _ => {}
        }
    }
    let mut seen: HashMap<_, (&ResumeEntry, usize)> = HashMap::new();
    let mut answers: Vec<(usize, Answer)> = Vec::new();
    for entry in &input.resume {
        if let Some((first, index)) = seen.get(&entry.interrupt_id) {
            // Two answers that contradict each other are none.
            if *first != entry {
                answers[*index].1.approved = false;
            }
            continue;
        }
        let subject = subject(&entry.interrupt_id, |id| calls.contains_key(id));
        let (name, call) = match &subject {
            Some(Subject::Call(id)) => {
                let call = calls.get(id);
                (call.map(|call| &*call.function.name), call)
            }
            Some(Subject::Named(name)) => (Some(*name), None),
            None => (None, None),
        };
        let asked = name.and_then(|name| Some((name, questions.kind(name)?)));
        let (name, kind) = match asked {
            Some((name, kind)) if (kind == Kind::Input) == call.is_none() => (name, kind),
            _ => {
                tracing::warn!(interrupt = ?entry.interrupt_id, "an answer to something that was not asked");
                continue;
            }
        };
        seen.insert(&entry.interrupt_id, (entry, answers.len()));
        let position = call.map_or(usize::MAX, |call| call.position);
        let mut answer = Answer::new(name, entry, kind, call.map(|call| &*call.function.arguments));
        answer.call = call.map(|call| AnsweredCall { id: call.id.clone(), has_result: results.contains(call.id) });
        answers.push((position, answer));
    }
    answers.sort_by_key(|(position, _)| *position);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

impl Answer {
    fn new(name: &str, entry: &ResumeEntry, kind: Kind, proposed: Option<&str>) -> Self {
        let payload = entry.payload.as_ref().filter(|_| entry.status == ResumeStatus::Resolved);
        let verdict = payload.map_or(Verdict::No, |payload| verdict(payload, kind));
        let mut values = Values::new();
        if let Some(payload) = payload {
            values.insert("answer".to_owned(), plain(payload));
            if let Value::Object(members) = payload {
                add_members("answer", members, &mut values);
            }
        }
        let proposed: Option<JsonObject> = proposed.and_then(|json| serde_json::from_str(json).ok());
        let args = if let Verdict::Edited(args) = verdict { Some(args) } else { proposed.as_ref() };
        if let Some(args) = args {
            add_args(args, &mut values);
        }
        Self { name: name.to_owned(), approved: !matches!(verdict, Verdict::No), call: None, values }
    }
}

/// The placeholders for a call's arguments.
pub(super) fn add_args(args: &JsonObject, values: &mut Values) {
    values.insert("args".to_owned(), serde_json::to_string(args).unwrap_or_default());
    add_members("args", args, values);
}

enum Verdict<'a> {
    Yes,
    /// A yes to these arguments instead.
    Edited(&'a JsonObject),
    No,
}

fn verdict(payload: &Value, kind: Kind) -> Verdict<'_> {
    let approved = payload.get("approved");
    match (kind, approved, payload.get("editedArgs")) {
        (Kind::Call { .. }, Some(Value::Bool(true)), None | Some(Value::Null)) => Verdict::Yes,
        (Kind::Call { editable: true }, Some(Value::Bool(true)), Some(Value::Object(args))) => Verdict::Edited(args),
        (Kind::Call { .. }, ..) => Verdict::No,
        // A form that is sent is a yes, unless it says otherwise.
        (Kind::Input, Some(approved), _) if *approved != Value::Bool(true) => Verdict::No,
        (Kind::Input, ..) if matches!(payload, Value::Null | Value::Bool(false)) => Verdict::No,
        (Kind::Input, ..) => Verdict::Yes,
    }
}

#[cfg(test)]
mod tests;
