//! Checks a script, and brings it into the form it is played in.

use std::{collections::HashSet, time::Duration};

use regex::{Regex, RegexBuilder};
use toml::Spanned;

use super::{
    Script, ScriptError,
    capabilities::declare,
    format::{self, Action, OneOrMore},
    questions::{AnyCall, Question, Questions},
    template::{JsonTemplate, Template},
};
use crate::protocol::{JsonPatch, patch::is_pointer};

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) when: When,
    pub(super) play: Vec<Op>,
}

#[derive(Debug)]
pub(super) struct When {
    pub(super) user: Option<Regex>,
    pub(super) tool: Option<String>,
    pub(super) result: Option<Regex>,
    pub(super) failed: Option<bool>,
    pub(super) offers: Vec<String>,
    /// What the run must answer, and nothing else; empty for a run that answers nothing.
    pub(super) answers: Vec<String>,
    pub(super) approved: Option<bool>,
    /// What members of the answer must look like.
    pub(super) answer: Vec<(String, Regex)>,
    pub(super) join: String,
}

/// One thing to play. Steps are flattened: a start, what happens in them, and an end.
#[derive(Debug)]
pub(super) enum Op {
    Text { deltas: Vec<Template>, every: Duration },
    Think { deltas: Vec<Template>, every: Duration },
    Calls { calls: Vec<Call>, within: bool },
    StepStarted(String),
    StepFinished(String),
    State(JsonTemplate),
    Patch(JsonPatch),
    Activity { kind: String, content: JsonTemplate },
    ActivityPatch { kind: String, patch: JsonPatch },
    Custom { name: String, value: JsonTemplate },
    Count { to: Template, most: u64, every: Duration },
    Wait(Duration),
    Fail { message: Template, code: Option<String> },
    Results { of: AnyCall, approved: Template, declined: Template },
    Interrupts(Vec<Question>),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: JsonTemplate,
    pub(super) result: Option<Template>,
}

pub(super) fn compile(script: format::Script) -> Result<Script, ScriptError> {
    let questions = Questions::of(&script)?;
    let mut replies = Vec::new();
    for reply in script.reply {
        replies.push(compile_reply(reply, &questions)?);
    }
    if replies.is_empty() {
        return Err(ScriptError { message: "a script needs at least one [[reply]]".to_owned(), span: None });
    }
    let capabilities = declare(script.description, &replies, &questions);
    Ok(Script { replies: replies.into(), questions: questions.into(), capabilities })
}

fn compile_reply(reply: Spanned<format::Reply>, questions: &Questions) -> Result<Reply, ScriptError> {
    let span = reply.span();
    let format::Reply { when, join, play } = reply.into_inner();
    let refuse = |message: String| ScriptError { message, span: Some(span.clone()) };
    let (user, result) = (when.user.as_ref().map(regex).transpose()?, when.result.as_ref().map(regex).transpose()?);
    let answer = when.answer.iter().map(|(member, text)| Ok((member.clone(), regex(text)?)));
    let answer: Vec<(String, Regex)> = answer.collect::<Result<_, ScriptError>>()?;
    if when.tool.is_none() && (result.is_some() || when.failed.is_some()) {
        return Err(refuse("`result` and `failed` are about a tool's result and need `tool`".to_owned()));
    }
    let answers = when.answers.into_vec();
    if answers.is_empty() && (when.approved.is_some() || !answer.is_empty()) {
        return Err(refuse("`approved` and `answer` are about what is answered and need `answers`".to_owned()));
    }
    if !answers.is_empty() && when.tool.is_some() {
        return Err(refuse("`tool` and `answers` are about different runs".to_owned()));
    }
    let groups: HashSet<String> = [&user, &result]
        .into_iter()
        .flatten()
        .chain(answer.iter().map(|(_, expression)| expression))
        .flat_map(|regex| regex.capture_names().flatten())
        .map(str::to_owned)
        .collect();
    let (has_result, has_answers) = (when.tool.is_some(), !answers.is_empty());
    let known = |name: &str| {
        let of_result = ["result", "error", "result.count", "result.list"].contains(&name);
        let of_answers = ["answer", "results"].contains(&name) || is_member(name, "answer.");
        let args = name == "args" || is_member(name, "args.");
        name == "text"
            || groups.contains(name)
            || (has_result && of_result)
            || (has_answers && of_answers)
            || ((has_result || has_answers) && args)
    };
    let mut compiler = Compiler {
        known: &known,
        questions,
        answers: &answers,
        ops: Vec::new(),
        open_steps: Vec::new(),
        activities: HashSet::new(),
    };
    compiler.actions(play)?;
    let play = compiler.ops;
    questions.check_answers(&answers, &play).map_err(refuse)?;
    let (offers, approved) = (when.offers.into_vec(), when.approved);
    let when = When { user, tool: when.tool, result, failed: when.failed, offers, answers, approved, answer, join };
    Ok(Reply { when, play })
}

/// Whether a placeholder names something behind a prefix.
fn is_member(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|member| !member.is_empty())
}

fn regex(text: &Spanned<String>) -> Result<Regex, ScriptError> {
    RegexBuilder::new(text.get_ref()).case_insensitive(true).build().map_err(|error| {
        let message = match error {
            // The whole of it would repeat the expression over several lines.
            regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().replace("error: ", ""),
            other => other.to_string(),
        };
        ScriptError { message: format!("not a regular expression: {message}"), span: Some(text.span()) }
    })
}

struct Compiler<'a> {
    known: &'a dyn Fn(&str) -> bool,
    questions: &'a Questions,
    /// What the reply is played for answers to.
    answers: &'a [String],
    ops: Vec<Op>,
    open_steps: Vec<String>,
    /// The activities that a patch can amend.
    activities: HashSet<String>,
}

impl Compiler<'_> {
    fn actions(&mut self, actions: Vec<Spanned<Action>>) -> Result<(), ScriptError> {
        for action in actions {
            let span = action.span();
            self.action(action.into_inner()).map_err(|fault| match fault {
                Fault::Here(message) => ScriptError { message, span: Some(span) },
                Fault::Within(error) => error,
            })?;
        }
        Ok(())
    }

    fn action(&mut self, mut action: Action) -> Result<(), Fault> {
        if matches!(self.ops.last(), Some(Op::Interrupts(_))) {
            return fault("`interrupts` end the run, so nothing can follow them");
        }
        let every = Duration::from_millis(action.every_ms.take().unwrap_or(0));
        let paced = every > Duration::ZERO;
        let op = match Kind::of(&action)? {
            Kind::Text => Op::Text { deltas: self.deltas(action.text.take())?, every },
            Kind::Think => Op::Think { deltas: self.deltas(action.think.take())?, every },
            Kind::Count => {
                let to = self.template(&action.count.take().unwrap_or_default())?;
                Op::Count { to, most: action.most.take().unwrap_or(1000), every }
            }
            _ if paced => return fault("`every_ms` belongs to `text`, `think` or `count`"),
            Kind::Call => {
                let tool = action.call.take().unwrap_or_default();
                let args = action.args.take().unwrap_or_default();
                let call = self.call(format::Call { call: tool, args, result: action.result.take() })?;
                Op::Calls { calls: vec![call], within: self.within(&mut action)? }
            }
            Kind::Calls => {
                let calls = action.calls.take().unwrap_or_default();
                let calls = calls.into_iter().map(|call| self.call(call)).collect::<Result<_, _>>()?;
                Op::Calls { calls, within: self.within(&mut action)? }
            }
            Kind::Step => {
                let name = action.step.take().unwrap_or_default();
                let Some(play) = action.play.take() else { return fault("`step` needs `play`") };
                unused(&action)?;
                if self.open_steps.contains(&name) {
                    return fault(format!("the step {name:?} is already open here"));
                }
                self.ops.push(Op::StepStarted(name.clone()));
                self.open_steps.push(name.clone());
                self.actions(play).map_err(Fault::Within)?;
                self.open_steps.pop();
                Op::StepFinished(name)
            }
            Kind::Activity => {
                let kind = action.activity.take().unwrap_or_default();
                match (action.content.take(), action.patch.take()) {
                    (Some(content), None) => {
                        self.activities.insert(kind.clone());
                        Op::Activity { kind, content: self.json(content.into())? }
                    }
                    (None, Some(patch)) if self.activities.contains(&kind) => {
                        Op::ActivityPatch { kind, patch: checked(patch)? }
                    }
                    (None, Some(_)) => return fault(format!("the activity {kind:?} has no `content` yet to patch")),
                    _ => return fault("`activity` needs `content` or `patch`"),
                }
            }
            Kind::State => Op::State(self.json(action.state.take().unwrap_or_default())?),
            Kind::Patch => Op::Patch(checked(action.patch.take().unwrap_or_default())?),
            Kind::Custom => {
                let name = action.custom.take().unwrap_or_default();
                Op::Custom { name, value: self.json(action.value.take().unwrap_or_default())? }
            }
            Kind::Wait => Op::Wait(Duration::from_millis(action.wait_ms.take().unwrap_or(0))),
            Kind::Fail => {
                let message = self.template(&action.fail.take().unwrap_or_default())?;
                Op::Fail { message, code: action.code.take() }
            }
            Kind::ResultOf => {
                let of = action.result_of.take().unwrap_or_default();
                let (Some(approved), Some(declined)) = (action.approved.take(), action.declined.take()) else {
                    return fault("`result_of` needs `approved` and `declined`");
                };
                let of = self.questions.answered_call(of, self.answers).map_err(Fault::Here)?;
                Op::Results { of, approved: self.template(&approved)?, declined: self.template(&declined)? }
            }
            Kind::Interrupts if !self.open_steps.is_empty() => return fault("`interrupts` cannot be in a step"),
            Kind::Interrupts => self.interrupts(action.interrupts.take().unwrap_or_default())?,
        };
        unused(&action)?;
        self.ops.push(op);
        Ok(())
    }

    /// Whether the action's calls belong to the message before them.
    fn within(&self, action: &mut Action) -> Result<bool, Fault> {
        let within = action.within.take().unwrap_or(false);
        if within && !self.ops.iter().any(|op| matches!(op, Op::Text { .. } | Op::Count { .. })) {
            return fault("`within` needs a message before the call");
        }
        Ok(within)
    }

    fn call(&self, call: format::Call) -> Result<Call, Fault> {
        Ok(Call {
            tool: call.call,
            args: self.json(call.args.into())?,
            result: call.result.map(|result| self.template(&result)).transpose()?,
        })
    }

    fn interrupts(&self, interrupts: Vec<format::Interrupt>) -> Result<Op, Fault> {
        self.questions.check_asked(&interrupts, &self.ops).map_err(Fault::Here)?;
        let known = |name: &str| (self.known)(name) || name == "args" || is_member(name, "args.");
        let questions = interrupts.into_iter().map(|interrupt| {
            // Only a call has arguments that its question can name.
            let known: &dyn Fn(&str) -> bool = if interrupt.call.is_some() { &known } else { self.known };
            Question::new(interrupt, known)
        });
        Ok(Op::Interrupts(questions.collect::<Result<_, _>>().map_err(Fault::Here)?))
    }

    fn deltas(&self, texts: Option<OneOrMore>) -> Result<Vec<Template>, Fault> {
        let texts = texts.unwrap_or_default().into_vec();
        if texts.iter().all(String::is_empty) {
            return fault("there is no text");
        }
        texts.iter().map(|text| self.template(text)).collect()
    }

    fn json(&self, value: serde_json::Value) -> Result<JsonTemplate, Fault> {
        JsonTemplate::parse(value, self.known).map_err(Fault::Here)
    }

    fn template(&self, text: &str) -> Result<Template, Fault> {
        Template::parse(text, self.known).map_err(Fault::Here)
    }
}

/// Something wrong with an action itself, or with one inside it.
enum Fault {
    Here(String),
    Within(ScriptError),
}

fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Here(message.into()))
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Think,
    Call,
    Calls,
    Step,
    State,
    Patch,
    Activity,
    Custom,
    Count,
    Wait,
    Fail,
    ResultOf,
    Interrupts,
}

impl Kind {
    /// The one key that says what an action plays.
    fn of(action: &Action) -> Result<Self, Fault> {
        let keys = [
            (action.text.is_some(), "text", Self::Text),
            (action.think.is_some(), "think", Self::Think),
            (action.call.is_some(), "call", Self::Call),
            (action.calls.is_some(), "calls", Self::Calls),
            (action.step.is_some(), "step", Self::Step),
            (action.state.is_some(), "state", Self::State),
            (action.patch.is_some() && action.activity.is_none(), "patch", Self::Patch),
            (action.activity.is_some(), "activity", Self::Activity),
            (action.custom.is_some(), "custom", Self::Custom),
            (action.count.is_some(), "count", Self::Count),
            (action.wait_ms.is_some(), "wait_ms", Self::Wait),
            (action.fail.is_some(), "fail", Self::Fail),
            (action.result_of.is_some(), "result_of", Self::ResultOf),
            (action.interrupts.is_some(), "interrupts", Self::Interrupts),
        ];
        let mut present = keys.iter().filter(|(present, ..)| *present);
        match (present.next(), present.next()) {
            (Some((_, _, kind)), None) => Ok(*kind),
            (Some((_, a, _)), Some((_, b, _))) => fault(format!("`{a}` and `{b}` cannot be one action")),
            (None, _) => {
                let names = keys.map(|(_, name, _)| format!("`{name}`")).join(", ");
                fault(format!("an action needs one of {names}"))
            }
        }
    }
}

/// Keys that belong to another kind of action.
fn unused(action: &Action) -> Result<(), Fault> {
    let rest = [
        (action.args.is_some(), "args", "call"),
        (action.result.is_some(), "result", "call"),
        (action.within.is_some(), "within", "call` or `calls"),
        (action.play.is_some(), "play", "step"),
        (action.content.is_some(), "content", "activity"),
        (action.value.is_some(), "value", "custom"),
        (action.most.is_some(), "most", "count"),
        (action.code.is_some(), "code", "fail"),
        (action.approved.is_some(), "approved", "result_of"),
        (action.declined.is_some(), "declined", "result_of"),
    ];
    match rest.into_iter().find(|(present, ..)| *present) {
        Some((_, name, owner)) => fault(format!("`{name}` belongs to `{owner}`")),
        None => Ok(()),
    }
}

fn checked(patch: JsonPatch) -> Result<JsonPatch, Fault> {
    for operation in &patch {
        let (path, from) = operation.pointers();
        if let Some(text) = [Some(path), from].into_iter().flatten().find(|text| !is_pointer(text)) {
            return fault(format!("{text:?} is not a JSON Pointer"));
        }
    }
    Ok(patch)
}
