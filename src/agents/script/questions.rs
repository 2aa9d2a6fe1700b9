//! The questions of a script: the interrupts that its runs end with.
//!
//! The run that brings an answer may be in another process, and knows only the interrupt's id. So the id names the
//! question: `int_<toolCallId>` is about a call of the conversation, `int_<random>-<name>` is any other question.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    ScriptError,
    format::{self, Interrupt as InterruptFormat},
    template::{Template, Values},
};
use crate::protocol::{
    Interrupt, InterruptId, JsonObject, Metadata, ToolCallId,
    approval::{allows_edits, approval_schema, asks_for_approval},
};

const ID_PREFIX: &str = "int_";

const ANY: &str = "*";

#[derive(Debug, Default)]
pub(super) struct Questions {
    /// By name, which is the tool for a question about a call.
    kinds: HashMap<String, QuestionKind>,
    /// `when.answers` of each reply.
    answered: Vec<HashSet<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// Approval of a call, whose arguments a person can edit.
    Call { is_editable: bool },
    /// Any other approval: the schema has the property `approved`.
    Review { is_editable: bool },
    /// Any other question.
    Form,
}

impl QuestionKind {
    fn of(question: &InterruptFormat) -> Self {
        let is_editable = question.schema.as_ref().is_some_and(allows_edits);
        match (&question.call, &question.schema) {
            (Some(_), _) => Self::Call { is_editable },
            (None, Some(schema)) if asks_for_approval(schema) => Self::Review { is_editable },
            _ => Self::Form,
        }
    }

    pub(super) fn is_call(self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// The calls that a `result_of` answers.
#[derive(Debug)]
pub(super) enum AnyCall {
    Of(String),
    /// All calls without a result.
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

#[derive(Debug)]
pub(super) struct Question {
    /// The question's name, or the tool of the call.
    name: String,
    is_about_call: bool,
    reason: String,
    message: Option<Template>,
    schema: Option<JsonObject>,
    expires_in: Option<SignedDuration>,
    metadata: Option<Metadata>,
}

#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) tool: String,
    pub(super) id: ToolCallId,
    pub(super) args: Values,
}

impl Questions {
    /// Comes before the checks of the replies, because a reply can precede the one whose question it answers.
    pub(super) fn of(script: &format::Script) -> Result<Self, ScriptError> {
        let mut questions = Self::default();
        for reply in &script.reply {
            let reply = reply.get_ref();
            questions.answered.push(reply.when.answers.clone().into_vec().into_iter().collect());
            for action in &reply.play {
                for question in action.get_ref().interrupts.iter().flatten() {
                    questions.add(question).map_err(|message| ScriptError { message, span: Some(action.span()) })?;
                }
            }
        }
        Ok(questions)
    }

    fn add(&mut self, question: &InterruptFormat) -> Result<(), String> {
        let name = match (&question.call, &question.name) {
            (Some(tool), None) => tool,
            (None, Some(name)) if name.is_empty() || name == ANY => {
                return Err(format!("{name:?} cannot be the name of an interrupt"));
            }
            (None, Some(name)) => name,
            _ => return Err("an interrupt needs either `call` or `name`".to_owned()),
        };
        let kind = QuestionKind::of(question);
        match self.kinds.get(name) {
            Some(other) if *other != kind => {
                Err(format!("interrupts named {name:?} differ in `call` or in the answers that their schemas allow"))
            }
            _ => {
                self.kinds.insert(name.clone(), kind);
                Ok(())
            }
        }
    }

    pub(super) fn kind(&self, name: &str) -> Option<QuestionKind> {
        self.kinds.get(name).copied()
    }

    pub(super) fn any(&self) -> bool {
        !self.kinds.is_empty()
    }

    pub(super) fn any_call(&self) -> bool {
        self.kinds.values().any(|kind| kind.is_call())
    }

    pub(super) fn any_editable(&self) -> bool {
        self.kinds.values().any(|kind| *kind == QuestionKind::Call { is_editable: true })
    }

    /// `open` are the tools of the reply's calls without a result.
    pub(super) fn check_asked(&self, asked: &[InterruptFormat], mut open: Vec<&str>) -> Result<(), String> {
        if asked.is_empty() {
            return Err("`interrupts` needs at least one".to_owned());
        }
        for tool in asked.iter().filter_map(|asked| asked.call.as_deref()) {
            let Some(position) = open.iter().position(|open| *open == tool) else {
                return Err(format!("this reply has no call of {tool:?} before this that waits for an answer"));
            };
            open.remove(position);
        }
        let mut named = HashSet::new();
        if let Some(twice) = asked.iter().filter_map(|asked| asked.name.as_ref()).find(|name| !named.insert(*name)) {
            return Err(format!("two interrupts are named {twice:?}"));
        }
        let names: HashSet<String> = asked.iter().filter_map(|a| a.call.clone().or(a.name.clone())).collect();
        if self.answered.iter().any(|answered| answered.contains(ANY) || *answered == names) {
            return Ok(());
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        Err(format!("no reply has `when.answers` for {}", names.join(" and ")))
    }

    /// `has_result` returns whether the reply has a `result_of` for the calls of a tool.
    pub(super) fn check_answers(&self, answers: &[String], has_result: impl Fn(&str) -> bool) -> Result<(), String> {
        if let Some(unknown) = answers.iter().find(|name| *name != ANY && self.kind(name).is_none()) {
            return Err(format!("no reply has an interrupt named {unknown:?}"));
        }
        let mut calls: Vec<_> = self.kinds.iter().filter(|(_, kind)| kind.is_call()).map(|(name, _)| name).collect();
        calls.sort_unstable();
        match calls.into_iter().find(|tool| takes(answers, tool) && !has_result(tool)) {
            Some(tool) => Err(format!("the answered call of {tool:?} needs a `result_of`")),
            None => Ok(()),
        }
    }

    pub(super) fn answered_call(&self, of: String, answers: &[String]) -> Result<AnyCall, String> {
        if answers.is_empty() {
            return Err("`result_of` needs `when.answers`".to_owned());
        }
        if of == ANY {
            return Ok(AnyCall::Rest);
        }
        if self.kind(&of).is_some_and(QuestionKind::is_call) && takes(answers, &of) {
            return Ok(AnyCall::Of(of));
        }
        Err(format!("{of:?} is not a call that `when.answers` names"))
    }
}

/// Returns whether a reply to `answers` answers questions of a name.
pub(super) fn takes(answers: &[String], name: &str) -> bool {
    answers.iter().any(|answer| answer == name || answer == ANY)
}

impl Question {
    pub(super) fn new(format: InterruptFormat, known: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let is_about_call = format.call.is_some();
        let default_reason = if is_about_call { "tool_call" } else { "input_required" };
        let reason = format.reason.unwrap_or_else(|| default_reason.to_owned());
        if reason == "tool_call" && !is_about_call {
            return Err("the reason \"tool_call\" needs `call`".to_owned());
        }
        // With the schema, the server refuses answers that are neither a yes nor a no.
        let schema = format.schema.or_else(|| is_about_call.then(|| approval_schema(None)));
        Ok(Self {
            name: format.call.or(format.name).unwrap_or_default(),
            is_about_call,
            reason,
            message: format.message.map(|message| Template::parse(&message, known)).transpose()?,
            schema,
            expires_in: format.expires_in_secs.map(|secs| SignedDuration::from_secs(secs.into())),
            metadata: format.metadata.map(Metadata::from),
        })
    }

    /// A question about a call takes the first open call of its tool.
    pub(super) fn ask(&self, open: &mut Vec<OpenCall>, values: &Values) -> Option<Interrupt> {
        let call = if self.is_about_call {
            let position = open.iter().position(|call| call.tool == self.name)?;
            Some(open.remove(position))
        } else {
            None
        };
        let mut interrupt = Interrupt::new(&*self.reason);
        interrupt.id = match &call {
            Some(call) => format!("{ID_PREFIX}{}", call.id).into(),
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

pub(super) enum InterruptSubject<'a> {
    Call(&'a str),
    Named(&'a str),
}

/// `is_call` returns whether the conversation has a call of an id.
pub(super) fn interrupt_subject<'a>(
    id: &'a InterruptId,
    is_call: impl Fn(&str) -> bool,
) -> Option<InterruptSubject<'a>> {
    let rest = id.as_str().strip_prefix(ID_PREFIX)?;
    if is_call(rest) {
        return Some(InterruptSubject::Call(rest));
    }
    rest.split_once('-').map(|(_, name)| InterruptSubject::Named(name))
}

fn expiry(time: SignedDuration) -> Option<String> {
    let at = Timestamp::now().checked_add(time).ok()?;
    Some(format!("{at:.0}"))
}
