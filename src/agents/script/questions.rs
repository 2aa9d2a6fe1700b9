//! What a script asks people: the interrupts its runs end with.
//!
//! The run that brings the answers knows an interrupt by its id alone, and may be a run of another process.
//! So the id says what was asked: `int_<toolCallId>` leads to the call in the conversation, and
//! `int_<random>-<name>` names the question of the script.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    ScriptError,
    format::{self, Interrupt as Asked},
    template::{Template, Values},
};
use crate::protocol::{Interrupt, InterruptId, JsonObject, Metadata, ToolCallId};

/// What the ids of interrupts begin with.
const PREFIX: &str = "int_";

/// Any name, in `answers` and `result_of`.
const ANY: &str = "*";

/// Everything that a script asks, in any of its replies.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// By name; the name of a call is its tool's.
    kinds: HashMap<String, Kind>,
    /// What the replies answer: each set of names that one of them takes.
    taken: Vec<HashSet<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whether a call may be made, and perhaps with which arguments.
    Call { editable: bool },
    /// Anything else.
    Input,
}

/// The calls that a `result_of` answers.
#[derive(Debug)]
pub(super) enum AnyCall {
    /// Those of this tool.
    Of(String),
    /// All that are not answered yet.
    Rest,
}

impl AnyCall {
    pub(super) fn includes(&self, tool: &str) -> bool {
        match self {
            Self::Of(own) => own == tool,
            Self::Rest => true,
        }
    }
}

/// One interrupt to end a run with.
#[derive(Debug)]
pub(super) struct Question {
    /// The tool of the call, or the question's own name.
    name: String,
    of_call: bool,
    reason: String,
    message: Option<Template>,
    schema: Option<JsonObject>,
    expires_in: Option<SignedDuration>,
    metadata: Option<Metadata>,
}

/// A call that was played without a result: a question may be about it.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) tool: String,
    pub(super) id: ToolCallId,
    /// The arguments, as placeholders.
    pub(super) args: Values,
}

impl Questions {
    /// Collects them first, because a reply may come before the one that asks what it answers.
    pub(super) fn of(script: &format::Script) -> Result<Self, ScriptError> {
        let mut questions = Self::default();
        for reply in &script.reply {
            let reply = reply.get_ref();
            questions.taken.push(reply.when.answers.clone().into_vec().into_iter().collect());
            for action in &reply.play {
                for asked in action.get_ref().interrupts.iter().flatten() {
                    questions.add(asked).map_err(|message| ScriptError { message, span: Some(action.span()) })?;
                }
            }
        }
        Ok(questions)
    }

    fn add(&mut self, asked: &Asked) -> Result<(), String> {
        let editable = asked.schema.as_ref().is_some_and(offers_edits);
        let (name, kind) = match (&asked.call, &asked.name) {
            (Some(tool), None) => (tool, Kind::Call { editable }),
            (None, Some(name)) if name.is_empty() || name == ANY => {
                return Err(format!("{name:?} is no name for an interrupt"));
            }
            (None, Some(name)) => (name, Kind::Input),
            _ => return Err("an interrupt needs either `call` or `name`".to_owned()),
        };
        match self.kinds.get(name) {
            Some(other) if *other != kind => {
                Err(format!("{name:?} is asked in two ways: all interrupts of a name must take the same answers"))
            }
            _ => {
                self.kinds.insert(name.clone(), kind);
                Ok(())
            }
        }
    }

    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        self.kinds.get(name).copied()
    }

    pub(super) fn any(&self) -> bool {
        !self.kinds.is_empty()
    }

    pub(super) fn any_call(&self) -> bool {
        self.kinds.values().any(|kind| matches!(kind, Kind::Call { .. }))
    }

    pub(super) fn any_editable(&self) -> bool {
        self.kinds.values().any(|kind| matches!(kind, Kind::Call { editable: true }))
    }

    /// Checks the interrupts that a reply ends with. `open` are the tools of the reply's calls without a result.
    pub(super) fn check_asked(&self, asked: &[Asked], mut open: Vec<&str>) -> Result<(), String> {
        if asked.is_empty() {
            return Err("`interrupts` needs at least one".to_owned());
        }
        for tool in asked.iter().filter_map(|asked| asked.call.as_deref()) {
            let Some(position) = open.iter().position(|open| *open == tool) else {
                return Err(format!("there is no call of {tool:?} before this that waits for an answer"));
            };
            open.remove(position);
        }
        let mut named = HashSet::new();
        if let Some(twice) = asked.iter().filter_map(|asked| asked.name.as_ref()).find(|name| !named.insert(*name)) {
            return Err(format!("{twice:?} is asked twice at once"));
        }
        let names: HashSet<String> = asked.iter().filter_map(|a| a.call.clone().or(a.name.clone())).collect();
        if self.taken.iter().any(|taken| taken.contains(ANY) || *taken == names) {
            return Ok(());
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        Err(format!("no reply has `when.answers` for {}", names.join(" and ")))
    }

    /// Checks what a reply answers: that it is asked, and that no call is left without a result.
    /// `has_result` returns whether the reply has a `result_of` for the calls of a tool.
    pub(super) fn check_answers(&self, answers: &[String], has_result: impl Fn(&str) -> bool) -> Result<(), String> {
        if let Some(unknown) = answers.iter().find(|name| *name != ANY && self.kind(name).is_none()) {
            return Err(format!("no reply asks {unknown:?}"));
        }
        let mut calls: Vec<_> =
            self.kinds.iter().filter(|(_, kind)| **kind != Kind::Input).map(|(name, _)| name).collect();
        calls.sort_unstable();
        match calls.into_iter().find(|tool| takes(answers, tool) && !has_result(tool)) {
            Some(tool) => Err(format!("the call of {tool:?} that is answered needs a `result_of`")),
            None => Ok(()),
        }
    }

    /// What a `result_of` is about, in a reply to `answers`.
    pub(super) fn answered_call(&self, of: String, answers: &[String]) -> Result<AnyCall, String> {
        if answers.is_empty() {
            return Err("`result_of` needs `when.answers`".to_owned());
        }
        if of == ANY {
            return Ok(AnyCall::Rest);
        }
        if matches!(self.kind(&of), Some(Kind::Call { .. })) && takes(answers, &of) {
            return Ok(AnyCall::Of(of));
        }
        Err(format!("{of:?} is not a call that `when.answers` names"))
    }
}

/// Whether a reply to `answers` takes one of this name.
pub(super) fn takes(answers: &[String], name: &str) -> bool {
    answers.iter().any(|answer| answer == name || answer == ANY)
}

impl Question {
    pub(super) fn new(asked: Asked, known: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let of_call = asked.call.is_some();
        let reason = asked.reason.unwrap_or_else(|| if of_call { "tool_call" } else { "input_required" }.to_owned());
        if reason == "tool_call" && !of_call {
            return Err("the reason \"tool_call\" needs `call`".to_owned());
        }
        // An approval always says what it takes for a yes, so that a server can refuse everything else.
        let schema = asked.schema.or_else(|| of_call.then(approval));
        Ok(Self {
            name: asked.call.or(asked.name).unwrap_or_default(),
            of_call,
            reason,
            message: asked.message.map(|message| Template::parse(&message, known)).transpose()?,
            schema,
            expires_in: asked.expires_in_secs.map(|secs| SignedDuration::from_secs(secs.into())),
            metadata: asked.metadata.map(Metadata::from),
        })
    }

    /// The interrupt. One about a call takes the first open call of its tool.
    pub(super) fn ask(&self, open: &mut Vec<OpenCall>, values: &Values) -> Option<Interrupt> {
        let call = if self.of_call {
            let position = open.iter().position(|call| call.tool == self.name)?;
            Some(open.remove(position))
        } else {
            None
        };
        let mut interrupt = Interrupt::new(&*self.reason);
        interrupt.id = match &call {
            Some(call) => format!("{PREFIX}{}", call.id).into(),
            None => format!("{}-{}", interrupt.id, self.name).into(),
        };
        interrupt.message = self.message.as_ref().map(|message| {
            let mut values = values.clone();
            values.extend(call.iter().flat_map(|call| call.args.clone()));
            message.fill(&values)
        });
        interrupt.tool_call_id = call.map(|call| call.id);
        interrupt.response_schema = self.schema.clone();
        interrupt.expires_at = self.expires_in.and_then(expiry);
        interrupt.metadata = self.metadata.clone();
        Some(interrupt)
    }
}

/// What an interrupt's id says about it.
pub(super) enum Subject<'a> {
    Call(&'a str),
    Named(&'a str),
}

/// Reads an interrupt's id. `is_call` says whether the conversation has a call of an id.
pub(super) fn subject<'a>(id: &'a InterruptId, is_call: impl Fn(&str) -> bool) -> Option<Subject<'a>> {
    let rest = id.as_str().strip_prefix(PREFIX)?;
    if is_call(rest) {
        return Some(Subject::Call(rest));
    }
    rest.split_once('-').map(|(_, name)| Subject::Named(name))
}

fn expiry(time: SignedDuration) -> Option<String> {
    let at = Timestamp::now().checked_add(time).ok()?;
    Some(format!("{at:.0}"))
}

/// Whether an answer may bring arguments of its own: the schema says so by having the member.
fn offers_edits(schema: &JsonObject) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get("editedArgs").is_some())
}

/// The schema of a yes or no.
fn approval() -> JsonObject {
    let approved = json!({ "approved": { "type": "boolean" } });
    JsonObject::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), approved),
        ("required".to_owned(), json!(["approved"])),
    ])
}
